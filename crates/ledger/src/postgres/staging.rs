//! Staging on PostgreSQL: rows and problems of a workbook, the undoing of a commit.
//!
//! A chunk of rows takes two statements: one looks up what is staged and what the records say now, one inserts. A row whose record
//! says the same names its content and stores none. All of it happens while the scope is locked, so no head moves meanwhile.

use std::borrow::Cow;
use std::collections::BTreeMap;

use async_trait::async_trait;
use model::records::{Change, OnUndo, RecordKey, RemovedRows, rule_on_row, rule_on_undo};
use model::submissions::{LogState, Problem, StagedRow};
use model::{Digest, SummaryLogId};
use tokio_postgres::Row;

use super::log_rows::{Worked, change, of_run};
use super::rows::{all, asked, get, get_optional, text};
use super::step::Step;
use super::{PostgresLedger, comparing, problems};
use crate::logs::{CHUNK_MAX, Run};
use crate::staging::{
    ChangesPage, Comparison, Duplicate, ProblemChunk, ProblemCount, ProblemsPage, RowChange, UndoStaged,
};
use crate::{LedgerError, Result, Staging};

/// Keys that are named when an undoing leaves records alone.
const LEFT_MAX: usize = 100;

#[async_trait]
impl Staging for PostgresLedger {
    async fn stage_rows(&self, run: &Run, rows: Vec<StagedRow>) -> Result<Vec<Duplicate>> {
        let mut duplicates = Vec::new();
        for chunk in rows.chunks(CHUNK_MAX) {
            let step = self.write().await?;
            let done = stage(&step, run, chunk).await;
            duplicates.extend(step.end(done).await?);
        }
        Ok(duplicates)
    }

    async fn stage_problems(&self, run: &Run, chunk: &ProblemChunk) -> Result<()> {
        let mut found_before = chunk.found_before;
        for part in chunk.problems.chunks(CHUNK_MAX) {
            let part = ProblemChunk { found_before, problems: part.to_vec(), keep_max: chunk.keep_max };
            found_before += u64::try_from(part.problems.len()).unwrap_or(u64::MAX);
            let step = self.write().await?;
            let done = async {
                let worked = of_run(&step, run, &[LogState::Preprocessing, LogState::Validating]).await?;
                problems::count(&step, &worked, &part).await
            };
            let done = done.await;
            step.end(done).await?;
        }
        Ok(())
    }

    async fn count_problems(&self, run: &Run, more: &[ProblemCount]) -> Result<()> {
        if more.is_empty() {
            return Ok(());
        }
        let step = self.write().await?;
        let done = async {
            let worked = of_run(&step, run, &[LogState::Preprocessing, LogState::Validating]).await?;
            problems::count_more(&step, &worked, more).await
        };
        let done = done.await;
        step.end(done).await
    }

    async fn stage_undo(&self, run: &Run, sequence: u64) -> Result<UndoStaged> {
        let mut staged = UndoStaged::default();
        let mut after = Some(RecordKey::new("", ""));
        while let Some(from) = after {
            let step = self.write().await?;
            let done = undo_page(&step, run, (sequence, &from)).await;
            let (page, last) = step.end(done).await?;
            staged.restored += page.restored;
            staged.removed += page.removed;
            staged.left += page.left;
            let room = LEFT_MAX.saturating_sub(staged.left_keys.len());
            staged.left_keys.extend(page.left_keys.into_iter().take(room));
            after = last;
        }
        Ok(staged)
    }

    async fn compare(&self, run: &Run, removals: &BTreeMap<String, RemovedRows>) -> Result<Comparison> {
        comparing::compare(self, run, removals).await
    }

    async fn log_changes(&self, page: &ChangesPage) -> Result<Vec<RowChange>> {
        let step = self.read().await?;
        let found = comparing::changes(&step, page).await;
        step.end(found).await
    }

    async fn problems(&self, page: &ProblemsPage) -> Result<Vec<(u64, Problem)>> {
        let step = self.glance().await?;
        let found = problems::list(&step, page).await;
        step.end(found).await
    }

    async fn problem_counts(&self, log: &SummaryLogId) -> Result<Vec<ProblemCount>> {
        let step = self.glance().await?;
        let found = problems::counts(&step, log).await;
        step.end(found).await
    }
}

/// A row on its way into the table.
struct NewRow<'a> {
    key: RecordKey,
    change: Change,
    content: NewContent<'a>,
    place: (Cow<'a, str>, u32),
}

enum NewContent<'a> {
    /// To be stored.
    New(Digest, &'a StagedRow),
    /// Stored already: it is what some version of the record says.
    Stored(u64),
    /// The record shall end.
    None,
}

impl<'a> NewRow<'a> {
    /// What has to be stored.
    fn to_store(&self) -> Option<(Digest, &'a StagedRow)> {
        match self.content {
            NewContent::New(hash, row) => Some((hash, row)),
            NewContent::Stored(_) | NewContent::None => None,
        }
    }

