//! One client: uploads, looks, confirms, and asks again when no answer came.
//!
//! Guarantees: every answer is one the seed allows, else it is accused: a repeat gives the same, a superseded log is refused, a preview
//! counts every row, nothing is answered 500. What was promised is written down.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::book::{Book, Removal, Source};
use super::reading;
use super::workbook::{Rows, workbook};
use crate::chronicle::{Class, Violation};
use crate::dice::Dice;
use crate::world::{NoAnswer, World};

const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long a client cares for what it began.
const PATIENCE: Duration = Duration::from_secs(25);
/// Confirmations of one log before a client gives up: others are faster.
const CONFIRMATIONS_MAX: u32 = 8;

/// Somebody who hands in.
pub(crate) struct Client {
    pub(crate) world: Arc<World>,
    pub(crate) book: Arc<Book>,
    pub(crate) name: String,
    pub(crate) dice: Dice,
    /// When it falls, the client leaves.
    pub(crate) curtain: CancellationToken,
}

/// A definite answer.
pub(crate) type Answered = (StatusCode, Value);

impl Client {
    pub(crate) fn new(
        world: &Arc<World>,
        book: &Arc<Book>,
        (dice, curtain): (Dice, CancellationToken),
    ) -> Self {
        let name = format!("client{}", book.next_number());
        Self { world: Arc::clone(world), book: Arc::clone(book), name, dice, curtain }
    }

    pub(crate) fn accuse(&self, scope: usize, (class, what): (Class, String)) {
        let violation = Violation::new(class, what).of_document(&self.book.scopes[scope].name());
        self.world.chronicle.accuse(violation);
    }

    pub(crate) fn note(&self, scope: usize, what: &str) {
        let scope = self.book.scopes[scope].name();
        self.world.chronicle.note_of(&scope, format!("{}: {what}", self.name));
    }

    pub(crate) fn is_over(&self) -> bool {
        self.curtain.is_cancelled()
    }

    /// Asks once. `None`: no definite answer.
    pub(crate) async fn ask_once(&self, method: Method, path: &str, body: Bytes) -> Option<Answered> {
        match self.world.host.call(method, path, (&self.name, body)).await {
            Ok(answered) => Some(answered),
            Err(NoAnswer::Refused(StatusCode::SERVICE_UNAVAILABLE, _) | NoAnswer::Down) => None,
            Err(NoAnswer::Refused(status, body)) => {
                Some((status, serde_json::from_str(&body).unwrap_or(Value::String(body))))
            }
        }
    }

