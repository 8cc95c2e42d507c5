//! Comparing what is staged with the records, on SQLite: the preview.
//!
//! Everything heavy is read beside the writer, page by page; the writer gets only rows that have to be marked differently. A page
//! that was read against a head that has moved meanwhile is not written, and the comparison begins again.
//!
//! Guarantees: [`stats_on`] and [`compare`] answer for one head, from one snapshot.

use std::collections::BTreeMap;

use model::records::{Change, PreviewStats, RecordKey, RemovedRows, changed_cells, rule_on_row};
use model::submissions::LogState;
use model::{Digest, SummaryLogId};
use rusqlite::{Connection, Row, params};

use super::SqliteLedger;
use super::log_rows::{self, Worked, of_run, word};
use super::rows::{asked, get, get_optional, id};
use crate::logs::{CHUNK_MAX, Run};
use crate::staging::{ChangesPage, Comparison, MissingRow, RowChange, RowContent};
use crate::{LedgerError, Result};

/// Commits of the scope that may come in between before the comparison is left for later.
const ROUNDS_MAX: usize = 8;
/// Keys that are named when rows are missing.
const MISSING_MAX: u32 = 100;
/// In these states rows are compared.
const STATES: [LogState; 2] = [LogState::Validating, LogState::Validated];

pub(super) async fn compare(
    ledger: &SqliteLedger,
    run: &Run,
    removals: &BTreeMap<String, RemovedRows>,
) -> Result<Comparison> {
    for _ in 0..ROUNDS_MAX {
        if let Some(comparison) = compare_once(ledger, run, removals).await? {
            return Ok(comparison);
        }
    }
    Err(LedgerError::Busy)
}

