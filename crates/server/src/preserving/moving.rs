//! Moving house: everything that one vault has is brought into another, while the service runs.
//!
//! Guarantees: a blob counts as brought once the target gave it back whole, with every sidecar it has in the source. What is in the target
//! already is not copied again, so a copy that was broken off goes on where it was; doing it once more after the service
//! was switched over brings the rest. Nothing is removed anywhere.
//! Does not do: switch over (the operator does, in the configuration).

use std::collections::BTreeMap;

use model::Digest;
use serde::Serialize;
use vault::{Sidecar, Spool, StoredBlob, Vault, read_verified, read_whole};

use super::PreserveError;
use super::copying::{Copying, PAGE};
use crate::progress::Progress;

/// What came over.
#[derive(Debug, Default, Serialize)]
pub struct Moved {
    /// Blobs that are in both vaults now.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blobs that were not in the target before.
    pub copied_blobs: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// Blobs that went from the source, or are damaged in it.
    pub lacking: Vec<String>,
}

/// Brings everything from one vault into another.
pub async fn copy_vault(
    (source, target): (&dyn Vault, &dyn Vault),
    spool: &Spool,
    progress: &dyn Progress,
) -> Result<Moved, PreserveError> {
    let copying = Copying { source, target, spool, progress };
    let mut moved = Moved::default();
    let mut after: Option<Digest> = None;
    progress.begin("blobs", 0);
    loop {
        let page = source.list(after.as_ref(), PAGE as usize).await?;
        let Some(last) = page.last().map(|blob| blob.digest) else { return Ok(moved) };
        let known = copying.known_between(after, &last).await?;
        let told = source.sidecars(&page.iter().map(|blob| blob.digest).collect::<Vec<_>>()).await?;
        for (blob, told) in page.iter().zip(told) {
            copying.move_one((blob, told), known.get(&blob.digest), &mut moved).await?;
            progress.advance();
        }
        after = Some(last);
    }
}

/// What the target has of a blob.
struct Known {
    size_bytes: u64,
    sidecars: Vec<Sidecar>,
}

impl Copying<'_> {
    async fn move_one(
        &self,
        (blob, told): (&StoredBlob, Vec<Sidecar>),
        known: Option<&Known>,
        moved: &mut Moved,
    ) -> Result<(), PreserveError> {
        let known = known.filter(|known| known.size_bytes == blob.size_bytes);
        let is_missing = |sidecar: &&Sidecar| !known.is_some_and(|known| known.sidecars.contains(sidecar));
        let told = Sidecar::or_nobodys(told);
        let missing: Vec<&Sidecar> = told.iter().filter(is_missing).collect();
        if known.is_none() || !missing.is_empty() {
            let Some(spooled) = read_whole(self.source, &blob.digest, self.spool).await? else {
                moved.lacking.push(blob.digest.to_string());
                return Ok(());
            };
            for sidecar in missing {
                self.target.put(&spooled.in_life(blob.life), sidecar).await?;
            }
        }
        if known.is_none() {
            self.prove(&blob.digest).await?;
            moved.copied_blobs += 1;
            moved.copied_bytes += blob.size_bytes;
        }
        moved.blobs += 1;
        moved.bytes += blob.size_bytes;
        Ok(())
    }

    /// The target gives it back whole.
    async fn prove(&self, digest: &Digest) -> Result<(), PreserveError> {
        let reader = self.target.open(digest, None).await?.reader;
        let mut reader = std::pin::pin!(read_verified(reader, *digest));
        let read = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
        read.map_err(|_| PreserveError::Damaged {
            what: format!("{digest} does not read back from the target"),
        })?;
        Ok(())
    }

    /// What the target has of a range.
    async fn known_between(
        &self,
        mut after: Option<Digest>,
        last: &Digest,
    ) -> Result<BTreeMap<Digest, Known>, PreserveError> {
        let mut known = BTreeMap::new();
        loop {
            let page = self.target.list(after.as_ref(), PAGE as usize).await?;
            let Some(end) = page.last().map(|blob| blob.digest) else { return Ok(known) };
            let digests: Vec<Digest> = page.iter().map(|blob| blob.digest).collect();
            let told = self.target.sidecars(&digests).await?;
            known.extend(
                page.iter()
                    .zip(told)
                    .map(|(blob, sidecars)| (blob.digest, Known { size_bytes: blob.size_bytes, sidecars })),
            );
            if end >= *last {
                return Ok(known);
            }
            after = Some(end);
        }
    }
}
