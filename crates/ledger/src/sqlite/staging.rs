//! Staging on SQLite: rows and problems of a workbook, the undoing of a commit.
//!
//! Hashing, and looking up what a row's record says now, happens beside the writer; the writer only inserts. A row whose record
//! says the same names its content and stores none.

use std::borrow::Cow;
use std::collections::BTreeMap;

use async_trait::async_trait;
use futures_util::future::join_all;
use model::records::{Change, OnUndo, RecordKey, RemovedRows, rule_on_row, rule_on_undo};
use model::submissions::{LogState, Problem, Severity, StagedRow};
use model::{Digest, SummaryLogId};
use rusqlite::{Connection, params};

use super::log_rows::{Worked, of_run};
use super::rows::{Stored, asked, get, get_optional, optional};
use super::{SqliteLedger, comparing, problems};
use crate::logs::{CHUNK_MAX, Run};
use crate::staging::{
    ChangesPage, Comparison, Duplicate, ProblemChunk, ProblemCount, ProblemsPage, RowChange, UndoStaged,
};
use crate::{Result, Staging};

/// Rows inserted by one step: about a millisecond.
const SLICE_MAX: usize = 125;
/// Keys that are named when an undoing leaves records alone.
const LEFT_MAX: usize = 100;

#[async_trait]
impl Staging for SqliteLedger {
    async fn stage_rows(&self, run: &Run, mut rows: Vec<StagedRow>) -> Result<Vec<Duplicate>> {
        let mut duplicates = Vec::new();
        while !rows.is_empty() {
            let rest = rows.split_off(rows.len().min(CHUNK_MAX));
            let (looked, chunk) = (run.clone(), std::mem::replace(&mut rows, rest));
            let (compared, compared_rows) =
                self.read(move |connection| compare_rows(connection, &looked, chunk)).await?;
            for found in insert_in_slices(self, run, (compared, compared_rows)).await {
                duplicates.extend(found?);
            }
        }
        Ok(duplicates)
    }

    async fn stage_problems(&self, run: &Run, chunk: &ProblemChunk) -> Result<()> {
        let mut found_before = chunk.found_before;
        for part in chunk.problems.chunks(CHUNK_MAX) {
            let (run, keep_max, problems) = (run.clone(), chunk.keep_max, part.to_vec());
            let part = ProblemChunk { found_before, problems, keep_max };
            found_before += u64::try_from(part.problems.len()).unwrap_or(u64::MAX);
            self.write(move |connection, _| {
                let worked = of_run(connection, &run, &[LogState::Preprocessing, LogState::Validating])?;
                problems::count(connection, worked.log, &part)
            })
            .await?;
        }
        Ok(())
    }

    async fn count_problems(&self, run: &Run, more: &[ProblemCount]) -> Result<()> {
        if more.is_empty() {
            return Ok(());
        }
        let (run, more) = (run.clone(), more.to_vec());
        self.write(move |connection, _| {
            let worked = of_run(connection, &run, &[LogState::Preprocessing, LogState::Validating])?;
            problems::count_more(connection, worked.log, &more)
        })
        .await
    }

    async fn stage_undo(&self, run: &Run, sequence: u64) -> Result<UndoStaged> {
        let mut staged = UndoStaged::default();
        let mut after = RecordKey::new("", "");
        loop {
            let looked = (run.clone(), after.clone());
            let page =
                self.read(move |connection| undone(connection, &looked.0, (sequence, &looked.1))).await?;
            let Some(last) = page.last else { return Ok(staged) };
            staged.restored += page.staged.restored;
            staged.removed += page.staged.removed;
            staged.left += page.staged.left;
            let room = LEFT_MAX.saturating_sub(staged.left_keys.len());
            staged.left_keys.extend(page.staged.left_keys.into_iter().take(room));
            after = last;
            for done in insert_in_slices(self, run, (page.compared, page.rows)).await {
                done?;
            }
        }
    }

    async fn compare(&self, run: &Run, removals: &BTreeMap<String, RemovedRows>) -> Result<Comparison> {
        comparing::compare(self, run, removals).await
    }

    async fn log_changes(&self, page: &ChangesPage) -> Result<Vec<RowChange>> {
        let page = page.clone();
        self.read(move |connection| comparing::changes(connection, &page)).await
    }

    async fn problems(&self, page: &ProblemsPage) -> Result<Vec<(u64, Problem)>> {
        let page = page.clone();
        self.read(move |connection| problems::list(connection, &page)).await
    }

