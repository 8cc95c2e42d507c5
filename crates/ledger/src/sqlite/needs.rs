//! Which rows need the bytes of a blob, and the lives of blobs: needed, perhaps unneeded, going, gone.
//!
//! Guarantees: a blob is marked as going only in a step that sees that no row needs it, and while it is going no step names
//! it (`contents::name_blob`). Says nothing about the vault: whoever removes bytes does so between the two steps.

use jiff::Timestamp;
use model::Digest;
use rusqlite::{Connection, params};

use super::facts::exists;
use super::rows::{Stored, blob_record, ms, optional};
use crate::Result;
use crate::trail::BlobRecord;

/// Whether some row needs the bytes. A row that was let go does not, and nothing of a purged document does.
pub(super) fn is_needed(connection: &Connection, digest: &Digest) -> Result<bool> {
    exists(
        connection,
        "SELECT 1 FROM contents WHERE digest = ?1 AND pruned_ms IS NULL
         UNION ALL SELECT 1 FROM contents WHERE changes_digest = ?1 AND pruned_ms IS NULL
         UNION ALL SELECT 1 FROM kept WHERE digest = ?1 AND pruned_ms IS NULL
         UNION ALL SELECT 1 FROM forms f JOIN documents d ON d.id = f.document WHERE f.digest = ?1 AND d.purged_ms IS NULL
         UNION ALL SELECT 1 FROM summary_logs WHERE digest = ?1",
        params![Stored(*digest)],
    )
}

pub(super) fn unneeded(connection: &Connection, before: Timestamp, limit: u32) -> Result<Vec<BlobRecord>> {
    let mut query = connection.prepare_cached(
        "SELECT digest, size_bytes, state, removals FROM blobs WHERE unneeded_ms <= ?1 AND state = 'present'
         ORDER BY unneeded_ms LIMIT ?2",
    )?;
    Ok(query.query_map(params![ms(before), limit], blob_record)?.collect::<rusqlite::Result<_>>()?)
}

/// Marks a blob as going, or finds that it is needed after all and forgets about it.
pub(super) fn begin_removal(connection: &Connection, digest: &Digest, before: Timestamp) -> Result<bool> {
    if is_needed(connection, digest)? {
        connection
            .prepare_cached("UPDATE blobs SET unneeded_ms = NULL WHERE digest = ?1")?
            .execute([Stored(*digest)])?;
        return Ok(false);
    }
    let marked = connection
        .prepare_cached(
            "UPDATE blobs SET state = 'deleting' WHERE digest = ?1 AND state = 'present' AND unneeded_ms <= ?2",
        )?
        .execute(params![Stored(*digest), ms(before)])?;
    Ok(marked > 0)
}

pub(super) fn begun(connection: &Connection, limit: u32) -> Result<Vec<BlobRecord>> {
    let mut query = connection.prepare_cached(
        "SELECT digest, size_bytes, state, removals FROM blobs WHERE state = 'deleting' AND removed_ms IS NULL ORDER BY digest LIMIT ?1",
    )?;
    Ok(query.query_map([limit], blob_record)?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn finish_removal(connection: &Connection, digest: &Digest, at: Timestamp) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE blobs SET removed_ms = ?2, removals = removals + 1, unneeded_ms = NULL, read_back_ms = NULL
             WHERE digest = ?1 AND state = 'deleting' AND removed_ms IS NULL",
        )?
        .execute(params![Stored(*digest), ms(at)])?;
    Ok(())
}

pub(super) fn removals_of(connection: &Connection, digest: &Digest) -> Result<u64> {
    let found = connection
        .prepare_cached("SELECT removals FROM blobs WHERE digest = ?1")?
        .query_row([Stored(*digest)], |row| row.get(0));
    Ok(optional(found)?.unwrap_or(0))
}
