//! What no row of summary logs and records may say, for the walk over everything.
//!
//! Guarantees: if nothing is found, at most one log of a scope is active and one is being submitted, no superseded log was
//! submitted, every commit is whole and in the audit trail, nothing of anything else is visible, each record has one version per log at most, and
//! every content that was not erased is what was submitted.

use model::Digest;
use model::submissions::content_hash;
use rusqlite::Connection;

use super::rows::{Stored, get_optional};
use crate::Result;
use crate::trail::Inconsistency;

pub(super) fn check(connection: &Connection, found: &mut Vec<Inconsistency>) -> Result<()> {
    for (invariant, query) in CHECKS {
        let mut query = connection.prepare(query)?;
        for row in query.query_map([], |row| row.get::<_, String>(0))? {
            found.push(Inconsistency { invariant, what: row? });
        }
    }
    check_contents(connection, found)
}

/// Every content that was not erased has its hash.
fn check_contents(connection: &Connection, found: &mut Vec<Inconsistency>) -> Result<()> {
    let mut query = connection.prepare("SELECT * FROM row_contents")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        if get_optional::<jiff::Timestamp>(row, "erased_ms")?.is_some() {
            continue;
        }
        let (cells, outcome): (String, String) = (row.get("cells")?, row.get("outcome")?);
        let (reason, measure): (Option<String>, Option<String>) = (row.get("reason")?, row.get("measure")?);
        let hash: Stored<Digest> = row.get("hash")?;
        if content_hash((&cells, &outcome), (reason.as_deref(), measure.as_deref())) != hash.0 {
            let number: u64 = row.get("number")?;
            let what = format!("the content {number} of a record is not what was submitted");
            found.push(Inconsistency { invariant: "record-content", what });
        }
    }
    Ok(())
}

/// Each query returns one sentence per violation.
const CHECKS: [(&str, &str); 13] = [
    (
        "one-active-log",
        "SELECT 'scope ' || s.organisation || '/' || s.registration || ' has more than one active summary log'
         FROM summary_logs l JOIN record_scopes s ON s.number = l.scope WHERE l.policy = 'one-active'
         AND l.state IN ('preprocessing', 'validating', 'validated', 'submitting') GROUP BY l.scope HAVING count(*) > 1",
    ),
    (
        "one-submission",
        "SELECT 'scope ' || s.organisation || '/' || s.registration || ' has more than one submission running'
         FROM summary_logs l JOIN record_scopes s ON s.number = l.scope WHERE l.state = 'submitting'
         GROUP BY l.scope HAVING count(*) > 1",
    ),
    (
        "submitted-is-committed",
        "SELECT 'summary log ' || l.id || ' is ' || l.state || iif(c.log IS NULL, ' without', ' with') || ' a commit'
         FROM summary_logs l LEFT JOIN record_commits c ON c.log = l.number WHERE (l.state = 'submitted') <> (c.log IS NOT NULL)",
    ),
    (
        "dense-commits",
        "SELECT 'scope ' || s.organisation || '/' || s.registration || ': its commits do not end at its head' FROM record_scopes s
         WHERE (SELECT count(*) FROM record_commits c WHERE c.scope = s.number) <> s.head
            OR (SELECT coalesce(max(sequence), 0) FROM record_commits c WHERE c.scope = s.number) <> s.head",
    ),
    (
        "commit-audited",
        "SELECT 'commit ' || c.sequence || ' of scope ' || s.organisation || '/' || s.registration || ' is not in the audit trail'
         FROM record_commits c JOIN record_scopes s ON s.number = c.scope JOIN summary_logs l ON l.number = c.log
         LEFT JOIN audit a ON a.chain = 'scope:' || s.organisation || '/' || s.registration AND a.sequence = c.audit_sequence
         WHERE a.action IS NOT 'submission-committed' OR json_extract(a.details, '$.log') IS NOT l.id
            OR json_extract(a.details, '$.commit') IS NOT c.sequence",
    ),
    (
        "versions-of-a-commit",
        "SELECT DISTINCT 'scope ' || s.organisation || '/' || s.registration || ': a version of commit ' || v.sequence ||
           ' is of another summary log' FROM record_versions v JOIN record_scopes s ON s.number = v.scope
         LEFT JOIN record_commits c ON c.scope = v.scope AND c.sequence = v.sequence
         WHERE v.sequence <= s.head AND c.log IS NOT v.log",
    ),
    (
        "nothing-above-the-head",
        "SELECT DISTINCT 'scope ' || s.organisation || '/' || s.registration || ': versions above the head belong to no submission'
         FROM record_versions v JOIN record_scopes s ON s.number = v.scope JOIN summary_logs l ON l.number = v.log
         WHERE v.sequence > s.head AND (l.state <> 'submitting' OR l.scope <> v.scope OR v.sequence <> s.head + 1)",
    ),
    (
        "one-version-per-log",
        "SELECT 'a record has more than one version of a summary log: ' || kind || ' ' || key FROM record_versions
         GROUP BY scope, kind, key, log HAVING count(*) > 1",
    ),
    (
        "whole-submission",
        "SELECT 'summary log ' || l.id || ' promised ' || (l.created + l.updated + l.removed) || ' versions and has ' ||
           coalesce(v.versions, 0) FROM summary_logs l LEFT JOIN (SELECT log, count(*) AS versions FROM record_versions GROUP BY log) v
         ON v.log = l.number WHERE (l.state = 'submitted' AND coalesce(v.versions, 0) <> l.created + l.updated + l.removed)
            OR coalesce(v.versions, 0) <> l.applied",
    ),
    (
        "version-as-staged",
        "SELECT 'summary log ' || l.id || ': ' || s.kind || ' ' || s.key || ' is not what was staged' FROM staged_rows s
         JOIN summary_logs l ON l.number = s.log AND l.state = 'submitted' LEFT JOIN record_commits c ON c.log = l.number
         LEFT JOIN record_versions v ON v.scope = l.scope AND v.kind = s.kind AND v.key = s.key AND v.sequence = c.sequence
         WHERE (s.change <> 'unchanged' AND (v.log IS NULL OR v.content IS NOT s.content OR v.change <> s.change))
            OR (s.change = 'unchanged' AND v.log IS NOT NULL)",
    ),
    (
        "record-content",
        "SELECT 'the content of ' || v.kind || ' ' || v.key || ' is missing' FROM record_versions v
         LEFT JOIN row_contents r ON r.number = v.content WHERE v.content IS NOT NULL AND r.number IS NULL
         UNION ALL SELECT 'the content of staged ' || s.kind || ' ' || s.key || ' is missing' FROM staged_rows s
         LEFT JOIN row_contents r ON r.number = s.content WHERE s.content IS NOT NULL AND r.number IS NULL",
    ),
    (
        "row-stored-once",
        "SELECT 'a content of a row belongs to nothing' FROM row_contents r LEFT JOIN
           (SELECT content FROM record_versions UNION SELECT content FROM staged_rows) n ON n.content = r.number
         WHERE n.content IS NULL",
    ),
    (
        "staged-rows",
        "SELECT 'summary log ' || l.id || ' has other staged rows than are counted' FROM summary_logs l
         LEFT JOIN (SELECT log, count(*) AS staged FROM staged_rows GROUP BY log) s ON s.log = l.number
         WHERE coalesce(s.staged, 0) <> l.staged",
    ),
];
