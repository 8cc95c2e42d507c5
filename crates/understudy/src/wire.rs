//! The packets of the editors' sockets: engine.io 4 carrying socket.io 4, as far as one namespace needs them.
//!
//! Guarantees: [`decode`] reads what [`encode`] writes; acknowledgement numbers and namespaces of others are
//! tolerated; binary packets are not understood and give `None`.
//!
//! Does not speak over anything; `crate::http` and [`crate::client`] do.

use serde_json::{Value, json};

/// One packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Packet {
    /// The server's first word: ids and ping times.
    Open(Value),
    Close,
    Ping,
    Pong,
    /// Joining the namespace, with what vouches for it; the server answers with an id.
    Connect(Value),
    Disconnect,
    /// The one event the editors use is `message`.
    Event(String, Value),
    ConnectError(Value),
    /// Something we know and need not act on.
    Idle,
}

/// A message of the editors' own protocol.
pub fn message(value: Value) -> Packet {
    Packet::Event("message".to_owned(), value)
}

pub fn encode(packet: &Packet) -> String {
    match packet {
        Packet::Open(value) => format!("0{value}"),
        Packet::Close => "1".to_owned(),
        Packet::Ping => "2".to_owned(),
        Packet::Pong => "3".to_owned(),
        Packet::Connect(value) => format!("40{value}"),
        Packet::Disconnect => "41".to_owned(),
        Packet::Event(name, value) => format!("42{}", json!([name, value])),
        Packet::ConnectError(value) => format!("44{value}"),
        Packet::Idle => "6".to_owned(),
    }
}

pub fn decode(text: &str) -> Option<Packet> {
    let rest = text.get(1..)?;
    match text.as_bytes().first()? {
        b'0' => serde_json::from_str(rest).ok().map(Packet::Open),
        b'1' => Some(Packet::Close),
        b'2' => Some(Packet::Ping),
        b'3' => Some(Packet::Pong),
        b'4' => decode_message(rest),
        b'5' | b'6' => Some(Packet::Idle),
        _ => None,
    }
}

fn decode_message(text: &str) -> Option<Packet> {
    let kind = text.as_bytes().first()?;
    let mut rest = text.get(1..)?;
    if rest.starts_with('/') {
        rest = rest.split_once(',').map_or("", |(_, rest)| rest);
    }
    let data = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let value = || if data.is_empty() { Some(Value::Null) } else { serde_json::from_str(data).ok() };
    match kind {
        b'0' => value().map(Packet::Connect),
        b'1' => Some(Packet::Disconnect),
        b'2' => {
            let Value::Array(mut items) = value()? else { return None };
            let name = items.first()?.as_str()?.to_owned();
            let value = if items.len() > 1 { items.swap_remove(1) } else { Value::Null };
            Some(Packet::Event(name, value))
        }
        b'3' => Some(Packet::Idle),
        b'4' => value().map(Packet::ConnectError),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_survive_the_way_there_and_back() {
        for packet in [
            Packet::Open(json!({"sid": "x", "pingInterval": 25000})),
            Packet::Close,
            Packet::Ping,
            Packet::Pong,
            Packet::Connect(json!({"token": "t"})),
            Packet::Disconnect,
            message(json!({"type": "auth", "text": "a\"b"})),
            Packet::ConnectError(json!({"message": "not authorized"})),
        ] {
            assert_eq!(decode(&encode(&packet)), Some(packet));
        }
    }

    #[test]
    fn acknowledgement_numbers_namespaces_and_nonsense_are_coped_with() {
        assert_eq!(decode(r#"4217["message",{"a":1}]"#), Some(message(json!({"a": 1}))));
        assert_eq!(decode("40"), Some(Packet::Connect(Value::Null)));
        assert_eq!(decode(r#"40/ns,{"a":1}"#), Some(Packet::Connect(json!({"a": 1}))));
        assert_eq!(decode("42{}"), None);
        assert_eq!(decode("x"), None);
        assert_eq!(decode(""), None);
    }
}
