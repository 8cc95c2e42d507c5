//! Reads the facts that the rules of `model` decide by, inside the step's own transaction.

use model::opening::LastBrought;
use model::saves::{HeadFacts, KeyFacts, SaveMark};
use model::{Digest, DocumentId, EditorKey, InboxNumber, Label};
use rusqlite::{Connection, Row, params};

use super::rows::{Stored, extent, get, get_optional, label, optional};
pub(super) use crate::adapting::standing;
use crate::callback_text;
use crate::{LedgerError, Result};

/// What is known of a key, as far as a save with these bytes is concerned.
pub(super) fn of_key(connection: &Connection, key: &EditorKey, digest: &Digest) -> Result<KeyFacts> {
    let mut facts =
        connection.prepare_cached("SELECT * FROM keys WHERE key = ?1")?.query_row([key.as_str()], |row| {
            Ok(KeyFacts {
                standing: standing(&row.get::<_, String>("state")?),
                another_key_is_live: false,
                base: get_optional(row, "base_digest")?,
                newest_final: mark(row, "final")?,
                newest_checkpoint: mark(row, "checkpoint")?,
                base_fetched_again: row.get::<_, Option<i64>>("base_fetched_again_ms")?.is_some(),
                bytes_kept_before: false,
                opened_on: None,
            })
        })?;
    for newest in facts.newest_final.iter_mut().chain(&mut facts.newest_checkpoint) {
        newest.runs = runs_of(connection, newest.inbox)?;
    }
    facts.another_key_is_live = exists(
        connection,
        "SELECT 1 FROM keys WHERE document = (SELECT document FROM keys WHERE key = ?1)
         AND key <> ?1 AND state = 'live' AND mode = 'edit'",
        params![key.as_str()],
    )?;
    facts.bytes_kept_before = bytes_kept_before(connection, key, digest)?;
    Ok(facts)
}

/// How much history a callback brought.
fn runs_of(connection: &Connection, number: InboxNumber) -> Result<Option<u32>> {
    let found = connection
        .prepare_cached("SELECT callback FROM inbox WHERE number = ?1")?
        .query_row([Stored(number)], |row| row.get::<_, String>(0));
    match optional(found)? {
        Some(text) => Ok(callback_text::runs_in(&callback_text::read(&text)?)),
        None => Ok(None),
    }
}

pub(super) fn bytes_kept_before(connection: &Connection, key: &EditorKey, digest: &Digest) -> Result<bool> {
    exists(
        connection,
        "SELECT 1 FROM contents WHERE key = ?1 AND digest = ?2 AND pruned_ms IS NULL
         UNION ALL SELECT 1 FROM kept WHERE key = ?1 AND digest = ?2 AND pruned_ms IS NULL",
        params![key.as_str(), Stored(*digest)],
    )
}

/// The newest callback of a key that brought a file. A forgotten file came without a link. Times are of whole seconds: a checkpoint of
/// the same one as a final save before it was made before everybody left, and overtaken.
pub(super) fn last_brought(connection: &Connection, key: &EditorKey) -> Result<Option<LastBrought>> {
    let found = connection
        .prepare_cached(
            "SELECT number, callback FROM inbox AS brought WHERE key = ?1 AND url_path IS NOT NULL AND NOT EXISTS
             (SELECT 1 FROM inbox AS before WHERE before.key = brought.key AND before.url_path IS NOT NULL
              AND before.number < brought.number AND (before.last_save_ms > brought.last_save_ms
              OR before.last_save_ms = brought.last_save_ms AND before.status IN (2, 3) AND brought.status IN (6, 7)))
             ORDER BY number DESC LIMIT 1",
        )?
        .query_row([key.as_str()], |row| Ok((get(row, "number")?, row.get::<_, String>("callback")?)));
    let Some((number, text)) = optional(found)? else { return Ok(None) };
    let has_history = callback_text::read(&text)?.session_start.is_some();
    Ok(Some(LastBrought { number, has_history }))
}

/// The newest callback of a key that brought these bytes.
pub(super) fn came_as(
    connection: &Connection,
    key: &EditorKey,
    digest: &Digest,
) -> Result<Option<InboxNumber>> {
    connection
        .prepare_cached(
            "SELECT max(inbox) AS number FROM (SELECT inbox FROM contents WHERE key = ?1 AND digest = ?2
             UNION ALL SELECT inbox FROM kept WHERE key = ?1 AND digest = ?2)",
        )?
        .query_row(params![key.as_str(), Stored(*digest)], |row| get_optional(row, "number"))
        .map_err(LedgerError::from)
}

pub(super) fn exists(connection: &Connection, query: &str, values: impl rusqlite::Params) -> Result<bool> {
    Ok(connection.prepare_cached(query)?.exists(values)?)
}

/// The newest save of a kind, from the columns that begin with its name.
fn mark(row: &Row<'_>, kind: &str) -> rusqlite::Result<Option<SaveMark>> {
    let Some(inbox) = get_optional(row, &format!("{kind}_inbox"))? else {
        return Ok(None);
    };
    Ok(Some(SaveMark {
        inbox,
        last_save: get_optional(row, &format!("{kind}_saved_ms"))?,
        digest: get(row, &format!("{kind}_digest"))?,
        session_start: get_optional(row, &format!("{kind}_start_ms"))?,
        // Of the newest final save only, where it decides: see `of_key`.
        runs: None,
    }))
}

/// The head, and the save that made it if it came under this key.
pub(super) fn of_head(
    connection: &Connection,
    document: &DocumentId,
    key: &EditorKey,
) -> Result<(Label, HeadFacts)> {
    connection
        .prepare_cached(
            "SELECT d.head_version, d.head_checkpoint, d.head_digest, c.key, c.inbox, c.saved_ms, c.session_start_ms, c.digest, c.extent
             FROM documents d JOIN contents c
             ON c.document = d.id AND c.version = d.head_version AND c.checkpoint = d.head_checkpoint WHERE d.id = ?1",
        )?
        .query_row([document.as_str()], |row| {
            let label = label(row, "head_version", "head_checkpoint")?;
            let is_own = get_optional::<EditorKey>(row, "key")?.as_ref() == Some(key);
            let own = SaveMark {
                inbox: get_optional(row, "inbox")?.unwrap_or(InboxNumber(0)),
                last_save: get_optional(row, "saved_ms")?,
                digest: get(row, "digest")?,
                session_start: get_optional(row, "session_start_ms")?,
                runs: None,
            };
            let head = HeadFacts {
                digest: get(row, "head_digest")?,
                is_version: label.is_version(),
                made_by_this_key: is_own.then_some(own),
                extent: extent(row)?,
            };
            Ok((label, head))
        })
        .map_err(LedgerError::from)
}

/// The content a key was issued on.
pub(super) fn base_of(connection: &Connection, key: &EditorKey) -> Result<Option<Label>> {
    let found = connection
        .prepare_cached(
            "SELECT base_version, base_checkpoint FROM keys WHERE key = ?1 AND base_version IS NOT NULL",
        )?
        .query_row([key.as_str()], |row| label(row, "base_version", "base_checkpoint"));
    optional(found)
}
