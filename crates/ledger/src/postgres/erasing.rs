//! Erasing personal values on PostgreSQL: from the contents of versions and staged rows, and from what problems quote.
//!
//! Guarantees: the hash of a content stays, and says what was submitted; a row that is submitted again unchanged is still unchanged,
//! and does not bring the values back. Does not do: the uploaded workbooks, which are blobs.

use model::records::{ERASED, Scope, erased_values};
use serde_json::json;

use super::PostgresLedger;
use super::audit::{Actor, ScopeAct, append_scope_act};
use super::log_rows::{Lock, scope_number};
use super::rows::{asked, get, get_optional, ms, text};
use super::step::Step;
use crate::records::{Erased, Erasure};
use crate::{LedgerError, Result};

/// Contents in one transaction: each is read and written as JSON.
const ERASE_MAX: i64 = 200;
/// Keys that are named in the audit trail; of more, only how many there are.
const NAMED_MAX: usize = 50;

pub(super) async fn erase(ledger: &PostgresLedger, erasure: &Erasure) -> Result<Erased> {
    let step = ledger.write().await?;
    let begun = begin(&step, erasure).await;
    step.end(begun).await?;
    let mut erased = Erased::default();
    for place in [Place::Versions, Place::Staged] {
        let mut after = Some(Cursor::default());
        while let Some(from) = after {
            let step = ledger.write().await?;
            let done = erase_some(&step, erasure, (place, &from)).await;
            let (contents, next) = step.end(done).await?;
            erased.contents += contents;
            after = next;
        }
    }
    let step = ledger.write().await?;
    let done = forget_quotes(&step, erasure).await;
    erased.problems = step.end(done).await?;
    Ok(erased)
}

/// The scope, locked: nobody stages or submits what is just being erased.
async fn locked(step: &Step, scope: &Scope) -> Result<i64> {
    let found = scope_number(step, scope, Lock::Taken).await?;
    let (number, _) = found.ok_or_else(|| LedgerError::not_found(format!("records of {scope}")))?;
    Ok(asked(number))
}

/// Writes down that it is about to happen: an erasing that is cut short and repeated is written down twice.
async fn begin(step: &Step, erasure: &Erasure) -> Result<()> {
    let Erasure { scope, at, who, .. } = erasure;
    locked(step, scope).await?;
    let count = erasure.keys.as_ref().map(std::collections::BTreeSet::len);
    let keys: Option<Vec<_>> = erasure.keys.as_ref().map(|keys| keys.iter().take(NAMED_MAX).collect());
    let details = json!({
        "kind": erasure.kind, "columns": erasure.columns, "records": count, "keys": keys, "reason": erasure.reason,
    });
    let (actor, action) = (Actor::person(who), "personal-values-erased");
    append_scope_act(step, &ScopeAct { scope, at: *at, actor, action, details }).await.map(drop)
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
                 WHERE v.scope = $1 AND v.kind = $2 AND (v.key, v.sequence) > ($3, $4)
                 AND ($6::text[] IS NULL OR v.key = ANY($6)) ORDER BY v.key, v.sequence LIMIT $5"
            }
            Self::Staged => {
                "SELECT s.key, s.log AS number, r.number AS content, r.cells FROM staged_rows s
                 LEFT JOIN row_contents r ON r.number = s.content
                 WHERE s.log IN (SELECT number FROM summary_logs WHERE scope = $1 AND staged > 0) AND s.kind = $2
                 AND (s.key, s.log) > ($3, $4) AND ($6::text[] IS NULL OR s.key = ANY($6)) ORDER BY s.key, s.log LIMIT $5"
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

async fn erase_some(
    step: &Step,
    erasure: &Erasure,
    (place, after): (Place, &Cursor),
) -> Result<(u64, Option<Cursor>)> {
    let scope = locked(step, &erasure.scope).await?;
    let keys: Option<Vec<String>> =
        erasure.keys.as_ref().map(|keys| keys.iter().map(|key| text(key).into_owned()).collect());
    let values: super::step::Values<'_> =
        &[&scope, &text(&erasure.kind), &after.key, &after.number, &ERASE_MAX, &keys];
    let rows = step.query(place.query(), values).await?;
    let (mut last, mut contents, mut all_cells) = (None, Vec::new(), Vec::new());
    for row in &rows {
        let cells: Option<String> = get_optional(row, "cells")?;
        if let Some(cells) = cells.and_then(|cells| erased_values(&cells, &erasure.columns)) {
            contents.push(get::<i64>(row, "content")?);
            all_cells.push(cells);
        }
        last = Some(Cursor { key: get(row, "key")?, number: get(row, "number")? });
    }
    if !contents.is_empty() {
        // Two versions may name one content; it is set to the same cells then.
        let update = "UPDATE row_contents r SET cells = n.cells, erased_ms = $3
                      FROM (SELECT DISTINCT ON (number) number, cells FROM UNNEST($1::bigint[], $2::text[]) AS u (number, cells)) n
                      WHERE r.number = n.number";
        step.execute(update, &[&contents, &all_cells, &ms(erasure.at)]).await?;
    }
    Ok((u64::try_from(contents.len()).unwrap_or(u64::MAX), last))
}

/// Problems quote values. They are told by the header, or the name, of their column.
async fn forget_quotes(step: &Step, erasure: &Erasure) -> Result<u64> {
    let scope = locked(step, &erasure.scope).await?;
    let list = |names: &std::collections::BTreeSet<String>| -> Vec<String> {
        names.iter().map(|name| text(name).into_owned()).collect()
    };
    let update = "UPDATE problems SET value = $4 WHERE log IN (SELECT number FROM summary_logs WHERE scope = $1)
                  AND header = ANY($2) AND ($3::text[] IS NULL OR row_id = ANY($3)) AND value IS NOT NULL AND value <> $4";
    let keys = erasure.keys.as_ref().map(list);
    step.execute(update, &[&scope, &list(&erasure.columns), &keys, &ERASED]).await
}
