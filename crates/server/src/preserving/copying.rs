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
    /// Copies a page of named blobs, which are in order of digest, all after `after`.
    pub(super) async fn bring(
        &self,
        after: Option<&Digest>,
        page: &[BlobRecord],
        tally: &mut Tally,
    ) -> Result<(), PreserveError> {
        let Some(last) = page.last() else { return Ok(()) };
        let sidecars = self.sidecars_between(after, &last.digest).await?;
        for blob in page {
            self.bring_one(blob, sidecars.get(&blob.digest), tally).await?;
            self.progress.advance();
        }
        Ok(())
    }

    async fn bring_one(
        &self,
        blob: &BlobRecord,
        sidecars: Option<&Vec<Sidecar>>,
        tally: &mut Tally,
    ) -> Result<(), PreserveError> {
        let is_there = self.target.size_of(&blob.digest).await? == Some(blob.size_bytes);
        if !is_there {
            let Some(spooled) = read_whole(self.source, &blob.digest, self.spool).await? else {
                tally.lacking.push(blob.digest);
                return Ok(());
            };
            for sidecar in sidecars.filter(|found| !found.is_empty()).unwrap_or(&vec![Sidecar::nobodys()]) {
                self.target.put(&spooled, sidecar).await?;
            }
            tally.copied_blobs += 1;
            tally.copied_bytes += blob.size_bytes;
        }
        tally.blobs += 1;
        tally.bytes += blob.size_bytes;
        Ok(())
    }

    async fn sidecars_between(
        &self,
        after: Option<&Digest>,
        last: &Digest,
    ) -> Result<BTreeMap<Digest, Vec<Sidecar>>, PreserveError> {
        let mut found = BTreeMap::new();
        let mut after = after.copied();
        loop {
            let page = self.source.list(after.as_ref(), PAGE as usize).await?;
            let Some(end) = page.last().map(|blob| blob.digest) else { return Ok(found) };
            found.extend(page.into_iter().map(|blob| (blob.digest, blob.sidecars)));
            if end >= *last {
                return Ok(found);
            }
            after = Some(end);
        }
    }
}
