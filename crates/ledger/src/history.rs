//! The part of the port about what people see around a document's history: pages of it, its name, who is known, who was mentioned.

use async_trait::async_trait;
use jiff::Timestamp;
use model::names::FileName;
use model::{DocumentId, Label};

use crate::Result;
use crate::documents::{Author, Content, Document};

/// The history and the people around it.
#[async_trait]
pub trait History: Send + Sync {
    /// A page of the versions and checkpoints of a document, newest first.
    async fn contents_page(&self, page: &ContentsPage) -> Result<Vec<Content>>;
    /// Gives a document another name; the published tree owes it. `None` if there is no such document.
    async fn rename_document(&self, renaming: &DocumentRenaming) -> Result<Option<Document>>;
    /// People around a document: who worked on it, then who did something in its company, last first. Programs and the service
    /// itself are not among them.
    async fn people(&self, document: &DocumentId, limit: u32) -> Result<Vec<Person>>;
    /// Writes down that people were mentioned; returns the number of the mention.
    async fn note_mention(&self, mention: &NewMention) -> Result<u64>;
    /// Mentions after a number, oldest first: for whoever hands them out.
    async fn mentions(&self, after: u64, limit: u32) -> Result<Vec<Mention>>;
}

/// Which contents to list.
#[derive(Debug, Clone)]
pub struct ContentsPage {
    /// Of this document.
    pub document: DocumentId,
    /// Versions only, without checkpoints.
    pub versions_only: bool,
    /// Older than this one.
    pub before: Option<Label>,
    /// At most so many.
    pub limit: u32,
}

/// A document's new name.
#[derive(Debug, Clone)]
pub struct DocumentRenaming {
    /// Which one.
    pub document: DocumentId,
    /// Its new name.
    pub name: FileName,
    /// Who wants it.
    pub by: Author,
    /// When.
    pub at: Timestamp,
}

/// Somebody a company knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The id the host application knows.
    pub id: String,
    /// The name they last saved under; their id if they never did.
    pub name: String,
}

/// People were mentioned in a comment.
#[derive(Debug, Clone)]
pub struct NewMention {
    /// In this document.
    pub document: DocumentId,
    /// By whom.
    pub by: Author,
    /// Their addresses.
    pub emails: Vec<String>,
    /// What was written.
    pub message: String,
    /// Where in the document, as the editor gave it: JSON.
    pub action_link: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// A mention with its number.
#[derive(Debug, Clone)]
pub struct Mention {
    /// Its number.
    pub number: u64,
    /// What was said.
    pub mention: NewMention,
}
