//! Asks whether rows were shifted, before anybody confirms a preview in which nearly every record changes.
//!
//! Guarantees: looks at a bounded number of changes; what it finds is a problem like any other, and (as a warning) has to be named
//! by whoever confirms the preview. Does not do: deciding (`model::shifts`).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use ledger::logs::Run;
use ledger::staging::{ChangesPage, Comparison, RowContent};
use model::Digest;
use model::records::PreviewStats;
use model::shifts::{RowMove, Shift, rule_on_shift};
use model::submissions::{Problem, canonical_values};
use sheets::{Decimal, Place, Table, Template, code};

use super::SubmissionError;
use crate::app::App;

/// Changes of one kind of record that are looked at: enough to see it, whatever the size of the workbook.
const LOOKED_MAX: usize = 10_000;
const PAGE: u32 = 1000;

/// Tables of which most rows have changed and many have the values of another row.
pub(super) async fn shifted(
    app: &Arc<App>,
    run: &Run,
    (comparison, template): (&Comparison, &Template),
) -> Result<Vec<Problem>, SubmissionError> {
    let mut found: BTreeMap<&str, Problem> = BTreeMap::new();
    for table in &template.tables {
        let stats = comparison.stats_by_kind.get(&table.kind).copied().unwrap_or_default();
        if !is_much(&stats, template.preview.shifted_share) {
            continue;
        }
        if let Entry::Vacant(place) = found.entry(&table.kind) {
            let moves = moves_of(app, run, (comparison.basis, table)).await?;
            if let Some(shift) = rule_on_shift(&moves) {
                place.insert(problem(template, table, &shift));
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Whether so many of the rows that are known already have changed.
fn is_much(stats: &PreviewStats, share: Decimal) -> bool {
    let whole = |count: u64| Decimal::whole(i64::try_from(count).unwrap_or(i64::MAX));
    let known = whole(stats.updated.saturating_add(stats.unchanged));
    stats.updated > 1 && share.times(known).is_some_and(|enough| whole(stats.updated) >= enough)
}

async fn moves_of(
    app: &App,
    run: &Run,
    (basis, table): (u64, &Table),
) -> Result<Vec<RowMove>, SubmissionError> {
    let known_by: Vec<&str> = table
        .key
        .iter()
        .filter_map(|index| table.columns.get(*index))
        .map(|column| column.name.as_str())
        .collect();
    let mut moves = Vec::new();
    let mut page = ChangesPage {
        log: run.log.clone(),
        change: None,
        kind: Some(table.kind.clone()),
        key_prefix: None,
        after: None,
        basis: Some(basis),
        limit: PAGE,
    };
    while moves.len() < LOOKED_MAX {
        let changes = app.ledger.log_changes(&page).await?;
        let Some(last) = changes.last() else { break };
        page.after = Some(last.key.clone());
        moves.extend(changes.into_iter().map(|change| RowMove {
            before: change.before.and_then(|content| rest(&content, &known_by)),
            after: change.after.and_then(|content| rest(&content, &known_by)),
            key: change.key.key,
        }));
    }
    Ok(moves)
}

/// What a row says besides what it is known by; nothing if that is all.
fn rest(content: &RowContent, known_by: &[&str]) -> Option<Digest> {
    let mut values: BTreeMap<String, String> = serde_json::from_str(&content.values).ok()?;
    values.retain(|column, _| !known_by.contains(&column.as_str()));
    (!values.is_empty()).then(|| Digest::of(canonical_values(&values).as_bytes()))
}

fn problem(template: &Template, table: &Table, shift: &Shift) -> Problem {
    let (key, former) = &shift.first;
    let place = Place { sheet: Some(table.sheet.clone()), row_id: Some(key.clone()), ..Place::default() };
    let others = match shift.moved {
        1 => String::new(),
        more => format!(", and {} more such", more - 1),
    };
    template.problem((code::ROWS_SEEM_SHIFTED, 4), place, &format!("{key} has those of {former}{others}"))
}
