//! Finding entries of the audit trail on SQLite, and the check of all of it.

use model::audit::Entry;
use model::trail::{Checker, Flaw, Verdict, chain_of, chain_of_organisation};
use model::{CompanyId, Digest, DocumentId, Label};
use rusqlite::{Connection, Row, params};

use super::rows::{self, CONTENT_COLUMNS, Stored, asked, get, get_optional, optional, optional_ms};
use crate::Result;
use crate::adapting::acting::range_of;
use crate::trail::{ActsOf, ActsOrder, ActsPage, Inconsistency, SaveReceipt};

pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<(Entry, Digest)> {
    let entry = Entry {
        chain: row.get("chain")?,
        sequence: row.get("sequence")?,
        at: get(row, "at_ms")?,
        actor: row.get("actor")?,
        from: row.get("came_from")?,
        action: row.get("action")?,
        outcome: row.get("outcome")?,
        details: row.get("details")?,
    };
    Ok((entry, get(row, "hash")?))
}

pub(super) fn chain(connection: &Connection, chain: &str, page: (u64, u32)) -> Result<Vec<(Entry, Digest)>> {
    let mut query = connection.prepare_cached(
        "SELECT * FROM audit WHERE chain = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
    )?;
    Ok(query.query_map(params![chain, page.0, page.1], entry)?.collect::<rusqlite::Result<_>>()?)
}

