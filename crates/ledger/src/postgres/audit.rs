//! Appends to audit chains, inside the step's own transaction.
//!
//! Guarantees: an entry stands in the same transaction as what it tells of, and so does the new end of its chain. A new
//! document is anchored with its first entry, and a deleted one with its last, so that not even a whole document can vanish.
//! Whoever appends is alone with the chain: a document's is behind the lock of the document, a company's behind the company's,
//! every other behind its row in `chains`. Each function takes its lock itself; taking it twice costs nothing.

use jiff::Timestamp;
use model::audit::{Entry, hash_of};
use model::trail::{ANCHOR, Anchor, AnchoredHead, chain_of};
use model::{CompanyId, Digest, DocumentId};
use serde_json::Value;
use tokio_postgres::Row;

use super::rows::{Stored, all, get, id, ms, text};
use super::step::Step;
use super::{locks, outbox};
pub(super) use crate::adapting::acting::{Act, Actor, CompanyAct, ScopeAct};
use crate::adapting::acting::{DONE, INSTALLATION};
use crate::trail::{Anchored, Anchoring};
use crate::{LedgerError, Result};

/// Heads in one anchor: an entry stays below 64 KiB, and a step within milliseconds.
const HEADS_MAX: i64 = 500;
/// Companies that are anchored in one step.
const COMPANIES_MAX: i64 = 50;

/// Appends to the chain of a document.
pub(super) async fn append(step: &Step, act: &Act<'_>) -> Result<()> {
    let query = "SELECT audit_sequence, audit_hash, company FROM documents WHERE id = $1 FOR NO KEY UPDATE";
    let row = step.query_one(query, &[&act.document.as_str()]).await?;
    let (end, company) = (end_of(&row)?, get::<String>(&row, "company")?);
    let outcome = act.details.get("outcome").and_then(Value::as_str).unwrap_or(DONE);
    let what = (act.action, act.details.to_string());
    let mut entry = entry_of(act.document.to_string(), end.0 + 1, (act.actor, act.at), what);
    outcome.clone_into(&mut entry.outcome);
    let hash = hash_of(&end.1, &entry);
    tokio::try_join!(
        biased;
        write_and_move_end(step, &entry, (&hash, &company)),
        outbox::announce(step, &entry, (&act.details, &company, &hash)),
    )
    .map(drop)
}

/// The entry and the new end of its chain are one statement.
async fn write_and_move_end(step: &Step, entry: &Entry, (hash, company): (&Digest, &str)) -> Result<()> {
    step.query_one(
        "WITH written AS (
           INSERT INTO audit (chain, sequence, at_ms, actor, came_from, action, outcome, details, hash, company)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10))
         UPDATE documents SET audit_sequence = $2, audit_hash = $9 WHERE id = $1 RETURNING 1",
        &[
            &entry.chain,
            &Stored(entry.sequence),
            &ms(entry.at),
            &entry.actor,
            &entry.from,
            &entry.action,
            &entry.outcome,
            &entry.details,
            &Stored(*hash),
            &company,
        ],
    )
    .await
    .map(drop)
}

fn end_of(row: &Row) -> Result<(u64, Digest)> {
    Ok((get(row, "audit_sequence")?, get(row, "audit_hash")?))
}

async fn write(step: &Step, entry: &Entry, (previous, company): (&Digest, &str)) -> Result<(u64, Digest)> {
    let hash = hash_of(previous, entry);
    step.execute(
        "INSERT INTO audit (chain, sequence, at_ms, actor, came_from, action, outcome, details, hash, company)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        &[
            &entry.chain,
            &Stored(entry.sequence),
            &ms(entry.at),
            &entry.actor,
            &entry.from,
            &entry.action,
            &entry.outcome,
            &entry.details,
            &Stored(hash),
            &company,
        ],
    )
    .await?;
    Ok((entry.sequence, hash))
}

/// Anchors what moved in every company that has waited long enough.
pub(super) async fn anchor(step: &Step, wish: &Anchoring) -> Result<Vec<Anchored>> {
    let before = wish.at.checked_sub(wish.spacing).unwrap_or(Timestamp::MIN);
    let query = "SELECT c.id FROM companies c WHERE c.anchored_ms <= $1 AND EXISTS (SELECT 1 FROM documents d
                 WHERE d.company = c.id AND d.audit_sequence > d.anchored_sequence) ORDER BY c.id LIMIT $2";
    let companies = step.query(query, &[&ms(before), &COMPANIES_MAX]).await?;
    let mut anchored = Vec::new();
    for company in all(&companies, |row| id(row, "id", CompanyId::parse))? {
        anchored.extend(anchor_company(step, &company, wish.at).await?);
    }
    Ok(anchored)
}

/// Anchors a document's company at once: its end, like its beginning, does not wait for a minute to pass.
pub(super) async fn anchor_document(step: &Step, document: &DocumentId, at: Timestamp) -> Result<()> {
    let query = "SELECT company FROM documents WHERE id = $1";
    let row = step.query_one(query, &[&document.as_str()]).await?;
    anchor_company(step, &id(&row, "company", CompanyId::parse)?, at).await.map(drop)
}

