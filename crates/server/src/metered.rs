//! A vault around another that counts what fails, so that trouble with the store is seen, whoever met it.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use model::Digest;
use vault::{BlobReader, Result, Sidecar, Spooled, StoredBlob, Vault, VaultError};

use crate::telemetry;

/// Counts the failures of what it wraps.
pub(crate) struct Metered(pub(crate) Arc<dyn Vault>);

/// A thing that is not there is no failure of the store.
fn counted<T>(result: Result<T>) -> Result<T> {
    if let Err(VaultError::Unavailable { .. } | VaultError::Damaged { .. }) = &result {
        telemetry::storage_failed("vault");
    }
    result
}

#[async_trait]
impl Vault for Metered {
    async fn put(&self, spooled: &Spooled, sidecar: &Sidecar) -> Result<()> {
        counted(self.0.put(spooled, sidecar).await)
    }

    async fn mend(&self, spooled: &Spooled) -> Result<()> {
        counted(self.0.mend(spooled).await)
    }

    async fn open(&self, digest: &Digest, range: Option<Range<u64>>) -> Result<BlobReader> {
        counted(self.0.open(digest, range).await)
    }

    async fn size_of(&self, digest: &Digest) -> Result<Option<u64>> {
        counted(self.0.size_of(digest).await)
    }

    async fn remove(&self, digest: &Digest, life: u64) -> Result<()> {
        counted(self.0.remove(digest, life).await)
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>> {
        counted(self.0.list(after, limit).await)
    }

    async fn sidecars(&self, digests: &[Digest]) -> Result<Vec<Vec<Sidecar>>> {
        counted(self.0.sidecars(digests).await)
    }

    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    async fn probe(&self) -> Result<()> {
        counted(self.0.probe().await)
    }
}
