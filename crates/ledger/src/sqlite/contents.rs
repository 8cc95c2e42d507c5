//! Writing versions, checkpoints, kept copies and blobs: small statements shared by the steps.

use jiff::Timestamp;
use model::{Digest, DocumentId, EditorKey, InboxNumber, Label};
use rusqlite::{Connection, params};

use super::rows::{Stored, extent_text, label, ms, optional, optional_ms};
pub(super) use crate::adapting::adding::{NewContent, NewKept};
use crate::documents::BlobFacts;
use crate::{LedgerError, Result};

/// Names a blob, so that other rows may. Refuses one that is just being removed, or was removed after it was stored. One whose
/// bytes were stored again after they were gone begins another life.
pub(super) fn name_blob(connection: &Connection, blob: &BlobFacts, at: Timestamp) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO blobs (digest, size_bytes, named_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        )?
        .execute(params![Stored(blob.digest), blob.size_bytes, ms(at)])?;
    let (is_going, removals, size_bytes): (bool, u64, u64) = connection
        .prepare_cached(
            "SELECT state = 'deleting' AND removed_ms IS NULL, removals, size_bytes FROM blobs WHERE digest = ?1",
        )?
        .query_row([Stored(blob.digest)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if is_going || removals != blob.removals {
        return Err(LedgerError::BlobGoing);
    }
    if size_bytes != blob.size_bytes {
        return Err(LedgerError::damaged(format!("blob {} has two sizes", blob.digest)));
    }
    connection
        .prepare_cached(
            "UPDATE blobs SET state = 'present', removed_ms = NULL, unneeded_ms = NULL
             WHERE digest = ?1 AND (state <> 'present' OR unneeded_ms IS NOT NULL)",
        )?
        .execute([Stored(blob.digest)])?;
    Ok(())
}

/// Perhaps nothing needs a blob any more: whoever removes bytes will look.
pub(super) fn perhaps_unneeded(connection: &Connection, digest: &Digest, at: Timestamp) -> Result<()> {
    connection
        .prepare_cached("UPDATE blobs SET unneeded_ms = ?2 WHERE digest = ?1 AND state = 'present'")?
        .execute(params![Stored(*digest), ms(at)])?;
    Ok(())
}

pub(super) fn add_content(connection: &Connection, new: &NewContent<'_>) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO contents (document, version, checkpoint, origin, digest, file_type, flags, author_id,
             author_name, committed_ms, saved_ms, session_start_ms, key, inbox, is_filed_beside, history, server_version,
             extent, changes_digest, changes_bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
        )?
        .execute(params![
            new.document.as_str(),
            new.label.version,
            new.label.checkpoint,
            new.origin.as_str(),
            Stored(new.blob.digest),
            new.blob.file_type,
            new.blob.flags,
            new.author.id,
            new.author.name,
            ms(new.committed_at),
            optional_ms(new.saved_at),
            optional_ms(new.session_start),
            new.key.map(EditorKey::as_str),
            new.inbox.map(Stored),
            new.is_filed_beside,
            new.history,
            new.server_version,
            extent_text(new.blob.extent.as_ref()),
            new.changes.map(|changes| Stored(changes.digest)),
            new.changes.map(|changes| changes.size_bytes),
        ])?;
    if new.label.is_version() {
        connection
            .prepare_cached("UPDATE documents SET last_version = ?2 WHERE id = ?1")?
            .execute(params![new.document.as_str(), new.label.version])?;
    }
    Ok(())
}

/// Points the document at a content that was just added; the published tree owes it from now on.
pub(super) fn move_head(
    connection: &Connection,
    document: &DocumentId,
    label: Label,
    at: Timestamp,
) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE documents SET (head_version, head_checkpoint, head_digest, head_key) =
               (SELECT version, checkpoint, digest, key FROM contents
                WHERE document = ?1 AND version = ?2 AND checkpoint = ?3),
             head_moved_ms = ?4, owes_since_ms = coalesce(owes_since_ms, ?4) WHERE id = ?1",
        )?
        .execute(params![document.as_str(), label.version, label.checkpoint, ms(at)])?;
    Ok(())
}

pub(super) fn head_of(connection: &Connection, document: &DocumentId) -> Result<Label> {
    let found = connection
        .prepare_cached("SELECT head_version, head_checkpoint FROM documents WHERE id = ?1")?
        .query_row([document.as_str()], |row| label(row, "head_version", "head_checkpoint"));
    optional(found)?.ok_or_else(|| LedgerError::not_found(format!("document `{document}`")))
}

pub(super) fn next_version(connection: &Connection, document: &DocumentId) -> Result<Label> {
    let last: u32 = connection
        .prepare_cached("SELECT last_version FROM documents WHERE id = ?1")?
        .query_row([document.as_str()], |row| row.get(0))?;
    Ok(Label::version(last + 1))
}

pub(super) fn next_checkpoint(connection: &Connection, document: &DocumentId, version: u32) -> Result<Label> {
    let last: u32 = connection
        .prepare_cached(
            "SELECT coalesce(max(checkpoint), 0) FROM contents WHERE document = ?1 AND version = ?2",
        )?
        .query_row(params![document.as_str(), version], |row| row.get(0))?;
    Ok(Label { version, checkpoint: last + 1 })
}

pub(super) fn keep_copy(connection: &Connection, new: &NewKept<'_>) -> Result<u64> {
    connection
        .prepare_cached(
            "INSERT INTO kept (document, kind, reason, digest, file_type, flags, author_id, author_name, kept_ms, key, inbox,
             extent) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            new.document.map(DocumentId::as_str),
            new.keeping.kind(),
            new.keeping.reason(),
            Stored(new.blob.digest),
            new.blob.file_type,
            new.blob.flags,
            new.author.id,
            new.author.name,
            ms(new.kept_at),
            new.key.map(EditorKey::as_str),
            new.inbox.map(Stored),
            extent_text(new.blob.extent.as_ref()),
        ])?;
    u64::try_from(connection.last_insert_rowid()).map_err(LedgerError::damaged)
}

/// The kept copy with these bytes that came under this key, if there is one.
pub(super) fn kept_under_key(
    connection: &Connection,
    key: &EditorKey,
    digest: &Digest,
) -> Result<Option<u64>> {
    let found = connection
        .prepare_cached("SELECT number FROM kept WHERE key = ?1 AND digest = ?2 AND pruned_ms IS NULL ORDER BY number LIMIT 1")?
        .query_row(params![key.as_str(), Stored(*digest)], |row| row.get(0));
    optional(found)
}

/// The data of a submitted form.
pub(super) struct NewForm<'a> {
    pub(super) document: &'a DocumentId,
    pub(super) inbox: InboxNumber,
    pub(super) blob: &'a BlobFacts,
    pub(super) at: Timestamp,
}

/// Keeps the data of a submitted form: one each, never overwritten.
pub(super) fn add_form(connection: &Connection, form: &NewForm<'_>) -> Result<()> {
    name_blob(connection, form.blob, form.at)?;
    connection
        .prepare_cached("INSERT INTO forms (inbox, document, digest, committed_ms) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![
            Stored(form.inbox),
            form.document.as_str(),
            Stored(form.blob.digest),
            ms(form.at)
        ])?;
    Ok(())
}
