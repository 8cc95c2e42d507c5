//! The part of the port about callbacks: the inbox, the commit, and what is kept aside.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::callbacks::{Answer, AsideReason, Callback};
use model::checking::{Policy, Vanished};
use model::quotas::Exceeded;
use model::saves::{Ruling, SaveKind, SomeoneWaits};
use model::{Digest, DocumentId, EditorKey, InboxNumber, Label};

use crate::Result;
use crate::documents::BlobFacts;

/// The inbox and the commit. Every method may be repeated after a crash; the second time changes nothing.
#[async_trait]
pub trait Saves: Send + Sync {
    /// Writes a callback down before it is worked on, or recognises it as a repeat.
    async fn receive(&self, arrival: &Arrival) -> Result<Receipt>;
    /// The commit point of a save: order guard, version or kept copy, head, key, answer and audit in one transaction.
    ///
    /// Answered [`Answer::TryAgain`], with nothing done, while an earlier final save of the key is being stored.
    async fn commit_save(&self, save: &PreparedSave) -> Result<Committed>;
    /// Ends a callback whose content may never become the head, or that brought none: quarantine or orphan, and alert.
    async fn keep_aside(&self, aside: &Aside) -> Result<Committed>;
    /// A final save is about to be answered 0 by a later delivery: the key retires now, unless another final save of it is
    /// still being stored. (With the commit it only retires if nothing else may [need](Self::still_needed) the server's copy.)
    async fn acknowledge(&self, number: InboxNumber, at: Timestamp) -> Result<()>;
    /// The link is dead and the bytes never came: the row ends as expired, announced.
    async fn give_up(&self, number: InboxNumber, at: Timestamp) -> Result<()>;
    /// Callbacks that were received and not finished, in order of arrival.
    async fn open_saves(&self) -> Result<Vec<OpenSave>>;
    /// Whether an earlier final save of the same key is still being stored, so that this one cannot be committed yet.
    async fn is_overtaking(&self, number: InboxNumber, at: Timestamp) -> Result<bool>;
    /// What else of its key may need what the server lets go of when this final save is answered 0.
    async fn still_needed(&self, number: InboxNumber, at: Timestamp) -> Result<StillNeeded>;
    /// One callback.
    async fn save(&self, number: InboxNumber) -> Result<Option<SaveRecord>>;
    /// Whether the newest save of a key was made on the forgotten file with these bytes, by the rule of the model.
    async fn builds_on_forgotten(&self, key: &EditorKey, forgotten: &Digest) -> Result<bool>;
    /// Keeps the bytes of a forgotten file beside the history, as a conflict copy, if they are not kept already. Nothing else
    /// changes.
    async fn keep_forgotten(&self, found: &ForgottenFile) -> Result<Option<u64>>;
    /// The commit point of a forgotten file. Its key is spent from then on, unless the file is damaged: then the server
    /// may still have it whole. A live key stays live until it is retired: somebody may just be entering it. Answered
    /// [`Answer::TryAgain`], with nothing done, if a save of the key came meanwhile or is being stored.
    async fn collect_forgotten(&self, found: &ForgottenFile) -> Result<Committed>;
}

/// A verified callback that carries or announces a save.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// Its verified fields.
    pub callback: Callback,
    /// The document its key names; `None` if the key cannot be read.
    pub document: Option<DocumentId>,
    /// When it arrived.
    pub at: Timestamp,
    /// How long a repeat is recognised by its identity; later the bytes decide, for paths are reused.
    pub identity_window: SignedDuration,
}

/// What the inbox says of a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Its place in the order of arrival.
    pub number: InboxNumber,
    /// New, being worked on, or finished.
    pub standing: ReceiptStanding,
    /// Its document; `None` if there is no such document: an orphan.
    pub document: Option<DocumentId>,
}

/// Where a received callback stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptStanding {
    /// Seen for the first time.
    New,
    /// A repeat of one that is not finished.
    Unfinished,
    /// A repeat of one that is finished, with its recorded answer.
    Finished(Answer),
}