/// Anchors the chains of a company that moved since its last anchor, as many as one entry holds. Documents that others are at
/// work with are left for the next anchor: documents come before companies in the order of locks.
pub(super) async fn anchor_company(
    step: &Step,
    company: &CompanyId,
    at: Timestamp,
) -> Result<Option<Anchored>> {
    let heads = moved_heads(step, company).await?;
    if heads.is_empty() {
        return Ok(None);
    }
    let count = heads.len();
    let (documents, sequences): (Vec<String>, Vec<i64>) =
        heads.iter().map(|(document, head)| (document.clone(), super::rows::asked(head.sequence))).unzip();
    let anchor = Anchor { heads: heads.into_iter().collect() };
    let (sequence, hash) = append_anchor(step, company, (&anchor, at)).await?;
    step.execute(
        "UPDATE documents d SET anchored_sequence = a.sequence
         FROM UNNEST($1::text[], $2::bigint[]) AS a (id, sequence) WHERE d.id = a.id",
        &[&documents, &sequences],
    )
    .await?;
    if i64::try_from(count).is_ok_and(|count| count < HEADS_MAX) {
        let update = "UPDATE companies SET anchored_ms = $2 WHERE id = $1";
        step.execute(update, &[&company.as_str(), &ms(at)]).await?;
    }
    Ok(Some(Anchored { company: company.clone(), sequence, hash, heads: count }))
}

async fn moved_heads(step: &Step, company: &CompanyId) -> Result<Vec<(String, AnchoredHead)>> {
    let query = "SELECT id, audit_sequence, audit_hash FROM documents
                 WHERE company = $1 AND audit_sequence > anchored_sequence
                 ORDER BY id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED";
    let rows = step.query(query, &[&company.as_str(), &HEADS_MAX]).await?;
    all(&rows, |row| {
        let (sequence, hash) = end_of(row)?;
        Ok((get(row, "id")?, AnchoredHead { sequence, hash: hash.to_string() }))
    })
}

async fn append_anchor(
    step: &Step,
    company: &CompanyId,
    (anchor, at): (&Anchor, Timestamp),
) -> Result<(u64, Digest)> {
    let details = serde_json::to_string(anchor).map_err(LedgerError::damaged)?;
    append_to_company(step, company, (Actor::SAVEGUARD, at), (ANCHOR, details)).await
}

pub(super) async fn append_company_act(step: &Step, act: &CompanyAct<'_>) -> Result<()> {
    let (who, what) = ((act.actor, act.at), (act.action, act.details.to_string()));
    match act.company {
        Some(company) => append_to_company(step, company, who, what).await.map(drop),
        None => append_to_chain(step, INSTALLATION, who, what).await.map(drop),
    }
}

async fn append_to_company(
    step: &Step,
    company: &CompanyId,
    who: (Actor<'_>, Timestamp),
    what: (&str, String),
) -> Result<(u64, Digest)> {
    let query = "SELECT audit_sequence, audit_hash FROM companies WHERE id = $1 FOR NO KEY UPDATE";
    let end = end_of(&step.query_one(query, &[&company.as_str()]).await?)?;
    let entry = entry_of(chain_of(company), end.0 + 1, who, what);
    let written = write(step, &entry, (&end.1, company.as_str())).await?;
    let update = "UPDATE companies SET audit_sequence = $2, audit_hash = $3 WHERE id = $1";
    step.execute(update, &[&company.as_str(), &Stored(written.0), &Stored(written.1)]).await?;
    Ok(written)
}

/// Appends to the chain of a scope; returns the entry's place.
pub(super) async fn append_scope_act(step: &Step, act: &ScopeAct<'_>) -> Result<u64> {
    let (who, what) = ((act.actor, act.at), (act.action, act.details.to_string()));
    let (entry, hash) = append_to_chain(step, &act.scope.chain(), who, what).await?;
    outbox::announce_of_scope(step, &entry, (act.scope, &act.details, &hash)).await?;
    Ok(entry.sequence)
}

/// A chain whose end is in no row of a document or company.
async fn append_to_chain(
    step: &Step,
    chain: &str,
    who: (Actor<'_>, Timestamp),
    what: (&str, String),
) -> Result<(Entry, Digest)> {
    let end = locks::chain(step, chain).await?;
    let entry = entry_of(chain.to_owned(), end.0 + 1, who, what);
    let (sequence, hash) = write(step, &entry, (&end.1, "")).await?;
    let update = "UPDATE chains SET sequence = $2, hash = $3 WHERE chain = $1";
    step.execute(update, &[&chain, &Stored(sequence), &Stored(hash)]).await?;
    Ok((entry, hash))
}

/// What is hashed is what can be stored.
fn entry_of(
    chain: String,
    sequence: u64,
    (actor, at): (Actor<'_>, Timestamp),
    (action, details): (&str, String),
) -> Entry {
    Entry {
        chain,
        sequence,
        at,
        actor: text(actor.id).into_owned(),
        from: text(actor.from).into_owned(),
        action: action.to_owned(),
        outcome: DONE.to_owned(),
        details,
    }
}
