//! Removing what was staged, in small transactions: before a validation begins again, and when nobody needs it any more.
//!
//! Guarantees: the content of a row goes only if no version of its record names it.

use model::submissions::LogState;

use super::PostgresLedger;
use super::log_rows::of_run;
use super::rows::{asked, get};
use super::step::Step;
use crate::Result;
use crate::logs::{CHUNK_MAX, Run};

/// Removes all that was staged for the log of a run that begins again.
pub(super) async fn clear_run(ledger: &PostgresLedger, run: &Run) -> Result<()> {
    loop {
        let step = ledger.write().await?;
        let done = clear_of_run(&step, run).await;
        if step.end(done).await? == 0 {
            return Ok(());
        }
    }
}

async fn clear_of_run(step: &Step, run: &Run) -> Result<u64> {
    let worked = of_run(step, run, &[LogState::Validating]).await?;
    let removed = clear_chunk(step, (worked.log, worked.scope_number), CHUNK_MAX).await?;
    if removed == 0 {
        forget_problems(step, worked.log).await?;
    }
    Ok(removed)
}

/// Problems are few: only so many are kept.
async fn forget_problems(step: &Step, log: u64) -> Result<()> {
    for statement in [
        "DELETE FROM problems WHERE log = $1",
        "DELETE FROM problem_counts WHERE log = $1",
        "UPDATE summary_logs SET fatal = 0, error = 0, warning = 0, rows = 0, staged = 0, compared = NULL WHERE number = $1",
    ] {
        step.execute(statement, &[&asked(log)]).await?;
    }
    Ok(())
}

/// Removes some rows of a log that is over. Scopes that others are at work with are left for the next time.
pub(super) async fn clear_some(step: &Step, limit: usize) -> Result<u64> {
    let query = "SELECT l.number, l.scope FROM summary_logs l JOIN record_scopes s ON s.number = l.scope WHERE l.staged > 0
                 AND l.state IN ('invalid', 'submitted', 'superseded', 'validation_failed')
                 ORDER BY l.number LIMIT 1 FOR NO KEY UPDATE OF s SKIP LOCKED";
    match step.query_optional(query, &[]).await? {
        Some(row) => clear_chunk(step, (get(&row, "number")?, get(&row, "scope")?), limit).await,
        None => Ok(0),
    }
}

async fn clear_chunk(step: &Step, (log, scope): (u64, u64), limit: usize) -> Result<u64> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let statement = "WITH page AS MATERIALIZED (
           SELECT ctid AS place, kind, key, content FROM staged_rows WHERE log = $1 ORDER BY kind, key LIMIT $3),
         contents AS (
           DELETE FROM row_contents WHERE number = ANY (ARRAY(SELECT p.content FROM page p WHERE p.content IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM record_versions v
               WHERE v.scope = $2 AND v.kind = p.kind AND v.key = p.key AND v.content = p.content OFFSET 0))))
         DELETE FROM staged_rows WHERE ctid = ANY (ARRAY(SELECT place FROM page))";
    let removed = step.execute(statement, &[&asked(log), &asked(scope), &limit]).await?;
    let update =
        "UPDATE summary_logs SET staged = CASE WHEN $2::bigint = 0 THEN 0 ELSE greatest(staged - $2, 0) END
                  WHERE number = $1";
    step.execute(update, &[&asked(log), &asked(removed)]).await?;
    Ok(removed)
}