    /// The number of what is stored.
    fn stored(&self) -> Option<i64> {
        match self.content {
            NewContent::Stored(number) => Some(asked(number)),
            NewContent::New(..) | NewContent::None => None,
        }
    }
}

/// What is known of a key before its row is staged.
struct Known {
    /// The place of the row that has the key.
    place: Option<(String, u32)>,
    /// What its record says: the number and the hash of the content.
    current: Option<(u64, Digest)>,
}

/// Stages rows; those whose key is taken by a row from another place are returned.
async fn stage(step: &Step, run: &Run, rows: &[StagedRow]) -> Result<Vec<Duplicate>> {
    let worked = of_run(step, run, &[LogState::Validating]).await?;
    let keys: Vec<RecordKey> =
        rows.iter().map(|row| RecordKey::new(text(&row.kind), text(&row.key))).collect();
    let mut known = look_up(step, &worked, &keys).await?;
    let (mut new, mut duplicates) = (Vec::new(), Vec::new());
    for (row, key) in rows.iter().zip(keys) {
        let found = known.get_mut(&key).ok_or_else(|| LedgerError::damaged("a key was not looked up"))?;
        let place = (text(&row.sheet), row.row);
        if let Some(first) = &found.place {
            if (first.0.as_str(), first.1) != (&*place.0, place.1) {
                let again = (place.0.into_owned(), place.1);
                duplicates.push(Duplicate { key, first: first.clone(), again });
            }
            continue;
        }
        found.place = Some((place.0.clone().into_owned(), place.1));
        let hash = row.hash();
        let change = rule_on_row(Some(&hash), found.current.as_ref().map(|(_, hash)| hash));
        let content = match found.current {
            Some((stored, _)) if change == Change::Unchanged => NewContent::Stored(stored),
            _ => NewContent::New(hash, row),
        };
        new.push(NewRow { key, change, content, place });
    }
    insert_rows(step, &worked, &new).await?;
    Ok(duplicates)
}

/// What is staged under these keys, and what their records say at the head. Each is looked up by itself (`LATERAL`, `OFFSET 0`):
/// joined, they would now and then make the server read whole tables for a chunk.
async fn look_up(step: &Step, worked: &Worked, keys: &[RecordKey]) -> Result<BTreeMap<RecordKey, Known>> {
    let kinds: Vec<&str> = keys.iter().map(|key| key.kind.as_str()).collect();
    let names: Vec<&str> = keys.iter().map(|key| key.key.as_str()).collect();
    let query = "SELECT k.kind, k.key, s.sheet, s.sheet_row, v.content, r.hash
         FROM UNNEST($3::text[], $4::text[]) AS k (kind, key)
         LEFT JOIN LATERAL (SELECT t.sheet, t.sheet_row FROM staged_rows t
                            WHERE t.log = $5 AND t.kind = k.kind AND t.key = k.key OFFSET 0) s ON true
         LEFT JOIN LATERAL (SELECT m.content FROM record_versions m WHERE m.scope = $1 AND m.kind = k.kind AND m.key = k.key
                            AND m.sequence <= $2 ORDER BY m.sequence DESC LIMIT 1) v ON true
         LEFT JOIN LATERAL (SELECT c.hash FROM row_contents c WHERE c.number = v.content OFFSET 0) r ON true";
    let (scope, head, log) = (asked(worked.scope_number), asked(worked.head), asked(worked.log));
    let rows = step.query(query, &[&scope, &head, &kinds, &names, &log]).await?;
    let found = all(&rows, |row| {
        let place = get_optional(row, "sheet")?.zip(get_optional(row, "sheet_row")?);
        Ok((key(row)?, Known { place, current: current(row)? }))
    })?;
    Ok(found.into_iter().collect())
}

fn key(row: &Row) -> Result<RecordKey> {
    Ok(RecordKey { kind: get(row, "kind")?, key: get(row, "key")? })
}

fn current(row: &Row) -> Result<Option<(u64, Digest)>> {
    Ok(get_optional(row, "content")?.zip(get_optional(row, "hash")?))
}

