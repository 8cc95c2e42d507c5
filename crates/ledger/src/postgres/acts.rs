//! Finding entries of the audit trail on PostgreSQL, and the check of all of it.

use model::audit::Entry;
use model::trail::{Checker, Flaw, Verdict, chain_of, chain_of_organisation};
use model::{CompanyId, Digest, DocumentId, Label};
use tokio_postgres::Row;

use super::rows::{self, CONTENT_COLUMNS, Stored, all, asked, get, get_optional, optional_ms, text};
use super::step::Step;
use crate::Result;
use crate::adapting::acting::range_of;
use crate::trail::{ActsOf, ActsOrder, ActsPage, Inconsistency, SaveReceipt};

const COLUMNS: &str = "chain, sequence, at_ms, actor, came_from, action, outcome, details, hash FROM audit";
/// Entries that are in memory at once when all are checked.
const CHECKED_AT_ONCE: i64 = 5000;

pub(super) fn entry(row: &Row) -> Result<(Entry, Digest)> {
    let entry = Entry {
        chain: get(row, "chain")?,
        sequence: get(row, "sequence")?,
        at: get(row, "at_ms")?,
        actor: get(row, "actor")?,
        from: get(row, "came_from")?,
        action: get(row, "action")?,
        outcome: get(row, "outcome")?,
        details: get(row, "details")?,
    };
    Ok((entry, get(row, "hash")?))
}

pub(super) async fn chain(step: &Step, chain: &str, page: (u64, u32)) -> Result<Vec<(Entry, Digest)>> {
    let query = format!("SELECT {COLUMNS} WHERE chain = $1 AND sequence > $2 ORDER BY sequence LIMIT $3");
    all(&step.query(&query, &[&chain, &asked(page.0), &i64::from(page.1)]).await?, entry)
}

/// A chain belongs to whom its first entry says, also when its document is long gone. Looks each chain up by itself: there are
/// far more entries than chains.
pub(super) async fn chains(
    step: &Step,
    company: Option<&CompanyId>,
    (after, limit): (&str, u32),
) -> Result<Vec<String>> {
    let query = "WITH RECURSIVE hop (chain) AS (
             SELECT min(chain) FROM audit WHERE chain > $1
             UNION ALL SELECT (SELECT min(a.chain) FROM audit a WHERE a.chain > hop.chain) FROM hop WHERE hop.chain IS NOT NULL)
         SELECT chain FROM hop WHERE chain IS NOT NULL AND ($2::text IS NULL OR $2 =
             (SELECT a.company FROM audit a WHERE a.chain = hop.chain ORDER BY a.sequence LIMIT 1)) LIMIT $3";
    let company = company.map(CompanyId::as_str);
    all(&step.query(query, &[&after, &company, &i64::from(limit)]).await?, |row| get(row, "chain"))
}

pub(super) async fn find(step: &Step, page: &ActsPage) -> Result<Vec<(Entry, Digest)>> {
    match &page.of {
        ActsOf::Document(document) => of_chain(step, document.as_str(), page).await,
        ActsOf::Organisation(organisation) => {
            of_chain(step, &chain_of_organisation(organisation), page).await
        }
        ActsOf::Company(company) => of_company(step, company, page).await,
    }
}

async fn of_chain(step: &Step, chain: &str, page: &ActsPage) -> Result<Vec<(Entry, Digest)>> {
    let (beyond, order) = match page.order {
        ActsOrder::OldestFirst => (">", "ASC"),
        ActsOrder::NewestFirst => ("<", "DESC"),
    };
    let query = format!(
        "SELECT {COLUMNS} WHERE chain = $1 AND ($2::text IS NULL OR actor = $2) AND ($3::text IS NULL OR action = $3)
         AND ($4::bigint IS NULL OR at_ms >= $4) AND ($5::bigint IS NULL OR at_ms < $5) AND sequence {beyond} $6
         ORDER BY sequence {order} LIMIT $7"
    );
    let (since, until) = (optional_ms(page.since), optional_ms(page.until));
    let start = if page.order == ActsOrder::OldestFirst { 0 } else { i64::MAX };
    let after = page.after.as_ref().map_or(start, |after| asked(after.sequence));
    let limit = i64::from(page.limit);
    let (actor, action) = (page.actor.as_deref().map(text), page.action.as_deref().map(text));
    let rows = step.query(&query, &[&chain, &actor, &action, &since, &until, &after, &limit]).await?;
    all(&rows, entry)
}

