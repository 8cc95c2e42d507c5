//! Comparing what is staged with the records, on PostgreSQL: the preview.
//!
//! A page is read and marked in one transaction that holds the lock of the scope. If the head has moved since the first page, the
//! comparison begins again.
//!
//! Guarantees: [`stats_on`] and [`compare`] answer for one head, from one snapshot.

use std::collections::BTreeMap;

use model::records::{Change, PreviewStats, RecordKey, RemovedRows, changed_cells, rule_on_row};
use model::submissions::LogState;
use model::{Digest, SummaryLogId};
use tokio_postgres::Row;

use super::PostgresLedger;
use super::log_rows::{self, Lock, Worked, change, of_run, seen_by_run, word};
use super::rows::{all, asked, get, get_optional, id, text};
use super::step::Step;
use crate::logs::{CHUNK_MAX, Run};
use crate::staging::{ChangesPage, Comparison, MissingRow, RowChange, RowContent};
use crate::{LedgerError, Result};

/// Commits of the scope that may come in between before the comparison is left for later.
const ROUNDS_MAX: usize = 8;
/// Keys that are named when rows are missing.
const MISSING_MAX: usize = 100;
/// Versions that are looked at together when rows may be missing.
const LOOKED_MAX: i64 = 10_000;
/// In these states rows are compared.
const STATES: [LogState; 2] = [LogState::Validating, LogState::Validated];

pub(super) async fn compare(
    ledger: &PostgresLedger,
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
    ledger: &PostgresLedger,
    run: &Run,
    removals: &BTreeMap<String, RemovedRows>,
) -> Result<Option<Comparison>> {
    let step = ledger.glance().await?;
    let worked = seen_by_run(&step, run, &STATES).await;
    let worked = step.end(worked).await?;
    if !worked.is_compared() && mark_again(ledger, run, worked.head).await? == Moved::Yes {
        return Ok(None);
    }
    let kinds = |wanted: RemovedRows| {
        let kinds = removals.iter().filter(move |(_, policy)| **policy == wanted);
        kinds.map(|(kind, _)| kind.as_str()).collect::<Vec<_>>()
    };
    for kind in kinds(RemovedRows::Tombstone) {
        if end_missing(ledger, run, (kind, &worked)).await? == Moved::Yes {
            return Ok(None);
        }
    }
    let step = ledger.read().await?;
    let compared = compared(&step, run, (&worked, &kinds(RemovedRows::Fatal))).await;
    step.end(compared).await
}

