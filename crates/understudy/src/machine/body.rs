//! The body of a callback, field for field as the real server sends it.
//!
//! Guarantees: serialised, the fields stand in the real server's order and are absent where it leaves them out;
//! `notmodified` tells `null` from absent.
//!
//! Does not know which field belongs to which status; `delivering` and `telling` do.

use serde::{Deserialize, Deserializer, Serialize};

use super::state::History;

/// A callback.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    pub key: String,
    pub status: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changesurl: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Action>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub userdata: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lastsave: Option<String>,
    /// Absent, `null` or a truth value.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub notmodified: Option<Option<bool>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forcesavetype: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formsdataurl: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filetype: Option<String>,
}

impl Body {
    /// Whether it is about a file rather than about who is in.
    pub fn is_save(&self) -> bool {
        !matches!(self.status, status::EDITING | status::CLOSED)
    }
}

/// Who came, went or pressed Save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    #[serde(rename = "type")]
    pub kind: u8,
    pub userid: String,
}

impl Action {
    pub const LEFT: u8 = 0;
    pub const JOINED: u8 = 1;
    pub const PRESSED_SAVE: u8 = 2;

    pub fn new(kind: u8, user: &str) -> Action {
        Action { kind, userid: user.to_owned() }
    }
}

/// `status` of a callback.
pub mod status {
    pub const EDITING: u8 = 1;
    pub const MUST_SAVE: u8 = 2;
    pub const CORRUPTED: u8 = 3;
    pub const CLOSED: u8 = 4;
    pub const MUST_FORCE_SAVE: u8 = 6;
    pub const CORRUPTED_FORCE: u8 = 7;
}

fn present<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Option<bool>>, D::Error> {
    Option::<bool>::deserialize(input).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_in_the_real_order_and_null_is_not_absent() {
        let body = Body {
            key: "k".into(),
            status: 2,
            url: Some("u".into()),
            history: Some(History::default()),
            users: Some(vec!["a".into()]),
            actions: Some(vec![Action::new(Action::LEFT, "a")]),
            lastsave: Some("t".into()),
            notmodified: Some(None),
            token: Some("x".into()),
            filetype: Some("docx".into()),
            ..Body::default()
        };

        let text = serde_json::to_string(&body).unwrap();

        assert_eq!(
            text,
            r#"{"key":"k","status":2,"url":"u","history":{},"users":["a"],"actions":[{"type":0,"userid":"a"}],"lastsave":"t","notmodified":null,"token":"x","filetype":"docx"}"#
        );
        assert_eq!(serde_json::from_str::<Body>(&text).unwrap(), body);
    }
}
