//! Appends to a document's audit chain, inside the step's own transaction.

use jiff::Timestamp;
use model::audit::{Entry, hash_of};
use model::{Digest, DocumentId};
use rusqlite::{Connection, params};

use super::rows::{Stored, ms};
use crate::Result;

/// What is about to be written down.
pub(super) struct Act<'a> {
    pub(super) document: &'a DocumentId,
    pub(super) at: Timestamp,
    pub(super) actor: &'a str,
    pub(super) action: &'a str,
    pub(super) details: serde_json::Value,
}

pub(super) fn append(connection: &Connection, act: &Act<'_>) -> Result<()> {
    let (sequence, previous): (u64, Stored<Digest>) = connection
        .prepare_cached("SELECT audit_sequence, audit_hash FROM documents WHERE id = ?1")?
        .query_row([act.document.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let entry = Entry {
        chain: act.document.to_string(),
        sequence: sequence + 1,
        at: act.at,
        actor: act.actor.to_owned(),
        action: act.action.to_owned(),
        details: act.details.to_string(),
    };
    let hash = Stored(hash_of(&previous.0, &entry));
    connection
        .prepare_cached(
            "INSERT INTO audit (chain, sequence, at_ms, actor, action, details, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![entry.chain, entry.sequence, ms(entry.at), entry.actor, entry.action, entry.details, hash])?;
    connection
        .prepare_cached("UPDATE documents SET audit_sequence = ?2, audit_hash = ?3 WHERE id = ?1")?
        .execute(params![entry.chain, entry.sequence, hash])?;
    Ok(())
}
