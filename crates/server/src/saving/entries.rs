//! Who came into which session, and when, as far as this process has heard.
//!
//! A 0 to a final save makes the server delete every change of the key, also those of somebody who came in after the save
//! was sent. So whoever answers looks here first.
//!
//! With a shared ledger, somebody may have come in at another instance: then the ledger is looked at too ([`inside`]).
//!
//! Guarantees: bounded memory. Does not do: know who left, or survive the process: after a restart nobody waits for an
//! answer either.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ledger::LedgerError;
use model::EditorKey;

use crate::app::App;

/// No answer waits longer than this.
const KEPT: Duration = Duration::from_mins(10);
/// From so many keys on, old ones are looked for and dropped.
const KEYS_MANY: usize = 1024;

/// The latest entries.
#[derive(Debug, Default)]
pub struct Entries {
    latest: Mutex<HashMap<EditorKey, Instant>>,
}

impl Entries {
    /// Somebody is inside.
    pub fn note(&self, key: &EditorKey) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.len() >= KEYS_MANY {
            latest.retain(|_, at| at.elapsed() < KEPT);
        }
        latest.insert(key.clone(), Instant::now());
    }

    /// Whether somebody was heard of since then.
    pub fn since(&self, key: &EditorKey, then: Instant) -> bool {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.get(key).is_some_and(|at| *at > then)
    }
}

/// Who was ever named under a key, and when last, as the shared ledger knows it. Not who is inside now: a final save that is written down late
/// empties the session of somebody who came in after it was sent.
#[derive(Debug, Default)]
pub(super) struct Inside {
    people: BTreeMap<String, Timestamp>,
}

impl Inside {
    /// Whether somebody was named since the other look. Compared per person and for difference only, so that the clocks of
    /// instances need not agree.
    pub(super) fn has_more_than(&self, before: &Self) -> bool {
        self.people.iter().any(|(id, named_at)| before.people.get(id) != Some(named_at))
    }

    /// Whether somebody was named since then, by the clock all instances go by.
    pub(super) fn has_anyone_since(&self, then: Timestamp) -> bool {
        self.people.values().any(|named_at| *named_at >= then)
    }
}

/// Looks who was named, behind everybody who is being noted at this moment; nobody if no other instance could have heard of anybody.
pub(super) async fn inside(app: &App, key: &EditorKey) -> Result<Inside, LedgerError> {
    if !app.config.ledger.is_shared() {
        return Ok(Inside::default());
    }
    Ok(Inside { people: app.ledger.named_under(key).await? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_named_since_then_may_have_come_in() {
        let then = Timestamp::from_second(1_800_000_000).unwrap();
        let named = |at: Timestamp| Inside { people: [("u1".to_owned(), at)].into() };

        assert!(named(then).has_anyone_since(then));
        assert!(!named(then).has_anyone_since(then + Duration::from_secs(1)));
        assert!(!Inside::default().has_anyone_since(then));
    }

    #[test]
    fn only_what_came_later_counts() {
        let entries = Entries::default();
        let key = EditorKey::parse("test_12345_edit_1.k").unwrap();
        let before = Instant::now();
        assert!(!entries.since(&key, before));

        entries.note(&key);

        assert!(entries.since(&key, before));
        assert!(!entries.since(&key, Instant::now()));
        assert!(!entries.since(&EditorKey::parse("test_12345_edit_2.k").unwrap(), before));
    }
}
