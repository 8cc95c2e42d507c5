//! Removing what was staged, in small transactions: before a validation begins again, and when nobody needs it any more.
//!
//! Guarantees: the content of a row goes only if no version of its record names it.

use model::submissions::LogState;
use rusqlite::{Connection, params};

use super::SqliteLedger;
use super::log_rows::{Worked, of_run};
use super::rows::optional;
use crate::Result;
use crate::logs::{CHUNK_MAX, Run};

/// Removes all that was staged for the log of a run that begins again.
pub(super) async fn clear_run(ledger: &SqliteLedger, run: &Run) -> Result<()> {
    loop {
        let run = run.clone();
        let removed = ledger
            .write_bulk(move |connection| {
                let worked = of_run(connection, &run, &[LogState::Validating])?;
                let removed = clear_chunk(connection, (worked.log, worked.scope_number), CHUNK_MAX)?;
                if removed == 0 {
                    forget_problems(connection, &worked)?;
                }
                Ok(removed)
            })
            .await?;
        if removed == 0 {
            return Ok(());
        }
    }
}

/// Problems are few: only so many are kept.
fn forget_problems(connection: &Connection, worked: &Worked) -> Result<()> {
    for statement in [
        "DELETE FROM problems WHERE log = ?1",
        "DELETE FROM problem_counts WHERE log = ?1",
        "UPDATE summary_logs SET fatal = 0, error = 0, warning = 0, rows = 0, staged = 0, compared = NULL WHERE number = ?1",
    ] {
        connection.prepare_cached(statement)?.execute([worked.log])?;
    }
    Ok(())
}

/// Removes some rows of a log that is over.
pub(super) fn clear_some(connection: &Connection, limit: usize) -> Result<u64> {
    let found = connection
        .prepare_cached(
            "SELECT number, scope FROM summary_logs WHERE staged > 0
             AND state IN ('invalid', 'submitted', 'superseded', 'validation_failed') ORDER BY number LIMIT 1",
        )?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
    match optional(found)? {
        Some(log) => clear_chunk(connection, log, limit),
        None => Ok(0),
    }
}

fn clear_chunk(connection: &Connection, (log, scope): (u64, u64), limit: usize) -> Result<u64> {
    let last = connection
        .prepare_cached(
            "SELECT kind, key FROM (SELECT kind, key FROM staged_rows WHERE log = ?1 ORDER BY kind, key LIMIT ?2)
             ORDER BY kind DESC, key DESC LIMIT 1",
        )?
        .query_row(params![log, limit], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let Some((kind, key)) = optional(last)? else {
        connection.prepare_cached("UPDATE summary_logs SET staged = 0 WHERE number = ?1")?.execute([log])?;
        return Ok(0);
    };
    connection
        .prepare_cached(
            "DELETE FROM row_contents WHERE number IN (SELECT s.content FROM staged_rows s
               WHERE s.log = ?1 AND (s.kind, s.key) <= (?2, ?3) AND s.content IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM record_versions v
                 WHERE v.scope = ?4 AND v.kind = s.kind AND v.key = s.key AND v.content = s.content))",
        )?
        .execute(params![log, kind, key, scope])?;
    let removed = connection
        .prepare_cached("DELETE FROM staged_rows WHERE log = ?1 AND (kind, key) <= (?2, ?3)")?
        .execute(params![log, kind, key])?;
    connection
        .prepare_cached("UPDATE summary_logs SET staged = max(staged - ?2, 0) WHERE number = ?1")?
        .execute(params![log, removed])?;
    Ok(u64::try_from(removed).unwrap_or(u64::MAX))
}
