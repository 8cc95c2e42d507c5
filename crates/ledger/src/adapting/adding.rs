//! Contents and copies on their way into the history, as every engine is given them, and what is told of them.
//!
//! Does not do: decide where they go (`model`), write rows (the engines).

use jiff::Timestamp;
use model::callbacks::{Answer, Callback};
use model::saves::{ConflictReason, Ruling, SaveMark};
use model::versions::Origin;
use model::{DocumentId, EditorKey, InboxNumber, Label};
use serde_json::{Value, json};

use super::acting::Actor;
use super::outcome_of;
use crate::documents::{Author, BlobFacts, Keeping};
use crate::publications::ExternalChange;
use crate::saves::Committed;

/// A version or checkpoint to be added.
pub(crate) struct NewContent<'a> {
    pub(crate) document: &'a DocumentId,
    pub(crate) label: Label,
    pub(crate) origin: Origin,
    pub(crate) blob: &'a BlobFacts,
    pub(crate) author: &'a Author,
    pub(crate) committed_at: Timestamp,
    pub(crate) saved_at: Option<Timestamp>,
    pub(crate) session_start: Option<Timestamp>,
    pub(crate) key: Option<&'a EditorKey>,
    pub(crate) inbox: Option<InboxNumber>,
    pub(crate) is_filed_beside: bool,
    pub(crate) history: Option<&'a str>,
    pub(crate) server_version: Option<&'a str>,
    pub(crate) changes: Option<&'a BlobFacts>,
}

impl<'a> NewContent<'a> {
    /// A content that no session made: an upload, something restored, a change from outside.
    pub(crate) fn without_session(
        (document, label): (&'a DocumentId, Label),
        (origin, blob): (Origin, &'a BlobFacts),
        (author, at): (&'a Author, Timestamp),
    ) -> Self {
        Self {
            document,
            label,
            origin,
            blob,
            author,
            committed_at: at,
            saved_at: None,
            session_start: None,
            key: None,
            inbox: None,
            is_filed_beside: false,
            history: None,
            server_version: None,
            changes: None,
        }
    }
}

/// A copy to be kept outside the history.
pub(crate) struct NewKept<'a> {
    pub(crate) document: Option<&'a DocumentId>,
    pub(crate) keeping: Keeping,
    pub(crate) blob: &'a BlobFacts,
    pub(crate) author: &'a Author,
    pub(crate) kept_at: Timestamp,
    pub(crate) key: Option<&'a EditorKey>,
    pub(crate) inbox: Option<InboxNumber>,
}

/// The copy that is kept of a change from outside.
pub(crate) fn external_copy<'a>(change: &'a ExternalChange, author: &'a Author) -> NewKept<'a> {
    NewKept {
        document: Some(&change.document),
        keeping: change
            .damaged
            .map_or(Keeping::Conflict(ConflictReason::ExternalChange), Keeping::Quarantine),
        blob: &change.blob,
        author,
        kept_at: change.at,
        key: None,
        inbox: None,
    }
}

/// A content on its way into the history.
pub(crate) struct Placing<'a> {
    pub(crate) document: &'a DocumentId,
    pub(crate) callback: &'a Callback,
    pub(crate) blob: &'a BlobFacts,
    pub(crate) changes: Option<&'a BlobFacts>,
    pub(crate) origin: Origin,
    pub(crate) mark: &'a SaveMark,
}

impl Placing<'_> {
    /// What the audit trail says of it.
    pub(crate) fn details(&self, ruling: Ruling, (label, kept): (Option<Label>, Option<u64>)) -> Value {
        json!({
            "outcome": outcome_of(ruling),
            "origin": self.origin.as_str(),
            "reason": if let Ruling::KeepAside(reason) = ruling { Some(reason.as_str()) } else { None },
            "label": label.map(|label| label.to_string()),
            "kept": kept,
            "digest": self.blob.digest.to_string(),
            "sizeBytes": self.blob.size_bytes,
            "flags": self.blob.flags,
            "key": self.callback.key.as_str(),
            "status": self.callback.status,
            "inbox": self.mark.inbox.0,
        })
    }

    /// Whose act it is: the first who is named.
    pub(crate) fn actor(&self) -> Actor<'_> {
        self.callback.users.first().map_or(Actor::DOCUMENT_SERVER, |user| Actor::through_server(user))
    }

    /// How the callback ends with it.
    pub(crate) fn committed(&self, ruling: Ruling, (label, kept): (Option<Label>, Option<u64>)) -> Committed {
        Committed {
            document: Some(self.document.clone()),
            ruling: Some(ruling),
            label,
            kept,
            answer: Answer::Saved,
            vanished: Vec::new(),
            over_quota: None,
            is_new: true,
        }
    }
}
