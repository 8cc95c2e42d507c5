//! Writing versions, checkpoints, kept copies and blobs: small statements shared by the steps.

use jiff::Timestamp;

use super::rows::{Stored, asked, get, ms};
use super::step::Step;
use crate::documents::BlobFacts;
use crate::{LedgerError, Result};

/// Names a blob, so that other rows may. Refuses one that is just being removed, or was removed after it was stored. One whose
/// bytes were stored again after they were gone begins another life.
pub(super) async fn name_blob(step: &Step, blob: &BlobFacts, at: Timestamp) -> Result<()> {
    let insert =
        "INSERT INTO blobs (digest, size_bytes, named_ms) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    step.execute(insert, &[&Stored(blob.digest), &asked(blob.size_bytes), &ms(at)]).await?;
    let query =
        "SELECT state = 'deleting' AND removed_ms IS NULL AS is_going, removals, size_bytes FROM blobs
                 WHERE digest = $1 FOR NO KEY UPDATE";
    let row = step.query_one(query, &[&Stored(blob.digest)]).await?;
    if get::<bool>(&row, "is_going")? || get::<u64>(&row, "removals")? != blob.removals {
        return Err(LedgerError::BlobGoing);
    }
    if get::<u64>(&row, "size_bytes")? != blob.size_bytes {
        return Err(LedgerError::damaged(format!("blob {} has two sizes", blob.digest)));
    }
    let update = "UPDATE blobs SET state = 'present', removed_ms = NULL, unneeded_ms = NULL
                  WHERE digest = $1 AND (state <> 'present' OR unneeded_ms IS NOT NULL)";
    step.execute(update, &[&Stored(blob.digest)]).await?;
    Ok(())
}
