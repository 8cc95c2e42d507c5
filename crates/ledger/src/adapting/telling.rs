//! What webhooks are told of an act.

use model::audit::Entry;
use serde_json::{Value, json};

/// What of an act's details is told to others. Keys are not: whoever has one can ask for more than they should.
const TOLD: [&str; 15] = [
    "outcome",
    "origin",
    "reason",
    "label",
    "kept",
    "digest",
    "sizeBytes",
    "flags",
    "status",
    "log",
    "commit",
    "created",
    "updated",
    "unchanged",
    "removed",
];

/// The body of a webhook's call: what of the details may be told, what the act is about, and its place in the trail.
pub(crate) fn payload_of(
    entry: &Entry,
    called: &str,
    (details, about): (&Value, [(String, Value); 2]),
) -> Value {
    let mut told = serde_json::Map::new();
    let present =
        TOLD.iter().filter_map(|name| Some((name, details.get(name).filter(|value| !value.is_null())?)));
    told.extend(present.map(|(name, value)| ((*name).to_owned(), value.clone())));
    told.extend(about);
    told.extend([
        ("by".to_owned(), json!(entry.actor)),
        ("action".to_owned(), json!(entry.action)),
        ("auditSequence".to_owned(), json!(entry.sequence)),
    ]);
    json!({ "type": called, "timestamp": entry.at.to_string(), "data": told })
}
