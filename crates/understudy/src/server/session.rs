//! A session inside this process: opens, edits, saves and leaves by direct calls, without a socket.
//!
//! Guarantees: goes through the same admission and the same machine as a browser; every call returns when the
//! server has taken it in. It obeys `drop` like the real editor unless told to ignore it. Dropping the value is
//! like the process of a browser dying: the connection is lost.
//!
//! Does not need a runtime of its own and keeps at most the last few thousand messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::desk::{DeskHandle, Gone};
use super::mailbox::{LocalBox, Mailbox};
use crate::admission::{Greeting, Policy, Refusal, admit};
use crate::clock::Clock;
use crate::machine::{ConnId, Edit as Batch, Event, Leaving, NewChange};
use crate::office::Edit;

/// An editor or viewer.
pub struct Session {
    desk: DeskHandle,
    policy: Policy,
    clock: Clock,
    conn: ConnId,
    letters: Arc<LocalBox>,
    greeting: Greeting,
    base_url: String,
    edits: AtomicU64,
    /// The number of the next message when Save was last pressed.
    pressed_at: AtomicU64,
    runtime: tokio::runtime::Handle,
}

/// How an opening ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The document is there.
    Ready,
    /// The key is spent: the page must ask for a new configuration (`onRequestRefreshFile`).
    Refresh,
    /// The document could not be opened; -81 is a failed download.
    Failed(i64),
    /// The session cannot be resumed; with the code (4008 after a final save).
    Lost(Option<i64>),
    /// The connection ended before.
    Disconnected(Option<i64>),
}

/// The answer to the save button or a force-save request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveAnswer {
    /// 0 accepted, 4 nothing new.
    pub code: u64,
    pub time_ms: Option<u64>,
}

