//! Finding documents on SQLite: one scan of the company's rows, the page read whole afterwards.
//!
//! Guarantees: words are values, never text of the statement; 100,000 documents are looked through in tens of milliseconds.

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
    // The unary plus keeps an index from being used, whatever it is before.
    let plus = if has_most_documents(connection, company)? { "+" } else { "" };
    let mut clause = format!("{plus}d.company = ?1 AND d.deleted_ms {deleted} AND d.purged_ms IS NULL");
    if let Some(project) = &project {
        values.push(project);
        clause.push_str(" AND d.project = ?2");
    }
    for word in &words {
        values.push(word);
        clause.push_str(&format!(" AND instr(lower(d.name), ?{}) > 0", values.len()));
    }
    let total: i64 = connection
        .prepare_cached(&format!("SELECT count(*) FROM documents d WHERE {clause}"))?
        .query_row(params_from_iter(&values), |row| row.get(0))?;
    let total = u64::try_from(total).map_err(|_| LedgerError::damaged("a count below nothing"))?;
    let direction = if search.descending { "DESC" } else { "ASC" };
    // Only ids are sorted; what is shown is read for the page alone.
    let (more, key) = match search.by {
        SortedBy::Name => ("", "lower(d.name)"),
        SortedBy::Changed => ("", "d.head_moved_ms"),
        SortedBy::Size => ("JOIN blobs b ON b.digest = d.head_digest", "b.size_bytes"),
    };
    let query = format!(
        "SELECT d.id FROM documents d {more} WHERE {clause} ORDER BY {key} {direction}, d.id LIMIT {} OFFSET {}",
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

/// Whether looking at every row is cheaper than to follow an index from row to row: half as dear, so for a company with much of all.
fn has_most_documents(connection: &Connection, company: &str) -> Result<bool> {
    let query = "SELECT coalesce(sum(documents) FILTER (WHERE id = ?1), 0) * 2 > coalesce(sum(documents), 0) FROM companies";
    Ok(connection.prepare_cached(query)?.query_row([company], |row| row.get(0))?)
}
