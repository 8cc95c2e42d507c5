//! Appends to audit chains, inside the step's own transaction.
//!
//! Guarantees: an entry stands in the same transaction as what it tells of, and so does the new end of its chain. A new
//! document is anchored with its first entry, and a deleted one with its last, so that not even a whole document can vanish.

use jiff::Timestamp;
use model::audit::{CHAIN_START, Entry, hash_of};
use model::trail::{ANCHOR, Anchor, AnchoredHead, chain_of, chain_of_organisation};
use model::{CompanyId, Digest, DocumentId, OrganisationId};
use rusqlite::{Connection, params};
use serde_json::Value;

use super::outbox;
use super::rows::{Stored, id, ms, optional};
pub(super) use crate::adapting::acting::{Act, Actor, CompanyAct, ScopeAct};
use crate::adapting::acting::{DONE, INSTALLATION};
use crate::trail::{Anchored, Anchoring};
use crate::{LedgerError, Result};

/// Heads in one anchor: an entry stays below 64 KiB, and a step within milliseconds.
const HEADS_MAX: usize = 500;
/// Companies that are anchored in one step.
const COMPANIES_MAX: u32 = 50;
pub(super) fn append(connection: &Connection, act: &Act<'_>) -> Result<()> {
    let (end, company) = connection
        .prepare_cached("SELECT audit_sequence, audit_hash, company FROM documents WHERE id = ?1")?
        .query_row([act.document.as_str()], |row| {
            let hash: Stored<Digest> = row.get(1)?;
            Ok(((row.get(0)?, hash.0), row.get::<_, String>(2)?))
        })?;
    let chain = act.document.to_string();
    let entry = entry_of(act, chain, end.0);
    let (sequence, hash) = write(connection, &entry, (&end.1, &company))?;
    outbox::announce(connection, &entry, (&act.details, &company, &hash))?;
    connection
        .prepare_cached("UPDATE documents SET audit_sequence = ?2, audit_hash = ?3 WHERE id = ?1")?
        .execute(params![act.document.as_str(), sequence, Stored(hash)])?;
    Ok(())
}

fn entry_of(act: &Act<'_>, chain: String, after: u64) -> Entry {
    let outcome = act.details.get("outcome").and_then(Value::as_str).unwrap_or(DONE);
    Entry {
        chain,
        sequence: after + 1,
        at: act.at,
        actor: act.actor.id.to_owned(),
        from: act.actor.from.to_owned(),
        action: act.action.to_owned(),
        outcome: outcome.to_owned(),
        details: act.details.to_string(),
    }
}

fn write(
    connection: &Connection,
    entry: &Entry,
    (previous, company): (&Digest, &str),
) -> Result<(u64, Digest)> {
    let hash = hash_of(previous, entry);
    connection
        .prepare_cached(
            "INSERT INTO audit (chain, sequence, at_ms, actor, came_from, action, outcome, details, hash, company)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            entry.chain,
            entry.sequence,
            ms(entry.at),
            entry.actor,
            entry.from,
            entry.action,
            entry.outcome,
            entry.details,
            Stored(hash),
            company,
        ])?;
    Ok((entry.sequence, hash))
}

/// Anchors what moved in every company that has waited long enough.
pub(super) fn anchor(connection: &Connection, wish: &Anchoring) -> Result<Vec<Anchored>> {
    let before = wish.at.checked_sub(wish.spacing).unwrap_or(Timestamp::MIN);
    let companies: Vec<CompanyId> = connection
        .prepare_cached(
            "SELECT c.id FROM companies c WHERE c.anchored_ms <= ?1 AND EXISTS (SELECT 1 FROM documents d
             WHERE d.company = c.id AND d.audit_sequence > d.anchored_sequence) ORDER BY c.id LIMIT ?2",
        )?
        .query_map(params![ms(before), COMPANIES_MAX], |row| id(row, "id", CompanyId::parse))?
        .collect::<rusqlite::Result<_>>()?;
    let mut anchored = Vec::new();
    for company in companies {
        anchored.extend(anchor_company(connection, &company, wish.at)?);
    }
    Ok(anchored)
}

/// Anchors a document's company at once: its end, like its beginning, does not wait for a minute to pass.
pub(super) fn anchor_document(connection: &Connection, document: &DocumentId, at: Timestamp) -> Result<()> {
    let company = connection
        .prepare_cached("SELECT company FROM documents WHERE id = ?1")?
        .query_row([document.as_str()], |row| id(row, "company", CompanyId::parse))?;
    anchor_company(connection, &company, at).map(drop)
}

