//! What is in a depot, counted: how much, and since when.
//!
//! Guarantees: bytes are counted before they are written, so that many who store at once do not overfill it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use model::Digest;

use super::PAGE;
use crate::{Result, Spooled, Vault};

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

    /// Counts a blob in, if it fits. What does not come after all is counted out again.
    pub(super) fn reserve(&self, spooled: &Spooled, bytes_max: u64) -> Option<Reserved<'_>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.contains_key(&spooled.digest) {
            return Some(Reserved { index: self, digest: spooled.digest, is_open: false });
        }
        let bytes: u64 = waiting.values().map(|(bytes, _)| bytes).sum();
        if bytes.saturating_add(spooled.size_bytes) > bytes_max {
            return None;
        }
        waiting.insert(spooled.digest, (spooled.size_bytes, None));
        Some(Reserved { index: self, digest: spooled.digest, is_open: true })
    }

    pub(super) fn forget(&self, digest: &Digest) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(digest);
    }
}

/// Room for a blob that is being written.
pub(super) struct Reserved<'a> {
    index: &'a Index,
    digest: Digest,
    /// Whether it is counted for this one alone, and not there yet.
    is_open: bool,
}

impl Reserved<'_> {
    /// The blob lies there.
    #[allow(clippy::disallowed_methods, reason = "the clock of the disk it lies on is this machine's")]
    pub(super) fn take(mut self) {
        let mut waiting = self.index.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, since)) = waiting.get_mut(&self.digest) {
            since.get_or_insert_with(Timestamp::now);
        }
        drop(waiting);
        self.is_open = false;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.index.forget(&self.digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spool;
    use crate::memory::MemoryVault;

    #[tokio::test]
    async fn room_for_what_never_came_is_free_again() {
        let index = Index::of(&MemoryVault::default()).await.unwrap();
        let content = |number: u8| Spool::hold(vec![number; 60].into());

        drop(index.reserve(&content(1), 100).unwrap());
        assert_eq!(index.fill(), Fill::default());
        index.reserve(&content(2), 100).unwrap().take();
        assert!(index.reserve(&content(3), 100).is_none(), "full");
        drop(index.reserve(&content(2), 100).unwrap());
        assert_eq!((index.fill().blobs, index.fill().bytes), (1, 60), "what was there stays counted");
        assert!(index.fill().oldest.is_some());
    }
}