/// Time is a range of an index, so that a day costs a day and not the years before it; there is one for whatever is asked for.
async fn of_company(step: &Step, company: &CompanyId, page: &ActsPage) -> Result<Vec<(Entry, Digest)>> {
    let (beyond, within, order) = match page.order {
        ActsOrder::OldestFirst => (">", "<", "ASC"),
        ActsOrder::NewestFirst => ("<", ">=", "DESC"),
    };
    let actor = if page.actor.is_some() {
        "left(actor, 100) = left($2, 100) AND actor = $2"
    } else {
        "$2::text IS NULL"
    };
    let action = if page.action.is_some() { "action = $3" } else { "$3::text IS NULL" };
    let query = format!(
        "SELECT {COLUMNS} WHERE company = $1 AND {actor} AND {action}
         AND (at_ms, chain, sequence) {beyond} ($4, $5, $6) AND at_ms {within} $7
         ORDER BY at_ms {order}, chain {order}, sequence {order} LIMIT $8"
    );
    let ((at, chain, sequence), edge) = range_of(page);
    let (company, chain, limit) = (company.as_str(), text(chain), i64::from(page.limit));
    let (actor, action) = (page.actor.as_deref().map(text), page.action.as_deref().map(text));
    let rows =
        step.query(&query, &[&company, &actor, &action, &at, &chain, &sequence, &edge, &limit]).await?;
    all(&rows, entry)
}

pub(super) async fn receipt(step: &Step, document: &DocumentId, label: Label) -> Result<Option<SaveReceipt>> {
    let query = format!(
        "SELECT b.read_back_ms, {CONTENT_COLUMNS} WHERE c.document = $1 AND c.version = $2 AND c.checkpoint = $3"
    );
    let place = (Stored(label.version), Stored(label.checkpoint));
    let Some(row) = step.query_optional(&query, &[&document.as_str(), &place.0, &place.1]).await? else {
        return Ok(None);
    };
    let (content, read_back_at) = (rows::content(&row)?, get_optional(&row, "read_back_ms")?);
    let query = format!(
        "SELECT {COLUMNS} WHERE chain = $1 AND substring(details FROM '\"label\":\"([0-9.]+)\"') = $2
         ORDER BY sequence LIMIT 1"
    );
    let act = step.query_optional(&query, &[&document.as_str(), &label.to_string()]).await?;
    Ok(Some(SaveReceipt { content, read_back_at, act: act.as_ref().map(entry).transpose()? }))
}

/// Every chain from its first entry, against its anchors, and against the end that its document or company names.
pub(super) async fn check(step: &Step, found: &mut Vec<Inconsistency>) -> Result<()> {
    let mut checker = Checker::default();
    for chains in ["LIKE 'company:%'", "NOT LIKE 'company:%'"] {
        let query = format!(
            "SELECT {COLUMNS} WHERE chain {chains} AND (chain, sequence) > ($1, $2) ORDER BY chain, sequence LIMIT $3"
        );
        let mut after = (String::new(), 0_i64);
        loop {
            let rows = step.query(&query, &[&after.0, &after.1, &CHECKED_AT_ONCE]).await?;
            let Some(last) = rows.last() else { break };
            after = (get(last, "chain")?, get(last, "sequence")?);
            for row in &rows {
                let (entry, hash) = entry(row)?;
                checker.read(&entry, hash);
            }
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
    let ends = "SELECT id, audit_sequence AS sequence, audit_hash AS hash FROM documents";
    check_ends(&step.query(ends, &[]).await?, &verdict, found, |id| Some(id.to_owned()))?;
    let ends = "SELECT id, audit_sequence AS sequence, audit_hash AS hash FROM companies";
    let of_company = |id: &str| CompanyId::parse(id).ok().map(|id| chain_of(&id));
    check_ends(&step.query(ends, &[]).await?, &verdict, found, of_company)?;
    let ends = "SELECT chain AS id, sequence, hash FROM chains";
    check_ends(&step.query(ends, &[]).await?, &verdict, found, |chain| Some(chain.to_owned()))
}

fn check_ends(
    rows: &[Row],
    verdict: &Verdict,
    found: &mut Vec<Inconsistency>,
    chain_of: impl Fn(&str) -> Option<String>,
) -> Result<()> {
    for row in rows {
        let (id, sequence, hash): (String, u64, Digest) =
            (get(row, "id")?, get(row, "sequence")?, get(row, "hash")?);
        let chain = chain_of(&id).unwrap_or(id);
        let end = verdict.ends.get(&chain);
        let ends_at = end.map_or(0, |end| end.sequence);
        if ends_at != sequence || end.is_some_and(|end| end.hash != hash) {
            let what = format!("the audit chain of {chain} ends at entry {ends_at}, its row says {sequence}");
            found.push(Inconsistency { invariant: "audit-chain", what });
        }
    }
    Ok(())
}
