//! One round of submissions: registrations are set up, clients hand in, the service is killed again and again, and everything comes to
//! rest and is checked.
//!
//! Guarantees: a registration that cannot be handed in for within a minute after the last kill is accused as stuck.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::book::Book;
use super::checking::check_after_kill;
use super::client::Client;
use super::workbook::{Row, Rows, template};
use super::{reading, scenes};
use crate::checking::Ledger;
use crate::chronicle::{Class, Violation};
use crate::cluster::{self, Check};
use crate::dice::Dice;
use crate::killing::{self, Life};
use crate::round::{self, Report};
use crate::world::{Cut, NoAnswer, Process, Setting, World};

/// Nobody waits longer for their registration after the last kill.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(200);
const READERS: usize = 2;

/// Plays one round.
pub(crate) async fn play(setting: Setting, lives: Vec<Life>) -> Result<Report> {
    let world = Arc::new(World::new(setting).await?);
    let book = Arc::new(Book::new());
    let processes = start(&world).await?.context("the service does not even start")?;
    if let Err(refused) = set_up(&world, &book).await {
        bail!("the service does not take the registrations: {refused:?}");
    }
    let (mut players, mut readers) = (JoinSet::new(), JoinSet::new());
    scenes::begin(&world, &book, &mut players);
    for _ in 0..READERS {
        readers.spawn(reading::watch(Arc::clone(&world), Arc::clone(&book)));
    }
    let mut report = Report::begin(&world);
    let living = live_through((&world, &book), processes, lives, &mut report).await?;
    if let Some(processes) = living {
        finish(&world, &book, (&mut players, &mut readers, processes)).await?;
    }
    Ok(report.end())
}

/// Starts the service, or all its instances.
async fn start(world: &Arc<World>) -> Result<Option<Vec<Process>>> {
    if world.cluster.is_some() {
        return cluster::start_all(world).await;
    }
    Ok(killing::start(world, None).await?.map(|process| vec![process]))
}

async fn stop(world: &World, processes: Vec<Process>) -> Result<()> {
    cluster::kill_all(processes).await?;
    round::end_power(world, Cut::Clean).await
}

/// Kills what runs until all lives are spent, and looks at the ledger after each. Returns what runs then; `None` if there is no use in going on.
async fn live_through(
    (world, book): (&Arc<World>, &Arc<Book>),
    processes: Vec<Process>,
    lives: Vec<Life>,
    report: &mut Report,
) -> Result<Option<Vec<Process>>> {
    if world.cluster.is_some() {
        let (checked, held) = (Arc::clone(world), Arc::clone(book));
        let check: Check = Arc::new(move || {
            let (world, book) = (Arc::clone(&checked), Arc::clone(&held));
            Box::pin(async move { check_after_kill(&world, &book).await })
        });
        return cluster::live_through(world, processes, (lives, check), report).await;
    }
    stop(world, processes).await?;
    for life in &lives {
        report.add(killing::live(world, life).await?);
        check_after_kill(world, book).await?;
        if round::is_caught(world) {
            return Ok(None);
        }
        tokio::time::sleep(life.pause).await;
    }
    start(world).await
}

async fn set_up(world: &World, book: &Book) -> Result<(), NoAnswer> {
    let mut known = BTreeSet::new();
    for scope in &book.scopes {
        if known.insert(scope.template()) {
            let text = Bytes::from(template(&scope.template(), scope.words()));
            world.host.call(Method::POST, "/api/v1/templates", ("root", text)).await?;
        }
        world.host.put(&format!("/api/v1/organisations/{}", scope.organisation), &json!({})).await?;
        let facts = json!({ "number": scope.registration, "template": scope.template() });
        world.host.put(&scope.path(""), &facts).await?;
    }
    Ok(())
}

/// Everybody leaves; what is on its way comes to its end; every registration takes one more workbook; all of it is read and checked.
async fn finish(
    world: &Arc<World>,
    book: &Arc<Book>,
    (players, readers, processes): (&mut JoinSet<()>, &mut JoinSet<()>, Vec<Process>),
) -> Result<()> {
    let began = Instant::now();
    world.curtain.cancel();
    let leaving = async {
        while let Some(ended) = players.join_next().await {
            ended?;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, leaving).await.context("the clients do not finish")??;
    world.chronicle.note("the curtain has fallen");
    settle(world, book, began).await;
    hand_in_everywhere(world, book).await;
    readers.shutdown().await;
    for scope in 0..book.scopes.len() {
        if reading::read_and_judge(world, (book, scope)).await.is_err() {
            let violation = Violation::new(Class::Stuck, "the records cannot be read at rest");
            world.chronicle.accuse(violation.of_document(&book.scopes[scope].name()));
        }
    }
    reading::check_promises(world, book).await;
    stop(world, processes).await?;
    check_after_kill(world, book).await?;
    let Some(first) = restart_and_read(world).await? else { return Ok(()) };
    let Some(second) = restart_and_read(world).await? else { return Ok(()) };
    round::compare(world, &first, &second);
    round::verify(world).await
}

async fn restart_and_read(world: &Arc<World>) -> Result<Option<Ledger>> {
    if world.cluster.is_some() {
        return cluster::restart_and_read(world).await;
    }
    round::restart_and_read(world).await
}

/// Waits until no log needs work any more.
async fn settle(world: &World, book: &Book, began: Instant) {
    let mut left = BTreeMap::new();
    while began.elapsed() < PATIENCE {
        if let Ok(listed) = world.host.get("/api/v1/operations/submissions?limit=500").await {
            left = BTreeMap::new();
            for log in listed["submissions"].as_array().into_iter().flatten() {
                let state = log["state"].as_str().unwrap_or_default();
                if ["preprocessing", "validating", "submitting"].contains(&state) {
                    left.insert(log["log"].as_str().unwrap_or_default().to_owned(), log.to_string());
                }
            }
            if left.is_empty() {
                return;
            }
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    for (log, facts) in left {
        let scope = book.source(&log).map_or_else(String::new, |(scope, _)| book.scopes[scope].name());
        let what = format!("summary log {log} does not come to its end: {facts}");
        world.chronicle.accuse(Violation::new(Class::Stuck, what).of_document(&scope));
    }
}

/// A registration that takes another workbook and shows it is not stuck.
async fn hand_in_everywhere(world: &Arc<World>, book: &Arc<Book>) {
    for scope in 0..book.scopes.len() {
        let dice = Dice::of(world.setting.seed).part("last", scope as u64);
        let mut client = Client::new(world, book, (dice, CancellationToken::new()));
        let began = Instant::now();
        let mut is_done = false;
        while !is_done && began.elapsed() < PATIENCE {
            client.refresh(scope).await;
            let mut rows = Rows::clone(&book.last(scope));
            let tag = book.next_number();
            rows.insert(tag.to_string(), Row { site: format!("site {tag}"), tonnes: "1".to_owned() });
            let (id, bytes) = client.prepare(scope, (rows, 0));
            is_done = client.upload(scope, (&id, &bytes)).await && client.finish(scope, &id).await;
        }
        if !is_done {
            let what = "nothing can be handed in a minute after everything came to rest";
            let name = book.scopes[scope].name();
            world.chronicle.accuse(Violation::new(Class::Stuck, what).of_document(&name));
        }
    }
}