/// A chain belongs to whom its first entry says, also when its document is long gone. Looks each chain up by itself: there are
/// far more entries than chains.
pub(super) fn chains(
    connection: &Connection,
    company: Option<&CompanyId>,
    (after, limit): (&str, u32),
) -> Result<Vec<String>> {
    let mut query = connection.prepare_cached(
        "WITH RECURSIVE hop (chain) AS (
             SELECT min(chain) FROM audit WHERE chain > ?1
             UNION ALL SELECT (SELECT min(a.chain) FROM audit a WHERE a.chain > hop.chain) FROM hop WHERE hop.chain IS NOT NULL)
         SELECT chain FROM hop WHERE chain IS NOT NULL AND (?2 IS NULL OR ?2 =
             (SELECT a.company FROM audit a WHERE a.chain = hop.chain ORDER BY a.sequence LIMIT 1)) LIMIT ?3",
    )?;
    let company = company.map(CompanyId::as_str);
    Ok(query.query_map(params![after, company, limit], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn find(connection: &Connection, page: &ActsPage) -> Result<Vec<(Entry, Digest)>> {
    match &page.of {
        ActsOf::Document(document) => of_chain(connection, document.as_str(), page),
        ActsOf::Organisation(organisation) => {
            of_chain(connection, &chain_of_organisation(organisation), page)
        }
        ActsOf::Company(company) => of_company(connection, company, page),
    }
}

fn of_chain(connection: &Connection, chain: &str, page: &ActsPage) -> Result<Vec<(Entry, Digest)>> {
    let (beyond, order) = match page.order {
        ActsOrder::OldestFirst => (">", "ASC"),
        ActsOrder::NewestFirst => ("<", "DESC"),
    };
    let mut query = connection.prepare_cached(&format!(
        "SELECT * FROM audit WHERE chain = ?1 AND (?2 IS NULL OR actor = ?2) AND (?3 IS NULL OR action = ?3)
         AND (?4 IS NULL OR at_ms >= ?4) AND (?5 IS NULL OR at_ms < ?5) AND sequence {beyond} ?6
         ORDER BY sequence {order} LIMIT ?7"
    ))?;
    let (since, until) = (optional_ms(page.since), optional_ms(page.until));
    let start = if page.order == ActsOrder::OldestFirst { 0 } else { i64::MAX };
    let after = page.after.as_ref().map_or(start, |after| asked(after.sequence));
    let values = params![chain, page.actor, page.action, since, until, after, page.limit];
    Ok(query.query_map(values, entry)?.collect::<rusqlite::Result<_>>()?)
}

/// The query for acts of a company.
fn query_of(page: &ActsPage) -> String {
    let (beyond, within, order) = match page.order {
        ActsOrder::OldestFirst => (">", "<", "ASC"),
        ActsOrder::NewestFirst => ("<", ">=", "DESC"),
    };
    let actor = if page.actor.is_some() { "actor = ?2" } else { "?2 IS NULL" };
    let action = if page.action.is_some() { "action = ?3" } else { "?3 IS NULL" };
    format!(
        "SELECT * FROM audit WHERE company = ?1 AND {actor} AND {action}
         AND (at_ms, chain, sequence) {beyond} (?4, ?5, ?6) AND at_ms {within} ?7
         ORDER BY at_ms {order}, chain {order}, sequence {order} LIMIT ?8"
    )
}

/// Time is a range of an index, so that a day costs a day and not the years before it; there is one for whatever is asked for.
fn of_company(connection: &Connection, company: &CompanyId, page: &ActsPage) -> Result<Vec<(Entry, Digest)>> {
    let mut query = connection.prepare_cached(&query_of(page))?;
    let ((at, chain, sequence), edge) = range_of(page);
    let values = params![company.as_str(), page.actor, page.action, at, chain, sequence, edge, page.limit];
    Ok(query.query_map(values, entry)?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn receipt(
    connection: &Connection,
    document: &DocumentId,
    label: Label,
) -> Result<Option<SaveReceipt>> {
    let place = params![document.as_str(), label.version, label.checkpoint];
    let query = format!(
        "SELECT b.read_back_ms, {CONTENT_COLUMNS} WHERE c.document = ?1 AND c.version = ?2 AND c.checkpoint = ?3"
    );
    let found = connection
        .prepare_cached(&query)?
        .query_row(place, |row| Ok((rows::content(row)?, get_optional(row, "read_back_ms")?)));
    let Some((content, read_back_at)) = optional(found)? else { return Ok(None) };
    let found = connection
        .prepare_cached(
            "SELECT * FROM audit INDEXED BY audit_by_label WHERE chain = ?1 AND json_extract(details, '$.label') = ?2
             ORDER BY sequence LIMIT 1",
        )?
        .query_row(params![document.as_str(), label.to_string()], entry);
    Ok(Some(SaveReceipt { content, read_back_at, act: optional(found)? }))
}

/// Every chain from its first entry, against its anchors, and against the end that its document or company names.
pub(super) fn check(connection: &Connection, found: &mut Vec<Inconsistency>) -> Result<()> {
    let mut checker = Checker::default();
    for chains in ["chain GLOB 'company:*'", "chain NOT GLOB 'company:*'"] {
        let mut query =
            connection.prepare(&format!("SELECT * FROM audit WHERE {chains} ORDER BY chain, sequence"))?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let (entry, hash) = entry(row)?;
            checker.read(&entry, hash);
        }
    }
    let verdict = checker.finish(|_| true);
    found.extend(verdict.flaws.iter().map(|flaw| Inconsistency {
        invariant: match flaw {
            Flaw::Broken { .. } => "audit-chain",
            _ => "audit-anchor",
        },
        what: flaw.to_string(),
    }));
    let of_documents = connection.prepare("SELECT id, audit_sequence, audit_hash FROM documents")?;
    check_ends(of_documents, &verdict, found, |id| Some(id.to_owned()))?;
    let of_companies = connection.prepare("SELECT id, audit_sequence, audit_hash FROM companies")?;
    check_ends(of_companies, &verdict, found, |id| CompanyId::parse(id).ok().map(|id| chain_of(&id)))?;
    let of_others = connection.prepare("SELECT chain, sequence, hash FROM chains")?;
    check_ends(of_others, &verdict, found, |chain| Some(chain.to_owned()))
}

fn check_ends(
    mut query: rusqlite::Statement<'_>,
    verdict: &Verdict,
    found: &mut Vec<Inconsistency>,
    chain_of: impl Fn(&str) -> Option<String>,
) -> Result<()> {
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (id, sequence): (String, u64) = (row.get(0)?, row.get(1)?);
        let hash: Stored<Digest> = row.get(2)?;
        let chain = chain_of(&id).unwrap_or(id);
        let end = verdict.ends.get(&chain);
        let ends_at = end.map_or(0, |end| end.sequence);
        if ends_at != sequence || end.is_some_and(|end| end.hash != hash.0) {
            let what = format!("the audit chain of {chain} ends at entry {ends_at}, its row says {sequence}");
            found.push(Inconsistency { invariant: "audit-chain", what });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Options, SqliteLedger};
    use super::*;

    #[tokio::test]
    async fn whatever_is_asked_for_is_a_range_of_an_index_in_its_order() {
        let options = Options::new(model::Environment::parse("test").unwrap());
        let ledger = SqliteLedger::temporary(&options).unwrap();
        for order in [ActsOrder::OldestFirst, ActsOrder::NewestFirst] {
            for (actor, action, index) in [
                (None, None, "audit_by_time"),
                (Some("u1"), None, "audit_by_actor"),
                (None, Some("renamed"), "audit_by_action"),
                (Some("u1"), Some("renamed"), "audit_by_act"),
            ] {
                let page = ActsPage {
                    of: ActsOf::Company(CompanyId::parse("acme").unwrap()),
                    actor: actor.map(str::to_owned),
                    action: action.map(str::to_owned),
                    since: None,
                    until: None,
                    after: None,
                    order,
                    limit: 200,
                };
                let query = format!("EXPLAIN QUERY PLAN {}", query_of(&page));
                let plan = ledger
                    .read(move |connection| {
                        let mut query = connection.prepare(&query)?;
                        let values = params!["acme", page.actor, page.action, 0, "", 0, 0, 200];
                        let lines = query.query_map(values, |row| row.get::<_, String>("detail"))?;
                        Ok(lines.collect::<rusqlite::Result<Vec<_>>>()?.join("; "))
                    })
                    .await
                    .unwrap();

                assert!(
                    plan.contains(index) && !plan.contains("TEMP B-TREE"),
                    "{actor:?} {action:?}: {plan}"
                );
            }
        }
    }
}