/// None if the head moved meanwhile.
async fn compare_once(
    ledger: &SqliteLedger,
    run: &Run,
    removals: &BTreeMap<String, RemovedRows>,
) -> Result<Option<Comparison>> {
    let looked = run.clone();
    let worked = ledger.read(move |connection| of_run(connection, &looked, &STATES)).await?;
    let basis = worked.head;
    if !worked.is_compared() && mark_again(ledger, run, basis).await? == Moved::Yes {
        return Ok(None);
    }
    let kinds = |wanted: RemovedRows| {
        let kinds = removals.iter().filter(move |(_, policy)| **policy == wanted);
        kinds.map(|(kind, _)| kind.clone()).collect::<Vec<_>>()
    };
    for kind in kinds(RemovedRows::Tombstone) {
        if end_missing(ledger, run, (&kind, basis)).await? == Moved::Yes {
            return Ok(None);
        }
    }
    let (run, fatal) = (run.clone(), kinds(RemovedRows::Fatal));
    ledger
        .read(move |connection| {
            let Some(stats_by_kind) = stats_by_kind(connection, &run, basis)? else { return Ok(None) };
            let stats = stats_by_kind.values().copied().sum();
            let (mut missing, mut missing_keys) = (0, Vec::new());
            for kind in &fatal {
                missing += count_missing(connection, &worked, kind)?;
                let room = MISSING_MAX.saturating_sub(u32::try_from(missing_keys.len()).unwrap_or(u32::MAX));
                missing_keys.extend(first_missing(connection, &worked, (kind, room))?);
            }
            Ok(Some(Comparison { basis, stats, stats_by_kind, missing, missing_keys }))
        })
        .await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moved {
    Yes,
    No,
}

/// A version of the record of a staged row: what it says after commit ?2.
const CURRENT: &str = "LEFT JOIN record_versions v ON v.scope = ?1 AND v.kind = s.kind AND v.key = s.key
    AND v.sequence = (SELECT max(m.sequence) FROM record_versions m
                      WHERE m.scope = ?1 AND m.kind = s.kind AND m.key = s.key AND m.sequence <= ?2)
    LEFT JOIN row_contents b ON b.number = v.content";

/// Marks all staged rows as what they do to the records after a commit.
async fn mark_again(ledger: &SqliteLedger, run: &Run, basis: u64) -> Result<Moved> {
    let mut after = RecordKey::new("", "");
    loop {
        let looked = (run.clone(), after.clone());
        let (last, marks) =
            ledger.read(move |connection| other_marks(connection, &looked.0, (basis, &looked.1))).await?;
        let (run, is_last) = (run.clone(), last.is_none());
        if !marks.is_empty() || is_last {
            let moved = ledger
                .write_bulk(move |connection| {
                    let worked = of_run(connection, &run, &STATES)?;
                    if worked.head != basis {
                        return Ok(Moved::Yes);
                    }
                    write_marks(connection, &worked, (&marks, is_last))?;
                    Ok(Moved::No)
                })
                .await?;
            if moved == Moved::Yes || is_last {
                return Ok(moved);
            }
        }
        let Some(last) = last else { return Ok(Moved::No) };
        after = last;
    }
}

/// Rows that do something else than they are marked with.
type Marks = Vec<(RecordKey, Change)>;

/// Staged rows of a page that are marked wrongly; and the last row that was looked at, none if there was none.
fn other_marks(
    connection: &Connection,
    run: &Run,
    (basis, after): (u64, &RecordKey),
) -> Result<(Option<RecordKey>, Marks)> {
    let worked = of_run(connection, run, &STATES)?;
    let mut query = connection.prepare_cached(&format!(
        "SELECT s.kind, s.key, s.change, a.hash AS staged_hash, b.hash AS current_hash FROM staged_rows s
         LEFT JOIN row_contents a ON a.number = s.content {CURRENT}
         WHERE s.log = ?3 AND (s.kind, s.key) > (?4, ?5) ORDER BY s.kind, s.key LIMIT ?6"
    ))?;
    let values = params![
        asked(worked.scope_number),
        asked(basis),
        asked(worked.log),
        after.kind,
        after.key,
        CHUNK_MAX
    ];
    let (mut last, mut marks) = (None, Vec::new());
    let mut rows = query.query(values)?;
    while let Some(row) = rows.next()? {
        let (staged, current): (Option<Digest>, Option<Digest>) =
            (get_optional(row, "staged_hash")?, get_optional(row, "current_hash")?);
        let change = rule_on_row(staged.as_ref(), current.as_ref());
        let key = key(row)?;
        if word(row, "change", Change::parse)? != change {
            marks.push((key.clone(), change));
        }
        last = Some(key);
    }
    Ok((last, marks))
}

fn write_marks(
    connection: &Connection,
    worked: &Worked,
    (marks, is_last): (&[(RecordKey, Change)], bool),
) -> Result<()> {
    for (key, change) in marks {
        connection
            .prepare_cached("UPDATE staged_rows SET change = ?4 WHERE log = ?1 AND kind = ?2 AND key = ?3")?
            .execute(params![asked(worked.log), key.kind, key.key, change.as_str()])?;
    }
    if is_last {
        connection
            .prepare_cached("UPDATE summary_logs SET compared = ?2 WHERE number = ?1")?
            .execute(params![asked(worked.log), asked(worked.head)])?;
    }
    Ok(())
}

/// Stages the end of records of a kind that have no row.
async fn end_missing(ledger: &SqliteLedger, run: &Run, (kind, basis): (&str, u64)) -> Result<Moved> {
    loop {
        let (looked, of_kind) = (run.clone(), kind.to_owned());
        let missing = ledger
            .read(move |connection| {
                let worked = of_run(connection, &looked, &STATES)?;
                let limit = u32::try_from(CHUNK_MAX).unwrap_or(u32::MAX);
                first_missing(connection, &worked, (&of_kind, limit))
            })
            .await?;
        let is_last = missing.len() < CHUNK_MAX;
        let run = run.clone();
        let moved = ledger
            .write_bulk(move |connection| {
                let worked = of_run(connection, &run, &STATES)?;
                if worked.head != basis {
                    return Ok(Moved::Yes);
                }
                stage_ends(connection, &worked, &missing)?;
                Ok(Moved::No)
            })
            .await?;
        if is_last || moved == Moved::Yes {
            return Ok(moved);
        }
    }
}

fn stage_ends(connection: &Connection, worked: &Worked, missing: &[MissingRow]) -> Result<()> {
    let mut staged = 0;
    for each in missing {
        staged += connection
            .prepare_cached(
                "INSERT INTO staged_rows (log, kind, key, change, sheet, sheet_row) VALUES (?1, ?2, ?3, 'removed', '', 0)
                 ON CONFLICT DO NOTHING",
            )?
            .execute(params![asked(worked.log), each.key.kind, each.key.key])?;
    }
    connection
        .prepare_cached(
            "UPDATE summary_logs SET compared = coalesce(compared, ?3), staged = staged + ?2 WHERE number = ?1",
        )?
        .execute(params![asked(worked.log), staged, asked(worked.head)])?;
    Ok(())
}

/// Records of a kind that are there and have no staged row.
const MISSING: &str = "FROM record_versions v WHERE v.scope = ?1 AND v.kind = ?4 AND v.content IS NOT NULL
    AND v.sequence = (SELECT max(m.sequence) FROM record_versions m
                      WHERE m.scope = ?1 AND m.kind = v.kind AND m.key = v.key AND m.sequence <= ?2)
    AND NOT EXISTS (SELECT 1 FROM staged_rows s WHERE s.log = ?3 AND s.kind = v.kind AND s.key = v.key)";

fn count_missing(connection: &Connection, worked: &Worked, kind: &str) -> Result<u64> {
    let mut query = connection.prepare_cached(&format!("SELECT count(*) {MISSING}"))?;
    let values = params![asked(worked.scope_number), asked(worked.head), asked(worked.log), kind];
    Ok(query.query_row(values, |row| row.get(0))?)
}

fn first_missing(
    connection: &Connection,
    worked: &Worked,
    (kind, limit): (&str, u32),
) -> Result<Vec<MissingRow>> {
    let mut query = connection.prepare_cached(&format!(
        "SELECT w.*, l.id, c.committed_ms FROM (SELECT v.kind, v.key, v.sheet, v.sheet_row, v.log {MISSING} ORDER BY v.key LIMIT ?5) w
         JOIN summary_logs l ON l.number = w.log JOIN record_commits c ON c.log = w.log"
    ))?;
    let values = params![asked(worked.scope_number), asked(worked.head), asked(worked.log), kind, limit];
    let found = query.query_map(values, |row| {
        Ok(MissingRow {
            key: key(row)?,
            place: (row.get("sheet")?, row.get("sheet_row")?),
            log: id(row, "id", SummaryLogId::parse)?,
            committed_at: get(row, "committed_ms")?,
        })
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// What the submission of a run's log does, if everything staged is compared with the head and the head is the basis.
pub(super) fn stats_on(connection: &Connection, run: &Run, basis: u64) -> Result<Option<PreviewStats>> {
    Ok(stats_by_kind(connection, run, basis)?.map(|by_kind| by_kind.into_values().sum()))
}

fn stats_by_kind(
    connection: &Connection,
    run: &Run,
    basis: u64,
) -> Result<Option<BTreeMap<String, PreviewStats>>> {
    let worked = of_run(connection, run, &STATES)?;
    // A workbook without a row does nothing, whatever it is compared with.
    let is_compared = worked.is_compared() || worked.staged == 0;
    if worked.head != basis || !is_compared {
        return Ok(None);
    }
    let mut by_kind: BTreeMap<String, PreviewStats> = BTreeMap::new();
    let mut query = connection.prepare_cached(
        // One pass in the order of the table: nothing is sorted.
        "SELECT kind, count(*) FILTER (WHERE change = 'created') AS created, count(*) FILTER (WHERE change = 'updated') AS updated,
           count(*) FILTER (WHERE change = 'unchanged' AND content IS NOT NULL) AS unchanged,
           count(*) FILTER (WHERE change = 'removed') AS removed FROM staged_rows WHERE log = ?1 GROUP BY kind",
    )?;
    let mut rows = query.query([asked(worked.log)])?;
    while let Some(row) = rows.next()? {
        let stats = PreviewStats {
            created: row.get("created")?,
            updated: row.get("updated")?,
            unchanged: row.get("unchanged")?,
            removed: row.get("removed")?,
        };
        by_kind.insert(row.get("kind")?, stats);
    }
    Ok(Some(by_kind))
}

fn key(row: &Row<'_>) -> rusqlite::Result<RecordKey> {
    Ok(RecordKey { kind: row.get("kind")?, key: row.get("key")? })
}

const CONTENTS: &str = "a.cells AS after_cells, a.outcome AS after_outcome, a.reason AS after_reason, a.measure AS after_measure,
    a.erased_ms AS after_erased_ms, b.cells AS before_cells, b.outcome AS before_outcome, b.reason AS before_reason,
    b.measure AS before_measure, b.erased_ms AS before_erased_ms";

const FILTERS: &str = "(s.kind, s.key) > (?4, ?5) AND (?6 IS NULL OR s.change = ?6) AND s.change <> coalesce(?7, '')
    AND (?8 IS NULL OR s.kind = ?8) AND (?9 IS NULL OR substr(s.key, 1, length(?9)) = ?9) ORDER BY s.kind, s.key LIMIT ?10";

/// What a log changes: what is staged against its basis, or its versions against those before them.
pub(super) fn changes(connection: &Connection, page: &ChangesPage) -> Result<Vec<RowChange>> {
    let Some(log) = log_rows::by_id(connection, &page.log)? else { return Ok(Vec::new()) };
    let Some((scope, _)) = log_rows::scope_number(connection, &log.scope)? else { return Ok(Vec::new()) };
    let (query, basis) = match (log.commit, page.basis.or(log.basis)) {
        (Some((sequence, _)), _) => (
            format!(
                "SELECT s.kind, s.key, s.change, s.sheet, s.sheet_row, {CONTENTS} FROM record_versions s
                 LEFT JOIN row_contents a ON a.number = s.content {CURRENT}
                 WHERE s.scope = ?1 AND s.sequence = ?2 + 1 AND s.log = ?3 AND {FILTERS}"
            ),
            sequence.saturating_sub(1),
        ),
        (None, Some(basis)) => (
            format!(
                "SELECT s.kind, s.key, s.change, s.sheet, s.sheet_row, {CONTENTS} FROM staged_rows s
                 LEFT JOIN row_contents a ON a.number = s.content {CURRENT} WHERE s.log = ?3 AND {FILTERS}"
            ),
            basis,
        ),
        (None, None) => return Ok(Vec::new()),
    };
    let wanted = page.change.map(Change::as_str);
    let left_out = page.change.is_none().then(|| Change::Unchanged.as_str());
    let after = page.after.clone().unwrap_or_else(|| RecordKey::new("", ""));
    let mut query = connection.prepare_cached(&query)?;
    let values = params![
        asked(scope),
        asked(basis),
        asked(log.number),
        after.kind,
        after.key,
        wanted,
        left_out,
        page.kind,
        page.key_prefix,
        page.limit
    ];
    Ok(query.query_map(values, row_change)?.collect::<rusqlite::Result<_>>()?)
}

fn row_change(row: &Row<'_>) -> rusqlite::Result<RowChange> {
    let (before, after) = (content(row, "before_")?, content(row, "after_")?);
    let cells = changed_cells(values(before.as_ref()), values(after.as_ref()));
    let change = word(row, "change", Change::parse)?;
    let place = match after {
        Some(_) => Some((row.get("sheet")?, row.get("sheet_row")?)),
        None => None,
    };
    Ok(RowChange { key: key(row)?, change, before, after, cells, place })
}

fn values(content: Option<&RowContent>) -> Option<&str> {
    content.map(|content| content.values.as_str())
}

/// The content of a row, from columns that begin so.
pub(super) fn content(row: &Row<'_>, prefix: &str) -> rusqlite::Result<Option<RowContent>> {
    let column = |name: &str| format!("{prefix}{name}");
    let Some(values) = row.get(column("cells").as_str())? else { return Ok(None) };
    Ok(Some(RowContent {
        values,
        outcome: row.get(column("outcome").as_str())?,
        reason: row.get(column("reason").as_str())?,
        measure: row.get(column("measure").as_str())?,
        erased_at: get_optional(row, column("erased_ms").as_str())?,
    }))
}
