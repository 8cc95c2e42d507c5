//! The history of one record: what each submission did to it, and the cell each value came from.
//!
//! Guarantees: a version is compared with the one before it, also on the first row of a later page. The cell is known if the log's
//! workbook was read by us: the letters of its columns are kept with the log.

use std::collections::{BTreeMap, HashMap};

use ledger::LedgerError;
use ledger::records::{Ended, RecordVersion, RecordsPage};
use model::records::{CellChange, RecordKey, changed_cells, values_of};
use model::{Scope, SummaryLogId};
use serde::Deserialize;

use crate::app::App;

/// A version of a record, beside the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastVersion {
    /// The version.
    pub version: RecordVersion,
    /// The values that differ from the version before.
    pub changes: Vec<CellChange>,
    /// The cell each of its values stands in, by column: `F14`.
    pub cells: BTreeMap<String, String>,
}

/// The versions of a record, the oldest first, from the one after commit `after`.
pub async fn history(
    app: &App,
    scope: &Scope,
    key: &RecordKey,
    (after, limit): (u64, u32),
) -> Result<Vec<PastVersion>, LedgerError> {
    let mut before = version_at(app, scope, key, after).await?;
    let mut tables: HashMap<SummaryLogId, Vec<FoundTable>> = HashMap::new();
    let mut past = Vec::new();
    for version in app.ledger.record_history(scope, key, (after, limit)).await? {
        if !tables.contains_key(&version.log) {
            tables.insert(version.log.clone(), tables_of(app, scope, &version.log).await?);
        }
        let known = tables.get(&version.log).map_or(&[][..], Vec::as_slice);
        let (old, new) = (values(before.as_ref()), values(Some(&version)));
        let (changes, cells) = (changed_cells(old, new), cells_of(&version, known));
        past.push(PastVersion { changes, cells, version: version.clone() });
        before = Some(version);
    }
    Ok(past)
}

/// The version of a record that counted after a commit.
async fn version_at(
    app: &App,
    scope: &Scope,
    key: &RecordKey,
    commit: u64,
) -> Result<Option<RecordVersion>, LedgerError> {
    if commit == 0 {
        return Ok(None);
    }
    // Of all keys that begin so, the key itself comes first.
    let page = RecordsPage {
        as_of: Some(commit),
        kind: Some(key.kind.clone()),
        key_prefix: Some(key.key.clone()),
        ended: Ended::Included,
        ..RecordsPage::of(scope, 1)
    };
    let found = app.ledger.find_by_registration(&page).await?;
    Ok(found.into_iter().find(|version| version.key == *key))
}

fn values(version: Option<&RecordVersion>) -> Option<&str> {
    version?.content.as_ref().map(|content| content.values.as_str())
}

/// What is kept with a log, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Facts {
    #[serde(default)]
    tables: Vec<FoundTable>,
}

/// A table of a workbook.
#[derive(Debug, Deserialize)]
struct FoundTable {
    kind: String,
    sheet: String,
    /// The letters of each column.
    columns: BTreeMap<String, String>,
}

async fn tables_of(app: &App, scope: &Scope, log: &SummaryLogId) -> Result<Vec<FoundTable>, LedgerError> {
    let facts = app.ledger.log(scope, log).await?.and_then(|log| log.facts);
    let facts = facts.and_then(|facts| serde_json::from_str::<Facts>(&facts).ok());
    Ok(facts.map(|facts| facts.tables).unwrap_or_default())
}

fn cells_of(version: &RecordVersion, tables: &[FoundTable]) -> BTreeMap<String, String> {
    let Some((sheet, row)) = &version.place else { return BTreeMap::new() };
    let is_it = |table: &&FoundTable| table.kind == version.key.kind && table.sheet == *sheet;
    let Some(table) = tables.iter().find(is_it) else { return BTreeMap::new() };
    let columns = values_of(values(Some(version))).into_keys();
    let cells = columns.filter_map(|column| {
        let letters = table.columns.get(&column)?;
        Some((column, format!("{letters}{row}")))
    });
    cells.collect()
}
