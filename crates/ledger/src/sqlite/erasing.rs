//! Erasing personal values on SQLite: from the contents of versions and staged rows, and from what problems quote.
//!
//! Guarantees: the hash of a content stays, and says what was submitted; a row that is submitted again unchanged is still unchanged,
//! and does not bring the values back. Does not do: the uploaded workbooks, which are blobs.

use jiff::Timestamp;
use model::records::{ERASED, erased_values};
use rusqlite::{Connection, params};
use serde_json::json;

use super::SqliteLedger;
use super::audit::{Actor, ScopeAct, append_scope_act};
use super::log_rows::scope_number;
use super::rows::{asked, ms};
use crate::records::{Erased, Erasure};
use crate::{LedgerError, Result};

/// Contents in one transaction: each is read and written as JSON.
const ERASE_MAX: u32 = 200;
/// Keys that are named in the audit trail; of more, only how many there are.
const NAMED_MAX: usize = 50;

pub(super) async fn erase(ledger: &SqliteLedger, erasure: &Erasure) -> Result<Erased> {
    let noted = erasure.clone();
    let scope = ledger.write(move |connection, _| begin(connection, &noted)).await?;
    let mut erased = Erased::default();
    for place in [Place::Versions, Place::Staged] {
        let mut after = Some(Cursor::default());
        while let Some(from) = after {
            let erasure = erasure.clone();
            let (contents, next) = ledger
                .write_bulk(move |connection| erase_some(connection, (scope, &erasure), (place, &from)))
                .await?;
            erased.contents += contents;
            after = next;
        }
    }
    let erasure = erasure.clone();
    erased.problems = ledger.write(move |connection, _| forget_quotes(connection, scope, &erasure)).await?;
    Ok(erased)
}

/// Writes down that it is about to happen: an erasing that is cut short and repeated is written down twice.
fn begin(connection: &Connection, erasure: &Erasure) -> Result<u64> {
    let Some((number, _)) = scope_number(connection, &erasure.scope)? else {
        return Err(LedgerError::not_found(format!("records of {}", erasure.scope)));
    };
    let count = erasure.keys.as_ref().map(std::collections::BTreeSet::len);
    let keys: Option<Vec<_>> = erasure.keys.as_ref().map(|keys| keys.iter().take(NAMED_MAX).collect());
    let details = json!({
        "kind": erasure.kind, "columns": erasure.columns, "records": count, "keys": keys, "reason": erasure.reason,
    });
    let Erasure { scope, at, who, .. } = erasure;
    let action = "personal-values-erased";
    append_scope_act(connection, &ScopeAct { scope, at: *at, actor: Actor::person(who), action, details })?;
    Ok(number)
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Versions,
    Staged,
}

impl Place {
    /// Contents in order of key, and the number within it: of the commit, or of the log.
    fn query(self) -> &'static str {
        match self {
            Self::Versions => {
                "SELECT v.key, v.sequence AS number, r.number AS content, r.cells FROM record_versions v
                 LEFT JOIN row_contents r ON r.number = v.content
                 WHERE v.scope = ?1 AND v.kind = ?2 AND (v.key, v.sequence) > (?3, ?4) ORDER BY v.key, v.sequence LIMIT ?5"
            }
            Self::Staged => {
                "SELECT s.key, s.log AS number, r.number AS content, r.cells FROM staged_rows s
                 LEFT JOIN row_contents r ON r.number = s.content
                 WHERE s.log IN (SELECT number FROM summary_logs WHERE scope = ?1 AND staged > 0) AND s.kind = ?2
                 AND (s.key, s.log) > (?3, ?4) ORDER BY s.key, s.log LIMIT ?5"
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Cursor {
    key: String,
    number: i64,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { key: String::new(), number: -1 }
    }
}

fn erase_some(
    connection: &Connection,
    (scope, erasure): (u64, &Erasure),
    (place, after): (Place, &Cursor),
) -> Result<(u64, Option<Cursor>)> {
    let mut query = connection.prepare_cached(place.query())?;
    let mut rows = query.query(params![asked(scope), erasure.kind, after.key, after.number, ERASE_MAX])?;
    let (mut last, mut changed) = (None, Vec::new());
    while let Some(row) = rows.next()? {
        let key: String = row.get("key")?;
        let is_meant = erasure.keys.as_ref().is_none_or(|keys| keys.contains(&key));
        let cells = row.get::<_, Option<String>>("cells")?.filter(|_| is_meant);
        if let Some(cells) = cells.and_then(|cells| erased_values(&cells, &erasure.columns)) {
            changed.push((row.get::<_, i64>("content")?, cells));
        }
        last = Some(Cursor { key, number: row.get("number")? });
    }
    drop(rows);
    for (content, cells) in &changed {
        set_cells(connection, (*content, cells), erasure.at)?;
    }
    Ok((u64::try_from(changed.len()).unwrap_or(u64::MAX), last))
}

fn set_cells(connection: &Connection, (content, cells): (i64, &str), at: Timestamp) -> Result<()> {
    connection
        .prepare_cached("UPDATE row_contents SET cells = ?2, erased_ms = ?3 WHERE number = ?1")?
        .execute(params![content, cells, ms(at)])?;
    Ok(())
}

/// Problems quote values. They are told by the header, or the name, of their column.
fn forget_quotes(connection: &Connection, scope: u64, erasure: &Erasure) -> Result<u64> {
    let list = |names: &std::collections::BTreeSet<String>| serde_json::to_string(names).unwrap_or_default();
    let forgotten = connection
        .prepare_cached(
            "UPDATE problems SET value = ?4 WHERE log IN (SELECT number FROM summary_logs WHERE scope = ?1)
             AND header IN (SELECT value FROM json_each(?2)) AND (?3 IS NULL OR row_id IN (SELECT value FROM json_each(?3)))
             AND value IS NOT NULL AND value <> ?4",
        )?
        .execute(params![asked(scope), list(&erasure.columns), erasure.keys.as_ref().map(list), ERASED])?;
    Ok(u64::try_from(forgotten).unwrap_or(u64::MAX))
}
