//! What other programs are told, and how long somebody tries to.
//!
//! An event is an entry of the audit trail that others may want to hear of. It is due in the very transaction that writes the
//! entry, so that what happened and what is told of it cannot differ.
//!
//! Guarantees: total and pure. Does not do: send, sign, wait.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// How long a delivery is tried before it is given up.
pub const TRIED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// The longest pause between two attempts.
const PAUSE_MAX: SignedDuration = SignedDuration::from_hours(1);

/// Something others may want to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A document has a new version or checkpoint.
    Saved,
    /// A content was kept as a conflict copy.
    Conflict,
    /// A content was put into quarantine.
    Quarantined,
    /// A content came back that had been lost sight of: a forgotten file, a blob no row named.
    Recovered,
    /// A document was deleted.
    Deleted,
    /// The rows of a summary log are the records now.
    Submitted,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Saved, Self::Conflict, Self::Quarantined, Self::Recovered, Self::Deleted, Self::Submitted];

    /// The word in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Saved => "saved",
            Self::Conflict => "conflict",
            Self::Quarantined => "quarantined",
            Self::Recovered => "recovered",
            Self::Deleted => "deleted",
            Self::Submitted => "submitted",
        }
    }

    /// The event of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == word)
    }
}

/// The event in an entry of the audit trail, if there is one.
pub fn event_of(action: &str, details: &Value) -> Option<Event> {
    let outcome = details.get("outcome").and_then(Value::as_str).unwrap_or_default();
    let is_recovered = details.get("origin").and_then(Value::as_str) == Some("recovered");
    let has = |name: &str| details.get(name).is_some_and(|value| !value.is_null());
    match action {
        "save-committed" => match outcome {
            "conflict" => Some(Event::Conflict),
            "version" | "checkpoint" | "filed" if is_recovered => Some(Event::Recovered),
            "version" | "checkpoint" | "filed" => Some(Event::Saved),
            _ => None,
        },
        "save-kept-aside" if has("kept") => Some(Event::Quarantined),
        "forgotten-file-kept" | "blob-adopted" => Some(Event::Recovered),
        "external-change-taken-in" if has("label") => Some(Event::Saved),
        "external-change-taken-in" => Some(Event::Conflict),
        "document-uploaded" | "content-replaced" | "version-restored" | "kept-copy-used" => {
            Some(Event::Saved)
        }
        "document-deleted" => Some(Event::Deleted),
        "submission-committed" => Some(Event::Submitted),
        _ => None,
    }
}

/// What to do after an attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Try again then.
    At(Timestamp),
    /// Nobody will hear of it any more, until a person says so.
    GiveUp,
}

/// The pause doubles from a second to an hour, for a day since it happened. What had to wait for an earlier one of its document
/// until then is tried once, so that a target that is gone for good does not hold up a document for days. `attempts` counts the one that just failed.
pub fn rule_on_failed_delivery(attempts: u32, waiting_since: Timestamp, now: Timestamp) -> Retry {
    if now.duration_since(waiting_since) >= TRIED_FOR {
        return Retry::GiveUp;
    }
    let seconds = 1_i64.checked_shl(attempts.saturating_sub(1).min(30)).unwrap_or(i64::MAX);
    let pause = SignedDuration::from_secs(seconds).min(PAUSE_MAX);
    now.checked_add(pause).map_or(Retry::GiveUp, Retry::At)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entries_of_the_trail_become_events() {
        for (action, details, expected) in [
            ("save-committed", json!({ "outcome": "version", "origin": "save" }), Some(Event::Saved)),
            ("save-committed", json!({ "outcome": "checkpoint" }), Some(Event::Saved)),
            (
                "save-committed",
                json!({ "outcome": "version", "origin": "recovered" }),
                Some(Event::Recovered),
            ),
            (
                "save-committed",
                json!({ "outcome": "conflict", "origin": "recovered" }),
                Some(Event::Conflict),
            ),
            ("save-committed", json!({ "outcome": "nothing-new" }), None),
            ("save-kept-aside", json!({ "outcome": "quarantine", "kept": 3 }), Some(Event::Quarantined)),
            ("save-kept-aside", json!({ "outcome": "alert", "kept": null }), None),
            ("external-change-taken-in", json!({ "label": "2", "kept": null }), Some(Event::Saved)),
            ("external-change-taken-in", json!({ "label": null, "kept": 4 }), Some(Event::Conflict)),
            ("blob-adopted", json!({}), Some(Event::Recovered)),
            ("document-deleted", json!({}), Some(Event::Deleted)),
            ("submission-committed", json!({ "commit": 3 }), Some(Event::Submitted)),
            ("key-issued", json!({}), None),
        ] {
            assert_eq!(event_of(action, &details), expected, "{action} {details}");
        }
        for event in Event::ALL {
            assert_eq!(Event::parse(event.as_str()), Some(event));
        }
    }

    #[test]
    fn a_delivery_is_tried_for_a_day_with_growing_pauses() {
        let since = Timestamp::from_second(1_794_770_000).unwrap();
        let (mut now, mut attempts) = (since, 0);
        let mut pauses = Vec::new();

        while let Retry::At(next) = rule_on_failed_delivery(attempts + 1, since, now) {
            pauses.push(next.duration_since(now).as_secs());
            (now, attempts) = (next, attempts + 1);
        }

        assert_eq!(pauses[..5], [1, 2, 4, 8, 16]);
        assert_eq!(pauses.last(), Some(&3600));
        let total = now.duration_since(since);
        assert!(total >= TRIED_FOR && total < TRIED_FOR + PAUSE_MAX, "{total:?}");
        assert_eq!(rule_on_failed_delivery(u32::MAX, since, since), Retry::At(since + PAUSE_MAX));
    }
}
