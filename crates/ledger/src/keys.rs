//! The part of the port about editor keys: issuing, reusing, retiring, and who is inside.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::opening::ServerKnowledge;
use model::saves::KeyStanding;
use model::{Digest, DocumentId, EditorKey, Label};

use crate::Result;
use crate::documents::Author;

/// Editor keys. Every key ever issued is kept for ever; at most one edit key of a document is live.
#[async_trait]
pub trait Keys: Send + Sync {
    /// Rules on a wish to edit and does what the rule says, as far as that needs no one else.
    async fn open_for_editing(&self, request: &OpenRequest) -> Result<OpenGrant>;
    /// Remembers that a view key was handed out.
    async fn note_view_key(&self, view: &ViewKey) -> Result<()>;
    /// One key.
    async fn key(&self, key: &EditorKey) -> Result<Option<KeyRecord>>;
    /// The live edit key of a document.
    async fn live_key_of(&self, document: &DocumentId) -> Result<Option<KeyRecord>>;
    /// The live edit keys, oldest first.
    async fn live_keys(&self) -> Result<Vec<KeyRecord>>;
    /// Who is inside, as the Document Server just said. Unknown keys are ignored.
    async fn note_presence(&self, presence: &Presence) -> Result<KeyStandingNow>;
    /// The Document Server fetched the base of this key.
    async fn note_base_fetched(&self, key: &EditorKey, at: Timestamp) -> Result<()>;
    /// The server has nothing left under this key: it retires, unless a save came in since `saves_received` was read.
    async fn retire_key(&self, retirement: &Retirement) -> Result<bool>;
}

/// Somebody wants to edit.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// This document.
    pub document: DocumentId,
    /// Random bits for the key, should a new one be issued.
    pub random: u64,
    /// What the server said about a key, if it was asked.
    pub knowledge: Option<Knowledge>,
    /// Who.
    pub user: Author,
    /// After so long without a word about a key, no answer or repeat of its save is on its way.
    pub quiet_after: SignedDuration,
    /// Since when we hear what the server sends: what it tried to bring before may be on its way to the forgotten files.
    pub listening_since: Timestamp,
    /// When.
    pub at: Timestamp,
}

/// What the server said about a key, and how many saves of it we had received before asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knowledge {
    /// The key asked about.
    pub key: EditorKey,
    /// [`KeyRecord::saves_received`] before the question: an answer older than the newest save counts for nothing.
    pub saves_received: u64,
    /// The answer.
    pub server: ServerKnowledge,
    /// When the question was put.
    pub asked_at: Timestamp,
}

/// What became of a wish to edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenGrant {
    /// Here is the key.
    Granted(KeyGrant),
    /// A final save is being stored: wait for it, then ask again.
    Wait,
    /// Ask the server about this key, then ask again with its answer.
    AskServer(Box<KeyRecord>),
    /// This key is finished: collect its forgotten file if there is one, retire it, then ask again.
    Finish(Box<KeyRecord>),
    /// The server's word is needed and it is away.
    ServerAway,
}

/// A key to edit under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGrant {
    /// The key.
    pub key: EditorKey,
    /// The content `document.url` must serve.
    pub base: Label,
    /// Its bytes.
    pub base_digest: Digest,
    /// Whether this is the moment the key was issued.
    pub is_new: bool,
    /// Whether the server holds changes that only this key brings back.
    pub brings_back_stranded: bool,
}

/// A key to view under.
#[derive(Debug, Clone)]
pub struct ViewKey {
    /// The key.
    pub key: EditorKey,
    /// Its document.
    pub document: DocumentId,
    /// The content it shows.
    pub base: Label,
    /// Its bytes.
    pub base_digest: Digest,
    /// When it was handed out.
    pub at: Timestamp,
}

/// A key as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// The key.
    pub key: EditorKey,
    /// Its document.
    pub document: DocumentId,
    /// Live, retired or adopted; view keys are retired from the start.
    pub standing: KeyStanding,
    /// The content it was issued on; unknown for an adopted key.
    pub base: Option<(Label, Digest)>,
    /// When it was issued (or adopted).
    pub issued_at: Timestamp,
    /// When it retired, if it did.
    pub retired_at: Option<Timestamp>,
    /// How many saves were received under it, failed ones and repeats of final ones included: with each the server may know less than
    /// it said before.
    pub saves_received: u64,
    /// Whether a final save of it is committed.
    pub has_final_save: bool,
    /// Whether the server may open nothing under it any more: answered 0, collected or retired.
    pub is_spent: bool,
    /// Who is inside, as the server last said.
    pub users: Vec<String>,
    /// When the server last said anything about it.
    pub last_seen_at: Option<Timestamp>,
}

/// A status 1 or 4.
#[derive(Debug, Clone)]
pub struct Presence {
    /// The key.
    pub key: EditorKey,
    /// Who is inside; nobody for status 4.
    pub users: Vec<String>,
    /// Whether the session was closed without changes (status 4).
    pub is_idle: bool,
    /// When we heard.
    pub at: Timestamp,
}

/// Where a key stood when presence was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStandingNow {
    /// It is the live one (or an unknown or view key, about which there is nothing to do).
    AsExpected,
    /// It is retired, yet somebody is inside: they should be dropped.
    Retired,
}

/// A key to retire.
#[derive(Debug, Clone)]
pub struct Retirement {
    /// The key.
    pub key: EditorKey,
    /// [`KeyRecord::saves_received`] when it was judged finished.
    pub saves_received: u64,
    /// Why, in a word.
    pub why: &'static str,
    /// When.
    pub at: Timestamp,
}
