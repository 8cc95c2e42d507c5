//! Bytes that no row needs any more.
//!
//! For each blob: the ledger marks it as going, if still nothing needs it; the vault removes it, durably; the ledger says that
//! it is gone. Cut short anywhere, it is marked, and the next one begins with those. While it is marked no row may name it,
//! and afterwards only a row whose bytes were stored again since. Those are in another life of the blob, which a removal that was begun
//! before does not touch, however late it is carried out.

use jiff::Timestamp;
use ledger::pruning::{Meaning, PruneWish};
use ledger::trail::BlobRecord;

use super::{PAGE, PruneError, Pruned, Reach};
use crate::app::App;

/// Removes what an ended process was about to remove.
pub(super) async fn finish_begun(app: &App, pruned: &mut Pruned) -> Result<(), PruneError> {
    for blob in app.ledger.begun_removals(PAGE).await? {
        if !remove(app, &blob, pruned).await {
            break;
        }
    }
    Ok(())
}

/// Removes what nothing needs, and has not for as long as the policy says.
pub(super) async fn remove_unneeded(
    app: &App,
    wish: &PruneWish,
    reach: Reach,
    pruned: &mut Pruned,
) -> Result<(), PruneError> {
    let before = wish.at.checked_sub(wish.policy.bytes).unwrap_or(Timestamp::MIN);
    loop {
        let page = app.ledger.unneeded_blobs(before, reach.limit()).await?;
        if wish.meaning == Meaning::OnlySay {
            pruned.blobs += page.len() as u64;
            pruned.blobs_bytes += page.iter().map(|blob| blob.size_bytes).sum::<u64>();
            return Ok(());
        }
        let failed_before = pruned.failed;
        for blob in &page {
            match app.ledger.begin_removal(&blob.digest, before).await {
                Ok(true) => {
                    steps::reached("prune.removal-begun");
                    if !remove(app, blob, pruned).await {
                        return Ok(());
                    }
                }
                Ok(false) => {}
                Err(cause) => pruned.fail("a blob", &cause),
            }
        }
        // What failed would come again and again.
        if page.is_empty() || reach == Reach::Part || pruned.failed > failed_before {
            return Ok(());
        }
    }
}

/// Returns whether the vault does what it is asked: one that is away would be waited for again and again.
async fn remove(app: &App, blob: &BlobRecord, pruned: &mut Pruned) -> bool {
    if let Err(cause) = app.vault.remove(&blob.digest, blob.removals).await {
        pruned.fail("the bytes of a blob", &cause);
        return false;
    }
    steps::reached("prune.removed");
    match app.ledger.finish_removal(&blob.digest, app.now()).await {
        Ok(()) => {
            pruned.blobs += 1;
            pruned.blobs_bytes += blob.size_bytes;
        }
        Err(cause) => pruned.fail("a blob that is gone", &cause),
    }
    true
}
