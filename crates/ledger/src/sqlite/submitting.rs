//! Submissions on SQLite: confirmed, committed, returned, released.
//!
//! Guarantees: versions are seen when [`commit`] moved the head, all of them, and not before. Before a log leaves `submitting` on any
//! other way, nothing of it is left above the head. So whoever submits next finds the place empty.

use jiff::{SignedDuration, Timestamp};
use model::SummaryLogId;
use model::records::{CommitFacts, OnCommit, Scope, rule_on_commit, rule_on_release};
use model::submissions::{LogState, OnSubmit, SubmitFacts, rule_on_submit};
use rusqlite::{Connection, params};
use serde_json::json;

use super::audit::Actor;
use super::facts::exists;
use super::log_rows::{self, Worked, note, of_run};
use super::rows::{asked, get, ms, optional};
use super::{Shared, SqliteLedger, acts};
use crate::documents::Author;
use crate::logs::{CHUNK_MAX, Run, Submission, SubmissionReceipt, SubmitAnswer, SubmitWish};
use crate::{LedgerError, Result};

/// An operator's act is done within this time, or the log is taken up again: a process that ends in between leaves no scope stuck
/// for a minute.
const RELEASE_TIME: SignedDuration = SignedDuration::from_secs(30);

pub(super) fn begin(connection: &Connection, shared: &Shared, wish: &SubmitWish) -> Result<SubmitAnswer> {
    let load = || -> Result<_> {
        let log = log_rows::by_id(connection, &wish.log)?.filter(|log| log.scope == wish.scope);
        log.ok_or_else(|| LedgerError::not_found(format!("summary log `{}`", wish.log)))
    };
    let log = load()?;
    let another_is_submitting = exists(
        connection,
        "SELECT 1 FROM summary_logs o JOIN summary_logs mine ON mine.scope = o.scope AND mine.number = ?1
         WHERE o.state = 'submitting' AND o.number <> ?1",
        params![asked(log.number)],
    )?;
    let facts = SubmitFacts {
        state: log.state,
        basis: log.basis.unwrap_or(u64::MAX),
        head: log.head,
        another_is_submitting,
    };
    let ruling = rule_on_submit(&shared.guards, facts);
    if ruling != OnSubmit::Begin {
        return Ok(SubmitAnswer { ruling, run: None, log });
    }
    connection
        .prepare_cached(
            "UPDATE summary_logs SET state = 'submitting', run = run + 1, attempts = 1, worked_until_ms = ?2,
             submitter_id = ?3, submitter_name = ?4, reason = NULL WHERE number = ?1",
        )?
        .execute(params![asked(log.number), ms(wish.until), wish.who.id, wish.who.name])?;
    let act = ("submission-begun", json!({ "basis": log.basis }));
    note(connection, (&wish.scope, &wish.log), (Actor::person(&wish.who), wish.at), act)?;
    let log = load()?;
    let run = Some(Run { log: wish.log.clone(), number: log.run });
    Ok(SubmitAnswer { ruling, run, log })
}

pub(super) fn commit(
    connection: &Connection,
    shared: &Shared,
    (run, at): (&Run, Timestamp),
) -> Result<Submission> {
    let log = log_rows::by_id(connection, &run.log)?
        .ok_or_else(|| LedgerError::not_found(format!("summary log `{}`", run.log)))?;
    let promised = log.stats.unwrap_or_default().changes();
    let facts = CommitFacts {
        state: log.state,
        is_its_run: log.run == run.number,
        basis: log.basis.unwrap_or(u64::MAX),
        head: log.head,
        applied: log.applied,
        promised,
    };
    match rule_on_commit(&shared.guards, facts) {
        OnCommit::Commit => write_commit(connection, &of_run(connection, run, &[LogState::Submitting])?, at),
        OnCommit::Done => {
            let (sequence, at) =
                log.commit.ok_or_else(|| LedgerError::damaged("a submitted log has no commit"))?;
            Ok(Submission::Committed { sequence, at, is_new: false })
        }
        OnCommit::Overtaken => Err(LedgerError::overtaken(&run.log)),
        OnCommit::BasisMoved => Ok(Submission::BasisMoved),
        OnCommit::Incomplete => Ok(Submission::Incomplete { applied: log.applied, promised }),
    }
}

