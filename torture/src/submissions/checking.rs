//! After a kill, before the next start: what was promised is there, nothing is there twice, and nothing half.
//!
//! Rows are read as they stand in a copy of the ledger; no recovery has run yet.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use rusqlite::Connection;

use super::book::Book;
use crate::checking::Ledger;
use crate::chronicle::{Class, Violation};
use crate::world::World;

/// Each query returns a registration and a sentence per broken promise.
const CHECKS: [(Class, &str); 7] = [
    (
        Class::Duplicated,
        "SELECT s.organisation || '/' || s.registration, v.kind || ' ' || v.key || ' has more than one version of summary log ' || l.id
         FROM record_versions v JOIN record_scopes s ON s.number = v.scope JOIN summary_logs l ON l.number = v.log
         GROUP BY v.scope, v.kind, v.key, v.log HAVING count(*) > 1",
    ),
    (
        Class::Duplicated,
        "SELECT s.organisation || '/' || s.registration, 'summary log ' || l.id || ' has more than one submission'
         FROM record_commits c JOIN summary_logs l ON l.number = c.log JOIN record_scopes s ON s.number = c.scope
         GROUP BY c.log HAVING count(*) > 1",
    ),
    (
        Class::Duplicated,
        "SELECT s.organisation || '/' || s.registration, count(*) || ' summary logs are active where one may be'
         FROM summary_logs l JOIN record_scopes s ON s.number = l.scope WHERE l.policy = 'one-active'
         AND l.state IN ('preprocessing', 'validating', 'validated', 'submitting') GROUP BY l.scope HAVING count(*) > 1",
    ),
    (
        Class::Duplicated,
        "SELECT s.organisation || '/' || s.registration, count(*) || ' summary logs are being submitted at once'
         FROM summary_logs l JOIN record_scopes s ON s.number = l.scope WHERE l.state = 'submitting' GROUP BY l.scope HAVING count(*) > 1",
    ),
    (
        Class::Damaged,
        "SELECT s.organisation || '/' || s.registration, 'its submissions do not lead to its head ' || s.head FROM record_scopes s
         LEFT JOIN record_commits c ON c.scope = s.number GROUP BY s.number
         HAVING count(c.log) <> s.head OR coalesce(max(c.sequence), 0) <> s.head",
    ),
    (
        Class::Damaged,
        "SELECT s.organisation || '/' || s.registration, 'submission ' || c.sequence || ' of ' || l.id || ' has ' || count(v.key) ||
           ' versions of ' || (l.created + l.updated + l.removed)
         FROM record_commits c JOIN summary_logs l ON l.number = c.log JOIN record_scopes s ON s.number = c.scope
         LEFT JOIN record_versions v ON v.scope = c.scope AND v.sequence = c.sequence GROUP BY c.scope, c.sequence
         HAVING count(v.key) <> l.created + l.updated + l.removed OR sum(v.log <> c.log) > 0",
    ),
    (
        Class::Damaged,
        "SELECT s.organisation || '/' || s.registration, 'summary log ' || l.id || ' was superseded and submitted' FROM record_commits c
         JOIN summary_logs l ON l.number = c.log JOIN record_scopes s ON s.number = c.scope
         WHERE l.superseded_by IS NOT NULL OR l.state <> 'submitted'",
    ),
];

/// Reads the ledger of a dead service and holds it against the book.
pub(crate) async fn check_after_kill(world: &World, book: &Book) -> Result<()> {
    let copy = world.setting.folder.join("copy");
    if Ledger::read(&world.data(), &copy).await?.is_none() {
        return Ok(());
    }
    let found = tokio::task::spawn_blocking(move || look(&copy)).await??;
    for (class, scope, what) in found.broken {
        world.chronicle.accuse(Violation::new(class, what).of_document(&scope));
    }
    for (log, (scope, number)) in book.promised() {
        let written = found.commits.get(&log);
        if written != Some(&number) {
            let what = format!("summary log {log} was submission {number} and is {written:?} after a kill");
            let violation = Violation::new(Class::Lost, what);
            world.chronicle.accuse(violation.of_document(&book.scopes[scope].name()));
        }
    }
    for log in book.superseded() {
        if let Some(number) = found.commits.get(&log) {
            let what = format!("summary log {log} was superseded and is submission {number}");
            world.chronicle.accuse(Violation::new(Class::Damaged, what));
        }
    }
    Ok(())
}

struct Found {
    broken: Vec<(Class, String, String)>,
    commits: BTreeMap<String, u64>,
}

fn look(copy: &Path) -> Result<Found> {
    let connection =
        Connection::open(copy.join("ledger.sqlite")).context("the copy of the ledger cannot be opened")?;
    let mut found = Found { broken: Vec::new(), commits: BTreeMap::new() };
    for (class, query) in CHECKS {
        let mut query = connection.prepare(query)?;
        let rows = query.query_map([], |row| Ok((class, row.get(0)?, row.get(1)?)))?;
        found.broken.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    let mut query = connection
        .prepare("SELECT l.id, c.sequence FROM record_commits c JOIN summary_logs l ON l.number = c.log")?;
    let commits = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    found.commits = commits.collect::<rusqlite::Result<_>>()?;
    Ok(found)
}
