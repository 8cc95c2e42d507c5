//! From a request of the Document Server to a verified callback.
//!
//! Guarantees: every field comes from a verified token, the one in the body first (it alone is complete when the
//! history is long), else the one in the header; the plain body counts for nothing. Only `key` and `status` must be
//! there; anything else may be missing, null or of a type we do not know.
//! Does not do: decide what the callback means.

use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use model::EditorKey;
use model::callbacks::Callback;
use serde_json::Value;

use super::tokens::{TokenRefused, Tokens};

/// Longest list of users or names we keep from a callback.
const USERS_MAX: usize = 1000;
/// Longest text we keep from one field.
const TEXT_BYTES_MAX: usize = 8 * 1024;
/// Histories grow with a session; one longer than this is not kept with the version.
const HISTORY_BYTES_MAX: usize = 512 * 1024;

/// Why a request is no callback.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallbackRefused {
    /// Its token does not count.
    #[error("the callback is not verified: {0}")]
    Token(#[from] TokenRefused),
    /// Its key is not even a key.
    #[error("the callback names no readable key")]
    NoKey,
    /// Its status is missing or no small number.
    #[error("the callback has no status")]
    NoStatus,
}

/// Verifies and reads a callback.
pub fn read_callback(
    tokens: &Tokens,
    header: &HeaderName,
    (headers, body): (&HeaderMap, &[u8]),
    now: Timestamp,
) -> Result<Callback, CallbackRefused> {
    let claims = verified_claims(tokens, header, (headers, body), now)?;
    let key = claims["key"].as_str().and_then(EditorKey::parse).ok_or(CallbackRefused::NoKey)?;
    let status = claims["status"]
        .as_u64()
        .and_then(|status| u8::try_from(status).ok())
        .ok_or(CallbackRefused::NoStatus)?;
    Ok(to_callback(&claims, key, status))
}

fn verified_claims(
    tokens: &Tokens,
    header: &HeaderName,
    (headers, body): (&HeaderMap, &[u8]),
    now: Timestamp,
) -> Result<Value, TokenRefused> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let in_body = body["token"].as_str().map(|token| tokens.verify(token, now));
    if let Some(Ok(claims)) = in_body {
        return Ok(claims);
    }
    let in_header = bearer(headers, header).map(|token| tokens.verify(token, now));
    match (in_header, in_body) {
        (Some(Ok(mut claims)), _) => Ok(claims["payload"].take()),
        (Some(Err(TokenRefused::Expired)), _) | (_, Some(Err(TokenRefused::Expired))) => {
            Err(TokenRefused::Expired)
        }
        (None, None) => Err(TokenRefused::Missing),
        _ => Err(TokenRefused::Forged),
    }
}

fn bearer<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.strip_prefix("Bearer ").unwrap_or(value).trim())
}

fn to_callback(claims: &Value, key: EditorKey, status: u8) -> Callback {
    let users: Vec<String> = strings(&claims["users"]);
    let history = &claims["history"];
    let author_name = users.first().and_then(|user| name_of(history, user));
    Callback {
        url: text(&claims["url"]),
        forms_data_url: text(&claims["formsdataurl"]),
        changes_url: text(&claims["changesurl"]),
        file_type: text(&claims["filetype"]),
        author_name,
        last_save: last_save(claims, status),
        session_start: session_start(history),
        server_version: text(&history["serverVersion"]),
        history: history["changes"]
            .is_array()
            .then(|| history["changes"].to_string())
            .filter(|text| text.len() <= HISTORY_BYTES_MAX),
        force_save_type: claims["forcesavetype"].as_u64().and_then(|kind| u8::try_from(kind).ok()),
        user_data: text(&claims["userdata"]),
        users,
        ..Callback::bare(key, status)
    }
}

/// The time of the last change. A server that lost its force-save state (`notmodified` is null in a final save) sends the
/// present time instead, which says nothing.
fn last_save(claims: &Value, status: u8) -> Option<Timestamp> {
    let is_unknown = matches!(status, 2 | 3) && claims["notmodified"].is_null();
    let at = claims["lastsave"].as_str().filter(|_| !is_unknown)?;
    at.parse().ok()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty() && text.len() <= TEXT_BYTES_MAX).map(str::to_owned)
}

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().take(USERS_MAX).filter_map(text).collect()
}

/// The name the history gives to a user, the newest entry first.
fn name_of(history: &Value, user: &str) -> Option<String> {
    let changes = history["changes"].as_array()?;
    changes
        .iter()
        .rev()
        .find(|change| change["user"]["id"].as_str() == Some(user))
        .and_then(|change| text(&change["user"]["name"]))
}

