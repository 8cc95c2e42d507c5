//! Mends blobs that are damaged or missing, from where they are whole: behind the depot, or in a vault that the operator names.
//!
//! Guarantees: bytes go into the vault only after all of them were read and their hash was right; what lay in their place is kept aside
//! (`Vault::mend`); a blob counts as mended once the vault gave it back whole. Sources are only read.
//! Does not do: say what could not be mended. Whoever verifies afterwards finds it.

use std::sync::Arc;

use ledger::trail::BlobRecord;
use model::Digest;
use vault::{Sidecar, Spooled, Vault, VaultError, read_whole};

use super::walk::{Condition, condition_of, read_back};
use super::{Progress, ReadData, VerifyError};
use crate::app::App;

const PAGE: u32 = 1000;

/// Mends every blob that a row names and a source has. Returns how many.
pub(super) async fn mend_blobs(
    app: &App,
    sources: &[Arc<dyn Vault>],
    read_data: ReadData,
    progress: &dyn Progress,
) -> Result<u64, VerifyError> {
    let mut mended = 0;
    let mut after: Option<Digest> = None;
    progress.begin("damaged blobs", 0);
    loop {
        let page = app.ledger.blobs(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(mended) };
        after = Some(last.digest);
        for blob in page {
            mended += u64::from(mend_one(app, sources, (&blob, read_data)).await?);
            progress.advance();
        }
    }
}

async fn mend_one(
    app: &App,
    sources: &[Arc<dyn Vault>],
    (blob, read_data): (&BlobRecord, ReadData),
) -> Result<bool, VerifyError> {
    let condition = condition_of(app, blob, read_data).await?;
    if matches!(condition, Condition::Going | Condition::There | Condition::Whole) {
        return Ok(false);
    }
    for source in sources {
        let Some(spooled) = read_whole(source.as_ref(), &blob.digest, &app.spool).await? else { continue };
        match condition {
            Condition::Missing => put_again(app, source.as_ref(), &spooled).await?,
            _ => app.vault.mend(&spooled).await?,
        }
        if !read_back(app, &blob.digest).await? {
            return Err(VaultError::Damaged { digest: blob.digest }.into());
        }
        tracing::info!(digest = %blob.digest, source = source.kind(), "a blob was mended");
        return Ok(true);
    }
    Ok(false)
}

/// With all that the source knows of it.
async fn put_again(app: &App, source: &dyn Vault, spooled: &Spooled) -> Result<(), VerifyError> {
    let told = source.sidecars(&[spooled.digest]).await?.concat();
    let life = app.ledger.removals_of(&spooled.digest).await?;
    for sidecar in &Sidecar::or_nobodys(told) {
        app.vault.put(&spooled.in_life(life), sidecar).await?;
    }
    Ok(())
}
