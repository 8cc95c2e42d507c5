//! The client's side of the conversation: connecting, the `auth` message, and what the answers mean.
//!
//! Guarantees: `auth` carries what the real editor sends and real servers check.
//!
//! Does not keep state; [`super::Client`] does.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use reqwest::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use serde_json::{Value, json};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{ClientError, kind};
use crate::admission::Greeting;
use crate::server::{Mail, Mailbox, Opening, Reaction};
use crate::wire::{self, Packet};

pub(super) type Socket = WebSocketStream<reqwest::Upgraded>;

/// Opens the socket and joins with the token. Goes through `reqwest`, so `https` needs nothing more.
pub(super) async fn connect(
    server_url: &str,
    prefix: &str,
    greeting: &Greeting,
) -> Result<Socket, ClientError> {
    let bad_address = || ClientError::Address(server_url.to_owned());
    let base = url::Url::parse(server_url).map_err(|_| bad_address())?;
    let path = format!("{}{prefix}/doc/{}/c/", base.path().trim_end_matches('/'), greeting.key);
    let mut address = base.join(&path).map_err(|_| bad_address())?;
    address.set_query(Some(&format!("EIO=4&transport=websocket&shardkey={}", greeting.key)));
    let nonce = STANDARD.encode(crate::office::sha256_hex(path.as_bytes()).get(..16).unwrap_or_default());
    let client = reqwest::Client::builder().http1_only().build().map_err(ClientError::Connect)?;
    let response = client
        .get(address)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, &nonce)
        .send()
        .await
        .map_err(ClientError::Connect)?;
    let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(|accept| accept.as_bytes().to_vec());
    let status = response.status().as_u16();
    if status != 101 || accepted != Some(derive_accept_key(nonce.as_bytes()).into_bytes()) {
        return Err(ClientError::NoSocket(status));
    }
    let upgraded = response.upgrade().await.map_err(ClientError::Connect)?;
    let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
    join(&mut socket, greeting).await?;
    Ok(socket)
}

async fn join(socket: &mut Socket, greeting: &Greeting) -> Result<(), ClientError> {
    let auth = match (&greeting.token_session, &greeting.token_open) {
        (Some(session), _) => json!({"session": session}),
        (None, Some(token)) => json!({"token": token}),
        (None, None) => json!({}),
    };
    loop {
        let Some(Ok(Message::Text(text))) = socket.next().await else { return Err(ClientError::Ended) };
        match wire::decode(&text) {
            Some(Packet::Open(_)) => {
                let joining = wire::encode(&Packet::Connect(auth.clone()));
                socket.send(Message::Text(joining.into())).await.map_err(|_| ClientError::Ended)?;
            }
            Some(Packet::Connect(_)) => return Ok(()),
            Some(Packet::ConnectError(error)) => {
                let code = error.pointer("/data/code").and_then(Value::as_u64).unwrap_or(0);
                let description =
                    error.pointer("/data/description").and_then(Value::as_str).unwrap_or_default();
                return Err(ClientError::Refused {
                    code: u16::try_from(code).unwrap_or(0),
                    description: description.to_owned(),
                });
            }
            _ => {}
        }
    }
}

/// What the real editor says first.
pub(super) fn auth_message(config: &Value, greeting: &Greeting) -> Value {
    let title = config.pointer("/document/title").cloned().unwrap_or(Value::Null);
    let editor_type = match config.pointer("/documentType").and_then(Value::as_str) {
        Some("cell" | "spreadsheet") => 1,
        Some("slide" | "presentation") => 2,
        _ => 0,
    };
    let user = json!({
        "id": greeting.user_id,
        "username": greeting.user_name,
        "firstname": null,
        "lastname": null,
        "indexUser": -1,
    });
    let open = json!({
        "c": "open",
        "id": greeting.key,
        "userid": greeting.user_id,
        "format": greeting.file_type,
        "url": greeting.url,
        "title": title,
        "lcid": 9,
        "nobase64": true,
    });
    let mut auth = json!({
        "type": "auth",
        "docid": greeting.key,
        "documentCallbackUrl": greeting.callback,
        // The real server wants something here and never looks at it.
        "token": "understudy",
        "user": user,
        "editorType": editor_type,
        "lastOtherSaveTime": -1,
        "block": [],
        "sessionId": null,
        "sessionTimeConnect": null,
        "sessionTimeIdle": 0,
        "documentFormatSave": 65,
        "view": greeting.mode.as_deref() == Some("view"),
        "isCloseCoAuthoring": false,
        "openCmd": open,
        "lang": "en",
        "mode": greeting.mode,
        "permissions": greeting.permissions,
        "encrypted": false,
        "IsAnonymousUser": false,
        "timezoneOffset": 0,
        "coEditingMode": greeting.co_editing_mode.as_deref().unwrap_or("fast"),
        "jwtOpen": greeting.token_open,
        "supportAuthChangesAck": true,
    });
    if let Some(fields) = auth.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    auth
}