/// The numbers, from one snapshot.
async fn compared(step: &Step, run: &Run, (worked, fatal): (&Worked, &[&str])) -> Result<Option<Comparison>> {
    let basis = worked.head;
    let Some(stats_by_kind) = stats_by_kind(step, run, basis).await? else { return Ok(None) };
    let stats = stats_by_kind.values().copied().sum();
    let (mut missing, mut missing_keys) = (0, Vec::new());
    for kind in fatal {
        let room = MISSING_MAX.saturating_sub(missing_keys.len());
        let (count, first) = count_missing(step, worked, (kind, room)).await?;
        missing += count;
        missing_keys.extend(last_seen(step, worked, (kind, &first)).await?);
    }
    Ok(Some(Comparison { basis, stats, stats_by_kind, missing, missing_keys }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moved {
    Yes,
    No,
}

/// The content of a row `s`, and what its record says after commit $2. Looked up row by row: a planner that does not know how long a
/// page is would read whole tables for it.
const CURRENT: &str = "LEFT JOIN LATERAL (SELECT r.hash, r.cells, r.outcome, r.reason, r.measure, r.erased_ms
      FROM row_contents r WHERE r.number = s.content OFFSET 0) a ON true
    LEFT JOIN LATERAL (SELECT m.content FROM record_versions m
      WHERE m.scope = $1 AND m.kind = s.kind AND m.key = s.key AND m.sequence <= $2 ORDER BY m.sequence DESC LIMIT 1) v ON true
    LEFT JOIN LATERAL (SELECT r.hash, r.cells, r.outcome, r.reason, r.measure, r.erased_ms
      FROM row_contents r WHERE r.number = v.content OFFSET 0) b ON true";

/// Marks all staged rows as what they do to the records after a commit.
async fn mark_again(ledger: &PostgresLedger, run: &Run, basis: u64) -> Result<Moved> {
    let mut after = RecordKey::new("", "");
    loop {
        let step = ledger.write().await?;
        let done = mark_page(&step, run, (basis, &after)).await;
        match step.end(done).await? {
            Marked::HeadMoved => return Ok(Moved::Yes),
            Marked::All => return Ok(Moved::No),
            Marked::UpTo(last) => after = last,
        }
    }
}

enum Marked {
    HeadMoved,
    UpTo(RecordKey),
    All,
}

/// Marks those staged rows of a page that are marked wrongly.
async fn mark_page(step: &Step, run: &Run, (basis, after): (u64, &RecordKey)) -> Result<Marked> {
    let worked = of_run(step, run, &STATES).await?;
    if worked.head != basis {
        return Ok(Marked::HeadMoved);
    }
    let query = format!(
        "SELECT s.kind, s.key, s.change, a.hash AS staged_hash, b.hash AS current_hash
         FROM (SELECT kind, key, change, content FROM staged_rows WHERE log = $3 AND (kind, key) > ($4, $5)
               ORDER BY kind, key LIMIT $6) s
         {CURRENT} ORDER BY s.kind, s.key"
    );
    let limit = i64::try_from(CHUNK_MAX).map_err(LedgerError::damaged)?;
    let (scope, log) = (asked(worked.scope_number), asked(worked.log));
    let values: super::step::Values<'_> = &[&scope, &asked(basis), &log, &after.kind, &after.key, &limit];
    let rows = step.query(&query, values).await?;
    let (mut kinds, mut keys, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = None;
    for row in &rows {
        let (staged, current): (Option<Digest>, Option<Digest>) =
            (get_optional(row, "staged_hash")?, get_optional(row, "current_hash")?);
        let change = rule_on_row(staged.as_ref(), current.as_ref());
        let key = key(row)?;
        if word(row, "change", Change::parse)? != change {
            kinds.push(key.kind.clone());
            keys.push(key.key.clone());
            changes.push(change.as_str());
        }
        last = Some(key);
    }
    if !changes.is_empty() {
        let update = "UPDATE staged_rows s SET change = n.change FROM UNNEST($2::text[], $3::text[], $4::text[]) AS n (kind, key, change)
                      WHERE s.log = $1 AND s.kind = n.kind AND s.key = n.key";
        step.execute(update, &[&log, &kinds, &keys, &changes]).await?;
    }
    match last.filter(|_| rows.len() == CHUNK_MAX) {
        Some(last) => Ok(Marked::UpTo(last)),
        None => {
            change(step, &worked, "compared = $4", &[&asked(worked.head)]).await?;
            Ok(Marked::All)
        }
    }
}

/// Stages the end of records of a kind that have no row.
async fn end_missing(ledger: &PostgresLedger, run: &Run, (kind, worked): (&str, &Worked)) -> Result<Moved> {
    let mut after = Some(Place::default());
    while let Some(from) = after {
        let step = ledger.glance().await?;
        let page = missing(&step, worked, (kind, &from)).await;
        let page = step.end(page).await?;
        for keys in page.keys.chunks(CHUNK_MAX) {
            let step = ledger.write().await?;
            let done = stage_ends(&step, run, (kind, worked.head, keys)).await;
            if step.end(done).await? == Moved::Yes {
                return Ok(Moved::Yes);
            }
        }
        after = page.last;
    }
    Ok(Moved::No)
}

/// What was seen to have no row has none, as long as the head is the same: only this run stages.
async fn stage_ends(step: &Step, run: &Run, (kind, basis, keys): (&str, u64, &[String])) -> Result<Moved> {
    let worked = of_run(step, run, &STATES).await?;
    if worked.head != basis {
        return Ok(Moved::Yes);
    }
    let insert = "INSERT INTO staged_rows (log, kind, key, change, sheet, sheet_row)
                  SELECT $1::bigint, $2::text, n.key, 'removed', '', 0 FROM UNNEST($3::text[]) AS n (key) ON CONFLICT DO NOTHING";
    let staged = step.execute(insert, &[&asked(worked.log), &text(kind), &keys]).await?;
    let assignments = "compared = coalesce(compared, $5), staged = staged + $4";
    change(step, &worked, assignments, &[&asked(staged), &asked(worked.head)]).await?;
    Ok(Moved::No)
}

/// A version: the key of its record and its number.
#[derive(Debug, Clone, Default)]
struct Place {
    key: String,
    sequence: i64,
}

/// Records that are there and have no staged row, among some versions.
struct MissingPage {
    keys: Vec<String>,
    /// The last version that was looked at; none if there was none.
    last: Option<Place>,
}

/// Looks at the versions of a kind after one of them, at most [`LOOKED_MAX`].
async fn missing(step: &Step, worked: &Worked, (kind, after): (&str, &Place)) -> Result<MissingPage> {
    let query = "WITH page AS MATERIALIZED (
           SELECT v.key, v.sequence, v.content FROM record_versions v
           WHERE v.scope = $1 AND v.kind = $4 AND (v.key, v.sequence) > ($5, $6) ORDER BY v.key, v.sequence LIMIT $7),
         last AS (SELECT p.key, p.sequence FROM page p ORDER BY p.key DESC, p.sequence DESC LIMIT 1)
         SELECT l.key, l.sequence, ARRAY(SELECT p.key FROM page p WHERE p.content IS NOT NULL
           AND p.sequence = (SELECT max(m.sequence) FROM record_versions m
                             WHERE m.scope = $1 AND m.kind = $4 AND m.key = p.key AND m.sequence <= $2)
           AND NOT EXISTS (SELECT 1 FROM staged_rows s WHERE s.log = $3 AND s.kind = $4 AND s.key = p.key OFFSET 0)
           ORDER BY p.key) AS missing FROM last l";
    let (scope, head, log) = (asked(worked.scope_number), asked(worked.head), asked(worked.log));
    let values: super::step::Values<'_> =
        &[&scope, &head, &log, &text(kind), &after.key, &after.sequence, &LOOKED_MAX];
    let Some(row) = step.query_optional(query, values).await? else {
        return Ok(MissingPage { keys: Vec::new(), last: None });
    };
    let last = Place { key: get(&row, "key")?, sequence: get(&row, "sequence")? };
    Ok(MissingPage { keys: row.try_get("missing")?, last: Some(last) })
}

/// How many records of a kind have no row, and the first of them.
async fn count_missing(
    step: &Step,
    worked: &Worked,
    (kind, room): (&str, usize),
) -> Result<(u64, Vec<String>)> {
    let (mut count, mut first) = (0, Vec::new());
    let mut after = Some(Place::default());
    while let Some(from) = after {
        let page = missing(step, worked, (kind, &from)).await?;
        count += u64::try_from(page.keys.len()).unwrap_or(u64::MAX);
        let left = room.saturating_sub(first.len());
        first.extend(page.keys.into_iter().take(left));
        after = page.last;
    }
    Ok((count, first))
}

/// Where and when records were last changed.
async fn last_seen(step: &Step, worked: &Worked, (kind, keys): (&str, &[String])) -> Result<Vec<MissingRow>> {
    let query = "SELECT $3::text AS kind, n.key, v.sheet, v.sheet_row, l.id, c.committed_ms FROM UNNEST($4::text[]) AS n (key)
         JOIN LATERAL (SELECT m.sheet, m.sheet_row, m.log FROM record_versions m WHERE m.scope = $1 AND m.kind = $3
                       AND m.key = n.key AND m.sequence <= $2 ORDER BY m.sequence DESC LIMIT 1) v ON true
         JOIN summary_logs l ON l.number = v.log JOIN record_commits c ON c.log = v.log ORDER BY n.key COLLATE \"C\"";
    let (scope, head) = (asked(worked.scope_number), asked(worked.head));
    let rows = step.query(query, &[&scope, &head, &text(kind), &keys]).await?;
    all(&rows, |row| {
        Ok(MissingRow {
            key: key(row)?,
            place: (get(row, "sheet")?, get(row, "sheet_row")?),
            log: id(row, "id", SummaryLogId::parse)?,
            committed_at: get(row, "committed_ms")?,
        })
    })
}

/// What the submission of a run's log does, if everything staged is compared with the head and the head is the basis.
pub(super) async fn stats_on(step: &Step, run: &Run, basis: u64) -> Result<Option<PreviewStats>> {
    Ok(stats_by_kind(step, run, basis).await?.map(|by_kind| by_kind.into_values().sum()))
}

async fn stats_by_kind(step: &Step, run: &Run, basis: u64) -> Result<Option<BTreeMap<String, PreviewStats>>> {
    let worked = seen_by_run(step, run, &STATES).await?;
    // A workbook without a row does nothing, whatever it is compared with.
    let is_compared = worked.is_compared() || worked.staged == 0;
    if worked.head != basis || !is_compared {
        return Ok(None);
    }
    let mut by_kind: BTreeMap<String, PreviewStats> = BTreeMap::new();
    let query = "SELECT kind, change, count(*) AS count FROM staged_rows
                 WHERE log = $1 AND (content IS NOT NULL OR change <> 'unchanged') GROUP BY kind, change";
    for row in &step.query(query, &[&asked(worked.log)]).await? {
        let stats = by_kind.entry(get(row, "kind")?).or_default();
        let count = get(row, "count")?;
        match word(row, "change", Change::parse)? {
            Change::Created => stats.created = count,
            Change::Updated => stats.updated = count,
            Change::Unchanged => stats.unchanged = count,
            Change::Removed => stats.removed = count,
        }
    }
    Ok(Some(by_kind))
}

fn key(row: &Row) -> Result<RecordKey> {
    Ok(RecordKey { kind: get(row, "kind")?, key: get(row, "key")? })
}

const CONTENTS: &str = "a.cells AS after_cells, a.outcome AS after_outcome, a.reason AS after_reason, a.measure AS after_measure,
    a.erased_ms AS after_erased_ms, b.cells AS before_cells, b.outcome AS before_outcome, b.reason AS before_reason,
    b.measure AS before_measure, b.erased_ms AS before_erased_ms";

const FILTERS: &str = "(s.kind, s.key) > ($4, $5) AND ($6::text IS NULL OR s.change = $6) AND s.change <> coalesce($7::text, '')
    AND ($8::text IS NULL OR s.kind = $8) AND ($9::text IS NULL OR starts_with(s.key, $9)) ORDER BY s.kind, s.key LIMIT $10";

/// What a log changes: what is staged against its basis, or its versions against those before them.
pub(super) async fn changes(step: &Step, page: &ChangesPage) -> Result<Vec<RowChange>> {
    let Some(log) = log_rows::by_id(step, &page.log).await? else { return Ok(Vec::new()) };
    let Some((scope, _)) = log_rows::scope_number(step, &log.scope, Lock::Left).await? else {
        return Ok(Vec::new());
    };
    let (query, basis) = match (log.commit, page.basis.or(log.basis)) {
        (Some((sequence, _)), _) => (
            format!(
                "SELECT s.kind, s.key, s.change, s.sheet, s.sheet_row, {CONTENTS} FROM record_versions s
                 {CURRENT} WHERE s.scope = $1 AND s.sequence = $2 + 1 AND s.log = $3 AND {FILTERS}"
            ),
            sequence.saturating_sub(1),
        ),
        (None, Some(basis)) => (
            format!(
                "SELECT s.kind, s.key, s.change, s.sheet, s.sheet_row, {CONTENTS} FROM staged_rows s
                 {CURRENT} WHERE s.log = $3 AND {FILTERS}"
            ),
            basis,
        ),
        (None, None) => return Ok(Vec::new()),
    };
    let wanted = page.change.map(Change::as_str);
    let left_out = page.change.is_none().then(|| Change::Unchanged.as_str());
    let (kind, key) = page.after.as_ref().map_or(("", ""), |after| (&after.kind, &after.key));
    let (of_kind, prefix) = (page.kind.as_deref().map(text), page.key_prefix.as_deref().map(text));
    let values: super::step::Values<'_> = &[
        &asked(scope),
        &asked(basis),
        &asked(log.number),
        &text(kind),
        &text(key),
        &wanted,
        &left_out,
        &of_kind,
        &prefix,
        &i64::from(page.limit),
    ];
    all(&step.query(&query, values).await?, row_change)
}

fn row_change(row: &Row) -> Result<RowChange> {
    let (before, after) = (content(row, "before_")?, content(row, "after_")?);
    let cells = changed_cells(values(before.as_ref()), values(after.as_ref()));
    let change = word(row, "change", Change::parse)?;
    let place = match after {
        Some(_) => Some((get(row, "sheet")?, get(row, "sheet_row")?)),
        None => None,
    };
    Ok(RowChange { key: key(row)?, change, before, after, cells, place })
}

fn values(content: Option<&RowContent>) -> Option<&str> {
    content.map(|content| content.values.as_str())
}

/// The content of a row, from columns that begin so.
pub(super) fn content(row: &Row, prefix: &str) -> Result<Option<RowContent>> {
    let column = |name: &str| format!("{prefix}{name}");
    let Some(values) = get_optional(row, &column("cells"))? else { return Ok(None) };
    Ok(Some(RowContent {
        values,
        outcome: get(row, &column("outcome"))?,
        reason: get_optional(row, &column("reason"))?,
        measure: get_optional(row, &column("measure"))?,
        erased_at: get_optional(row, &column("erased_ms"))?,
    }))
}
