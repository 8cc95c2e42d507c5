//! From one vault into another: each blob is hashed on its way and has its sidecars with it.
//!
//! Guarantees: what is in the target already is not copied again (its name is its hash, and a vault names only what is
//! durable); memory stays flat.

use std::collections::BTreeMap;

use ledger::trail::BlobRecord;
use model::Digest;
use vault::{Sidecar, Spool, Vault, read_whole};

use super::PreserveError;
use crate::progress::Progress;

/// Blobs that are looked at together.
pub(super) const PAGE: u32 = 1000;

/// From where to where.
pub(super) struct Copying<'a> {
    pub(super) source: &'a dyn Vault,
    pub(super) target: &'a dyn Vault,
    pub(super) spool: &'a Spool,
    pub(super) progress: &'a dyn Progress,
}

/// What came over.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Blobs that are in the target now.
    pub(super) blobs: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// Blobs that were not in it before.
    pub(super) copied_blobs: u64,
    /// Their bytes.
    pub(super) copied_bytes: u64,
    /// Blobs that are missing or damaged in the source.
    pub(super) lacking: Vec<Digest>,
}

impl Copying<'_> {
    /// Copies a page of named blobs, which are in order of digest.
    pub(super) async fn bring(&self, page: &[BlobRecord], tally: &mut Tally) -> Result<(), PreserveError> {
        let mut absent = Vec::new();
        for blob in page {
            if self.target.size_of(&blob.digest).await? != Some(blob.size_bytes) {
                absent.push(blob.digest);
            }
        }
        let told = self.source.sidecars(&absent).await?;
        let mut told: BTreeMap<Digest, Vec<Sidecar>> = absent.into_iter().zip(told).collect();
        for blob in page {
            if let Some(told) = told.remove(&blob.digest)
                && !self.bring_one(blob, told, tally).await?
            {
                tally.lacking.push(blob.digest);
            } else {
                tally.blobs += 1;
                tally.bytes += blob.size_bytes;
            }
            self.progress.advance();
        }
        Ok(())
    }

    /// Whether the source has it.
    async fn bring_one(
        &self,
        blob: &BlobRecord,
        told: Vec<Sidecar>,
        tally: &mut Tally,
    ) -> Result<bool, PreserveError> {
        let Some(spooled) = read_whole(self.source, &blob.digest, self.spool).await? else {
            return Ok(false);
        };
        for sidecar in Sidecar::or_nobodys(told) {
            self.target.put(&spooled, &sidecar).await?;
        }
        tally.copied_blobs += 1;
        tally.copied_bytes += blob.size_bytes;
        Ok(true)
    }
}
