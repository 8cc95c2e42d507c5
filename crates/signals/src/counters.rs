//! Counters within one process.
//!
//! Guarantees: bounded memory; a window ends by itself. Does not do: know of other instances, or say what is too many.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Beyond this the counters begin anew: who is limited is let in once more, and memory is not theirs to fill.
const COUNTERS_MAX: usize = 10_000;

#[derive(Debug)]
struct Counter {
    count: u64,
    until: Instant,
}

/// How many there were of what.
#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<HashMap<String, Counter>>);

impl Counters {
    pub(crate) fn count(&self, what: &str, window: Duration) -> u64 {
        let now = Instant::now();
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counters.len() >= COUNTERS_MAX && !counters.contains_key(what) {
            counters.retain(|_, counter| counter.until > now);
            if counters.len() >= COUNTERS_MAX {
                counters.clear();
            }
        }
        let counter =
            counters.entry(what.to_owned()).or_insert_with(|| Counter { count: 0, until: now + window });
        if counter.until <= now {
            *counter = Counter { count: 0, until: now + window };
        }
        counter.count += 1;
        counter.count
    }

    pub(crate) fn uncount(&self, what: &str) {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = counters.get_mut(what) {
            counter.count = counter.count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_window_begins_with_its_first_and_ends() {
        let counters = Counters::default();
        assert_eq!(counters.count("guess", WINDOW), 1);
        tokio::time::advance(WINDOW / 2).await;
        assert_eq!(counters.count("guess", WINDOW), 2);

        tokio::time::advance(WINDOW / 2).await;

        assert_eq!(counters.count("guess", WINDOW), 1);
    }

    #[test]
    fn counters_have_a_bound() {
        let counters = Counters::default();
        for number in 0..=COUNTERS_MAX {
            counters.count(&number.to_string(), WINDOW);
        }

        assert_eq!(counters.0.lock().unwrap().len(), 1);
    }
}
