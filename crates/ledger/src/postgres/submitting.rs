//! Submissions on PostgreSQL: confirmed, committed, returned, released.
//!
//! Guarantees: versions are seen when [`commit`] moved the head, all of them, and not before. Before a log leaves `submitting` on any
//! other way, nothing of it is left above the head. So whoever submits next finds the place empty.

use jiff::{SignedDuration, Timestamp};
use model::SummaryLogId;
use model::records::{CommitFacts, OnCommit, RecordKey, Scope, rule_on_commit, rule_on_release};
use model::submissions::{LogState, OnSubmit, SubmitFacts, rule_on_submit};
use serde_json::json;

use super::audit::Actor;
use super::log_rows::{self, Lock, Worked, change, lock_scope_of, note, of_run, scope_number};
use super::rows::{asked, get, ms, text};
use super::step::Step;
use super::{PostgresLedger, acts};
use crate::documents::Author;
use crate::logs::{CHUNK_MAX, Run, Submission, SubmissionReceipt, SubmitAnswer, SubmitWish, SummaryLog};
use crate::{LedgerError, Result};

/// An operator's act is done within this time, or the log is taken up again: a process that ends in between leaves no scope stuck
/// for a minute.
const RELEASE_TIME: SignedDuration = SignedDuration::from_secs(30);

pub(super) async fn begin(step: &Step, wish: &SubmitWish) -> Result<SubmitAnswer> {
    scope_number(step, &wish.scope, Lock::Taken).await?;
    let log = of_scope(step, wish).await?;
    let query =
        "SELECT 1 FROM summary_logs o JOIN summary_logs mine ON mine.scope = o.scope AND mine.number = $1
                 WHERE o.state = 'submitting' AND o.number <> $1";
    let another_is_submitting = step.exists(query, &[&asked(log.number)]).await?;
    let facts = SubmitFacts {
        state: log.state,
        basis: log.basis.unwrap_or(u64::MAX),
        head: log.head,
        another_is_submitting,
    };
    let ruling = rule_on_submit(&step.shared.guards, facts);
    if ruling != OnSubmit::Begin {
        return Ok(SubmitAnswer { ruling, run: None, log });
    }
    let update = "UPDATE summary_logs SET state = 'submitting', run = run + 1, attempts = 1, worked_until_ms = $2,
                  submitter_id = $3, submitter_name = $4, reason = NULL WHERE number = $1 AND state = $5 AND run = $6";
    let (who, name) = (text(&wish.who.id), text(&wish.who.name));
    let values: super::step::Values<'_> =
        &[&asked(log.number), &ms(wish.until), &who, &name, &log.state.as_str(), &asked(log.run)];
    if step.execute(update, values).await? != 1 {
        return Err(LedgerError::overtaken(&wish.log));
    }
    let act = ("submission-begun", json!({ "basis": log.basis }));
    note(step, (&wish.scope, &wish.log), (Actor::person(&wish.who), wish.at), act).await?;
    let log = of_scope(step, wish).await?;
    let run = Some(Run { log: wish.log.clone(), number: log.run });
    Ok(SubmitAnswer { ruling, run, log })
}

async fn of_scope(step: &Step, wish: &SubmitWish) -> Result<SummaryLog> {
    let log = log_rows::by_id(step, &wish.log).await?.filter(|log| log.scope == wish.scope);
    log.ok_or_else(|| unknown(&wish.log))
}

fn unknown(log: &SummaryLogId) -> LedgerError {
    LedgerError::not_found(format!("summary log `{log}`"))
}

