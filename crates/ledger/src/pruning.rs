//! The part of the port about letting go: contents, kept copies, deleted documents, and in the end bytes.
//!
//! Letting go has two halves. First a row says that a content is not needed any more ([`Pruning::prune_contents`] and its
//! sisters): the rule of [`model::retention`] is asked inside the step, and the act is in the audit trail. Much later, when no
//! row needs a blob, its bytes go: [`Pruning::begin_removal`] marks it, the vault removes it, [`Pruning::finish_removal`] says so.
//!
//! Between the mark and the end no row may name the blob. After the end a row may, if whoever names it stored the bytes again
//! since: [`BlobFacts::removals`](crate::documents::BlobFacts::removals) tells. Thus the same bytes may come at any moment and
//! are never believed to be where they are not. Only one process at a time may remove bytes.

use async_trait::async_trait;
use jiff::Timestamp;
use model::names::FileName;
use model::retention::{Reason, Retention, WaitsFor};
use model::{CompanyId, Digest, DocumentId, Label, ProjectId};

use crate::Result;
use crate::trail::BlobRecord;

/// Letting go. Every method may be repeated after a crash.
#[async_trait]
pub trait Pruning: Send + Sync {
    /// Lets go of the contents of a document that the policy does not keep.
    async fn prune_contents(&self, document: &DocumentId, wish: &PruneWish) -> Result<Vec<PrunedContent>>;
    /// Lets go of kept copies that a person settled long ago.
    async fn prune_kept(&self, wish: &PruneWish, limit: u32) -> Result<Vec<PrunedKept>>;
    /// Purges a deleted document whose time has come, if nothing is left to do for it.
    async fn purge_document(&self, document: &DocumentId, wish: &PruneWish) -> Result<Purged>;
    /// Documents that were deleted before a time, longest ago first, from the one after `after`.
    async fn deleted_documents(
        &self,
        before: Timestamp,
        after: Option<&DocumentId>,
        limit: u32,
    ) -> Result<Vec<DocumentId>>;

    /// Documents of which something was let go and whose backups in the published tree were not looked through since.
    async fn owed_prunings(&self, limit: u32) -> Result<Vec<OwedPruning>>;
    /// Whether these bytes are or were a content or a kept copy of this document, let go or not.
    async fn knew_content(&self, document: &DocumentId, digest: &Digest) -> Result<bool>;
    /// Their backups were looked through.
    async fn backups_pruned(&self, document: &DocumentId) -> Result<()>;

    /// Blobs no row needs, since before a time.
    async fn unneeded_blobs(&self, before: Timestamp, limit: u32) -> Result<Vec<BlobRecord>>;
    /// Marks a blob as going, if still no row needs it. From then on no row may name it. `false` if one does.
    async fn begin_removal(&self, digest: &Digest, before: Timestamp) -> Result<bool>;
    /// Blobs that are marked as going and not yet said to be gone.
    async fn begun_removals(&self, limit: u32) -> Result<Vec<BlobRecord>>;
    /// The bytes are gone.
    async fn finish_removal(&self, digest: &Digest, at: Timestamp) -> Result<()>;
    /// How often a blob was removed: to be asked before its bytes are stored.
    async fn removals_of(&self, digest: &Digest) -> Result<u64>;
}

/// What is wanted, and whether it is meant.
#[derive(Debug, Clone)]
pub struct PruneWish {
    /// What the operator keeps.
    pub policy: Retention,
    /// Whether anything is changed.
    pub meaning: Meaning,
    /// When.
    pub at: Timestamp,
}

/// Whether a wish is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Do it.
    DoIt,
    /// Only say what would be done.
    OnlySay,
}

/// A content that was let go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrunedContent {
    /// Its number.
    pub label: Label,
    /// Its length.
    pub size_bytes: u64,
    /// Why.
    pub reason: Reason,
}

/// A kept copy that was let go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrunedKept {
    /// Its number.
    pub number: u64,
    /// Its length.
    pub size_bytes: u64,
}

/// What became of a deleted document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purged {
    /// It is not deleted, or not long enough.
    NotYet,
    /// It has to wait.
    Waits(WaitsFor),
    /// It is purged: so many contents with so many bytes.
    Yes {
        /// Versions and checkpoints.
        contents: u64,
        /// Their bytes, of kept copies too.
        size_bytes: u64,
    },
}

/// A document whose backups are to be looked through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedPruning {
    /// The document.
    pub document: DocumentId,
    /// Its place.
    pub company: CompanyId,
    /// Its place in the company.
    pub project: ProjectId,
    /// Its file name.
    pub name: FileName,
    /// Whether it was purged: then none of its backups stays.
    pub is_purged: bool,
}
