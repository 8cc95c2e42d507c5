//! Where time and randomness come from, so that tests can set them.
//!
//! Guarantees: nothing else in the service asks the system for the time of day or for random bits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Tells the time of day, in whole milliseconds: what is stored reads back equal.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
    /// What the clock of the ledger said, between this instant and now; says whether more time has passed there than here. Of no matter where
    /// nobody else goes by it.
    fn heard(&self, _ledger: Timestamp, _asked: Instant) -> Option<Missed> {
        None
    }
}

/// Time that passed at the ledger and not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// How much.
    pub time: Duration,
    /// Since when, by the clock that missed it.
    pub since: Instant,
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
    fn now(&self) -> Timestamp {
        whole_milliseconds(Timestamp::now())
    }
}

/// In the torture build a clock can be wrong.
fn whole_milliseconds(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond().saturating_add(steps::clock_offset_ms())).unwrap_or(at)
}

/// The clock of a shared ledger, which every instance goes by: what one of them wrote down is as old to another as it is. Between two
/// looks at it time goes on evenly, whatever becomes of this machine's time of day.
pub struct LedgerClock {
    /// Until the first look.
    own: Arc<dyn Clock>,
    look: Mutex<Option<(Timestamp, Instant)>>,
}

impl LedgerClock {
    /// An answer that took longer says too little.
    const ROUND_MAX: Duration = Duration::from_millis(500);

    /// Goes by another one until the ledger's is heard.
    pub fn until_heard(own: Arc<dyn Clock>) -> Self {
        Self { own, look: Mutex::new(None) }
    }
}

impl Clock for LedgerClock {
    fn now(&self) -> Timestamp {
        let look = *self.look.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((said, then)) = look else { return self.own.now() };
        let now = said.checked_add(then.elapsed()).unwrap_or(said);
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    fn heard(&self, ledger: Timestamp, asked: Instant) -> Option<Missed> {
        let round = asked.elapsed();
        let mut look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        if look.is_some() && round > Self::ROUND_MAX {
            return None;
        }
        let said_at = asked + round / 2;
        let (said, then) = look.replace((ledger, said_at))?;
        let passed_there: Duration = ledger.duration_since(said).try_into().ok()?;
        let time = passed_there.checked_sub(said_at.saturating_duration_since(then))?;
        Some(Missed { time, since: then })
    }
}

/// Gives random bits.
pub trait Random: Send + Sync {
    /// 64 of them.
    fn bits(&self) -> u64;
}

/// The system's random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn bits(&self) -> u64 {
        getrandom::u64().unwrap_or_else(|_| {
            // Without random numbers keys could repeat, and a repeated key can bring old content back.
            tracing::error!("the system gives no random numbers");
            std::process::abort()
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    struct Wrong;

    impl Clock for Wrong {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    #[test]
    fn the_ledgers_clock_counts_once_it_was_heard_and_a_slow_answer_moves_nothing() {
        let clock = LedgerClock::until_heard(Arc::new(Wrong));
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH);
        let said: Timestamp = "2026-11-18T04:00:00Z".parse().unwrap();

        assert_eq!(clock.heard(said, Instant::now()), None, "there was no look before");

        let ahead = clock.now().duration_since(said);
        assert!(ahead >= SignedDuration::ZERO && ahead < SignedDuration::from_secs(10), "{ahead}");
        clock.heard(Timestamp::UNIX_EPOCH, Instant::now() - Duration::from_secs(3));
        assert!(clock.now() >= said);
        clock.heard(Timestamp::UNIX_EPOCH, Instant::now());
        assert!(clock.now() < said);
    }

    #[test]
    fn time_that_only_the_ledgers_clock_counted_is_noticed() {
        let clock = LedgerClock::until_heard(Arc::new(Wrong));
        let said: Timestamp = "2026-11-18T04:00:00Z".parse().unwrap();
        let now = Instant::now();
        clock.heard(said, now - Duration::from_millis(400));

        let missed = clock.heard(said + Duration::from_secs(60), now).unwrap();

        assert!(missed.time > Duration::from_secs(58) && missed.time < Duration::from_secs(61), "{missed:?}");
        assert!(missed.since <= now);
        assert_eq!(clock.heard(said, Instant::now()), None, "a clock that goes back says nothing");
    }
}
