//! Personal values are erased from records: from every version, from what is staged, and from what problems quote.
//!
//! Guarantees: only columns that a template of the scope calls personal are erased; versions, their order and their hashes stay; it is
//! written down who wanted it and why. Does not do: the workbooks that were brought, and values beside the tables.

use std::collections::{BTreeMap, BTreeSet};

use ledger::LedgerError;
use ledger::documents::Author;
use ledger::logs::LogsPage;
use ledger::records::{Erased, Erasure};
use model::Scope;

use super::exporting::template_of;
use crate::app::App;

/// Logs read at once.
const PAGE: u32 = 500;

/// What is to be erased.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Of this scope.
    pub scope: Scope,
    /// Of this kind of record.
    pub kind: String,
    /// Of these records; `None`: of all of the kind.
    pub keys: Option<BTreeSet<String>>,
    /// These columns.
    pub columns: BTreeSet<String>,
    /// Why.
    pub reason: String,
    /// Who wants it.
    pub who: Author,
}

/// Why nothing was erased.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// No template of the scope calls these columns of this kind personal.
    #[error("these columns are not personal: {}", .columns.join(", "))]
    NotPersonal {
        /// The columns.
        columns: Vec<String>,
    },
    /// The ledger failed.
    #[error("the ledger failed")]
    Ledger(#[from] LedgerError),
}

/// Erases personal values.
pub async fn erase(app: &App, wish: Wish) -> Result<Erased, EraseError> {
    let known = columns_of_kind(app, &wish.scope, &wish.kind).await?;
    let is_personal = |name: &&String| known.get(*name).is_some_and(|column| column.is_personal);
    let others: Vec<String> = wish.columns.iter().filter(|name| !is_personal(name)).cloned().collect();
    if !others.is_empty() || wish.columns.is_empty() {
        return Err(EraseError::NotPersonal { columns: others });
    }
    let Wish { scope, kind, keys, columns, reason, who } = wish;
    let columns = with_labels(columns, &known);
    let erasure = Erasure { scope, kind, keys, columns, reason, who, at: app.now() };
    Ok(app.ledger.erase_values(&erasure).await?)
}

/// What templates say of a column.
#[derive(Debug, Default)]
struct Known {
    is_personal: bool,
    labels: BTreeSet<String>,
}

/// The columns of a kind of record, by every template that a log of the scope was read by.
async fn columns_of_kind(
    app: &App,
    scope: &Scope,
    kind: &str,
) -> Result<BTreeMap<String, Known>, LedgerError> {
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    for (id, version) in templates_used(app, scope).await? {
        let Some(template) = template_of(app, (&id, &version)).await? else { continue };
        for column in template.table_of_kind(kind).into_iter().flat_map(|table| &table.columns) {
            let entry = known.entry(column.name.clone()).or_default();
            entry.is_personal |= column.is_personal;
            entry.labels.insert(column.label.clone());
        }
    }
    Ok(known)
}

async fn templates_used(app: &App, scope: &Scope) -> Result<BTreeSet<(String, String)>, LedgerError> {
    let mut used = BTreeSet::new();
    let mut before = None;
    loop {
        let page = LogsPage { scope: Some(scope.clone()), before, limit: PAGE, ..LogsPage::default() };
        let logs = app.ledger.logs(&page).await?;
        let Some(last) = logs.last() else { return Ok(used) };
        before = Some(last.number);
        used.extend(logs.into_iter().map(|log| (log.template, log.template_version)));
    }
}

/// Problems name a column by its header, which may be its label. A label that is another column's name would erase that one.
fn with_labels(mut columns: BTreeSet<String>, known: &BTreeMap<String, Known>) -> BTreeSet<String> {
    let labels = columns.iter().filter_map(|name| known.get(name)).flat_map(|column| &column.labels);
    let labels: Vec<String> = labels.filter(|label| !known.contains_key(*label)).cloned().collect();
    columns.extend(labels);
    columns
}
