//! The part of the port about looking back: the audit trail, and the walk `verify` takes over everything.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::audit::Entry;
use model::{CompanyId, Digest, DocumentId, Label, OrganisationId};

use crate::Result;
use crate::documents::Content;

/// Looking back.
#[async_trait]
pub trait Trail: Send + Sync {
    /// A page of a chain, from the entry after `after`.
    async fn audit(&self, chain: &str, after: u64, limit: u32) -> Result<Vec<(Entry, Digest)>>;
    /// The chains of a company, or all of them, in order, from the one after `after`. Chains of companies are among them.
    async fn chains(&self, company: Option<&CompanyId>, after: &str, limit: u32) -> Result<Vec<String>>;
    /// A page of entries that were asked for: of a document or organisation in their order, of a company by time.
    async fn find_acts(&self, page: &ActsPage) -> Result<Vec<(Entry, Digest)>>;
    /// Writes the heads of chains that moved into the chain of their company, for companies that have waited long enough.
    /// A bounded number of them: to be repeated until nothing is left.
    async fn anchor(&self, wish: &Anchoring) -> Result<Vec<Anchored>>;
    /// A version or checkpoint, the entry that tells of it, and when its bytes were last read back.
    async fn receipt(&self, document: &DocumentId, label: Label) -> Result<Option<SaveReceipt>>;
    /// Blobs were read back whole.
    async fn note_read_back(&self, noted: &ReadBack) -> Result<()>;
    /// Every blob some row names, in order of digest, from the one after `after`.
    async fn blobs(&self, after: Option<&Digest>, limit: u32) -> Result<Vec<BlobRecord>>;
    /// Document ids in order, from the one after `after`.
    async fn document_ids(&self, after: Option<&DocumentId>, limit: u32) -> Result<Vec<DocumentId>>;
    /// What the rows themselves say that cannot be: an empty list for a sound ledger.
    async fn inconsistencies(&self) -> Result<Vec<Inconsistency>>;
    /// How much of everything there is.
    async fn totals(&self) -> Result<Totals>;
}

/// Whose acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActsOf {
    /// On this document.
    Document(DocumentId),
    /// In this company, on all its documents.
    Company(CompanyId),
    /// About this organisation, its registrations and what it hands in.
    Organisation(OrganisationId),
}

/// Which acts to list.
#[derive(Debug, Clone)]
pub struct ActsPage {
    /// Whose.
    pub of: ActsOf,
    /// Done by this one only.
    pub actor: Option<String>,
    /// Of this kind only.
    pub action: Option<String>,
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// After this entry: the last one of the page before.
    pub after: Option<ActPlace>,
    /// Which come first.
    pub order: ActsOrder,
    /// At most so many.
    pub limit: u32,
}

/// Which entries come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ActsOrder {
    /// As they were written.
    #[default]
    OldestFirst,
    /// What happened last; `after` goes back in time.
    NewestFirst,
}

/// Where an entry stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActPlace {
    /// When it was written.
    pub at: Timestamp,
    /// Its chain.
    pub chain: String,
    /// Its place in the chain.
    pub sequence: u64,
}

/// A wish to anchor what moved.
#[derive(Debug, Clone, Copy)]
pub struct Anchoring {
    /// When.
    pub at: Timestamp,
    /// A company that was anchored less than this ago waits.
    pub spacing: SignedDuration,
}

/// An anchor that was just written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchored {
    /// In whose chain.
    pub company: CompanyId,
    /// Its place in that chain.
    pub sequence: u64,
    /// Its hash.
    pub hash: Digest,
    /// How many chains it names.
    pub heads: usize,
}

/// What can be shown for a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveReceipt {
    /// What it became.
    pub content: Content,
    /// The entry that tells of it, with its hash.
    pub act: Option<(Entry, Digest)>,
    /// When its bytes were last read back whole.
    pub read_back_at: Option<Timestamp>,
}

/// Blobs that were read back whole.
#[derive(Debug, Clone)]
pub struct ReadBack {
    /// The blobs.
    pub digests: Vec<Digest>,
    /// When.
    pub at: Timestamp,
    /// A blob that was noted less than this ago keeps its time, and costs nothing.
    pub spacing: SignedDuration,
}

/// A blob some row names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobRecord {
    /// Its hash.
    pub digest: Digest,
    /// Its length.
    pub size_bytes: u64,
    /// Whether it is being removed: it may be there or not.
    pub is_going: bool,
    /// How often it was removed before: its life.
    pub removals: u64,
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
    /// Documents, also the deleted ones.
    pub documents: u64,
    /// Deleted documents that can be taken back.
    pub deleted_documents: u64,
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
