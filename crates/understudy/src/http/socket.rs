//! The editors' sockets, server side: the real server's messages over WebSocket.
//!
//! A client connects to `/doc/{key}/c/` (also with a version in front), joins with its token, and says `auth`;
//! from then on each message becomes an event for the machine and the machine's messages go back.
//!
//! Guarantees: the handshake, pings and closing codes of the real server; a client that does not answer pings is
//! lost after the ping loss; what is said before `auth` is ignored.
//!
//! Does not offer long polling (the real server does, as a fallback), and grants element locks to whoever asks.
//! Differs from the real server in the payload of changes: see [`crate::office::Edit`].

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

use super::{Shared, Site};
use crate::admission::{Greeting, Refusal, admit, may_connect};
use crate::machine::{ConnId, Edit, Event, Leaving, NewChange};
use crate::server::{Gone, Mail, Mailbox, UNREAD_MAX};
use crate::wire::{self, Packet};

/// Larger messages end the connection.
const MESSAGE_BYTES_MAX: usize = 32 << 20;

pub(super) async fn connect(
    State(site): Shared,
    Path(key): Path<String>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    accept(site, key, &headers, upgrade)
}

pub(super) async fn connect_versioned(
    State(site): Shared,
    Path((_version, key)): Path<(String, String)>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    accept(site, key, &headers, upgrade)
}

fn accept(site: Arc<Site>, key: String, headers: &HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    let base_url = site.base_url(headers);
    upgrade.max_message_size(MESSAGE_BYTES_MAX).on_upgrade(move |socket| async move {
        let mut line = Line { socket, site, key, base_url };
        // The other end went away: there is nobody to tell.
        let _ = line.talk().await;
    })
}

/// One connection.
struct Line {
    socket: WebSocket,
    site: Arc<Site>,
    key: String,
    base_url: String,
}

/// The conversation is over.
struct Over;

impl From<Gone> for Over {
    fn from(_: Gone) -> Over {
        Over
    }
}

impl Line {
    async fn talk(&mut self) -> Result<(), Over> {
        let timings = self.site.settings.timings.clone();
        self.send(&Packet::Open(json!({
            "sid": format!("e{}", self.site.settings.clock.now_ms()),
            "upgrades": [],
            "pingInterval": timings.ping_interval_ms,
            "pingTimeout": timings.ping_timeout_ms,
            "maxPayload": MESSAGE_BYTES_MAX,
        })))
        .await?;
        self.join().await?;
        let (out, mut mail) = mpsc::channel(UNREAD_MAX);
        let conn = self.site.desk.connect(Mailbox::Socket(out)).await?;
        self.send(&Packet::Connect(json!({"sid": format!("s{}", conn.0)}))).await?;
        let license = json!({
            "type": 3, "light": false, "mode": 0, "rights": 1, "branding": false, "customization": false,
            "buildVersion": self.site.settings.version, "buildNumber": 1, "liveViewerSupport": true,
        });
        self.send(&wire::message(json!({"type": "license", "license": license}))).await?;
        let ended = self.serve(conn, &mut mail).await;
        self.site.desk.tell(Event::Leave { conn, how: Leaving::Lost }).await?;
        ended
    }

    /// Waits, not for ever, until the client joins with a good token.
    async fn join(&mut self) -> Result<(), Over> {
        let clock = self.site.settings.clock.clone();
        let patience_ms = self.site.settings.timings.ping_loss_ms();
        let auth = tokio::select! {
            auth = self.joining() => auth?,
            _woken = clock.sleep(patience_ms) => return Err(Over),
        };
        let token = |name: &str| auth.get(name).and_then(Value::as_str).filter(|token| !token.is_empty());
        let checked = may_connect(&self.site.policy, token("session"), token("token"), self.site.now_s());
        if let Err(refusal) = checked {
            let data = json!({"code": refusal.code, "description": refusal.description});
            self.send(&Packet::ConnectError(json!({"message": "not authorized", "data": data}))).await?;
            return Err(Over);
        }
        Ok(())
    }

    async fn joining(&mut self) -> Result<Value, Over> {
        loop {
            match self.next().await? {
                Packet::Connect(auth) => return Ok(auth),
                Packet::Close | Packet::Disconnect => return Err(Over),
                _ => {}
            }
        }
    }

    /// Passes messages both ways until one side ends it.
    async fn serve(&mut self, conn: ConnId, mail: &mut mpsc::Receiver<Mail>) -> Result<(), Over> {
        let clock = self.site.settings.clock.clone();
        let timings = self.site.settings.timings.clone();
        let mut authorised = false;
        // The next ping, or the end if the last one is not answered.
        let mut due_ms = clock.now_ms() + timings.ping_interval_ms;
        let mut pinged = false;
        loop {
            tokio::select! {
                packet = self.next() => match packet? {
                    Packet::Pong => {
                        pinged = false;
                        due_ms = clock.now_ms() + timings.ping_interval_ms;
                    }
                    Packet::Event(name, message) if name == "message" => {
                        self.hear(conn, message, &mut authorised).await?;
                    }
                    Packet::Ping => self.send(&Packet::Pong).await?,
                    Packet::Close | Packet::Disconnect => return Ok(()),
                    _ => {}
                },
                letter = mail.recv() => match letter {
                    Some(Mail::Message(message)) => self.send(&wire::message(message)).await?,
                    Some(Mail::Close) | None => return self.send(&Packet::Disconnect).await,
                },
                _woken = clock.sleep_until(due_ms) => {
                    if pinged {
                        return Ok(());
                    }
                    pinged = true;
                    due_ms = clock.now_ms() + timings.ping_timeout_ms;
                    self.send(&Packet::Ping).await?;
                }
            }
        }
    }