    async fn problem_counts(&self, log: &SummaryLogId) -> Result<Vec<ProblemCount>> {
        let log = log.clone();
        self.read(move |connection| problems::counts(connection, &log)).await
    }
}

/// Where problems of a severity stand: the worst first.
pub(super) fn rank(severity: Severity) -> u8 {
    match severity {
        Severity::Fatal => 0,
        Severity::Error => 1,
        Severity::Warning => 2,
    }
}

/// A row on its way into the table. One that shall end its record, or whose content is stored already, has no values.
struct NewRow {
    row: StagedRow,
    change: Change,
    content: NewContent,
}

enum NewContent {
    /// To be stored: the values of the row, under this hash.
    New(Digest),
    /// Stored already: it is what some version of the record says.
    Stored(u64),
    /// The record shall end.
    None,
}

/// Inserts rows, a slice at a step, so that nobody who saves waits for many; what came of each.
async fn insert_in_slices(
    ledger: &SqliteLedger,
    run: &Run,
    (compared, mut rows): (u64, Vec<NewRow>),
) -> Vec<Result<Vec<Duplicate>>> {
    let mut slices = Vec::with_capacity(rows.len().div_ceil(SLICE_MAX));
    while !rows.is_empty() {
        let rest = rows.split_off(rows.len().min(SLICE_MAX));
        let (run, slice) = (run.clone(), std::mem::replace(&mut rows, rest));
        slices.push(ledger.write_bulk(move |connection| {
            let worked = of_run(connection, &run, &[LogState::Validating])?;
            insert_rows(connection, &worked, (compared, &slice))
        }));
    }
    join_all(slices).await
}

/// What each row does to the records as they are, and the head that was looked at.
fn compare_rows(connection: &Connection, run: &Run, rows: Vec<StagedRow>) -> Result<(u64, Vec<NewRow>)> {
    let worked = of_run(connection, run, &[LogState::Validating])?;
    let mut compared = Vec::with_capacity(rows.len());
    for row in rows {
        let hash = row.hash();
        let current = content_at(connection, (worked.scope_number, worked.head), (&row.kind, &row.key))?;
        let change = rule_on_row(Some(&hash), current.as_ref().map(|(_, hash)| hash));
        let content = match current {
            Some((stored, _)) if change == Change::Unchanged => NewContent::Stored(stored),
            _ => NewContent::New(hash),
        };
        compared.push(NewRow { row, change, content });
    }
    Ok((worked.head, compared))
}

/// What a record says after a commit: the number and the hash of its content.
fn content_at(
    connection: &Connection,
    (scope, head): (u64, u64),
    (kind, key): (&str, &str),
) -> Result<Option<(u64, Digest)>> {
    if head == 0 {
        return Ok(None);
    }
    let found = connection
        .prepare_cached(
            "SELECT v.content, r.hash FROM record_versions v LEFT JOIN row_contents r ON r.number = v.content
             WHERE v.scope = ?1 AND v.kind = ?2 AND v.key = ?3 AND v.sequence <= ?4 ORDER BY v.sequence DESC LIMIT 1",
        )?
        .query_row(params![asked(scope), kind, key, asked(head)], |row| {
            Ok(row.get("content")?).and_then(|content: Option<u64>| {
                Ok(content.zip(get_optional::<Digest>(row, "hash")?))
            })
        });
    Ok(optional(found)?.flatten())
}

/// Inserts rows; those whose key is taken by a row from another place are returned.
fn insert_rows(
    connection: &Connection,
    worked: &Worked,
    (compared, rows): (u64, &[NewRow]),
) -> Result<Vec<Duplicate>> {
    let mut next: u64 = connection
        .prepare_cached("SELECT coalesce(max(number), 0) + 1 FROM row_contents")?
        .query_row([], |row| row.get(0))?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO staged_rows (log, kind, key, content, change, sheet, sheet_row) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT DO NOTHING",
    )?;
    let mut store = connection.prepare_cached(
        "INSERT INTO row_contents (number, hash, cells, outcome, reason, measure) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let (mut inserted, mut duplicates) = (0_u64, Vec::new());
    for NewRow { row, change, content } in rows {
        let number = match content {
            NewContent::New(_) => Some(next),
            NewContent::Stored(number) => Some(*number),
            NewContent::None => None,
        };
        let values = params![worked.log, row.kind, row.key, number, change.as_str(), row.sheet, row.row];
        if insert.execute(values)? == 0 {
            duplicates.extend(taken(connection, worked.log, row)?);
            continue;
        }
        inserted += 1;
        if let NewContent::New(hash) = content {
            store.execute(params![next, Stored(*hash), row.values, row.outcome, row.reason, row.measure])?;
            next += 1;
        }
    }
    // Rows of one log that were compared with several heads have to be compared again.
    connection
        .prepare_cached(
            "UPDATE summary_logs SET compared = CASE WHEN staged = 0 OR compared = ?3 THEN ?3 ELSE -1 END,
             staged = staged + ?2, rows = rows + ?2 WHERE number = ?1",
        )?
        .execute(params![worked.log, asked(inserted), asked(compared)])?;
    Ok(duplicates)
}

