//! Finding documents on PostgreSQL: one look at the company's rows in an index of their order, the page read whole afterwards.
//!
//! Guarantees: words are values, never text of the statement; the count and the page are of one moment. Letters are made small as the
//! port says (ASCII), because the column has the collation "C". Does not do: an index of words. 100,000 rows are looked through in
//! tens of milliseconds.

use tokio_postgres::types::ToSql;

use super::rows::{DOCUMENT_COLUMNS, all, document, get, text};
use super::step::Step;
use crate::Result;
use crate::searching::{DocumentSearch, FoundDocuments, SortedBy};

/// Finds documents, within a read of several statements.
pub(super) async fn find(step: &Step, search: &DocumentSearch) -> Result<FoundDocuments> {
    let company = search.company.as_str();
    let project = search.project.as_ref().map(model::ProjectId::as_str);
    let words: Vec<String> = search.lower_words().iter().map(|word| text(word).into_owned()).collect();
    let deleted = if search.deleted { "IS NOT NULL" } else { "IS NULL" };
    let mut clause = format!("d.company = $1 AND d.deleted_ms {deleted} AND d.purged_ms IS NULL");
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&company];
    if let Some(project) = &project {
        values.push(project);
        clause.push_str(" AND d.project = $2");
    }
    for word in &words {
        values.push(word);
        clause.push_str(&format!(" AND strpos(lower(d.name), ${}) > 0", values.len()));
    }
    let total = format!("SELECT count(*) AS total FROM documents d WHERE {clause}");
    let total = get(&step.query_one(&total, &values).await?, "total")?;
    let direction = if search.descending { "DESC" } else { "ASC" };
    // Only ids are sorted; what is shown is read for the page alone.
    let key = match search.by {
        SortedBy::Name => "lower(d.name)",
        SortedBy::Changed => "d.head_moved_ms",
        SortedBy::Size => "d.head_bytes",
    };
    let (limit, skip) = (i64::from(search.limit), i64::from(search.skip));
    let page = format!(
        "SELECT d.id FROM documents d WHERE {clause} ORDER BY {key} {direction}, d.id LIMIT ${} OFFSET ${}",
        values.len() + 1,
        values.len() + 2
    );
    values.extend([&limit as &(dyn ToSql + Sync), &skip]);
    let rows = step.query(&page, &values).await?;
    let ids: Vec<String> = rows.iter().map(|row| get(row, "id")).collect::<Result<_>>()?;
    let shown =
        format!("SELECT {DOCUMENT_COLUMNS} WHERE d.id = ANY($1) ORDER BY array_position($1::text[], d.id)");
    let documents = all(&step.query(&shown, &[&ids]).await?, document)?;
    Ok(FoundDocuments { documents, total })
}