    /// One message of the client.
    async fn hear(&mut self, conn: ConnId, message: Value, authorised: &mut bool) -> Result<(), Over> {
        let kind = message.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if kind == "auth" {
            *authorised = self.greet(conn, &message).await?;
            return Ok(());
        }
        if !*authorised {
            return Ok(());
        }
        if kind == "getLock" {
            return self
                .send(&wire::message(json!({"type": "getLock", "locks": granted(conn, &message)})))
                .await;
        }
        if let Some(event) = event_of(conn, &kind, &message) {
            self.site.desk.tell(event).await?;
        }
        Ok(())
    }

    async fn greet(&mut self, conn: ConnId, message: &Value) -> Result<bool, Over> {
        let mut greeting = Greeting::of_message(message);
        if greeting.key.is_empty() {
            greeting.key.clone_from(&self.key);
        }
        match admit(&self.site.policy, greeting, (conn, &self.base_url), self.site.now_s()) {
            Ok(open) => {
                self.site.desk.tell(Event::Open(Box::new(open))).await?;
                Ok(true)
            }
            Err(Refusal { code, description }) => {
                let reason = json!({"type": "disconnectReason", "code": code, "description": description});
                self.send(&wire::message(reason)).await?;
                self.send(&Packet::Disconnect).await?;
                Err(Over)
            }
        }
    }

    async fn next(&mut self) -> Result<Packet, Over> {
        loop {
            match self.socket.recv().await {
                Some(Ok(Message::Text(text))) => return wire::decode(&text).ok_or(Over),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(Over),
                Some(Ok(_)) => {}
            }
        }
    }

    async fn send(&mut self, packet: &Packet) -> Result<(), Over> {
        self.socket.send(Message::Text(wire::encode(packet).into())).await.map_err(|_| Over)
    }
}

/// What a message means to the machine.
fn event_of(conn: ConnId, kind: &str, message: &Value) -> Option<Event> {
    let index =
        |name: &str| message.get(name).and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
    let flag = |name: &str| message.get(name).and_then(Value::as_bool).unwrap_or(false);
    match kind {
        "isSaveLock" => Some(Event::AskSaveLock { conn, seen_index: index("syncChangesIndex").unwrap_or(0) }),
        "unSaveLock" => Some(Event::GiveSaveLock { conn }),
        "saveChanges" => Some(Event::Edit(Edit {
            conn,
            changes: changes_of(message),
            delete_from: index("deleteIndex"),
            starts: flag("startSaveChanges"),
            ends: flag("endSaveChanges"),
            release_locks: flag("releaseLocks"),
            extra: message.get("excelAdditionalInfo").cloned().unwrap_or(Value::Null),
        })),
        "close" => Some(Event::Leave { conn, how: Leaving::Explicit }),
        "forceSaveStart" => Some(Event::PressSave { conn }),
        "rpc" if message.pointer("/data/type").and_then(Value::as_str) == Some("sendForm") => {
            let data = message.pointer("/data/formdata").cloned().unwrap_or(Value::Null);
            Some(Event::SubmitForm { conn, data, response_key: message.get("responseKey").cloned() })
        }
        "rpc" if message.pointer("/data/type").and_then(Value::as_str) == Some("saveRelativeFromChanges") => {
            Some(Event::MakeCopy { conn, response_key: message.get("responseKey").cloned() })
        }
        "cursor" => {
            Some(Event::Cursor { conn, cursor: message.get("cursor").cloned().unwrap_or(Value::Null) })
        }
        _ => None,
    }
}

/// The changes of a message: a JSON text of a list, as the real editor sends it.
fn changes_of(message: &Value) -> Vec<NewChange> {
    let list = match message.get("changes") {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or(Value::Null),
        Some(list) => list.clone(),
        None => Value::Null,
    };
    let Value::Array(list) = list else { return Vec::new() };
    let change = |item: Value| {
        let id = item.get("id").and_then(Value::as_str).map(str::to_owned);
        NewChange { id, data: item.to_string() }
    };
    list.into_iter().map(change).collect()
}

fn granted(conn: ConnId, message: &Value) -> Value {
    let blocks = message.get("block").and_then(Value::as_array).cloned().unwrap_or_default();
    let lock = |block: Value| {
        let name = block
            .get("guid")
            .unwrap_or(&block)
            .as_str()
            .map(str::to_owned)
            .unwrap_or_else(|| block.to_string());
        (name, json!({"time": 0, "user": conn.0.to_string(), "block": block}))
    };
    Value::Object(blocks.into_iter().map(lock).collect())
}
