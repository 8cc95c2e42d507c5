//! The part of the port about the published tree: what it owes, and what was published.

use std::ops::Range;

use async_trait::async_trait;
use jiff::Timestamp;
use model::callbacks::AsideReason;
use model::names::FileName;
use model::{CompanyId, Digest, DocumentId, Label, ProjectId};

use crate::Result;
use crate::documents::BlobFacts;

/// What the published tree must show.
#[async_trait]
pub trait Publications: Send + Sync {
    /// Documents whose published file is not the head, longest owed first, from the one after `after`.
    async fn owed_publications(&self, after: Option<&Owed>, limit: u32) -> Result<Vec<Owed>>;
    /// Those of them about which nothing happened since a moment in this range: there it was owed first, or last published.
    async fn stalled_publications(&self, since: &Range<Timestamp>, limit: u32) -> Result<Vec<Owed>>;
    /// What the tree owes for one document, if anything.
    async fn owed_publication(&self, document: &DocumentId) -> Result<Option<Owed>>;
    /// This content is published now. If the head moved meanwhile, the document still owes.
    async fn published(&self, document: &DocumentId, label: Label, at: Timestamp) -> Result<()>;
    /// The tree shows the document under this name now, and under no other. If it was renamed meanwhile, it still owes.
    async fn shown_under(&self, document: &DocumentId, name: &FileName) -> Result<()>;
    /// Nothing of a deleted document is shown any more. If it came back meanwhile, it still owes.
    async fn withdrawn(&self, document: &DocumentId, at: Timestamp) -> Result<()>;
    /// Whether these bytes are a content or a kept copy of this document.
    async fn knows_content(&self, document: &DocumentId, digest: &Digest) -> Result<bool>;
    /// Bytes that replaced ours in the tree become the head if nothing happened since, else a conflict copy (whose
    /// number is returned).
    async fn take_in_external(&self, change: &ExternalChange) -> Result<Option<u64>>;
    /// Documents that the tree shows and owes nothing, in order of id, from the one after `after`.
    async fn published_documents(&self, after: Option<&DocumentId>, limit: u32) -> Result<Vec<Published>>;
    /// The tree does not show the head of this document any more: it owes it (repair).
    async fn owe_publication(&self, document: &DocumentId, at: Timestamp) -> Result<()>;
}

/// A publication that is owed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    /// The document.
    pub document: DocumentId,
    /// Its place.
    pub company: CompanyId,
    /// Its place in the company.
    pub project: ProjectId,
    /// Its file name.
    pub name: FileName,
    /// The name it was shown under before it was renamed, if that may still be there.
    pub old_name: Option<FileName>,
    /// The content to publish.
    pub label: Label,
    /// Its bytes.
    pub digest: Digest,
    /// When it was committed.
    pub committed_at: Timestamp,
    /// Since when something else should be shown; of a document that is saved all the time, since longer than anything was published.
    pub since: Timestamp,
    /// What is published now, as far as we know.
    pub published: Option<PublishedNow>,
    /// Whether the document is deleted: then nothing may be shown.
    pub is_deleted: bool,
}

/// What the tree shows, as far as we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedNow {
    /// The content.
    pub label: Label,
    /// When it was committed: the time in the name of its backup.
    pub committed_at: Timestamp,
    /// When it was published.
    pub published_at: Timestamp,
}

/// What the tree should show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The document.
    pub document: DocumentId,
    /// Its place.
    pub company: CompanyId,
    /// Its place in the company.
    pub project: ProjectId,
    /// Its file name.
    pub name: FileName,
    /// The head.
    pub digest: Digest,
    /// Its length.
    pub size_bytes: u64,
    /// When it was published.
    pub published_at: Timestamp,
}

/// Bytes found in the tree that are not ours.
#[derive(Debug, Clone)]
pub struct ExternalChange {
    /// The document.
    pub document: DocumentId,
    /// The bytes, durable in the vault.
    pub blob: BlobFacts,
    /// Why they may not become the head, if so.
    pub damaged: Option<AsideReason>,
    /// When they were found.
    pub at: Timestamp,
}