    /// Asks until there is a definite answer, or the curtain falls.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: &Bytes) -> Option<Answered> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(answered) = self.ask_once(method.clone(), path, body.clone()).await {
                return Some(answered);
            }
            if self.is_over() {
                return None;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        None
    }

    /// Writes a workbook down and gives its log an id.
    pub(crate) fn prepare(&self, scope: usize, (rows, wrong): (Rows, usize)) -> (String, Bytes) {
        let id = format!("{}-{}", self.name, self.book.next_number());
        let registration = self.book.scopes[scope].registration;
        let bytes = workbook(registration, &rows, wrong);
        self.book.add(&id, scope, Source::Workbook { rows: Arc::new(rows), wrong });
        (id, bytes)
    }

    /// Uploads. Returns whether the service took it.
    pub(crate) async fn upload(&self, scope: usize, (id, bytes): (&str, &Bytes)) -> bool {
        let path = self.book.scopes[scope].path(&format!("/summary-logs?id={id}&name=loads.xlsx"));
        let Some((status, answer)) = self.ask(Method::POST, &path, bytes).await else { return false };
        self.note(scope, &format!("upload of {id}: {status} {}", words(&answer)));
        match (status, answer["code"].as_str()) {
            (StatusCode::ACCEPTED, _) if answer["id"] == id => {
                self.world.chronicle.count("uploads taken", 1);
                true
            }
            (StatusCode::CONFLICT, Some("SUB_001")) => false,
            _ => {
                self.accuse(
                    scope,
                    (Class::Damaged, format!("the upload of {id} was answered {status}: {answer}")),
                );
                false
            }
        }
    }

    /// Waits until a log needs somebody, and looks at what it says.
    pub(crate) async fn settled(&self, scope: usize, id: &str) -> Option<Value> {
        let path = self.book.scopes[scope].path(&format!("/summary-logs/{id}"));
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let (status, log) = self.ask(Method::GET, &path, &Bytes::new()).await?;
            if status != StatusCode::OK {
                self.accuse(
                    scope,
                    (Class::Lost, format!("summary log {id} was taken and is answered {status}")),
                );
                return None;
            }
            if !["preprocessing", "validating", "submitting"].contains(&state(&log)) {
                self.look_at(scope, (id, &log));
                return Some(log);
            }
            if self.is_over() {
                return None;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.world.chronicle.count("logs left to themselves", 1);
        None
    }

    /// What a log says of itself is what its workbook holds.
    fn look_at(&self, scope: usize, (id, log): (&str, &Value)) {
        let number = |name: &str| log["previewStats"][name].as_u64().unwrap_or(0);
        let counted = number("created") + number("updated") + number("unchanged");
        let fatal = log["problems"]["fatal"].as_u64().unwrap_or(0);
        let source = self.book.source(id).map(|(_, source)| source);
        let may_lack = self.book.scopes[scope].removal == Removal::Fatal;
        let wrong = match (state(log), source) {
            ("validated" | "submitted", Some(Source::Workbook { rows, wrong })) => (wrong > 0
                || counted != rows.len() as u64)
                .then(|| format!("counts {counted} of {} rows, {wrong} of them wrong", rows.len())),
            ("invalid", Some(Source::Workbook { wrong: 0, .. })) => {
                (!may_lack).then(|| "is called invalid and is right".to_owned())
            }
            ("invalid", Some(Source::Workbook { wrong, .. })) => {
                (fatal != wrong as u64).then(|| format!("has {wrong} wrong rows and {fatal} problems"))
            }
            ("validation_failed", _) => {
                (!self.book.is_released(id)).then(|| format!("was given up: {}", log["reason"]))
            }
            ("superseded", _) => {
                self.book.supersede(id);
                None
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            self.accuse(scope, (Class::Damaged, format!("summary log {id} {wrong}")));
        }
        if state(log) == "submitted" {
            self.promised(scope, (id, log));
        }
    }

    fn promised(&self, scope: usize, (id, log): (&str, &Value)) {
        let number = log["submission"].as_u64().unwrap_or(0);
        match self.book.promised().get(id) {
            Some((_, before)) if *before != number => {
                let what = format!("summary log {id} was submission {before} and is {number}");
                self.accuse(scope, (Class::Duplicated, what));
            }
            Some(_) => {}
            None => {
                self.world.chronicle.count("submissions promised", 1);
                self.note(scope, &format!("{id} is submission {number}"));
                self.book.promise(id, (scope, number));
            }
        }
    }

    pub(crate) async fn confirm(&self, scope: usize, id: &str) -> Option<Answered> {
        let path = self.book.scopes[scope].path(&format!("/summary-logs/{id}/submit"));
        let was_promised = self.book.promised().contains_key(id);
        let (status, answer) = self.ask(Method::POST, &path, &Bytes::new()).await?;
        self.note(scope, &format!("confirmation of {id}: {status} {}", words(&answer)));
        let is_refusal = status == StatusCode::CONFLICT && answer["code"].is_string();
        let is_expected = match status {
            StatusCode::OK => state(&answer) == "submitted",
            StatusCode::ACCEPTED => state(&answer) == "submitting" && !was_promised,
            _ => is_refusal && !was_promised,
        };
        if !is_expected {
            let what = format!("the confirmation of {id} was answered {status}: {}", words(&answer));
            self.accuse(scope, (Class::Damaged, what));
        }
        if status == StatusCode::OK {
            self.promised(scope, (id, &answer));
        }
        if answer["code"] == "SUB_002" {
            self.book.supersede(id);
        }
        Some((status, answer))
    }

    /// Confirms until it is done, or cannot be done. Returns whether it was submitted.
    pub(crate) async fn confirm_to_the_end(&mut self, scope: usize, id: &str) -> bool {
        for _ in 0..CONFIRMATIONS_MAX {
            let Some((status, answer)) = self.confirm(scope, id).await else { return false };
            let log = match (status, answer["code"].as_str()) {
                (StatusCode::OK, _) => return self.repeat(scope, id).await,
                (StatusCode::ACCEPTED, _) => self.settled(scope, id).await,
                // Somebody else submits, or did: the preview is being computed again.
                (StatusCode::CONFLICT, Some("SUB_001" | "SUB_003" | "SUB_004")) => {
                    tokio::time::sleep(LOOK_AGAIN * 4).await;
                    self.settled(scope, id).await
                }
                _ => return false,
            };
            match log.as_ref().map(state) {
                Some("submitted") => return self.repeat(scope, id).await,
                // An operator gave it back, or there is another preview: once more.
                Some("validated") => {}
                _ => return false,
            }
        }
        false
    }

    /// Confirms once more what is done, at times.
    async fn repeat(&mut self, scope: usize, id: &str) -> bool {
        if self.dice.happens(40) {
            self.world.chronicle.count("confirmations repeated", 1);
            self.confirm(scope, id).await;
        }
        true
    }

    /// Looks up what the records are.
    pub(crate) async fn refresh(&self, scope: usize) {
        if let Ok(records) = reading::read_and_judge(&self.world, (&self.book, scope)).await {
            let rows = records.into_iter().map(|(key, (_, row))| (key, row)).collect();
            self.book.set_last(scope, rows);
        }
    }
}

pub(crate) fn state(log: &Value) -> &str {
    log["state"].as_str().unwrap_or_default()
}

/// An answer in a few words.
fn words(answer: &Value) -> String {
    match (answer["state"].as_str(), answer["code"].as_str()) {
        (Some(state), _) => format!("{state} {}", answer["submission"]),
        (None, Some(code)) => code.to_owned(),
        _ => answer.to_string(),
    }
}
