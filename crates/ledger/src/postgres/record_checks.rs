//! What no row of summary logs and records may say, for the walk over everything.
//!
//! Guarantees: if nothing is found, at most one log of a scope is active and one is being submitted, no superseded log was
//! submitted, every commit is whole and in the audit trail, nothing of anything else is visible, each record has one version per log at most, and
//! every content that was not erased is what was submitted.

use model::Digest;
use model::submissions::content_hash;
use serde_json::Value;
use tokio_postgres::Row;

use super::rows::{asked, get, get_optional};
use super::step::Step;
use crate::Result;
use crate::trail::Inconsistency;

/// Rows that are looked at together.
const PAGE: i64 = 5000;

pub(super) async fn check(step: &Step, found: &mut Vec<Inconsistency>) -> Result<()> {
    for (invariant, query) in CHECKS {
        for row in step.query(query, &[]).await? {
            found.push(Inconsistency { invariant, what: row.try_get(0)? });
        }
    }
    check_commits(step, found).await?;
    check_contents(step, found).await
}

/// Every commit is in the audit trail.
async fn check_commits(step: &Step, found: &mut Vec<Inconsistency>) -> Result<()> {
    let query = "SELECT c.log AS place, c.sequence, s.organisation, s.registration, l.id, a.action, a.details
         FROM record_commits c JOIN record_scopes s ON s.number = c.scope JOIN summary_logs l ON l.number = c.log
         LEFT JOIN audit a ON a.chain = 'scope:' || s.organisation || '/' || s.registration AND a.sequence = c.audit_sequence
         WHERE c.log > $1 ORDER BY c.log LIMIT $2";
    let mut after: i64 = 0;
    loop {
        let rows = step.query(query, &[&after, &PAGE]).await?;
        for row in &rows {
            if !is_told(row)? {
                let sequence: u64 = get(row, "sequence")?;
                let (organisation, registration): (String, String) =
                    (get(row, "organisation")?, get(row, "registration")?);
                let what = format!(
                    "commit {sequence} of scope {organisation}/{registration} is not in the audit trail"
                );
                found.push(Inconsistency { invariant: "commit-audited", what });
            }
        }
        let Some(last) = rows.last() else { return Ok(()) };
        after = asked(get(last, "place")?);
    }
}

/// Details are read here and not by the server, which would fail at one that somebody damaged.
fn is_told(row: &Row) -> Result<bool> {
    let (action, details): (Option<String>, Option<String>) =
        (get_optional(row, "action")?, get_optional(row, "details")?);
    let details: Value = serde_json::from_str(&details.unwrap_or_default()).unwrap_or_default();
    Ok(action.as_deref() == Some("submission-committed")
        && details["log"].as_str() == Some(&get::<String>(row, "id")?)
        && details["commit"].as_u64() == Some(get(row, "sequence")?))
}

/// Every content that was not erased has its hash.
async fn check_contents(step: &Step, found: &mut Vec<Inconsistency>) -> Result<()> {
    let query = "SELECT number, hash, cells, outcome, reason, measure FROM row_contents
                 WHERE erased_ms IS NULL AND number > $1 ORDER BY number LIMIT $2";
    let mut after: i64 = 0;
    loop {
        let rows = step.query(query, &[&after, &PAGE]).await?;
        for row in &rows {
            let (cells, outcome): (String, String) = (get(row, "cells")?, get(row, "outcome")?);
            let (reason, measure): (Option<String>, Option<String>) =
                (get_optional(row, "reason")?, get_optional(row, "measure")?);
            let hash = content_hash((&cells, &outcome), (reason.as_deref(), measure.as_deref()));
            if hash != get::<Digest>(row, "hash")? {
                let number: u64 = get(row, "number")?;
                let what = format!("the content {number} of a record is not what was submitted");
                found.push(Inconsistency { invariant: "record-content", what });
            }
        }
        let Some(last) = rows.last() else { return Ok(()) };
        after = asked(get(last, "number")?);
    }
}

/// Each query returns one sentence per violation.
const CHECKS: [(&str, &str); 12] = [
    (
        "one-active-log",
        "SELECT 'scope ' || s.organisation || '/' || s.registration || ' has more than one active summary log'
         FROM summary_logs l JOIN record_scopes s ON s.number = l.scope WHERE l.policy = 'one-active'
         AND l.state IN ('preprocessing', 'validating', 'validated', 'submitting') GROUP BY s.number HAVING count(*) > 1",
    ),
    (
        "one-submission",
        "SELECT 'scope ' || s.organisation || '/' || s.registration || ' has more than one submission running'
         FROM summary_logs l JOIN record_scopes s ON s.number = l.scope WHERE l.state = 'submitting'
         GROUP BY s.number HAVING count(*) > 1",
    ),
    (
        "submitted-is-committed",
        "SELECT 'summary log ' || l.id || ' is ' || l.state || CASE WHEN c.log IS NULL THEN ' without' ELSE ' with' END || ' a commit'
         FROM summary_logs l LEFT JOIN record_commits c ON c.log = l.number WHERE (l.state = 'submitted') <> (c.log IS NOT NULL)",
    ),
    (
        "dense-commits",
        "SELECT 'scope ' || s.organisation || '/' || s.registration || ': its commits do not end at its head' FROM record_scopes s
         WHERE (SELECT count(*) FROM record_commits c WHERE c.scope = s.number) <> s.head
            OR (SELECT coalesce(max(sequence), 0) FROM record_commits c WHERE c.scope = s.number) <> s.head",
    ),
    (
        "versions-of-a-commit",
        "SELECT DISTINCT 'scope ' || s.organisation || '/' || s.registration || ': a version of commit ' || v.sequence ||
           ' is of another summary log' FROM record_versions v JOIN record_scopes s ON s.number = v.scope
         LEFT JOIN record_commits c ON c.scope = v.scope AND c.sequence = v.sequence
         WHERE v.sequence <= s.head AND c.log IS DISTINCT FROM v.log",
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
         WHERE (s.change <> 'unchanged' AND (v.log IS NULL OR v.content IS DISTINCT FROM s.content OR v.change <> s.change))
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