/// The time of the session's first change: `2026-11-15 19:20:43`, UTC.
fn session_start(history: &Value) -> Option<Timestamp> {
    let first = history["changes"].as_array()?.first()?;
    let at: DateTime = first["created"].as_str()?.parse().ok()?;
    at.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Secret, Secrets};
    use http::header::AUTHORIZATION;
    use serde_json::json;

    fn tokens() -> Tokens {
        Tokens::new(&Secrets { current: Secret::parse(&"s".repeat(40)).unwrap(), previous: None })
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_794_770_000).unwrap()
    }

    fn save() -> Value {
        json!({
            "key": "prod_12345_edit_1.k", "status": 2, "url": "http://ds/cache/x?md5=1", "filetype": "docx",
            "users": ["u2"], "lastsave": "2026-11-15T19:20:43.000Z", "notmodified": false,
            "history": { "serverVersion": "9.3.0", "changes": [
                { "created": "2026-11-15 19:20:01", "user": { "id": "u1", "name": "Ann" } },
                { "created": "2026-11-15 19:20:43", "user": { "id": "u2", "name": "Ben" } },
            ]},
        })
    }

    fn read(headers: &HeaderMap, body: &Value) -> Result<Callback, CallbackRefused> {
        read_callback(&tokens(), &AUTHORIZATION, (headers, body.to_string().as_bytes()), now())
    }

    fn with_header(claims: &Value) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers
            .insert(AUTHORIZATION, format!("Bearer {}", tokens().sign(claims, now(), 300)).parse().unwrap());
        headers
    }

    #[test]
    fn fields_come_from_the_token_in_the_body() {
        let body = json!({ "token": tokens().sign(&save(), now(), 300), "key": "forged", "status": 4, "url": "http://evil" });

        let callback = read(&HeaderMap::new(), &body).unwrap();

        assert_eq!((callback.key.as_str(), callback.status), ("prod_12345_edit_1.k", 2));
        assert_eq!(callback.url.as_deref(), Some("http://ds/cache/x?md5=1"));
        assert_eq!(callback.author_name.as_deref(), Some("Ben"));
        assert_eq!(callback.session_start.unwrap().to_string(), "2026-11-15T19:20:01Z");
        assert_eq!(callback.last_save.unwrap().to_string(), "2026-11-15T19:20:43Z");
    }

    #[test]
    fn a_server_that_lost_its_state_does_not_know_when_the_last_change_was_made() {
        let mut save = save();
        save["notmodified"] = Value::Null;

        assert_eq!(read(&with_header(&json!({ "payload": save })), &json!({})).unwrap().last_save, None);
    }

    #[test]
    fn the_header_serves_when_the_body_has_no_token() {
        let callback =
            read(&with_header(&json!({ "payload": save() })), &json!({ "key": "forged", "status": 4 }))
                .unwrap();

        assert_eq!(callback.status, 2);
    }

    #[test]
    fn a_long_history_is_read_from_the_body_token_that_still_has_it() {
        let mut stripped = save();
        stripped["history"] = json!({});
        let body = json!({ "token": tokens().sign(&save(), now(), 300), "history": {} });

        let callback = read(&with_header(&json!({ "payload": stripped })), &body).unwrap();

        assert!(callback.session_start.is_some());
    }

    #[test]
    fn nothing_unverified_is_a_callback() {
        let forged =
            Tokens::new(&Secrets { current: Secret::parse(&"x".repeat(40)).unwrap(), previous: None });
        let expired = tokens().sign(&save(), Timestamp::from_second(now().as_second() - 1000).unwrap(), 300);

        assert_eq!(read(&HeaderMap::new(), &save()), Err(TokenRefused::Missing.into()));
        let body = json!({ "token": forged.sign(&save(), now(), 300) });
        assert_eq!(read(&HeaderMap::new(), &body), Err(TokenRefused::Forged.into()));
        assert_eq!(read(&HeaderMap::new(), &json!({ "token": expired })), Err(TokenRefused::Expired.into()));
        assert_eq!(read(&HeaderMap::new(), &json!("no object")), Err(TokenRefused::Missing.into()));
    }

    #[test]
    fn every_field_but_key_and_status_may_be_missing_or_strange() {
        let whole = save();
        for name in whole.as_object().unwrap().keys() {
            for strange in [Value::Null, json!(7), json!("x"), json!([]), json!({}), json!([[{}]])] {
                let mut claims = whole.clone();
                claims[name] = strange;
                let read = read(&HeaderMap::new(), &json!({ "token": tokens().sign(&claims, now(), 300) }));
                assert!(read.is_ok() || name == "key" || name == "status", "{name}: {read:?}");
            }
        }
    }
}