fn write_commit(connection: &Connection, worked: &Worked, at: Timestamp) -> Result<Submission> {
    let sequence = worked.head + 1;
    // A clock that goes back does not make a commit older than the one before it.
    let before = connection
        .prepare_cached("SELECT committed_ms FROM record_commits WHERE scope = ?1 AND sequence = ?2")?
        .query_row(params![worked.scope_number, asked(worked.head)], |row| {
            get::<Timestamp>(row, "committed_ms")
        });
    let at = optional(before)?.map_or(at, |before| before.max(at));
    connection
        .prepare_cached(
            "UPDATE summary_logs SET state = 'submitted', worked_until_ms = NULL, attempts = 0 WHERE number = ?1",
        )?
        .execute([worked.log])?;
    let stats = worked.stats.unwrap_or_default();
    let details = json!({
        "commit": sequence, "created": stats.created, "updated": stats.updated, "unchanged": stats.unchanged,
        "removed": stats.removed,
    });
    let actor = Actor::person(&worked.submitter);
    let audited =
        note(connection, (&worked.scope, &worked.id), (actor, at), ("submission-committed", details))?;
    connection
        .prepare_cached(
            "INSERT INTO record_commits (scope, sequence, log, committed_ms, audit_sequence) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![worked.scope_number, asked(sequence), worked.log, ms(at), asked(audited)])?;
    connection
        .prepare_cached("UPDATE record_scopes SET head = ?2 WHERE number = ?1")?
        .execute(params![worked.scope_number, asked(sequence)])?;
    Ok(Submission::Committed { sequence, at, is_new: true })
}

/// Who returns a submission, if it is not the service itself.
type By = Option<Author>;

pub(super) async fn return_to_validated(
    ledger: &SqliteLedger,
    run: &Run,
    (reason, at, by): (&str, Timestamp, By),
) -> Result<()> {
    if ledger.shared.guards.withdrawal {
        withdraw(ledger, run).await?;
    }
    let (run, reason) = (run.clone(), reason.to_owned());
    ledger
        .write(move |connection, shared| {
            let worked = of_run(connection, &run, &[LogState::Submitting, LogState::Validated])?;
            if worked.state == LogState::Validated {
                return Ok(());
            }
            if worked.applied > 0 && shared.guards.withdrawal {
                return Err(LedgerError::damaged(format!("versions of `{}` are left above the head", run.log)));
            }
            connection
                .prepare_cached(
                    "UPDATE summary_logs SET state = 'validated', reason = ?2, worked_until_ms = NULL, attempts = 0, applied = 0,
                     submitter_id = NULL, submitter_name = NULL WHERE number = ?1",
                )?
                .execute(params![worked.log, reason])?;
            let actor = by.as_ref().map_or(Actor::SAVEGUARD, Actor::person);
            let act = ("submission-returned", json!({ "reason": reason }));
            note(connection, (&worked.scope, &worked.id), (actor, at), act).map(drop)
        })
        .await
}

/// Takes back what a submission wrote above the head, some of it at a time.
async fn withdraw(ledger: &SqliteLedger, run: &Run) -> Result<()> {
    let mut after = Some((String::new(), String::new()));
    while let Some((kind, key)) = after {
        let run = run.clone();
        after = ledger.write_bulk(move |connection| withdraw_chunk(connection, &run, (&kind, &key))).await?;
    }
    Ok(())
}

/// The place to go on from; none when nothing is left.
fn withdraw_chunk(
    connection: &Connection,
    run: &Run,
    (kind, key): (&str, &str),
) -> Result<Option<(String, String)>> {
    let worked = of_run(connection, run, &[LogState::Submitting, LogState::Validated])?;
    if worked.applied == 0 {
        return Ok(None);
    }
    let mut staged = connection.prepare_cached(
        "SELECT kind, key FROM staged_rows WHERE log = ?1 AND (kind, key) > (?2, ?3) AND change <> 'unchanged'
         ORDER BY kind, key LIMIT ?4",
    )?;
    let keys = staged
        .query_map(params![worked.log, kind, key, CHUNK_MAX], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<(String, String)>>>()?;
    let mut removed = 0;
    for (kind, key) in &keys {
        removed += connection
            .prepare_cached(
                "DELETE FROM record_versions WHERE scope = ?1 AND kind = ?2 AND key = ?3 AND sequence = ?4 AND log = ?5",
            )?
            .execute(params![worked.scope_number, kind, key, asked(worked.head + 1), worked.log])?;
    }
    connection
        .prepare_cached("UPDATE summary_logs SET applied = applied - ?2 WHERE number = ?1")?
        .execute(params![worked.log, removed])?;
    Ok(keys.last().cloned())
}

/// An operator frees a scope. Whoever works on the log is overtaken first.
pub(super) async fn release(
    ledger: &SqliteLedger,
    id: &SummaryLogId,
    who: &Author,
    at: Timestamp,
) -> Result<bool> {
    let (wanted, by) = (id.clone(), who.clone());
    let taken = ledger.write(move |connection, _| take_over(connection, &wanted, (&by, at))).await?;
    match taken {
        Released::NothingHeld => Ok(false),
        Released::Yes => Ok(true),
        Released::Returning(run) => {
            let reason = format!("released by {}", who.id);
            return_to_validated(ledger, &run, (&reason, at, Some(who.clone()))).await?;
            Ok(true)
        }
    }
}

enum Released {
    NothingHeld,
    Yes,
    /// Its versions have to be taken back first.
    Returning(Run),
}

fn take_over(
    connection: &Connection,
    id: &SummaryLogId,
    (who, at): (&Author, Timestamp),
) -> Result<Released> {
    let log = log_rows::by_id(connection, id)?
        .ok_or_else(|| LedgerError::not_found(format!("summary log `{id}`")))?;
    let Some(next) = rule_on_release(log.state) else { return Ok(Released::NothingHeld) };
    let (run, until) = (log.run + 1, at.checked_add(RELEASE_TIME).unwrap_or(Timestamp::MAX));
    connection
        .prepare_cached("UPDATE summary_logs SET run = ?2, worked_until_ms = ?3 WHERE number = ?1")?
        .execute(params![asked(log.number), asked(run), ms(until)])?;
    let act = ("summary-log-released", json!({ "from": log.state.as_str(), "to": next.as_str() }));
    note(connection, (&log.scope, id), (Actor::person(who), at), act)?;
    if next == LogState::Validated {
        return Ok(Released::Returning(Run { log: id.clone(), number: run }));
    }
    connection
        .prepare_cached(
            "UPDATE summary_logs SET state = ?2, worked_until_ms = NULL, attempts = 0, reason = ?3 WHERE number = ?1",
        )?
        .execute(params![asked(log.number), next.as_str(), format!("released by {}", who.id)])?;
    Ok(Released::Yes)
}

pub(super) fn receipt(
    connection: &Connection,
    scope: &Scope,
    id: &SummaryLogId,
) -> Result<Option<SubmissionReceipt>> {
    let Some(log) =
        log_rows::by_id(connection, id)?.filter(|log| log.scope == *scope && log.commit.is_some())
    else {
        return Ok(None);
    };
    let act = connection
        .prepare_cached(
            "SELECT a.* FROM audit a JOIN record_commits c ON c.audit_sequence = a.sequence WHERE a.chain = ?1 AND c.log = ?2",
        )?
        .query_row(params![scope.chain(), asked(log.number)], acts::entry);
    Ok(Some(SubmissionReceipt { log, act: optional(act)? }))
}
