//! What an answer of the host means to the server.
//!
//! Guarantees: the table of PROTOCOL 2.1 and 2.2, including the loose comparison with zero that the real server
//! makes (`"0"`, `false`, `""` and `[]` pass; `null` and a missing field do not).
//!
//! Does not decide what follows; that depends on the status and on how often it was tried.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::Answer;

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Acknowledged,
    /// Heard and turned down: never repeated.
    Refused,
    /// Worth a repeat, if this kind of callback is repeated at all.
    Unheard,
}

/// Reads an answer.
pub fn judge(answer: &Answer) -> Verdict {
    match answer {
        Answer::Lost { .. } => Verdict::Unheard,
        Answer::Http { status: 429 | 500..=599, .. } => Verdict::Unheard,
        Answer::Http { status: 200, body } if says_zero(body) => Verdict::Acknowledged,
        Answer::Http { .. } => Verdict::Refused,
    }
}

fn says_zero(body: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(body.trim_start_matches('\u{feff}')) else {
        return false;
    };
    fields.get("error").is_some_and(is_loosely_zero)
}

/// `0 == value` as JavaScript sees it.
fn is_loosely_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Object(_) | Value::Bool(true) => false,
        Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text_is_zero(text),
        Value::Array(items) => match items.as_slice() {
            [] | [Value::Null] => true,
            [Value::String(text)] => text_is_zero(text),
            [Value::Number(number)] => number.as_f64() == Some(0.0),
            [nested @ Value::Array(_)] => is_loosely_zero(nested),
            _ => false,
        },
    }
}

fn text_is_zero(text: &str) -> bool {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    text.is_empty()
        || text.parse::<f64>().is_ok_and(|number| number == 0.0)
        || hex.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit == b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, expected: Verdict) {
        let answer = Answer::Http { status, body: body.to_owned() };
        assert_eq!(judge(&answer), expected, "{status} {body}");
    }

    #[test]
    fn two_hundred_with_a_loose_zero_is_an_acknowledgement() {
        for body in [
            r#"{"error":0}"#,
            r#"{"error":"0"}"#,
            r#"{"error":false}"#,
            r#"{"error":""}"#,
            r#"{"error":0.0,"more":1}"#,
            r#"{"error":[]}"#,
            " {\"error\": 0}\n",
        ] {
            check(200, body, Verdict::Acknowledged);
        }
    }

    #[test]
    fn any_other_body_is_a_refusal() {
        for body in [
            r#"{"error":1}"#,
            r#"{"error":null}"#,
            r#"{"error":true}"#,
            r#"{"error":"no"}"#,
            r#"{"error":{}}"#,
            "{}",
            "[]",
            "0",
            "",
            "<html></html>",
            r#""error""#,
        ] {
            check(200, body, Verdict::Refused);
        }
    }

    #[test]
    fn other_successes_redirects_and_client_errors_are_refusals() {
        for status in [201, 202, 204, 206, 302, 304, 400, 401, 403, 404, 409, 413] {
            check(status, r#"{"error":0}"#, Verdict::Refused);
        }
    }

    #[test]
    fn too_many_requests_server_errors_and_silence_are_worth_a_repeat() {
        for status in [429, 500, 502, 503, 504, 599] {
            check(status, r#"{"error":0}"#, Verdict::Unheard);
        }
        assert_eq!(judge(&Answer::Lost { why: "closed".into() }), Verdict::Unheard);
    }
}