/// A save whose bytes are durable in the vault and sound.
#[derive(Debug, Clone)]
pub struct PreparedSave {
    /// Its callback.
    pub number: InboxNumber,
    /// Final or checkpoint.
    pub kind: SaveKind,
    /// The bytes.
    pub blob: BlobFacts,
    /// The data of a submitted form, if it was one.
    pub form: Option<BlobFacts>,
    /// The server's record of the changes, if it could be fetched.
    pub changes: Option<BlobFacts>,
    /// The forgotten file that lies under its key, if its session can only have been opened on one: it came without history.
    pub opened_on: Option<Digest>,
    /// What the operator wants if much content vanished.
    pub policy: Arc<Policy>,
    /// Whether a delivery of it waits for the answer 0.
    pub someone_waits: SomeoneWaits,
    /// When.
    pub at: Timestamp,
}

/// What became of a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Its document, if it has one.
    pub document: Option<DocumentId>,
    /// What was done with the content; `None` if it brought none or went aside.
    pub ruling: Option<Ruling>,
    /// The version or checkpoint it became.
    pub label: Option<Label>,
    /// The number of the kept copy it became.
    pub kept: Option<u64>,
    /// What the Document Server is told.
    pub answer: Answer,
    /// What had vanished in it since the head it was to replace, told or in shadow mode.
    pub vanished: Vec<Vanished>,
    /// The limit its company is beyond now. A save is taken all the same: refusing it would lose work.
    pub over_quota: Option<Exceeded>,
    /// Whether this very call did it; `false` if it had been done before.
    pub is_new: bool,
}

/// Reasons to keep the server's copy of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StillNeeded {
    /// Another final save of the key was received and is not stored yet.
    pub another_is_being_stored: bool,
    /// A save of the key is in quarantine: whole, it can only come from the server.
    pub one_was_refused: bool,
}

impl StillNeeded {
    /// Whether there is a reason.
    pub fn is_any(self) -> bool {
        self.another_is_being_stored || self.one_was_refused
    }
}

/// A callback that must not touch the head.
#[derive(Debug, Clone)]
pub struct Aside {
    /// Its callback.
    pub number: InboxNumber,
    /// Why.
    pub reason: AsideReason,
    /// The bytes, if any came.
    pub blob: Option<BlobFacts>,
    /// What the Document Server is told.
    pub answer: Answer,
    /// When.
    pub at: Timestamp,
}

/// A callback that was received and not finished.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenSave {
    /// Its place in the order of arrival.
    pub number: InboxNumber,
    /// Its document; `None` for an orphan.
    pub document: Option<DocumentId>,
    /// Its verified fields, with the newest link.
    pub callback: Callback,
    /// When its newest link was received.
    pub link_received_at: Timestamp,
}

/// A callback and its end, for inspection.
#[derive(Debug, Clone, PartialEq)]
pub struct SaveRecord {
    /// Its place in the order of arrival.
    pub number: InboxNumber,
    /// The key it came under.
    pub key: EditorKey,
    /// The status as sent.
    pub status: u8,
    /// When it first arrived.
    pub received_at: Timestamp,
    /// How often it was delivered.
    pub deliveries: u32,
    /// How it ended: `version`, `checkpoint`, `filed`, `conflict`, `quarantine`, `orphan`, `nothing-new`, `alert`,
    /// `expired`; `None` while open.
    pub outcome: Option<String>,
    /// What the Document Server is told.
    pub answer: Option<Answer>,
}

/// A forgotten file, durable in the vault.
#[derive(Debug, Clone)]
pub struct ForgottenFile {
    /// The key it lies under.
    pub key: EditorKey,
    /// The document the key names.
    pub document: DocumentId,
    /// The bytes.
    pub blob: BlobFacts,
    /// Whether the office check refused it.
    pub damaged: Option<AsideReason>,
    /// How many saves of the key had been received when the server was asked about it.
    pub saves_received: u64,
    /// Whether the server holds changes beside it, which only the key's base brings back: then the key is not spent.
    pub keeps_source: bool,
    /// What the operator wants if much content vanished.
    pub policy: Arc<Policy>,
    /// When it was found.
    pub at: Timestamp,
}
