//! Looking for records by what they say, piece by piece.
//!
//! No index knows every value of every column, so such a search looks at records one after another. Guarantees: it looks at a bounded number of
//! them and says how far it came; whoever goes on from there sees each record once. By kind and key alone, the ledger finds them.

use ledger::LedgerError;
use ledger::records::{RecordVersion, RecordsPage};
use model::records::{RecordKey, values_of};

use crate::app::App;

/// Records that are looked at for one page: some tens of milliseconds.
const LOOKED_AT_MAX: usize = 3_000;
/// Records read at once.
const CHUNK: u32 = 500;

/// A page of what was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) records: Vec<RecordVersion>,
    /// Where to go on; none at the end. A page that is not full may have one, too.
    pub(crate) next: Option<RecordKey>,
}

/// Finds records; a page by page walk has them all.
pub(crate) async fn search(app: &App, page: &RecordsPage) -> Result<Found, LedgerError> {
    if page.outcome.is_none() && page.column.is_none() {
        let records = app.ledger.find_by_registration(page).await?;
        let next = records.last().filter(|_| is_full(records.len(), page.limit)).map(|last| last.key.clone());
        return Ok(Found { records, next });
    }
    let mut records = Vec::new();
    let mut after = page.after.clone();
    for _ in 0..LOOKED_AT_MAX / CHUNK as usize {
        let chunk =
            RecordsPage { outcome: None, column: None, limit: CHUNK, after: after.clone(), ..page.clone() };
        let looked_at = app.ledger.find_by_registration(&chunk).await?;
        let is_last = !is_full(looked_at.len(), CHUNK);
        for version in looked_at {
            after = Some(version.key.clone());
            if is_meant(&version, page) {
                records.push(version);
                if is_full(records.len(), page.limit) {
                    return Ok(Found { records, next: after });
                }
            }
        }
        if is_last {
            return Ok(Found { records, next: None });
        }
    }
    Ok(Found { records, next: after })
}

fn is_full(count: usize, limit: u32) -> bool {
    count >= limit as usize
}

fn is_meant(version: &RecordVersion, page: &RecordsPage) -> bool {
    let Some(content) = &version.content else { return false };
    let counts = page.outcome.as_ref().is_none_or(|outcome| content.outcome == *outcome);
    let says = |(column, value): &(String, String)| {
        may_say(&content.values, value)
            && values_of(Some(&content.values)).get(column).is_some_and(|found| found == value)
    };
    counts && page.column.as_ref().is_none_or(says)
}

/// Taking a row apart is dearer than looking for letters in it. What JSON writes in another way has to be taken apart.
fn may_say(values: &str, value: &str) -> bool {
    let is_written_as_it_is = !value.contains(['"', '\\']) && !value.chars().any(char::is_control);
    !is_written_as_it_is || values.contains(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_taken_apart_only_if_it_may_say_so() {
        let values = r#"{"A":"Northern \"Bins\"","B":"7"}"#;

        assert!(may_say(values, "7") && may_say(values, "Northern \"Bins\"") && may_say(values, "a\nb"));
        assert!(!may_say(values, "8"));
    }
}
