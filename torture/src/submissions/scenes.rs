//! What clients do, again and again: hand in right and wrong workbooks, small and large, the same twice, two at once; hang up; undo.
//! An operator tries work again and frees registrations meanwhile.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, StatusCode};

use super::book::{Book, Policy, Removal, Source};
use super::client::{Client, state};
use super::workbook::{Row, Rows};
use crate::chronicle::Class;
use crate::dice::Dice;
use crate::world::World;

const CLIENTS: u64 = 4;
/// More than a few chunks of the ledger.
const LARGE: std::ops::Range<u64> = 1100..2400;
const SMALL: std::ops::Range<u64> = 3..40;

#[derive(Debug, Clone, Copy)]
enum Scene {
    Everyday,
    Unchanged,
    Wrong,
    Repeated,
    HungUp,
    TwoAtOnce,
    Undo,
}

const SCENES: [(u64, Scene); 7] = [
    (7, Scene::Everyday),
    (1, Scene::Unchanged),
    (2, Scene::Wrong),
    (2, Scene::Repeated),
    (3, Scene::HungUp),
    (5, Scene::TwoAtOnce),
    (3, Scene::Undo),
];

/// Sends everybody on the stage.
pub(crate) fn begin(world: &Arc<World>, book: &Arc<Book>, players: &mut tokio::task::JoinSet<()>) {
    let dice = Dice::of(world.setting.seed);
    for number in 0..CLIENTS {
        let client = Client::new(world, book, (dice.part("client", number), world.curtain.clone()));
        players.spawn(client.play());
    }
    let operator = Client::new(world, book, (dice.part("operator", 0), world.curtain.clone()));
    players.spawn(operator.operate());
}

impl Client {
    async fn play(mut self) {
        while !self.is_over() {
            let scopes = u64::try_from(self.book.scopes.len()).unwrap_or(1);
            let scope = usize::try_from(self.dice.number(0..scopes)).unwrap_or(0);
            match *self.dice.weighted(&SCENES) {
                Scene::Everyday => self.everyday(scope).await,
                Scene::Unchanged => self.unchanged(scope).await,
                Scene::Wrong => self.wrong(scope).await,
                Scene::Repeated => self.repeated(scope).await,
                Scene::HungUp => self.hung_up(scope).await,
                Scene::TwoAtOnce => self.two_at_once(scope).await,
                Scene::Undo => self.undo(scope).await,
            }
            let pause = Duration::from_millis(self.dice.number(5..120));
            tokio::time::sleep(pause).await;
        }
    }

    /// Rows as somebody fills them in: some as they were, some others, some new ones.
    fn rows(&mut self, scope: usize) -> Rows {
        let base = self.book.last(scope);
        let size = self.dice.weighted(&[(6, SMALL), (4, LARGE)]).clone();
        let (first, size) = (1000 + self.dice.number(0..30), self.dice.number(size));
        let tag = self.book.next_number();
        let mut rows = match self.book.scopes[scope].removal {
            Removal::Fatal => Rows::clone(&base),
            Removal::Tombstone | Removal::Ignore => Rows::new(),
        };
        for key in first..first + size {
            let key = key.to_string();
            let kept = base.get(&key).filter(|_| self.dice.happens(30)).cloned();
            let tonnes = [".25", ".5", ".75", ""][usize::try_from(self.dice.number(0..4)).unwrap_or(0)];
            let tonnes = format!("{}{tonnes}", self.dice.number(1..900));
            rows.insert(key, kept.unwrap_or(Row { site: format!("site {tag}"), tonnes }));
        }
        rows
    }

    async fn everyday(&mut self, scope: usize) {
        let rows = self.rows(scope);
        let (id, bytes) = self.prepare(scope, (rows, 0));
        if self.upload(scope, (&id, &bytes)).await {
            self.finish(scope, &id).await;
        }
    }

    /// Waits for the preview of a log and confirms it. Returns whether it was submitted.
    pub(super) async fn finish(&mut self, scope: usize, id: &str) -> bool {
        let Some(log) = self.settled(scope, id).await else { return false };
        match state(&log) {
            "validated" => self.confirm_to_the_end(scope, id).await,
            "invalid" => {
                // Somebody else submitted records that we did not know of.
                self.refresh(scope).await;
                false
            }
            _ => false,
        }
    }

    async fn unchanged(&mut self, scope: usize) {
        let rows = Rows::clone(&self.book.last(scope));
        let (id, bytes) = self.prepare(scope, (rows, 0));
        if self.upload(scope, (&id, &bytes)).await {
            self.finish(scope, &id).await;
        }
    }

    async fn wrong(&mut self, scope: usize) {
        let rows = self.rows(scope);
        let wrong = usize::try_from(self.dice.number(1..3)).unwrap_or(1);
        let (id, bytes) = self.prepare(scope, (rows, wrong));
        if !self.upload(scope, (&id, &bytes)).await || self.settled(scope, &id).await.is_none() {
            return;
        }
        self.must_be_refused(scope, &id).await;
    }

    /// Whatever else happened to it: it is superseded, or has no preview.
    async fn must_be_refused(&mut self, scope: usize, id: &str) {
        let Some((status, answer)) = self.confirm(scope, id).await else { return };
        if let (StatusCode::CONFLICT, Some("SUB_002" | "SUB_004")) = (status, answer["code"].as_str()) {
            self.world.chronicle.count("confirmations refused", 1);
        } else {
            let what =
                format!("{id} may not be submitted, and its confirmation was answered {status}: {answer}");
            self.accuse(scope, (Class::Damaged, what));
        }
    }

