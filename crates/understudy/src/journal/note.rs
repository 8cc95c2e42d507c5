//! What is worth writing down: the vocabulary of the outside witness.
//!
//! Guarantees: every note stands alone; the JSON form is stable (`note` names the kind).
//!
//! Does not contain tokens. Callback bodies do contain links, which are secrets for fifteen minutes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::machine::{Answer, Body, ChangeId, Conversion, Verdict};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// The server came up, on an empty or on an earlier state.
    Started {
        seed: u64,
        keys_found: usize,
    },
    /// The server went down without a word.
    Crashed,
    Opened {
        key: String,
        user: String,
        conn: u64,
        /// `editor`, `viewer` or `refresh`.
        as_what: String,
        /// The row's status before.
        found: Option<String>,
    },
    Left {
        key: String,
        user: String,
        conn: u64,
    },
    SourceFetched {
        key: String,
        attempts: u32,
        sha256: Option<String>,
    },
    /// A session works on this copy now.
    CopyOpened {
        key: String,
        sha256: String,
        holds: Arc<[ChangeId]>,
        from_forgotten: bool,
    },
    ChangeAccepted {
        id: ChangeId,
        key: String,
        author: String,
        time_s: u64,
    },
    ChangesDeleted {
        key: String,
        ids: Vec<ChangeId>,
        why: String,
    },
    ContentProduced {
        key: String,
        path: String,
        conversion: Conversion,
        sha256: Option<String>,
        size_bytes: Option<u64>,
        holds: Arc<[ChangeId]>,
    },
    CallbackSent {
        delivery: u64,
        attempt: u32,
        url: String,
        body: Box<Body>,
    },
    CallbackAnswered {
        delivery: u64,
        answer: Answer,
        verdict: Verdict,
        reaction: String,
    },
    /// A save that was built but not offered.
    CallbackDropped {
        key: String,
        path: String,
        why: String,
    },
    ForgottenPut {
        key: String,
        sha256: String,
        holds: Arc<[ChangeId]>,
    },
    ForgottenDeleted {
        key: String,
        why: String,
    },
    /// A spent key was opened again after its window; these changes are replayed on the new copy.
    RowRevived {
        key: String,
        replayed: Vec<ChangeId>,
    },
    RowRemoved {
        key: String,
        why: String,
    },
    /// A fault of the harness was put to use.
    FaultUsed {
        key: String,
        fault: String,
    },
}

/// A note with its number and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub number: u64,
    pub at_ms: u64,
    #[serde(flatten)]
    pub note: Note,
}
