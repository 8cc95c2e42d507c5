//! Forgotten files of ours that the Document Server keeps, as the last round saw them: for operators.
//!
//! Guarantees: nothing depends on it; a restart begins to count anew. Does not do: collect them (`recovering` does).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// A file is collected within a round or two, unless somebody works on it. One that stays longer needs a person.
const STAYS: SignedDuration = SignedDuration::from_mins(15);

/// Forgotten files that wait.
#[derive(Debug, Default)]
pub struct ForgottenFiles {
    waiting: Mutex<BTreeMap<String, Waiting>>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    since: Timestamp,
    is_told: bool,
}

/// How many files wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForgottenCounts {
    /// All of them.
    pub waiting: u64,
    /// Those that wait for so long that a person should look.
    pub staying: u64,
    /// How long the first one has been waiting.
    pub oldest_seconds: u64,
}

impl ForgottenFiles {
    /// These are there now. Returns how many of them began to need a person.
    pub(crate) fn note(&self, keys: impl IntoIterator<Item = String>, now: Timestamp) -> u64 {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *waiting);
        let mut newly = 0;
        for key in keys {
            let known = before.get(&key).copied().unwrap_or(Waiting { since: now, is_told: false });
            let is_told = now.duration_since(known.since) >= STAYS;
            newly += u64::from(is_told && !known.is_told);
            waiting.insert(key, Waiting { is_told, ..known });
        }
        newly
    }

    /// How many there are.
    pub fn counts(&self, now: Timestamp) -> ForgottenCounts {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = waiting.values().map(|each| now.duration_since(each.since)).max().unwrap_or_default();
        ForgottenCounts {
            waiting: waiting.len() as u64,
            staying: waiting.values().filter(|each| each.is_told).count() as u64,
            oldest_seconds: oldest.as_secs().unsigned_abs(),
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

        assert_eq!(files.note(keys(&["a", "b"]), at(0)), 0);
        assert_eq!(files.note(keys(&["b"]), at(14)), 0);
        assert_eq!(files.counts(at(14)), ForgottenCounts { waiting: 1, staying: 0, oldest_seconds: 14 * 60 });
        assert_eq!(files.note(keys(&["a", "b"]), at(15)), 1, "and the other one is new again");
        assert_eq!(files.note(keys(&["b"]), at(16)), 0);
        assert_eq!(files.counts(at(16)).staying, 1);
        assert_eq!(files.note(keys(&[]), at(17)), 0);
        assert_eq!(files.counts(at(17)), ForgottenCounts::default());
    }
}
