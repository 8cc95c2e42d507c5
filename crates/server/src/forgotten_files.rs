//! Forgotten files of ours that the Document Server keeps, as the last round saw them: for operators.
//!
//! Guarantees: nothing depends on it; a restart begins to count anew. Does not do: collect them (`recovering` does).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// A file is collected within a round or two, unless somebody works on it. One that stays longer needs a person.
const STAYS: SignedDuration = SignedDuration::from_mins(15);

/// Forgotten files that wait.
#[derive(Debug, Default)]
pub struct ForgottenFiles {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<String, Waiting>,
    looked_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    since: Timestamp,
    is_told: bool,
}

/// How many files wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenCounts {
    /// All of them.
    pub waiting: u64,
    /// Those that wait for so long that a person should look.
    pub staying: u64,
    /// How long the first one has been waiting.
    pub oldest_seconds: u64,
    /// How long ago somebody looked; `None` if this process never did.
    pub looked_seconds_ago: Option<u64>,
}

impl ForgottenFiles {
    /// These are there now. Returns how many of them began to need a person.
    pub(crate) fn note(&self, keys: impl IntoIterator<Item = String>, now: Timestamp) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.looked_at = Some(now);
        let before = std::mem::take(&mut state.waiting);
        let mut newly = 0;
        for key in keys {
            let known = before.get(&key).copied().unwrap_or(Waiting { since: now, is_told: false });
            let is_told = now.duration_since(known.since) >= STAYS;
            newly += u64::from(is_told && !known.is_told);
            state.waiting.insert(key, Waiting { is_told, ..known });
        }
        newly
    }

    /// How many there are.
    pub fn counts(&self, now: Timestamp) -> ForgottenCounts {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds_since = |then: Timestamp| now.duration_since(then).as_secs().max(0).unsigned_abs();
        ForgottenCounts {
            waiting: state.waiting.len() as u64,
            staying: state.waiting.values().filter(|each| each.is_told).count() as u64,
            oldest_seconds: state.waiting.values().map(|each| seconds_since(each.since)).max().unwrap_or(0),
            looked_seconds_ago: state.looked_at.map(seconds_since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_stays_is_told_once() {
        let files = ForgottenFiles::default();
        let at = |minutes: i64| Timestamp::from_second(1_794_770_000 + 60 * minutes).unwrap();
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();

        assert_eq!(files.counts(at(0)), ForgottenCounts::default(), "nobody has looked");
        assert_eq!(files.note(keys(&["a", "b"]), at(0)), 0);
        assert_eq!(files.note(keys(&["b"]), at(14)), 0);
        let (waiting, staying) = (1, 0);
        let (oldest_seconds, looked_seconds_ago) = (14 * 60, Some(0));
        let counts = ForgottenCounts { waiting, staying, oldest_seconds, looked_seconds_ago };
        assert_eq!(files.counts(at(14)), counts);
        assert_eq!(files.note(keys(&["a", "b"]), at(15)), 1, "and the other one is new again");
        assert_eq!(files.note(keys(&["b"]), at(16)), 0);
        assert_eq!(files.counts(at(16)).staying, 1);
        assert_eq!(files.note(keys(&[]), at(17)), 0);
        let none = ForgottenCounts { looked_seconds_ago: Some(60), ..ForgottenCounts::default() };
        assert_eq!(files.counts(at(18)), none);
    }
}
