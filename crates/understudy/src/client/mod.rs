//! An editor without a screen: opens, changes, force-saves and leaves over the real protocol's socket.
//!
//! Speaks to this crate's server and, as far as opening, force-saving and closing go, to a real Document Server:
//! the handshake, `auth`, the save lock, `saveChanges`, `forceSaveStart`, `close` and the answers are the real
//! editor's. What differs is the content of changes: ours are [`crate::office::Edit`]s in JSON; a real server
//! keeps them but its converter does not understand them, so against a real server open and close without
//! changes, or give [`Client::change_raw`] changes that a real editor made.
//!
//! Guarantees: every wait ends, at the latest after [`Options::patience`]; pings are answered; when the server asks
//! the first editor to make room for a second, it does. Dropping the client cuts the connection.
//!
//! Does not reconnect by itself.

mod talk;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

use crate::admission::Greeting;
use crate::office::Edit;
use crate::server::{LocalBox, Mail, Mailbox, Opening, SaveAnswer};
use crate::wire::{self, Packet};

/// Why a client cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("`{0}` is not the address of a Document Server")]
    Address(String),
    #[error("could not connect to the Document Server")]
    Connect(#[source] reqwest::Error),
    #[error("the Document Server did not open a socket (HTTP {0})")]
    NoSocket(u16),
    #[error("the Document Server refused the token with code {code}: {description}")]
    Refused { code: u16, description: String },
    #[error("the Document Server did not answer in time while {doing}")]
    Silence { doing: &'static str },
    #[error("the connection ended")]
    Ended,
}

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long to wait for any answer.
    pub patience: Duration,
    /// A path before `/doc/`, such as the version a real server's script uses.
    pub prefix: String,
    /// Whether `drop` is obeyed, as browsers do.
    pub obeys_drop: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { patience: Duration::from_secs(30), prefix: String::new(), obeys_drop: true }
    }
}

/// A connected editor or viewer.
pub struct Client {
    letters: Arc<LocalBox>,
    out: mpsc::Sender<Order>,
    line: JoinHandle<()>,
    options: Options,
    greeting: Greeting,
    edits: AtomicU64,
    /// The number of the next message when Save was last pressed.
    pressed_at: AtomicU64,
    born_ms: u64,
}

/// What the line is told.
#[derive(Debug)]
enum Order {
    Say(Value),
    /// Stop reading and answering, but keep the connection.
    Freeze,
}

impl Client {
    /// Connects to the Document Server at `server_url` with a configuration as the host hands it out, and asks
    /// for the document.
    pub async fn open(server_url: &str, config: &Value, options: Options) -> Result<Client, ClientError> {
        let greeting = Greeting::of_config(config);
        let auth = talk::auth_message(config, &greeting);
        Client::connect(server_url, (greeting, auth), options).await
    }

    /// Comes back on a new connection with the session this client had.
    pub async fn reconnect(&self, server_url: &str, config: &Value) -> Result<Client, ClientError> {
        let messages = self.letters.messages();
        let resumed = talk::Resumed::from_messages(&messages).ok_or(ClientError::Ended)?;
        let mut auth = talk::auth_message(config, &self.greeting);
        resumed.add_to(&mut auth);
        let greeting = Greeting { token_session: Some(resumed.token), ..self.greeting.clone() };
        Client::connect(server_url, (greeting, auth), self.options.clone()).await
    }

    async fn connect(
        server_url: &str,
        (greeting, auth): (Greeting, Value),
        options: Options,
    ) -> Result<Client, ClientError> {
        let letters = Arc::new(LocalBox::new());
        let doing = "connecting";
        let connecting = talk::connect(server_url, &options.prefix, &greeting);
        let socket = tokio::time::timeout(options.patience, connecting)
            .await
            .map_err(|_| ClientError::Silence { doing })??;
        let (out, orders) = mpsc::channel(64);
        if !options.obeys_drop {
            letters.disobey();
        }
        let line = tokio::spawn(run(socket, letters.clone(), orders));
        let born_ms = crate::clock::Clock::system().now_ms();
        let (edits, pressed_at) = (AtomicU64::new(0), AtomicU64::new(0));
        let client = Client { letters, out, line, options, greeting, edits, pressed_at, born_ms };
        client.say(auth).await?;
        Ok(client)
    }

    /// Waits until the document is there, or cannot be.
    pub async fn opened(&self) -> Result<Opening, ClientError> {
        let opening = self.wait_for("opening", 0, |message| talk::opening_of(message, &self.greeting)).await;
        match opening {
            Err(ClientError::Ended) => {
                Ok(Opening::Disconnected(talk::disconnect_code(&self.letters.messages())))
            }
            other => other,
        }
    }

    /// Adds a paragraph with a marker of its own; returns the id of the change.
    pub async fn write(&self, words: &str) -> Result<String, ClientError> {
        let number = self.edits.fetch_add(1, Ordering::Relaxed) + 1;
        let user: String = self.greeting.user_id.chars().filter(char::is_ascii_alphanumeric).collect();
        let id = format!("{user}-{:x}-{number}", self.born_ms ^ (Arc::as_ptr(&self.letters) as u64));
        self.change(&[Edit::append(&id, words)]).await?;
        Ok(id)
    }

    /// Sends edits; returns when the server has them.
    pub async fn change(&self, edits: &[Edit]) -> Result<(), ClientError> {
        self.send_changes(json!(edits)).await
    }

    /// Sends changes as they are, each a string as real editors send them.
    pub async fn change_raw(&self, changes: &[String]) -> Result<(), ClientError> {
        self.send_changes(json!(changes)).await
    }

