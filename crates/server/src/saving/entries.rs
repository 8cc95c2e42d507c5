//! Who came into which session, and when, as far as this process has heard.
//!
//! A 0 to a final save makes the server delete every change of the key, also those of somebody who came in after the save
//! was sent. So whoever answers looks here first.
//!
//! Guarantees: bounded memory. Does not do: know who left, or survive the process: after a restart nobody waits for an
//! answer either.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::EditorKey;

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

#[cfg(test)]
mod tests {
    use super::*;

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
