//! Blobs no row names: adopted through their sidecars, as conflict copies of their documents, or as orphans where no
//! sidecar says for certain whose they are (an upload that was refused).
//!
//! They exist when a process ended between storing and committing and the save never came again, or when the ledger was
//! restored from an older backup than the vault.
//!
//! Guarantees: nothing is removed but what the retention policy had let go before; a blob that a save in progress is about to name is left alone (its age). A record of changes
//! without its save is worth nothing: it is named, so that it may go.

use std::sync::Arc;

use jiff::SignedDuration;
use ledger::documents::{BlobFacts, UnnamedBlob};
use model::Digest;
use vault::{Sidecar, StoredBlob};

use super::RecoveryError;
use crate::app::App;
use crate::telemetry;

const PAGE: usize = 1000;

/// How old a blob must be before it counts as stray.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgeMin {
    /// While the service runs: no save takes this long.
    TenMinutes,
    /// Nothing else runs (`saveguard repair`).
    None,
}

/// Adopts every stray blob.
pub(crate) async fn adopt(app: &Arc<App>, age_min: AgeMin) -> Result<(), RecoveryError> {
    for blob in find(app).await? {
        let age = app.now().duration_since(blob.stored_at);
        if age_min == AgeMin::TenMinutes && age < SignedDuration::from_mins(10) {
            continue;
        }
        if is_left_over(app, &blob).await? {
            continue;
        }
        let Some(found) = unnamed(app, &blob).await? else { continue };
        if let Some(kept) = app.ledger.keep_unnamed(&found).await? {
            telemetry::alert("stray-blob");
            tracing::warn!(kept, "a blob that no row named was adopted");
        }
    }
    Ok(())
}

/// What the ledger knows to be removed, and is back: by a copy of a vault, or by somebody who stored it while it was removed and never
/// came to name it. It goes again, and nobody is asked about it.
async fn is_left_over(app: &App, blob: &StoredBlob) -> Result<bool, RecoveryError> {
    if blob.life >= app.ledger.removals_of(&blob.digest).await? {
        return Ok(false);
    }
    app.vault.remove(&blob.digest, blob.life).await?;
    tracing::info!(digest = %blob.digest, "a blob that had been let go was back, and was removed again");
    Ok(true)
}

/// `None` if it went meanwhile. Looked at after it was asked how often it had been removed: what is there now was stored since.
async fn unnamed(app: &App, blob: &StoredBlob) -> Result<Option<UnnamedBlob>, RecoveryError> {
    let removals = app.ledger.removals_of(&blob.digest).await?;
    if app.vault.size_of(&blob.digest).await?.is_none() {
        return Ok(None);
    }
    let told = app.vault.sidecars(&[blob.digest]).await?.concat();
    let sidecar = told.iter().find(|sidecar| sidecar.document().is_some());
    let is_record = |sidecar: &Sidecar| matches!(sidecar, Sidecar::Changes { .. });
    Ok(Some(UnnamedBlob {
        blob: BlobFacts {
            digest: blob.digest,
            size_bytes: blob.size_bytes,
            file_type: "unknown".to_owned(),
            flags: String::new(),
            extent: None,
            removals,
        },
        document: sidecar.and_then(Sidecar::document),
        key: sidecar.and_then(Sidecar::key).cloned(),
        is_record_of_changes: !told.is_empty() && told.iter().all(is_record),
        at: app.now(),
    }))
}

/// The blobs of the vault that the ledger does not name. Both lists are in order, so memory stays flat.
pub(crate) async fn find(app: &App) -> Result<Vec<StoredBlob>, RecoveryError> {
    let mut strays = Vec::new();
    let mut after: Option<Digest> = None;
    loop {
        let page = app.vault.list(after.as_ref(), PAGE).await?;
        let Some(last) = page.last().map(|blob| blob.digest) else { return Ok(strays) };
        let named = named_between(app, after, last).await?;
        strays.extend(page.into_iter().filter(|blob| named.binary_search(&blob.digest).is_err()));
        after = Some(last);
    }
}

async fn named_between(app: &App, after: Option<Digest>, last: Digest) -> Result<Vec<Digest>, RecoveryError> {
    let mut named = Vec::new();
    let mut after = after;
    loop {
        let page = app.ledger.blobs(after.as_ref(), u32::try_from(PAGE).unwrap_or(u32::MAX)).await?;
        let is_end = page.len() < PAGE || page.last().is_some_and(|blob| blob.digest >= last);
        after = page.last().map(|blob| blob.digest).or(after);
        named.extend(page.into_iter().map(|blob| blob.digest).filter(|digest| *digest <= last));
        if is_end {
            return Ok(named);
        }
    }
}
