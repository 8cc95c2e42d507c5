//! The part of the port about changes past the editors: replacing, restoring, deleting, and what a download waits for.
//!
//! None of these happens while somebody works on the document: the rule [`model::changing::rule_on_change`] is asked inside the
//! step's own transaction, so that a change and an opening cannot cross.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::versions::Origin;
use model::{Digest, DocumentId, InboxNumber, Label};

use crate::Result;
use crate::documents::{Author, BlobFacts};
use crate::keys::{KeyRecord, Knowledge};

/// Changes past the editors. Every method may be repeated after a crash.
#[async_trait]
pub trait Changes: Send + Sync {
    /// Puts a new version on top of the head.
    async fn put_version(&self, change: &HeadChange) -> Result<ChangeOutcome>;
    /// Deletes a document: nobody finds it any more, nothing of it goes away, and late saves are still taken.
    async fn delete_document(&self, request: &ChangeRequest) -> Result<ChangeOutcome>;
    /// Takes a deletion back. `false` if the document is not deleted.
    async fn undelete_document(&self, document: &DocumentId, who: &Author, at: Timestamp) -> Result<bool>;
    /// A person looked at a kept copy and does not need it. Its bytes stay. `false` if that was said before.
    async fn dismiss_kept(&self, number: u64, who: &Author, at: Timestamp) -> Result<bool>;
    /// The place of the newest save of a document in the order of arrival: what comes after it is news.
    async fn newest_save(&self, document: &DocumentId) -> Result<InboxNumber>;
    /// What came of the saves of a document after a place.
    async fn saves_after(&self, document: &DocumentId, after: InboxNumber) -> Result<Vec<SaveNews>>;
    /// Somebody downloaded a content.
    async fn note_download(&self, download: &Download) -> Result<()>;
}

/// Somebody wants to change a document past its editors.
#[derive(Debug, Clone)]
pub struct ChangeRequest {
    /// The document.
    pub document: DocumentId,
    /// Who.
    pub who: Author,
    /// What the server said about a key, if it was asked.
    pub knowledge: Option<Knowledge>,
    /// After so long without a word about a key, no answer or repeat of its save is on its way.
    pub quiet_after: SignedDuration,
    /// When.
    pub at: Timestamp,
}

/// A content that shall become the head.
#[derive(Debug, Clone)]
pub struct HeadChange {
    /// Whose, by whom, when.
    pub request: ChangeRequest,
    /// The bytes, durable in the vault.
    pub blob: BlobFacts,
    /// Where the content comes from.
    pub from: ChangeSource,
    /// The head the caller saw; anything else refuses the change.
    pub expected_head: Option<Digest>,
    /// What happens to people who are editing.
    pub editors: EditorsInside,
}

/// Where a new content comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeSource {
    /// Somebody uploaded it over the head.
    Upload,
    /// An earlier content of the document.
    Content(Label),
    /// A kept copy of the document, settled with it.
    Kept(u64),
}

impl ChangeSource {
    /// How the new version came into the history.
    pub const fn origin(self) -> Origin {
        match self {
            Self::Upload => Origin::Upload,
            Self::Content(_) | Self::Kept(_) => Origin::Restore,
        }
    }
}

/// What happens to people who are editing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditorsInside {
    /// The change is refused.
    Refuse,
    /// One of them asked for it: their key retires with the change. What they save later becomes a conflict copy.
    RetireTheirKey,
}

/// What became of a wish to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// It is done; this is the head.
    Done(Label),
    /// A final save is being stored: wait for it, then ask again.
    Wait,
    /// Ask the server about this key, then ask again with its answer.
    AskServer(Box<KeyRecord>),
    /// This key is finished: collect its forgotten file if there is one, retire it, then ask again.
    Finish(Box<KeyRecord>),
    /// These people are editing; nobody known if the server holds changes of somebody who left.
    Edited(Vec<String>),
    /// The server's word is needed and it is away.
    ServerAway,
    /// The head is another one than the caller saw.
    HeadMoved(Digest),
}

/// What came of one save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveNews {
    /// Its place in the order of arrival.
    pub number: InboxNumber,
    /// The status as sent.
    pub status: u8,
    /// What was sent along with the command that caused it.
    pub user_data: Option<String>,
    /// Whether it is finished.
    pub is_finished: bool,
}

/// Somebody downloaded a content.
#[derive(Debug, Clone)]
pub struct Download {
    /// The document.
    pub document: DocumentId,
    /// The content.
    pub label: Label,
    /// Who.
    pub who: Author,
    /// How fresh it was, in a word: `newest`, `saved`, `not-saved-in-time` …
    pub freshness: &'static str,
    /// When.
    pub at: Timestamp,
}
