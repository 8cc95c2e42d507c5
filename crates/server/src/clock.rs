//! Where time and randomness come from, so that tests can set them.
//!
//! Guarantees: nothing else in the service asks the system for the time of day or for random bits.

use jiff::Timestamp;

/// Tells the time of day, in whole milliseconds: what is stored reads back equal.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
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
