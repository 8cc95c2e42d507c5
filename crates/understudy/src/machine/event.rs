//! What can happen to the server, and what it wants done in return.
//!
//! Guarantees: the machine talks to the world through these two types alone, so a test can be the world.
//!
//! Does not carry tokens: requests are checked before they become events, and signed after they left as effects.

use bytes::Bytes;
use serde_json::Value;

use super::body::Body;
use super::state::{Base, Change, ConnId, Content, Conversion, Forced, Source, TaskId};
use crate::journal::Note;

/// Names one POST to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct DeliveryId(pub u64);

/// Names one question that waits for a [`CommandReply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event {
    Open(Box<Open>),
    /// An editor sends changes.
    Edit(Edit),
    /// An editor asks whether it may save now.
    AskSaveLock {
        conn: ConnId,
        seen_index: usize,
    },
    /// An editor gives the right to save back without saving.
    GiveSaveLock {
        conn: ConnId,
    },
    Leave {
        conn: ConnId,
        how: Leaving,
    },
    /// The client stops answering; noticed after the ping loss.
    Freeze {
        conn: ConnId,
    },
    /// An editor shows the others where it is.
    Cursor {
        conn: ConnId,
        cursor: Value,
    },
    PressSave {
        conn: ConnId,
    },
    /// An editor wants a link to the document as it is now.
    MakeCopy {
        conn: ConnId,
        response_key: Option<Value>,
    },
    SubmitForm {
        conn: ConnId,
        data: Value,
        response_key: Option<Value>,
    },
    Command {
        request: RequestId,
        command: Command,
        base_url: String,
    },
    /// A source arrived, or not.
    Fetched {
        task: TaskId,
        outcome: Fetched,
    },
    Built {
        task: TaskId,
        outcome: Built,
    },
    Answered {
        delivery: DeliveryId,
        answer: Answer,
    },
    /// Graceful shutdown begins (the answer comes when all is saved) or is called off.
    Shutdown {
        request: RequestId,
        what: Shutdown,
    },
    /// Time passed.
    Tick,
}

/// Somebody opens a key; the token was already checked.
#[derive(Clone, Debug)]
pub struct Open {
    pub conn: ConnId,
    pub key: String,
    pub user_id: String,
    pub user_name: String,
    pub view: bool,
    pub live_viewer: bool,
    pub callback: Option<String>,
    pub source: Option<Source>,
    pub base_url: String,
    pub permissions: Option<Value>,
    pub restore: Option<Restore>,
}

/// What a client that comes back knows of its session.
#[derive(Clone, Debug)]
pub struct Restore {
    pub session: String,
    pub index: u32,
    pub closed: bool,
    pub since_ms: u64,
    /// When it last heard of somebody else's change.
    pub last_other_save_ms: u64,
    /// Whether it also asks for the document (it does so only if it had not got it before).
    pub wants_document: bool,
}

/// A batch of changes, possibly one part of several.
#[derive(Clone, Debug)]
pub struct Edit {
    pub conn: ConnId,
    pub changes: Vec<NewChange>,
    /// Drop everything from this position first.
    pub delete_from: Option<usize>,
    pub starts: bool,
    pub ends: bool,
    pub release_locks: bool,
    pub extra: Value,
}

impl Edit {
    /// A whole batch in one message.
    pub fn whole(conn: ConnId, changes: Vec<NewChange>) -> Edit {
        Edit {
            conn,
            changes,
            delete_from: None,
            starts: true,
            ends: true,
            release_locks: true,
            extra: Value::Null,
        }
    }
}

/// A change as the editor sends it.
#[derive(Clone, Debug)]
pub struct NewChange {
    /// Taken from the change itself if it names one.
    pub id: Option<String>,
    pub data: String,
}

/// How an editor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It said so: no save delay, and the connection may stay as a viewer's.
    Explicit,
    /// The connection is gone.
    Lost,
}

/// A graceful shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    Begin,
    CallOff,
}

/// The command service.
#[derive(Clone, Debug)]
pub enum Command {
    Info { key: String, userdata: Option<String>, callback: Option<String> },
    ForceSave { key: String, userdata: Option<String> },
    Drop { key: String, users: Option<Vec<String>> },
    Meta { key: String, meta: Option<Value> },
    GetForgotten { key: String },
    GetForgottenList,
    DeleteForgotten { key: String },
    Saved { key: String, status: String },
    Version { key: Option<String> },
    License { key: Option<String> },
    Unknown { key: Option<String> },
}

/// The answer of the command service, in its order of keys.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CommandReply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub error: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Value>,
    /// Answer of a graceful shutdown, not of a command.
    #[serde(skip)]
    pub done: bool,
}

/// `error` of the command service.
pub mod command_error {
    pub const NONE: u8 = 0;
    pub const KEY: u8 = 1;
    pub const CALLBACK: u8 = 2;
    pub const INTERNAL: u8 = 3;
    pub const NOT_MODIFIED: u8 = 4;
    pub const UNKNOWN_COMMAND: u8 = 5;
    pub const TOKEN: u8 = 6;
    pub const TOKEN_EXPIRED: u8 = 7;
}

/// How a download of a source ended.
#[derive(Clone, Debug)]
pub enum Fetched {
    Bytes(Bytes),
    /// Worth another attempt.
    Failed,
    TimedOut,
    TooLarge,
}

/// How a build ended.
#[derive(Clone, Debug)]
pub struct Built {
    pub conversion: Conversion,
    pub file: Option<Content>,
    pub changes_zip: Option<Content>,
}

/// What the host answered.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Http {
        status: u16,
        body: String,
    },
    /// No answer: refused, reset, closed, timed out; with the word for which.
    Lost {
        why: String,
    },
}

/// Something to do.
#[derive(Clone, Debug)]
pub enum Effect {
    Post(Box<Post>),
    Fetch {
        task: TaskId,
        source: Source,
    },
    Build {
        task: TaskId,
        recipe: Box<Recipe>,
    },
    /// A message to one client.
    Send {
        conn: ConnId,
        message: Value,
    },
    /// Close the connection from this side.
    Disconnect {
        conn: ConnId,
    },
    Reply {
        request: RequestId,
        reply: Box<CommandReply>,
    },
    Note(Box<Note>),
}

/// One callback to send.
#[derive(Clone, Debug)]
pub struct Post {
    pub delivery: DeliveryId,
    pub url: String,
    pub body: Body,
    pub attempt: u32,
}

/// What to build a result from.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub key: String,
    pub base: Base,
    pub changes: Vec<Change>,
    pub ext: String,
    pub forced: Option<Forced>,
    pub form_data: Option<Value>,
}