impl Session {
    pub(crate) async fn open(
        desk: DeskHandle,
        policy: Policy,
        clock: Clock,
        (greeting, base_url): (Greeting, String),
    ) -> Result<Session, OpenError> {
        let letters = Arc::new(LocalBox::new());
        let conn = desk.connect(Mailbox::Local(letters.clone())).await?;
        let open = admit(&policy, greeting.clone(), (conn, &base_url), clock.now_s())?;
        desk.tell(Event::Open(Box::new(open))).await?;
        let runtime = tokio::runtime::Handle::current();
        let (edits, pressed_at) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Session { desk, policy, clock, conn, letters, greeting, base_url, edits, pressed_at, runtime })
    }

    /// The number of this connection.
    pub fn conn(&self) -> u64 {
        self.conn.0
    }

    /// Waits until the document is there, or cannot be.
    pub async fn opened(&self) -> Opening {
        let outcome = self.letters.wait_for(0, |message| match text(message, "/type") {
            "documentOpen" => Some(match text(message, "/data/status") {
                "ok" => Opening::Ready,
                "updateversion" => Opening::Refresh,
                _ => Opening::Failed(message.pointer("/data/data").and_then(Value::as_i64).unwrap_or(-1)),
            }),
            "error" => Some(Opening::Lost(message.pointer("/code").and_then(Value::as_i64))),
            "auth" if self.greeting.session.is_some() => Some(Opening::Ready),
            _ => None,
        });
        match outcome.await {
            Some(opening) => opening,
            None => Opening::Disconnected(self.disconnect_code()),
        }
    }

    /// Adds a paragraph (or a cell in column A) with a marker of its own; returns the id of the change.
    pub async fn write(&self, words: &str) -> Result<String, Gone> {
        let number = self.edits.fetch_add(1, Ordering::Relaxed) + 1;
        let started = self.clock.now_ms();
        let id = format!("{}-{started:x}-{:x}-{number}", self.greeting.user_id, self.conn.0);
        let id: String =
            id.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
        self.edit(&[Edit::append(&id, words)]).await?;
        Ok(id)
    }

    /// Sends edits as one batch.
    pub async fn edit(&self, edits: &[Edit]) -> Result<(), Gone> {
        let change = |edit: &Edit| NewChange { id: Some(edit.id.clone()), data: edit.to_data() };
        self.send(edits.iter().map(change).collect()).await
    }

    /// Sends changes as they are; the server keeps whatever it gets.
    pub async fn edit_raw(&self, changes: &[&str]) -> Result<(), Gone> {
        let change = |data: &&str| NewChange { id: None, data: (*data).to_owned() };
        self.send(changes.iter().map(change).collect()).await
    }

    async fn send(&self, changes: Vec<NewChange>) -> Result<(), Gone> {
        self.desk.tell(Event::Edit(Batch::whole(self.conn, changes))).await
    }

    /// Presses Save; returns the server's first answer, which is not yet the host's.
    pub async fn press_save(&self) -> Result<SaveAnswer, Gone> {
        let from = self.letters.next();
        self.pressed_at.store(from, Ordering::Relaxed);
        self.desk.tell(Event::PressSave { conn: self.conn }).await?;
        let answer = self.letters.wait_for(from, |message| {
            (text(message, "/type") == "forceSaveStart").then(|| SaveAnswer {
                code: message.pointer("/messages/code").and_then(Value::as_u64).unwrap_or(3),
                time_ms: message.pointer("/messages/time").and_then(Value::as_u64),
            })
        });
        answer.await.ok_or(Gone)
    }

    /// Waits until the host answered a force save by button, form or timer; whether it took it. `None` if the
    /// connection ends first.
    pub async fn force_saved(&self) -> Option<bool> {
        let outcome = |message: &Value| match text(message, "/type") {
            "forceSave" => message.pointer("/messages/success").and_then(Value::as_bool),
            _ => None,
        };
        self.letters.wait_for(self.pressed_at.load(Ordering::Relaxed), outcome).await
    }

    /// Submits a form.
    pub async fn submit_form(&self, data: Value) -> Result<(), Gone> {
        self.desk.tell(Event::SubmitForm { conn: self.conn, data, response_key: None }).await
    }

    /// Asks for a link to the document as it is now, as the editor does for a download; `None` if nothing was
    /// changed since the opening.
    pub async fn copy_link(&self) -> Result<Option<String>, Gone> {
        let from = self.letters.next();
        self.desk.tell(Event::MakeCopy { conn: self.conn, response_key: None }).await?;
        let answer = |message: &Value| {
            let url = || message.pointer("/data/url").and_then(Value::as_str).map(str::to_owned);
            (text(message, "/type") == "rpc").then(url)
        };
        self.letters.wait_for(from, answer).await.ok_or(Gone)
    }

    /// Says goodbye: no save delay. The connection stays, as a viewer's, until [`Session::hang_up`].
    pub async fn close(&self) -> Result<(), Gone> {
        self.desk.tell(Event::Leave { conn: self.conn, how: Leaving::Explicit }).await
    }

    /// The connection is gone at once, like a closed tab.
    pub async fn hang_up(&self) -> Result<(), Gone> {
        self.desk.tell(Event::Leave { conn: self.conn, how: Leaving::Lost }).await
    }

    /// Stops answering without closing; noticed when the pings go unanswered.
    pub async fn freeze(&self) -> Result<(), Gone> {
        self.desk.tell(Event::Freeze { conn: self.conn }).await
    }

    /// Comes back on a new connection with the session token, as an editor does after a network failure.
    pub async fn reconnect(&self) -> Result<Session, OpenError> {
        Session::open(self.desk.clone(), self.policy.clone(), self.clock.clone(), self.resuming()).await
    }

    /// What this session would say to come back.
    pub(crate) fn resuming(&self) -> (Greeting, String) {
        let greeting = Greeting {
            token_session: self.session_token(),
            session: self.session_id(),
            last_other_save_ms: self.last_other_save_ms(),
            wants_document: false,
            ..self.greeting.clone()
        };
        (greeting, self.base_url.clone())
    }

    /// From now on a `drop` is not obeyed.
    pub fn ignore_drop(&self) {
        self.letters.disobey();
    }

    /// The messages got so far (the last few thousand).
    pub fn messages(&self) -> Vec<Value> {
        self.letters.messages()
    }

    /// Waits for a message, past or to come, of which `wanted` makes something; `None` if the connection ended.
    pub async fn wait_for<T>(&self, wanted: impl FnMut(&Value) -> Option<T>) -> Option<T> {
        self.letters.wait_for(0, wanted).await
    }

    /// Whether the server closed the connection.
    pub fn is_disconnected(&self) -> bool {
        self.letters.is_closed()
    }

    fn disconnect_code(&self) -> Option<i64> {
        let reason = |message: &Value| text(message, "/type") == "disconnectReason";
        self.messages().iter().find(|message| reason(message))?.pointer("/code")?.as_i64()
    }

    /// The newest session token: from the opening, or refreshed since.
    fn session_token(&self) -> Option<String> {
        let token = |message: &Value| match text(message, "/type") {
            "auth" => message.pointer("/jwt").and_then(Value::as_str).map(str::to_owned),
            "refreshToken" => message.pointer("/messages").and_then(Value::as_str).map(str::to_owned),
            _ => None,
        };
        self.messages().iter().rev().find_map(token)
    }

    fn session_id(&self) -> Option<String> {
        let id = |message: &Value| message.pointer("/sessionId").and_then(Value::as_str).map(str::to_owned);
        self.messages().iter().find_map(id).or_else(|| self.greeting.session.clone())
    }

    fn last_other_save_ms(&self) -> u64 {
        let time = |message: &Value| match text(message, "/type") {
            "saveChanges" | "authChanges" => {
                message.pointer("/changes")?.as_array()?.last()?.pointer("/time")?.as_u64()
            }
            _ => None,
        };
        self.messages().iter().rev().find_map(time).unwrap_or(0)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let (desk, conn) = (self.desk.clone(), self.conn);
        self.runtime.spawn(async move { desk.tell(Event::Leave { conn, how: Leaving::Lost }).await });
    }
}

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Gone(#[from] Gone),
}

fn text<'a>(message: &'a Value, path: &str) -> &'a str {
    message.pointer(path).and_then(Value::as_str).unwrap_or_default()
}
