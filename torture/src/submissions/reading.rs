//! Reads records over HTTP as anybody may, and holds them against what was handed in.
//!
//! Guarantees: every answer is judged, whether it came while a submission was being written, right after a kill, or at rest. A service
//! that is down accuses nobody.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::book::Book;
use super::truth::{Commit, Records};
use super::workbook::Row;
use crate::chronicle::{Class, Violation};
use crate::world::{NoAnswer, World};

const PAUSE: Duration = Duration::from_millis(40);

/// Reads all registrations again and again, until it is stopped.
pub(crate) async fn watch(world: Arc<World>, book: Arc<Book>) {
    loop {
        for scope in 0..book.scopes.len() {
            if read_and_judge(&world, (&book, scope)).await.is_ok() {
                world.chronicle.count("records read and judged", 1);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Reads the records of a registration and accuses what is wrong with them. Returns them as they were read.
pub(crate) async fn read_and_judge(
    world: &World,
    (book, scope): (&Book, usize),
) -> Result<Records, NoAnswer> {
    let name = book.scopes[scope].name();
    let accuse = |violation: Violation| world.chronicle.accuse(violation.of_document(&name));
    let (number, records) = read(world, (book, scope)).await?;
    let listed = commits(world, (book, scope)).await?;
    let mut truth = book.truths[scope].lock().await;
    match truth.follow(&listed, (book, scope)) {
        Ok(()) => truth.judge(number, &records).into_iter().for_each(accuse),
        Err(violation) => accuse(violation),
    }
    Ok(records)
}

/// Every promise is in the list of submissions.
pub(crate) async fn check_promises(world: &World, book: &Book) {
    for (log, (scope, number)) in book.promised() {
        let found = book.truths[scope].lock().await.number_of(&log);
        if found != Some(number) {
            let what = format!("summary log {log} was told to be submission {number}, and is {found:?}");
            world.chronicle.accuse(Violation::new(Class::Lost, what).of_document(&book.scopes[scope].name()));
        }
    }
}

/// The records of one moment, page by page, and that moment.
async fn read(world: &World, (book, scope): (&Book, usize)) -> Result<(u64, Records), NoAnswer> {
    let mut records = Records::new();
    let mut query = "limit=500".to_owned();
    loop {
        let path = book.scopes[scope].path(&format!("/records?{query}"));
        let page = checked(world, (book, scope), world.host.get(&path).await)?;
        for record in page["records"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (key, values) = (text(&record["key"]), &record["values"]);
            let row = Row { site: text(&values["SITE"]), tonnes: text(&values["TONNES"]) };
            records.insert(key, (record["submission"].as_u64().unwrap_or(0), row));
        }
        let as_of = page["as_of"].as_u64().unwrap_or(u64::MAX);
        let (Some(kind), Some(key)) = (page["next"]["kind"].as_str(), page["next"]["key"].as_str()) else {
            return Ok((as_of, records));
        };
        query = format!("limit=500&as_of={as_of}&after_kind={kind}&after_key={key}");
    }
}

/// The submissions of a registration, the oldest first.
pub(crate) async fn commits(world: &World, (book, scope): (&Book, usize)) -> Result<Vec<Commit>, NoAnswer> {
    let mut commits = Vec::new();
    let mut before = String::new();
    loop {
        let path = book.scopes[scope].path(&format!("/submissions?limit=500{before}"));
        let page = checked(world, (book, scope), world.host.get(&path).await)?;
        let listed = page["submissions"].as_array().into_iter().flatten();
        commits.extend(listed.map(|commit| Commit {
            number: commit["submission"].as_u64().unwrap_or(0),
            log: commit["log"].as_str().unwrap_or_default().to_owned(),
            undoes: commit["undoes"].as_u64(),
        }));
        let Some(next) = page["next"].as_u64() else { break };
        before = format!("&before={next}");
    }
    commits.reverse();
    Ok(commits)
}

/// A reader is answered, or the service is down.
fn checked(
    world: &World,
    (book, scope): (&Book, usize),
    answer: Result<Value, NoAnswer>,
) -> Result<Value, NoAnswer> {
    if let Err(NoAnswer::Refused(status, body)) = &answer
        && status.as_u16() != 503
    {
        let what = format!("a reader was answered {status}: {body}");
        world.chronicle.accuse(Violation::new(Class::Lost, what).of_document(&book.scopes[scope].name()));
    }
    answer
}
