//! What is in a depot, counted: how much, and since when.
//!
//! Guarantees: bytes are counted before they are written, so that many who store at once do not overfill it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use model::Digest;

use super::PAGE;
use crate::{Result, Spooled, StoredBlob, Vault};

/// How much may wait in a depot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Nothing may: what the far side does not take is refused.
    None,
    /// So many bytes.
    Bytes(u64),
}

/// What waits in a depot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fill {
    /// Blobs.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the oldest of them was stored.
    pub oldest: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) struct Index {
    waiting: Mutex<BTreeMap<Digest, (u64, Option<Timestamp>)>>,
}

impl Index {
    /// Of what lies there.
    pub(super) async fn of(near: &dyn Vault) -> Result<Self> {
        let mut waiting = BTreeMap::new();
        let mut after = None;
        loop {
            let page = near.list(after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { return Ok(Self { waiting: Mutex::new(waiting) }) };
            after = Some(last.digest);
            waiting.extend(page.iter().map(|blob| (blob.digest, (blob.size_bytes, Some(blob.stored_at)))));
        }
    }

    pub(super) fn fill(&self) -> Fill {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        Fill {
            blobs: waiting.len() as u64,
            bytes: waiting.values().map(|(bytes, _)| bytes).sum(),
            oldest: waiting.values().filter_map(|(_, since)| *since).min(),
        }
    }

    /// Counts a blob in, if it fits.
    pub(super) fn reserve(&self, spooled: &Spooled, bytes_max: u64) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.contains_key(&spooled.digest) {
            return true;
        }
        let bytes: u64 = waiting.values().map(|(bytes, _)| bytes).sum();
        if bytes.saturating_add(spooled.size_bytes) > bytes_max {
            return false;
        }
        waiting.insert(spooled.digest, (spooled.size_bytes, None));
        true
    }

    /// It lies there, since when the store says.
    pub(super) fn note(&self, blob: &StoredBlob) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(blob.digest, (blob.size_bytes, Some(blob.stored_at)));
    }

    pub(super) fn forget(&self, digest: &Digest) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(digest);
    }
}