/// Anchors the chains of a company that moved since its last anchor, as many as one entry holds.
pub(super) fn anchor_company(
    connection: &Connection,
    company: &CompanyId,
    at: Timestamp,
) -> Result<Option<Anchored>> {
    let heads = moved_heads(connection, company)?;
    if heads.is_empty() {
        return Ok(None);
    }
    let count = heads.len();
    let anchor = Anchor { heads: heads.into_iter().collect() };
    let (sequence, hash) = append_anchor(connection, company, (&anchor, at))?;
    for (document, head) in &anchor.heads {
        connection
            .prepare_cached("UPDATE documents SET anchored_sequence = ?2 WHERE id = ?1")?
            .execute(params![document, head.sequence])?;
    }
    if count < HEADS_MAX {
        connection
            .prepare_cached("UPDATE companies SET anchored_ms = ?2 WHERE id = ?1")?
            .execute(params![company.as_str(), ms(at)])?;
    }
    Ok(Some(Anchored { company: company.clone(), sequence, hash, heads: count }))
}

fn moved_heads(connection: &Connection, company: &CompanyId) -> Result<Vec<(String, AnchoredHead)>> {
    let mut query = connection.prepare_cached(
        "SELECT id, audit_sequence, audit_hash FROM documents
         WHERE company = ?1 AND audit_sequence > anchored_sequence ORDER BY id LIMIT ?2",
    )?;
    let heads = query.query_map(params![company.as_str(), HEADS_MAX], |row| {
        let hash: Stored<Digest> = row.get(2)?;
        Ok((row.get(0)?, AnchoredHead { sequence: row.get(1)?, hash: hash.0.to_string() }))
    })?;
    Ok(heads.collect::<rusqlite::Result<_>>()?)
}

fn append_anchor(
    connection: &Connection,
    company: &CompanyId,
    (anchor, at): (&Anchor, Timestamp),
) -> Result<(u64, Digest)> {
    let details = serde_json::to_string(anchor).map_err(LedgerError::damaged)?;
    append_to_company(connection, company, (Actor::SAVEGUARD, at), (ANCHOR, details))
}

pub(super) fn append_company_act(connection: &Connection, act: &CompanyAct<'_>) -> Result<()> {
    let (who, what) = ((act.actor, act.at), (act.action, act.details.to_string()));
    match act.company {
        Some(company) => append_to_company(connection, company, who, what).map(drop),
        None => append_to_chain(connection, INSTALLATION, who, what).map(drop),
    }
}

/// Writes an act down in the chain of an organisation, which may not be known to us by more than its id.
pub(super) fn append_organisation_act(
    connection: &Connection,
    organisation: &OrganisationId,
    who: (Actor<'_>, Timestamp),
    (action, details): (&str, &Value),
) -> Result<()> {
    let what = (action, details.to_string());
    append_to_chain(connection, &chain_of_organisation(organisation), who, what).map(drop)
}

fn append_to_company(
    connection: &Connection,
    company: &CompanyId,
    who: (Actor<'_>, Timestamp),
    what: (&str, String),
) -> Result<(u64, Digest)> {
    let end = connection
        .prepare_cached("SELECT audit_sequence, audit_hash FROM companies WHERE id = ?1")?
        .query_row([company.as_str()], |row| {
            Ok((row.get::<_, u64>(0)?, row.get::<_, Stored<Digest>>(1)?.0))
        })?;
    let entry = done(chain_of(company), end.0 + 1, who, what);
    let written = write(connection, &entry, (&end.1, company.as_str()))?;
    connection
        .prepare_cached("UPDATE companies SET audit_sequence = ?2, audit_hash = ?3 WHERE id = ?1")?
        .execute(params![company.as_str(), written.0, Stored(written.1)])?;
    Ok(written)
}

/// Appends to the chain of a scope; returns the entry's place.
pub(super) fn append_scope_act(connection: &Connection, act: &ScopeAct<'_>) -> Result<u64> {
    let (who, what) = ((act.actor, act.at), (act.action, act.details.to_string()));
    let (entry, hash) = append_to_chain(connection, &act.scope.chain(), who, what)?;
    outbox::announce_of_scope(connection, &entry, (act.scope, &act.details, &hash))?;
    Ok(entry.sequence)
}

/// A chain whose end is in no row of a document or company.
fn append_to_chain(
    connection: &Connection,
    chain: &str,
    who: (Actor<'_>, Timestamp),
    what: (&str, String),
) -> Result<(Entry, Digest)> {
    let end = connection
        .prepare_cached("SELECT sequence, hash FROM chains WHERE chain = ?1")?
        .query_row([chain], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, Stored<Digest>>(1)?.0)));
    let end = optional(end)?.unwrap_or((0, CHAIN_START));
    let entry = done(chain.to_owned(), end.0 + 1, who, what);
    let written = write(connection, &entry, (&end.1, ""))?;
    connection
        .prepare_cached(
            "INSERT INTO chains (chain, sequence, hash) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET (sequence, hash) = (?2, ?3)",
        )?
        .execute(params![chain, written.0, Stored(written.1)])?;
    Ok((entry, written.1))
}

fn done(
    chain: String,
    sequence: u64,
    (actor, at): (Actor<'_>, Timestamp),
    (action, details): (&str, String),
) -> Entry {
    Entry {
        chain,
        sequence,
        at,
        actor: actor.id.to_owned(),
        from: actor.from.to_owned(),
        action: action.to_owned(),
        outcome: DONE.to_owned(),
        details,
    }
}