/// What a client that comes back knows of its session.
pub(super) struct Resumed {
    pub(super) token: String,
    session: String,
    since_ms: Value,
    index: Value,
    last_other_ms: Value,
}

impl Resumed {
    pub(super) fn from_messages(messages: &[Value]) -> Option<Resumed> {
        let auth = messages.iter().rev().find(|message| kind(message) == "auth")?;
        let refreshed = messages.iter().rev().find(|message| kind(message) == "refreshToken");
        let token = refreshed.and_then(|message| message["messages"].as_str()).or(auth["jwt"].as_str())?;
        let others =
            messages.iter().rev().filter(|message| matches!(kind(message), "saveChanges" | "authChanges"));
        let last_other_ms =
            others.filter_map(|message| message["changes"].as_array()?.last()?.get("time").cloned());
        Some(Resumed {
            token: token.to_owned(),
            session: auth["sessionId"].as_str()?.to_owned(),
            since_ms: auth["sessionTimeConnect"].clone(),
            index: auth["indexUser"].clone(),
            last_other_ms: last_other_ms.into_iter().next().unwrap_or(json!(-1)),
        })
    }

    pub(super) fn add_to(&self, auth: &mut Value) {
        auth["jwtSession"] = json!(self.token);
        auth["sessionId"] = json!(self.session);
        auth["sessionTimeConnect"] = self.since_ms.clone();
        auth["user"]["indexUser"] = self.index.clone();
        auth["lastOtherSaveTime"] = self.last_other_ms.clone();
        if let Some(fields) = auth.as_object_mut() {
            fields.remove("openCmd");
            fields.remove("jwtOpen");
        }
    }
}

/// How an opening ended, if this message says so.
pub(super) fn opening_of(message: &Value, greeting: &Greeting) -> Option<Opening> {
    match kind(message) {
        "documentOpen" => Some(match message.pointer("/data/status").and_then(Value::as_str) {
            Some("ok") => Opening::Ready,
            Some("updateversion") => Opening::Refresh,
            _ => Opening::Failed(message.pointer("/data/data").and_then(Value::as_i64).unwrap_or(-1)),
        }),
        "error" => Some(Opening::Lost(message.get("code").and_then(Value::as_i64))),
        "auth" if greeting.token_session.is_some() => Some(Opening::Ready),
        _ => None,
    }
}

/// The code with which the server closed the connection.
pub(super) fn disconnect_code(messages: &[Value]) -> Option<i64> {
    messages.iter().rev().find(|message| kind(message) == "disconnectReason")?.get("code")?.as_i64()
}

/// How many changes this client has seen or made.
pub(super) fn seen_index(messages: &[Value]) -> u64 {
    let index = |message: &Value| match kind(message) {
        "saveChanges" | "unSaveLock" | "savePartChanges" | "auth" => {
            message.get("syncChangesIndex")?.as_u64()
        }
        _ => None,
    };
    messages.iter().rev().find_map(index).unwrap_or(0)
}

/// Keeps a message and says what the real editor would answer by itself.
pub(super) fn react(mailbox: &Mailbox, message: Value) -> Option<Packet> {
    let answer = match kind(&message) {
        "authChanges" => Some(json!({"type": "authChangesAck"})),
        // The first editor makes room for a second: it has nothing unsaved, so it only lets go.
        "connectState" if message["waitAuth"] == true => {
            Some(json!({"type": "unLockDocument", "isSave": false, "unlock": true, "releaseLocks": false}))
        }
        _ => None,
    };
    let dropped = mailbox.deliver(Mail::Message(message)) == Reaction::Close;
    let answer = if dropped { Some(json!({"type": "close"})) } else { answer };
    answer.map(wire::message)
}
