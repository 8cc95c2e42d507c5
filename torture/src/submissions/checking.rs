//! After a kill, before the next start: what was promised is there, nothing is there twice, and nothing half.
//!
//! Rows are read as they stand: in a copy of the embedded ledger, before any recovery has run, or in PostgreSQL, where other instances go on.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use rusqlite::Connection;

use super::book::Book;
use crate::checking::Ledger;
use crate::chronicle::{Class, Violation};
use crate::world::World;

/// Each query returns a registration and a sentence per broken promise, on both engines.
const CHECKS: [(Class, &str); 7] = [
    (
        Class::Duplicated,
        "SELECT s.organisation || '/' || s.registration, v.kind || ' ' || v.key || ' has more than one version of summary log ' || l.id
         FROM record_versions v JOIN record_scopes s ON s.number = v.scope JOIN summary_logs l ON l.number = v.log
         GROUP BY s.organisation, s.registration, v.kind, v.key, l.id HAVING count(*) > 1",
    ),
    (
        Class::Duplicated,
        "SELECT s.organisation || '/' || s.registration, 'summary log ' || l.id || ' has more than one submission'
         FROM record_commits c JOIN summary_logs l ON l.number = c.log JOIN record_scopes s ON s.number = c.scope
         GROUP BY s.organisation, s.registration, l.id HAVING count(*) > 1",
    ),
    (
        Class::Duplicated,
        "SELECT s.organisation || '/' || s.registration, count(*) || ' summary logs are active where one may be'
         FROM summary_logs l JOIN record_scopes s ON s.number = l.scope WHERE l.policy = 'one-active'
         AND l.state IN ('preprocessing', 'validating', 'validated', 'submitting')
         GROUP BY s.organisation, s.registration HAVING count(*) > 1",
    ),
    (
        Class::Duplicated,
        "SELECT s.organisation || '/' || s.registration, count(*) || ' summary logs are being submitted at once'
         FROM summary_logs l JOIN record_scopes s ON s.number = l.scope WHERE l.state = 'submitting'
         GROUP BY s.organisation, s.registration HAVING count(*) > 1",
    ),
    (
        Class::Damaged,
        "SELECT s.organisation || '/' || s.registration, 'its submissions do not lead to its head ' || s.head FROM record_scopes s
         LEFT JOIN record_commits c ON c.scope = s.number GROUP BY s.organisation, s.registration, s.head
         HAVING count(c.log) <> s.head OR coalesce(max(c.sequence), 0) <> s.head",
    ),
    (
        Class::Damaged,
        "SELECT s.organisation || '/' || s.registration, 'submission ' || c.sequence || ' of ' || l.id || ' has ' || count(v.key) ||
           ' versions of ' || (l.created + l.updated + l.removed)
         FROM record_commits c JOIN summary_logs l ON l.number = c.log JOIN record_scopes s ON s.number = c.scope
         LEFT JOIN record_versions v ON v.scope = c.scope AND v.sequence = c.sequence
         GROUP BY s.organisation, s.registration, c.sequence, l.id, l.created, l.updated, l.removed
         HAVING count(v.key) <> l.created + l.updated + l.removed OR count(*) FILTER (WHERE v.log <> c.log) > 0",
    ),
    (
        Class::Damaged,
        "SELECT s.organisation || '/' || s.registration, 'summary log ' || l.id || ' was superseded and submitted' FROM record_commits c
         JOIN summary_logs l ON l.number = c.log JOIN record_scopes s ON s.number = c.scope
         WHERE l.superseded_by IS NOT NULL OR l.state <> 'submitted'",
    ),
];

/// Which log is which submission.
const COMMITS: &str = "SELECT l.id, c.sequence FROM record_commits c JOIN summary_logs l ON l.number = c.log";

/// Reads the ledger and holds it against the book.
pub(crate) async fn check_after_kill(world: &World, book: &Book) -> Result<()> {
    // Before the ledger: other instances go on, and what is promised from now on may come after it.
    let (promised, superseded) = (book.promised(), book.superseded());
    let Some(found) = look(world).await? else { return Ok(()) };
    for (class, scope, what) in found.broken {
        world.chronicle.accuse(Violation::new(class, what).of_document(&scope));
    }
    for (log, (scope, number)) in promised {
        let written = found.commits.get(&log);
        if written != Some(&number) {
            let what = format!("summary log {log} was submission {number} and is {written:?} after a kill");
            let violation = Violation::new(Class::Lost, what);
            world.chronicle.accuse(violation.of_document(&book.scopes[scope].name()));
        }
    }
    for log in superseded {
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

/// Looks at the embedded ledger of a dead service, or at PostgreSQL beside the instances that live. Each query sees one moment.
async fn look(world: &World) -> Result<Option<Found>> {
    let Some(cluster) = &world.cluster else {
        let copy = world.setting.folder.join("copy");
        if Ledger::read(&world.data(), &copy).await?.is_none() {
            return Ok(None);
        }
        return tokio::task::spawn_blocking(move || look_at_copy(&copy)).await?.map(Some);
    };
    let mut found = Found { broken: Vec::new(), commits: BTreeMap::new() };
    for (class, query) in CHECKS {
        for row in cluster.ledger.rows(query).await? {
            let [Some(scope), Some(what)] = row.as_slice() else { bail!("a finding without words: {row:?}") };
            found.broken.push((class, scope.clone(), what.clone()));
        }
    }
    for row in cluster.ledger.rows(COMMITS).await? {
        let [Some(log), Some(number)] = row.as_slice() else { bail!("a submission without a log: {row:?}") };
        found.commits.insert(log.clone(), number.parse()?);
    }
    Ok(Some(found))
}

fn look_at_copy(copy: &Path) -> Result<Found> {
    let connection =
        Connection::open(copy.join("ledger.sqlite")).context("the copy of the ledger cannot be opened")?;
    let mut found = Found { broken: Vec::new(), commits: BTreeMap::new() };
    for (class, query) in CHECKS {
        let mut query = connection.prepare(query)?;
        let rows = query.query_map([], |row| Ok((class, row.get(0)?, row.get(1)?)))?;
        found.broken.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    let mut query = connection.prepare(COMMITS)?;
    let commits = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    found.commits = commits.collect::<rusqlite::Result<_>>()?;
    Ok(found)
}
