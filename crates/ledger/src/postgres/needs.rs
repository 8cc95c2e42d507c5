//! Which rows need the bytes of a blob, and the lives of blobs: needed, perhaps unneeded, going, gone.
//!
//! Guarantees: a blob is marked as going only in a step that sees that no row needs it, and while it is going no step names
//! it (`contents::name_blob`). Says nothing about the vault: whoever removes bytes does so between the two steps.

use jiff::Timestamp;
use model::Digest;

use super::rows::{Stored, all, blob_record, get, ms};
use super::step::Step;
use crate::Result;
use crate::trail::BlobRecord;

/// Whether some row needs the bytes. A row that was let go does not, and nothing of a purged document does.
pub(super) async fn is_needed(step: &Step, digest: &Digest) -> Result<bool> {
    step.exists("SELECT 1 FROM contents WHERE digest = $1 AND pruned_ms IS NULL
         UNION ALL SELECT 1 FROM contents WHERE changes_digest = $1 AND pruned_ms IS NULL
         UNION ALL SELECT 1 FROM kept WHERE digest = $1 AND pruned_ms IS NULL
         UNION ALL SELECT 1 FROM forms f JOIN documents d ON d.id = f.document WHERE f.digest = $1 AND d.purged_ms IS NULL
         UNION ALL SELECT 1 FROM summary_logs WHERE digest = $1",
        &[&Stored(*digest)],
    ).await
}

pub(super) async fn unneeded(step: &Step, before: Timestamp, limit: u32) -> Result<Vec<BlobRecord>> {
    all(
        &step
            .query(
                "SELECT digest, size_bytes, state, removals FROM blobs WHERE unneeded_ms <= $1 AND state = 'present'
         ORDER BY unneeded_ms LIMIT $2",
                &[&ms(before), &i64::from(limit)],
            )
            .await?,
        blob_record,
    )
}

/// Marks a blob as going, or finds that it is needed after all and forgets about it.
pub(super) async fn begin_removal(step: &Step, digest: &Digest, before: Timestamp) -> Result<bool> {
    // Whoever names it at this moment is waited for: from here on the rows that need it can be seen.
    let lock = "SELECT 1 FROM blobs WHERE digest = $1 FOR NO KEY UPDATE";
    step.exists(lock, &[&Stored(*digest)]).await?;
    if is_needed(step, digest).await? {
        step.execute("UPDATE blobs SET unneeded_ms = NULL WHERE digest = $1", &[&Stored(*digest)]).await?;
        return Ok(false);
    }
    let marked = step.execute("UPDATE blobs SET state = 'deleting' WHERE digest = $1 AND state = 'present' AND unneeded_ms <= $2", &[&Stored(*digest), &ms(before)]).await?;
    Ok(marked > 0)
}

pub(super) async fn begun(step: &Step, limit: u32) -> Result<Vec<BlobRecord>> {
    all(&step.query("SELECT digest, size_bytes, state, removals FROM blobs WHERE state = 'deleting' AND removed_ms IS NULL ORDER BY digest LIMIT $1", &[&i64::from(limit)]).await?, blob_record)
}

pub(super) async fn finish_removal(step: &Step, digest: &Digest, at: Timestamp) -> Result<()> {
    step.execute(
        "UPDATE blobs SET removed_ms = $2, removals = removals + 1, unneeded_ms = NULL, read_back_ms = NULL
             WHERE digest = $1 AND state = 'deleting' AND removed_ms IS NULL",
        &[&Stored(*digest), &ms(at)],
    )
    .await?;
    Ok(())
}

pub(super) async fn removals_of(step: &Step, digest: &Digest) -> Result<u64> {
    let query = "SELECT removals FROM blobs WHERE digest = $1";
    let row = step.query_optional(query, &[&Stored(*digest)]).await?;
    row.map_or(Ok(0), |row| get(&row, "removals"))
}