pub(super) async fn commit(step: &Step, run: &Run, at: Timestamp) -> Result<Submission> {
    lock_scope_of(step, &run.log).await?;
    let log = log_rows::by_id(step, &run.log).await?.ok_or_else(|| unknown(&run.log))?;
    let promised = log.stats.unwrap_or_default().changes();
    let facts = CommitFacts {
        state: log.state,
        is_its_run: log.run == run.number,
        basis: log.basis.unwrap_or(u64::MAX),
        head: log.head,
        applied: log.applied,
        promised,
    };
    match rule_on_commit(&step.shared.guards, facts) {
        OnCommit::Commit => {
            let worked = of_run(step, run, &[LogState::Submitting]).await?;
            write_commit(step, &worked, at).await
        }
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

async fn write_commit(step: &Step, worked: &Worked, at: Timestamp) -> Result<Submission> {
    let sequence = worked.head + 1;
    let (scope, head) = (asked(worked.scope_number), asked(worked.head));
    // A clock that goes back does not make a commit older than the one before it.
    let query = "SELECT committed_ms FROM record_commits WHERE scope = $1 AND sequence = $2";
    let before = step.query_optional(query, &[&scope, &head]).await?;
    let before = before.map(|row| get::<Timestamp>(&row, "committed_ms")).transpose()?;
    let at = before.map_or(at, |before| before.max(at));
    change(step, worked, "state = 'submitted', worked_until_ms = NULL, attempts = 0", &[]).await?;
    let stats = worked.stats.unwrap_or_default();
    let details = json!({
        "commit": sequence, "created": stats.created, "updated": stats.updated, "unchanged": stats.unchanged,
        "removed": stats.removed,
    });
    let (scope_name, actor) = ((&worked.scope, &worked.id), Actor::person(&worked.submitter));
    let audited = note(step, scope_name, (actor, at), ("submission-committed", details)).await?;
    step.execute(
        "INSERT INTO record_commits (scope, sequence, log, committed_ms, audit_sequence) VALUES ($1, $2, $3, $4, $5)",
        &[&scope, &asked(sequence), &asked(worked.log), &ms(at), &asked(audited)],
    )
    .await?;
    let update = "UPDATE record_scopes SET head = $3 WHERE number = $1 AND head = $2";
    match step.execute(update, &[&scope, &head, &asked(sequence)]).await? {
        1 => Ok(Submission::Committed { sequence, at, is_new: true }),
        _ => Err(LedgerError::overtaken(&worked.id)),
    }
}

/// Who returns a submission, if it is not the service itself.
type By<'a> = Option<&'a Author>;

pub(super) async fn return_to_validated(
    ledger: &PostgresLedger,
    run: &Run,
    (reason, at, by): (&str, Timestamp, By<'_>),
) -> Result<()> {
    if ledger.shared.guards.withdrawal {
        withdraw(ledger, run).await?;
    }
    let step = ledger.write().await?;
    let done = give_back(&step, run, (reason, at, by)).await;
    step.end(done).await
}

async fn give_back(step: &Step, run: &Run, (reason, at, by): (&str, Timestamp, By<'_>)) -> Result<()> {
    let worked = of_run(step, run, &[LogState::Submitting, LogState::Validated]).await?;
    if worked.state == LogState::Validated {
        return Ok(());
    }
    if worked.applied > 0 && step.shared.guards.withdrawal {
        return Err(LedgerError::damaged(format!("versions of `{}` are left above the head", run.log)));
    }
    let assignments = "state = 'validated', reason = $4, worked_until_ms = NULL, attempts = 0, applied = 0,
                       submitter_id = NULL, submitter_name = NULL";
    change(step, &worked, assignments, &[&text(reason)]).await?;
    let actor = by.map_or(Actor::SAVEGUARD, Actor::person);
    let act = ("submission-returned", json!({ "reason": reason }));
    note(step, (&worked.scope, &worked.id), (actor, at), act).await.map(drop)
}

/// Takes back what a submission wrote above the head, some of it at a time.
async fn withdraw(ledger: &PostgresLedger, run: &Run) -> Result<()> {
    let mut after = Some(RecordKey::new("", ""));
    while let Some(from) = after {
        let step = ledger.write().await?;
        let done = withdraw_chunk(&step, run, &from).await;
        after = step.end(done).await?;
    }
    Ok(())
}

/// The place to go on from; none when nothing is left.
async fn withdraw_chunk(step: &Step, run: &Run, after: &RecordKey) -> Result<Option<RecordKey>> {
    let worked = of_run(step, run, &[LogState::Submitting, LogState::Validated]).await?;
    if worked.applied == 0 {
        return Ok(None);
    }
    let query = "WITH page AS MATERIALIZED (
                   SELECT kind, key FROM staged_rows WHERE log = $1 AND (kind, key) > ($2, $3) AND change <> 'unchanged'
                   ORDER BY kind, key LIMIT $4),
                 gone AS (
                   DELETE FROM record_versions WHERE ctid = ANY (ARRAY(SELECT v.ctid FROM page p
                     JOIN LATERAL (SELECT t.ctid FROM record_versions t WHERE t.scope = $5 AND t.kind = p.kind AND t.key = p.key
                                   AND t.sequence = $6 AND t.log = $1 OFFSET 0) v ON true)) RETURNING 1)
                 SELECT kind, key, (SELECT count(*) FROM gone) AS gone FROM page ORDER BY kind DESC, key DESC LIMIT 1";
    let (limit, above) = (asked(u64::try_from(CHUNK_MAX).unwrap_or(u64::MAX)), asked(worked.head + 1));
    let values: super::step::Values<'_> =
        &[&asked(worked.log), &after.kind, &after.key, &limit, &asked(worked.scope_number), &above];
    let Some(last) = step.query_optional(query, values).await? else { return Ok(None) };
    change(step, &worked, "applied = applied - $4", &[&get::<i64>(&last, "gone")?]).await?;
    Ok(Some(RecordKey { kind: get(&last, "kind")?, key: get(&last, "key")? }))
}

/// An operator frees a scope. Whoever works on the log is overtaken first.
pub(super) async fn release(
    ledger: &PostgresLedger,
    id: &SummaryLogId,
    (who, at): (&Author, Timestamp),
) -> Result<bool> {
    let step = ledger.write().await?;
    let taken = take_over(&step, id, (who, at)).await;
    match step.end(taken).await? {
        Released::NothingHeld => Ok(false),
        Released::Yes => Ok(true),
        Released::Returning(run) => {
            let reason = format!("released by {}", who.id);
            return_to_validated(ledger, &run, (&reason, at, Some(who))).await?;
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

async fn take_over(step: &Step, id: &SummaryLogId, (who, at): (&Author, Timestamp)) -> Result<Released> {
    lock_scope_of(step, id).await?;
    let log = log_rows::by_id(step, id).await?.ok_or_else(|| unknown(id))?;
    let Some(next) = rule_on_release(log.state) else { return Ok(Released::NothingHeld) };
    let (run, until) = (log.run + 1, at.checked_add(RELEASE_TIME).unwrap_or(Timestamp::MAX));
    let update = "UPDATE summary_logs SET run = $3, worked_until_ms = $4 WHERE number = $1 AND run = $2";
    step.execute(update, &[&asked(log.number), &asked(log.run), &asked(run), &ms(until)]).await?;
    let act = ("summary-log-released", json!({ "from": log.state.as_str(), "to": next.as_str() }));
    note(step, (&log.scope, id), (Actor::person(who), at), act).await?;
    let run = Run { log: id.clone(), number: run };
    if next == LogState::Validated {
        return Ok(Released::Returning(run));
    }
    let worked = of_run(step, &run, &[log.state]).await?;
    let assignments = "state = $4, worked_until_ms = NULL, attempts = 0, reason = $5";
    let reason = format!("released by {}", who.id);
    change(step, &worked, assignments, &[&next.as_str(), &text(&reason)]).await?;
    Ok(Released::Yes)
}

pub(super) async fn receipt(
    step: &Step,
    scope: &Scope,
    id: &SummaryLogId,
) -> Result<Option<SubmissionReceipt>> {
    let Some(log) =
        log_rows::by_id(step, id).await?.filter(|log| log.scope == *scope && log.commit.is_some())
    else {
        return Ok(None);
    };
    let query = "SELECT a.chain, a.sequence, a.at_ms, a.actor, a.came_from, a.action, a.outcome, a.details, a.hash
                 FROM audit a JOIN record_commits c ON c.audit_sequence = a.sequence WHERE a.chain = $1 AND c.log = $2";
    let act = step.query_optional(query, &[&scope.chain(), &asked(log.number)]).await?;
    Ok(Some(SubmissionReceipt { log, act: act.as_ref().map(acts::entry).transpose()? }))
}