/// Inserts rows that are not staged yet, and the contents that are new, in one statement.
async fn insert_rows(step: &Step, worked: &Worked, rows: &[NewRow<'_>]) -> Result<()> {
    let statement = "WITH numbered AS MATERIALIZED (
           SELECT n.*, CASE WHEN n.hash IS NULL THEN n.stored
                       ELSE nextval(pg_get_serial_sequence('row_contents', 'number')) END AS content
           FROM UNNEST($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bytea[], $9::text[],
             $10::text[], $11::text[], $12::text[])
             AS n (kind, key, change, sheet, sheet_row, stored, hash, cells, outcome, reason, measure)),
         stored AS (
           INSERT INTO row_contents (number, hash, cells, outcome, reason, measure)
           SELECT content, hash, cells, outcome, reason, measure FROM numbered WHERE hash IS NOT NULL)
         INSERT INTO staged_rows (log, kind, key, content, change, sheet, sheet_row)
         SELECT $1::bigint, kind, key, content, change, sheet, sheet_row FROM numbered";
    if !rows.is_empty() {
        let hashes: Vec<Option<Vec<u8>>> =
            rows.iter().map(|row| row.to_store().map(|(hash, _)| hash.as_bytes().to_vec())).collect();
        let words = |of: fn(&StagedRow) -> Option<&str>| -> Vec<Option<&str>> {
            rows.iter().map(|row| row.to_store().and_then(|(_, new)| of(new))).collect()
        };
        let values: super::step::Values<'_> = &[
            &asked(worked.log),
            &rows.iter().map(|row| row.key.kind.as_str()).collect::<Vec<_>>(),
            &rows.iter().map(|row| row.key.key.as_str()).collect::<Vec<_>>(),
            &rows.iter().map(|row| row.change.as_str()).collect::<Vec<_>>(),
            &rows.iter().map(|row| &*row.place.0).collect::<Vec<_>>(),
            &rows.iter().map(|row| i64::from(row.place.1)).collect::<Vec<_>>(),
            &rows.iter().map(NewRow::stored).collect::<Vec<_>>(),
            &hashes,
            &words(|row| Some(&row.values)),
            &words(|row| Some(&row.outcome)),
            &words(|row| row.reason.as_deref()),
            &words(|row| row.measure.as_deref()),
        ];
        step.execute(statement, values).await?;
    }
    // Rows of one log that were compared with several heads have to be compared again.
    let assignments = "compared = CASE WHEN staged = 0 OR compared = $5 THEN $5 ELSE -1 END,
                       staged = staged + $4, rows = rows + $4";
    let inserted = i64::try_from(rows.len()).map_err(LedgerError::damaged)?;
    change(step, worked, assignments, &[&inserted, &asked(worked.head)]).await
}

/// Stages a page of the undoing of a commit; says what it does, and the last record it looked at.
async fn undo_page(
    step: &Step,
    run: &Run,
    (sequence, after): (u64, &RecordKey),
) -> Result<(UndoStaged, Option<RecordKey>)> {
    let worked = of_run(step, run, &[LogState::Validating]).await?;
    let mut staged = UndoStaged::default();
    if sequence > worked.head {
        return Ok((staged, None));
    }
    let found = versions_of(step, &worked, (sequence, after)).await?;
    let keys = all(&found, key)?;
    let known = look_up(step, &worked, &keys).await?;
    let mut rows = Vec::new();
    for (row, key) in found.iter().zip(&keys) {
        let (place, content, hash) =
            match rule_on_undo(sequence, get_optional(row, "before")?, get(row, "now")?) {
                OnUndo::Leave => {
                    staged.left += 1;
                    staged.left_keys.push(key.clone());
                    continue;
                }
                OnUndo::Restore => {
                    staged.restored += 1;
                    let place = (Cow::Owned(get(row, "sheet")?), get(row, "sheet_row")?);
                    (place, NewContent::Stored(get(row, "content")?), Some(get::<Digest>(row, "hash")?))
                }
                OnUndo::Remove => {
                    staged.removed += 1;
                    ((Cow::Borrowed(""), 0), NewContent::None, None)
                }
            };
        let Some(Known { place: None, current }) = known.get(key) else { continue };
        let change = rule_on_row(hash.as_ref(), current.as_ref().map(|(_, hash)| hash));
        rows.push(NewRow { key: key.clone(), change, content, place });
    }
    insert_rows(step, &worked, &rows).await?;
    Ok((staged, keys.into_iter().next_back()))
}

/// A page of what a commit wrote, with what was there before it and the number of the newest version.
async fn versions_of(step: &Step, worked: &Worked, (sequence, after): (u64, &RecordKey)) -> Result<Vec<Row>> {
    let query = "SELECT v.kind, v.key, CASE WHEN b.content IS NOT NULL THEN b.sequence END AS before,
           b.content, b.sheet, b.sheet_row, r.hash,
           (SELECT max(n.sequence) FROM record_versions n
            WHERE n.scope = v.scope AND n.kind = v.kind AND n.key = v.key AND n.sequence <= $3) AS now
         FROM (SELECT t.scope, t.kind, t.key FROM record_versions t
               WHERE t.scope = $1 AND t.sequence = $2 AND (t.kind, t.key) > ($4, $5) ORDER BY t.kind, t.key LIMIT $6) v
         LEFT JOIN LATERAL (SELECT m.sequence, m.content, m.sheet, m.sheet_row FROM record_versions m
                            WHERE m.scope = v.scope AND m.kind = v.kind AND m.key = v.key AND m.sequence < $2
                            ORDER BY m.sequence DESC LIMIT 1) b ON true
         LEFT JOIN LATERAL (SELECT c.hash FROM row_contents c WHERE c.number = b.content OFFSET 0) r ON true
         ORDER BY v.kind, v.key";
    let limit = i64::try_from(CHUNK_MAX).map_err(LedgerError::damaged)?;
    let (scope, head) = (asked(worked.scope_number), asked(worked.head));
    step.query(query, &[&scope, &asked(sequence), &head, &after.kind, &after.key, &limit]).await
}