    /// The same upload again and again, and the same confirmation twice at once.
    async fn repeated(&mut self, scope: usize) {
        let rows = self.rows(scope);
        let (id, bytes) = self.prepare(scope, (rows, 0));
        let (once, again) =
            tokio::join!(self.upload(scope, (&id, &bytes)), self.upload(scope, (&id, &bytes)));
        if !(once || again) {
            return;
        }
        let Some(log) = self.settled(scope, &id).await else { return };
        if state(&log) == "validated" {
            tokio::join!(self.confirm(scope, &id), self.confirm(scope, &id));
            self.upload(scope, (&id, &bytes)).await;
            self.finish(scope, &id).await;
        }
    }

    /// Nobody waits for the answers: they are asked for again.
    async fn hung_up(&mut self, scope: usize) {
        let rows = self.rows(scope);
        let (id, bytes) = self.prepare(scope, (rows, 0));
        let patience = Duration::from_millis(self.dice.number(3..150));
        let path = self.book.scopes[scope].path(&format!("/summary-logs?id={id}&name=loads.xlsx"));
        let _ = tokio::time::timeout(patience, self.ask_once(Method::POST, &path, bytes.clone())).await;
        if !self.upload(scope, (&id, &bytes)).await || self.settled(scope, &id).await.is_none() {
            return;
        }
        let patience = Duration::from_millis(self.dice.number(1..60));
        let path = self.book.scopes[scope].path(&format!("/summary-logs/{id}/submit"));
        let _ = tokio::time::timeout(patience, self.ask_once(Method::POST, &path, Bytes::new())).await;
        self.confirm_to_the_end(scope, &id).await;
    }

    /// Two workbooks: the newer one wins, or both stand side by side and the second has to be looked at again.
    async fn two_at_once(&mut self, scope: usize) {
        let (first, second) = (self.rows(scope), self.rows(scope));
        let (one, bytes) = self.prepare(scope, (first, 0));
        if !self.upload(scope, (&one, &bytes)).await {
            return;
        }
        if self.dice.happens(60) && self.settled(scope, &one).await.is_none() {
            return;
        }
        let (two, bytes) = self.prepare(scope, (second, 0));
        if !self.upload(scope, (&two, &bytes)).await {
            return;
        }
        if self.book.scopes[scope].policy == Policy::OneActive {
            self.must_be_refused(scope, &one).await;
            self.finish(scope, &two).await;
            return;
        }
        if self.settled(scope, &one).await.is_some() && self.settled(scope, &two).await.is_some() {
            tokio::join!(self.confirm(scope, &one), self.confirm(scope, &two));
            self.confirm_to_the_end(scope, &two).await;
            self.confirm_to_the_end(scope, &one).await;
        }
    }

    async fn undo(&mut self, scope: usize) {
        let book = Arc::clone(&self.book);
        let Ok(commits) = super::reading::commits(&self.world, (&book, scope)).await else { return };
        if commits.is_empty() {
            return;
        }
        let newest = commits.len().saturating_sub(3);
        let undone = self.dice.one_of(&commits[newest..]).number;
        let path = self.book.scopes[scope].path(&format!("/submissions/{undone}/undo"));
        let Some((status, log)) = self.ask_once(Method::POST, &path, Bytes::new()).await else { return };
        if let (StatusCode::ACCEPTED, Some(id)) = (status, log["id"].as_str()) {
            self.note(scope, &format!("{id} undoes {undone}"));
            self.world.chronicle.count("undoings begun", 1);
            self.book.add(id, scope, Source::Undo);
            if self.dice.happens(50) && self.settled(scope, id).await.is_some() {
                // Thinks about it; others may submit meanwhile.
                let pause = Duration::from_millis(self.dice.number(200..1500));
                tokio::time::sleep(pause).await;
            }
            self.finish(scope, id).await;
        } else if log["code"] != "SUB_001" {
            self.accuse(scope, (Class::Damaged, format!("undoing {undone} was answered {status}: {log}")));
        }
    }

    /// Somebody who is impatient with what is on its way: has it tried again, or frees its registration.
    async fn operate(mut self) {
        while !self.is_over() {
            let pause = Duration::from_millis(self.dice.number(60..500));
            tokio::time::sleep(pause).await;
            let path = "/api/v1/operations/submissions";
            let Some((_, listed)) = self.ask_once(Method::GET, path, Bytes::new()).await else { continue };
            let busy: Vec<&str> = listed["submissions"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|log| ["validating", "submitting"].contains(&state(log)))
                .filter_map(|log| log["log"].as_str())
                .collect();
            if busy.is_empty() {
                continue;
            }
            let id = *self.dice.one_of(&busy);
            let act = if self.dice.happens(75) { "retry" } else { "release" };
            if act == "release" {
                self.book.release(id);
            }
            let path = format!("/api/v1/operations/submissions/{id}/{act}");
            let Some((status, answer)) = self.ask_once(Method::POST, &path, Bytes::new()).await else {
                continue;
            };
            let scope = self.book.source(id).map_or(0, |(scope, _)| scope);
            self.note(scope, &format!("{act} of {id}: {status}"));
            self.world.chronicle.count(&format!("operator: {act}"), 1);
            if ![StatusCode::NO_CONTENT, StatusCode::NOT_FOUND].contains(&status) {
                self.accuse(
                    scope,
                    (Class::Damaged, format!("{act} of {id} was answered {status}: {answer}")),
                );
            }
        }
    }
}
