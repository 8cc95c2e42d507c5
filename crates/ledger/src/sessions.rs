//! The part of the port about sessions: who is under a key, since when, and what the server says of it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::opening::ServerKnowledge;
use model::sessions::{SessionFacts, SessionState, Unsaved, state_of, unsaved_in};
use model::{DocumentId, EditorKey, Label};

use crate::Result;

/// Sessions. They are kept with their keys, so they survive a restart.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// The sessions of live edit keys and of any other with people inside, by key.
    async fn sessions(&self, page: &SessionPage) -> Result<Vec<SessionRecord>>;
    /// Everybody the server ever named under a key, and when last; whoever left is among them. As it is when everything that is being written down
    /// about the key's document at this moment is.
    async fn named_under(&self, key: &EditorKey) -> Result<BTreeMap<String, Timestamp>>;
    /// The server was asked about a session. Closes it if the rule says so; an answer to a question that is older than the
    /// last word about the session changes nothing.
    async fn note_look(&self, look: &Look) -> Result<LookOutcome>;
}

/// A page of sessions.
#[derive(Debug, Clone)]
pub struct SessionPage {
    /// Of this document only.
    pub document: Option<DocumentId>,
    /// After this key.
    pub after: Option<EditorKey>,
    /// At most so many.
    pub limit: u32,
}

/// A session as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its key.
    pub key: EditorKey,
    /// Its document.
    pub document: DocumentId,
    /// The content it was opened on; unknown for a key we did not issue.
    pub base: Option<Label>,
    /// What is known of it.
    pub facts: SessionFacts,
    /// Who is inside, as the server last said.
    pub people: Vec<Person>,
    /// When its key was handed out first.
    pub issued_at: Timestamp,
    /// When anything was last heard of it: somebody came or left, or a save.
    pub last_seen_at: Option<Timestamp>,
    /// When the server was last asked about it.
    pub looked_at: Option<Timestamp>,
}

impl SessionRecord {
    /// How it stands.
    pub fn state(&self) -> SessionState {
        state_of(&self.facts)
    }

    /// Whether it has changes that are not in the vault, as far as known.
    pub fn unsaved(&self) -> Unsaved {
        unsaved_in(&self.facts)
    }

    /// When it was last heard of or asked about.
    pub fn last_word_at(&self) -> Timestamp {
        self.last_seen_at.max(self.looked_at).unwrap_or(self.issued_at)
    }
}

/// Somebody in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The id the host application knows.
    pub id: String,
    /// As they were called when they opened; their id if that is not known.
    pub name: String,
    /// When they came in.
    pub since: Timestamp,
    /// When the server last named them.
    pub last_seen_at: Timestamp,
}

/// The server's answer about a session.
#[derive(Debug, Clone)]
pub struct Look {
    /// The session's key.
    pub key: EditorKey,
    /// The answer.
    pub server: ServerKnowledge,
    /// When the question was put.
    pub asked_at: Timestamp,
    /// After so long without a word, no save is on its way.
    pub quiet_after: SignedDuration,
    /// When the answer was written down.
    pub at: Timestamp,
}

/// What became of a session that was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookOutcome {
    /// It goes on, or nothing is known.
    GoesOn,
    /// It is over; so many people were taken for being inside.
    Closed {
        /// How many.
        people: usize,
    },
    /// The server holds changes and nobody is inside.
    Stranded {
        /// Whether that was not known before.
        is_news: bool,
    },
}