    async fn send_changes(&self, changes: Value) -> Result<(), ClientError> {
        self.take_save_lock().await?;
        let from = self.letters.next();
        self.say(json!({
            "type": "saveChanges",
            "changes": changes.to_string(),
            "startSaveChanges": true,
            "endSaveChanges": true,
            "isCoAuthoring": true,
            "isExcel": false,
            "deleteIndex": null,
            "excelAdditionalInfo": null,
            "unlock": false,
            "releaseLocks": true,
            "reSave": null,
        }))
        .await?;
        let saved = |message: &Value| (kind(message) == "unSaveLock").then_some(());
        self.wait_for("saving changes", from, saved).await
    }

    /// Asks until nobody else is saving.
    async fn take_save_lock(&self) -> Result<(), ClientError> {
        const TRIES_MAX: u32 = 50;
        for attempt in 0..TRIES_MAX {
            let from = self.letters.next();
            let seen = talk::seen_index(&self.letters.messages());
            self.say(json!({"type": "isSaveLock", "syncChangesIndex": seen})).await?;
            let answer = |message: &Value| (kind(message) == "saveLock").then(|| message["saveLock"] == true);
            if !self.wait_for("asking for the save lock", from, answer).await? {
                return Ok(());
            }
            // Somebody else saves; their changes are on the way to us.
            tokio::time::sleep(Duration::from_millis(u64::from(attempt + 1) * 5)).await;
        }
        Err(ClientError::Silence { doing: "asking for the save lock" })
    }

    /// Presses Save; the answer is the Document Server's, not yet the host's.
    pub async fn force_save(&self) -> Result<SaveAnswer, ClientError> {
        let from = self.letters.next();
        self.pressed_at.store(from, Ordering::Relaxed);
        self.say(json!({"type": "forceSaveStart"})).await?;
        let answer = |message: &Value| {
            (kind(message) == "forceSaveStart").then(|| SaveAnswer {
                code: message.pointer("/messages/code").and_then(Value::as_u64).unwrap_or(3),
                time_ms: message.pointer("/messages/time").and_then(Value::as_u64),
            })
        };
        self.wait_for("force-saving", from, answer).await
    }

    /// Waits until the host answered a force save; whether it took it.
    pub async fn force_saved(&self) -> Result<bool, ClientError> {
        let outcome = |message: &Value| {
            (kind(message) == "forceSave").then(|| message.pointer("/messages/success")?.as_bool()).flatten()
        };
        self.wait_for("waiting for the host", self.pressed_at.load(Ordering::Relaxed), outcome).await
    }

    /// Says goodbye, so that the server saves at once, and hangs up.
    pub async fn close(self) -> Result<(), ClientError> {
        let from = self.letters.next();
        self.say(json!({"type": "close"})).await?;
        // A real server confirms with a new session token; a viewer gets no answer.
        let confirmed = |message: &Value| (kind(message) == "refreshToken").then_some(());
        let _ = tokio::time::timeout(Duration::from_secs(2), self.letters.wait_for(from, confirmed)).await;
        self.hang_up().await;
        Ok(())
    }

    /// Cuts the connection, like a closed tab.
    pub async fn hang_up(mut self) {
        self.line.abort();
        let _ = (&mut self.line).await;
    }

    /// Stops answering without closing the connection; the client lives on, deaf, until it is dropped.
    pub async fn freeze(&self) -> Result<(), ClientError> {
        self.out.send(Order::Freeze).await.map_err(|_| ClientError::Ended)
    }

    /// The messages got so far (the last few thousand).
    pub fn messages(&self) -> Vec<Value> {
        self.letters.messages()
    }

    async fn say(&self, message: Value) -> Result<(), ClientError> {
        self.out.send(Order::Say(message)).await.map_err(|_| ClientError::Ended)
    }

    async fn wait_for<T>(
        &self,
        doing: &'static str,
        from: u64,
        wanted: impl FnMut(&Value) -> Option<T>,
    ) -> Result<T, ClientError> {
        match tokio::time::timeout(self.options.patience, self.letters.wait_for(from, wanted)).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(ClientError::Ended),
            Err(_) => Err(ClientError::Silence { doing }),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.line.abort();
    }
}

/// Reads, answers pings, and passes orders on, until either side ends it.
async fn run(mut socket: talk::Socket, letters: Arc<LocalBox>, mut orders: mpsc::Receiver<Order>) {
    let mailbox = Mailbox::Local(letters);
    loop {
        tokio::select! {
            incoming = socket.next() => {
                let text = match incoming {
                    Some(Ok(Message::Text(text))) => text,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                    Some(Ok(_)) => continue,
                };
                let answer = match wire::decode(&text) {
                    Some(Packet::Ping) => Some(Packet::Pong),
                    Some(Packet::Event(_, message)) => talk::react(&mailbox, message),
                    Some(Packet::Close | Packet::Disconnect) => break,
                    _ => None,
                };
                if let Some(answer) = answer
                    && socket.send(Message::Text(wire::encode(&answer).into())).await.is_err()
                {
                    break;
                }
            }
            order = orders.recv() => match order {
                Some(Order::Say(message)) => {
                    let text = wire::encode(&wire::message(message));
                    if socket.send(Message::Text(text.into())).await.is_err() {
                        break;
                    }
                }
                // Holding the socket without reading it is what a frozen browser does.
                Some(Order::Freeze) => std::future::pending::<()>().await,
                None => break,
            },
        }
    }
    mailbox.deliver(Mail::Close);
}

fn kind(message: &Value) -> &str {
    message.get("type").and_then(Value::as_str).unwrap_or_default()
}
