//! The part of the port about looking back: the audit trail, and the walk `verify` takes over everything.

use async_trait::async_trait;
use model::audit::Entry;
use model::{Digest, DocumentId};

use crate::Result;

/// Looking back.
#[async_trait]
pub trait Trail: Send + Sync {
    /// A page of a chain, from the entry after `after`.
    async fn audit(&self, chain: &str, after: u64, limit: u32) -> Result<Vec<(Entry, Digest)>>;
    /// Every blob some row names, in order of digest, from the one after `after`.
    async fn blobs(&self, after: Option<&Digest>, limit: u32) -> Result<Vec<BlobRecord>>;
    /// Document ids in order, from the one after `after`.
    async fn document_ids(&self, after: Option<&DocumentId>, limit: u32) -> Result<Vec<DocumentId>>;
    /// What the rows themselves say that cannot be: an empty list for a sound ledger.
    async fn inconsistencies(&self) -> Result<Vec<Inconsistency>>;
    /// How much of everything there is.
    async fn totals(&self) -> Result<Totals>;
}

/// A blob some row names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobRecord {
    /// Its hash.
    pub digest: Digest,
    /// Its length.
    pub size_bytes: u64,
}

/// Something that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inconsistency {
    /// The invariant it breaks, in a word: `head`, `dense-versions`, `one-live-key`, `audit-chain` …
    pub invariant: &'static str,
    /// What was found.
    pub what: String,
}

/// Counts for people and metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Documents.
    pub documents: u64,
    /// Versions.
    pub versions: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Conflict copies.
    pub conflicts: u64,
    /// Quarantined copies.
    pub quarantined: u64,
    /// Orphans.
    pub orphans: u64,
    /// Callbacks received and not finished.
    pub open_saves: u64,
    /// Live edit keys.
    pub live_keys: u64,
    /// Documents whose publication is owed.
    pub owed_publications: u64,
}
