//! The part of the port about copies of the whole ledger: made while it is used, and used again after a loss.
//!
//! A restored ledger does not know what happened after its copy was made. So before anybody works with it, [`begin_again`]
//! makes sure that nothing is handed out twice: the counters of all documents move past every key that may have been issued
//! since, and a live key counts as one that may have been saved since, so that the Document Server is asked before it is
//! handed out.
//!
//! Does not do: bytes (the vault), deciding where copies lie.
//!
//! [`begin_again`]: Snapshots::begin_again

use std::path::Path;

use async_trait::async_trait;
use jiff::Timestamp;
use model::Digest;

use crate::Result;
use crate::documents::Author;
use crate::trail::BlobRecord;

/// Copies of the whole.
#[async_trait]
pub trait Snapshots: Send + Sync {
    /// Writes a whole and consistent copy of this moment into a file that does not exist yet, while others work. Durable when
    /// it returns, but for the entry in its folder.
    async fn write_snapshot(&self, file: &Path) -> Result<()>;
    /// The blobs that such a copy names, in order of digest, from the one after `after`.
    async fn snapshot_blobs(
        &self,
        file: &Path,
        after: Option<&Digest>,
        limit: u32,
    ) -> Result<Vec<BlobRecord>>;
    /// This ledger is a copy that was put in the place of the lost one. To be done before anybody works with it; doing it
    /// again is harmless.
    async fn begin_again(&self, restoration: &Restoration) -> Result<BegunAgain>;
}

/// Whose copy was put in place, and when.
#[derive(Debug, Clone)]
pub struct Restoration {
    /// The name of the copy.
    pub backup: String,
    /// When it was made.
    pub backed_up_at: Timestamp,
    /// Who restores.
    pub who: Author,
    /// Now.
    pub at: Timestamp,
}

/// What a restored ledger begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BegunAgain {
    /// Its documents.
    pub documents: u64,
    /// Keys that were live when the copy was made. The Document Server is asked before one is handed out.
    pub live_keys: u64,
    /// Saves that were on their way when the copy was made.
    pub open_saves: u64,
}
