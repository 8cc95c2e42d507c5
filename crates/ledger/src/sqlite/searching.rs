//! Finding documents on SQLite: a walk over an index that has all that is looked at, in the order of the page.
//!
//! Guarantees: words are values, never text of the statement. A page of those that are there reads one index and the rows it shows: of
//! 100,000 documents, milliseconds. The bin has an index of its own, and is sorted when it is looked at.

use rusqlite::{Connection, ToSql, params_from_iter};

use super::rows::{DOCUMENT_COLUMNS, document};
use crate::searching::{DocumentSearch, FoundDocuments, SortedBy};
use crate::{LedgerError, Result};

/// Finds documents.
pub(super) fn find(connection: &Connection, search: &DocumentSearch) -> Result<FoundDocuments> {
    let words = search.lower_words();
    let company = search.company.as_str();
    let project = search.project.as_ref().map(model::ProjectId::as_str);
    let mut values: Vec<&dyn ToSql> = vec![&company];
    let deleted = if search.deleted { "IS NOT NULL" } else { "IS NULL" };
    let mut clause = format!("d.company = ?1 AND d.deleted_ms {deleted} AND d.purged_ms IS NULL");
    if let Some(project) = &project {
        values.push(project);
        clause.push_str(" AND d.project = ?2");
    }
    for word in &words {
        values.push(word);
        clause.push_str(&format!(" AND instr(lower(d.name), ?{}) > 0", values.len()));
    }
    let (index, key) = order(search);
    let count = format!("SELECT count(*) FROM documents d {index} WHERE {clause}");
    let total: i64 =
        connection.prepare_cached(&count)?.query_row(params_from_iter(&values), |row| row.get(0))?;
    let total = u64::try_from(total).map_err(|_| LedgerError::damaged("a count below nothing"))?;
    // Only ids are walked over; what is shown is read for the page alone.
    let query = format!(
        "SELECT d.id FROM documents d {index} WHERE {clause} ORDER BY {key} LIMIT {} OFFSET {}",
        search.limit, search.skip
    );
    let mut query = connection.prepare_cached(&query)?;
    let ids = query
        .query_map(params_from_iter(&values), |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut one = connection.prepare_cached(&format!("SELECT {DOCUMENT_COLUMNS} WHERE d.id = ?1"))?;
    let documents = ids.iter().map(|id| one.query_row([id], document)).collect::<rusqlite::Result<_>>()?;
    Ok(FoundDocuments { documents, total })
}

/// The index to walk, and the order that it has. Equals are in the order of their ids whichever way the list goes, so these few are
/// sorted on the way down.
fn order(search: &DocumentSearch) -> (&'static str, &'static str) {
    let (index, up, down) = match search.by {
        SortedBy::Name => ("INDEXED BY documents_by_name", "lower(d.name), d.id", "lower(d.name) DESC, d.id"),
        SortedBy::Changed => {
            ("INDEXED BY documents_by_change", "d.head_moved_ms, d.id", "d.head_moved_ms DESC, d.id")
        }
        SortedBy::Size => ("INDEXED BY documents_by_size", "d.head_bytes, d.id", "d.head_bytes DESC, d.id"),
    };
    let index = if search.deleted { "INDEXED BY documents_in_the_bin" } else { index };
    (index, if search.descending { down } else { up })
}

#[cfg(test)]
mod tests {
    use super::super::{Options, SqliteLedger};
    use super::*;

    #[tokio::test]
    async fn every_list_is_read_from_an_index_in_its_order() {
        let options = Options::new(model::Environment::parse("test").unwrap());
        let ledger = SqliteLedger::temporary(&options).unwrap();
        for (by, descending, deleted) in [SortedBy::Name, SortedBy::Changed, SortedBy::Size]
            .into_iter()
            .flat_map(|by| [(by, true), (by, false)])
            .flat_map(|(by, descending)| [(by, descending, true), (by, descending, false)])
        {
            let search = DocumentSearch {
                company: model::CompanyId::parse("acme").unwrap(),
                project: None,
                deleted,
                words: String::new(),
                by,
                descending,
                skip: 0,
                limit: 50,
            };
            let (index, key) = order(&search);
            let is_deleted = if deleted { "IS NOT NULL" } else { "IS NULL" };
            let query = format!(
                "EXPLAIN QUERY PLAN SELECT d.id FROM documents d {index} WHERE d.company = 'acme' AND d.deleted_ms {is_deleted}
                 AND d.purged_ms IS NULL AND d.project = 'plans' AND instr(lower(d.name), 'x') > 0 ORDER BY {key} LIMIT 50"
            );
            let plan = ledger
                .read(move |connection| {
                    let mut query = connection.prepare(&query)?;
                    let lines = query.query_map([], |row| row.get::<_, String>("detail"))?;
                    Ok(lines.collect::<rusqlite::Result<Vec<_>>>()?.join("; "))
                })
                .await
                .unwrap();

            assert!(
                plan.contains("COVERING INDEX") && (deleted || !plan.contains("TEMP B-TREE FOR ORDER BY")),
                "{by:?}: {plan}"
            );
        }
    }
}