/// The row that has the key, unless it is the very same one.
fn taken(connection: &Connection, log: u64, row: &StagedRow) -> Result<Option<Duplicate>> {
    let first: (String, u32) = connection
        .prepare_cached("SELECT sheet, sheet_row FROM staged_rows WHERE log = ?1 AND kind = ?2 AND key = ?3")?
        .query_row(params![asked(log), row.kind, row.key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let again = (row.sheet.to_string(), row.row);
    let key = RecordKey::new(&*row.kind, row.key.as_str());
    Ok((first != again).then_some(Duplicate { key, first, again }))
}

/// A page of what the undoing of a commit does.
struct UndonePage {
    compared: u64,
    rows: Vec<NewRow>,
    staged: UndoStaged,
    last: Option<RecordKey>,
}

fn undone(connection: &Connection, run: &Run, (sequence, after): (u64, &RecordKey)) -> Result<UndonePage> {
    let worked = of_run(connection, run, &[LogState::Validating])?;
    let mut page =
        UndonePage { compared: worked.head, rows: Vec::new(), staged: UndoStaged::default(), last: None };
    if sequence > worked.head {
        return Ok(page);
    }
    let mut query = connection.prepare_cached(
        "SELECT v.kind, v.key, b.sequence AS before, b.content, b.sheet, b.sheet_row, r.hash,
           (SELECT max(n.sequence) FROM record_versions n
            WHERE n.scope = v.scope AND n.kind = v.kind AND n.key = v.key AND n.sequence <= ?3) AS now
         FROM record_versions v
         LEFT JOIN record_versions b ON b.scope = v.scope AND b.kind = v.kind AND b.key = v.key AND b.content IS NOT NULL
           AND b.sequence = (SELECT max(m.sequence) FROM record_versions m
                             WHERE m.scope = v.scope AND m.kind = v.kind AND m.key = v.key AND m.sequence < ?2)
         LEFT JOIN row_contents r ON r.number = b.content
         WHERE v.scope = ?1 AND v.sequence = ?2 AND (v.kind, v.key) > (?4, ?5) ORDER BY v.kind, v.key LIMIT ?6",
    )?;
    let values =
        params![worked.scope_number, asked(sequence), asked(worked.head), after.kind, after.key, CHUNK_MAX];
    let mut rows = query.query(values)?;
    while let Some(row) = rows.next()? {
        let key = RecordKey::new(row.get::<_, String>("kind")?, row.get::<_, String>("key")?);
        page.last = Some(key.clone());
        let (sheet, content, hash) = match rule_on_undo(sequence, row.get("before")?, row.get("now")?) {
            OnUndo::Leave => {
                page.staged.left += 1;
                page.staged.left_keys.push(key);
                continue;
            }
            OnUndo::Restore => {
                page.staged.restored += 1;
                let content = NewContent::Stored(row.get("content")?);
                ((row.get("sheet")?, row.get("sheet_row")?), content, Some(get::<Digest>(row, "hash")?))
            }
            OnUndo::Remove => {
                page.staged.removed += 1;
                ((String::new(), 0), NewContent::None, None)
            }
        };
        let current = content_at(connection, (worked.scope_number, worked.head), (&key.kind, &key.key))?;
        let change = rule_on_row(hash.as_ref(), current.as_ref().map(|(_, hash)| hash));
        page.rows.push(NewRow { row: without_values(key, sheet), change, content });
    }
    Ok(page)
}

/// A row of which only its key and its place are of interest.
fn without_values(key: RecordKey, (sheet, row): (String, u32)) -> StagedRow {
    let (values, outcome) = (String::new(), Cow::Borrowed(""));
    let (kind, sheet) = (key.kind.into(), sheet.into());
    StagedRow { kind, key: key.key, values, outcome, reason: None, measure: None, sheet, row }
}
