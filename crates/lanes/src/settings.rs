//! The four limits of a set of lanes, each with its reason.
//!
//! Guarantees that lanes are never built from limits that could not work. Does not read any configuration.

use std::time::Duration;

/// A line this long is a mistake in the settings, not a queue.
const DEPTH_MAX_LIMIT: usize = 10_000_000;

/// Keeps deadlines within what the clock can express.
const DURATION_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The limits of a set of lanes.
///
/// ```
/// use std::time::Duration;
///
/// let settings = lanes::Settings { depth_max: 16, wait: Duration::from_secs(50), ..Default::default() };
/// assert!(settings.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How many tasks of one key may be in line (waiting or preparing) besides the one that runs.
    ///
    /// Default 128, from 1 to 10,000,000. A line longer than what can be done within `wait` only makes everybody
    /// late: it is kinder to refuse at once, so that the caller can try again elsewhere or later. It also bounds
    /// how many tasks of one key prepare side by side.
    pub depth_max: usize,

    /// How long [`Ticket::wait`](crate::Ticket::wait) and [`Lanes::run`](crate::Lanes::run) wait for a task.
    ///
    /// Default 60 s, up to 24 h. Long enough for a slow task behind a few others, short enough that a person or a
    /// proxy is still there to get the answer. Only the waiting ends: the task goes on.
    pub wait: Duration,

    /// How long a ready task waits for predecessors that still prepare before it passes them.
    ///
    /// Default 5 s, up to 24 h; zero means that it never waits for them. Long enough that order is kept through
    /// ordinary jitter, short enough that one stalled download does not hold up its key.
    pub pass_after: Duration,

    /// How long [`Lanes::drain`](crate::Lanes::drain) lets tasks finish before it stops them.
    ///
    /// Default 30 s, up to 24 h; zero stops at once. The usual time between being asked to end and being killed.
    pub drain: Duration,
}

/// A setting that could not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSettings {
    /// `depth_max` is zero or absurdly large.
    #[error("`depth_max` must be between 1 and {DEPTH_MAX_LIMIT}, not {depth_max}")]
    Depth {
        /// The value that was given.
        depth_max: usize,
    },
    /// `wait` is zero: nobody would ever get an answer.
    #[error("`wait` must be longer than zero")]
    NoWait,
    /// There is no tokio runtime here, and none was given.
    #[error("lanes must be made inside a tokio runtime, or be given one")]
    NoRuntime,
    /// A duration is longer than a day.
    #[error("`{name}` must be at most 24 hours, not {value:?}")]
    TooLong {
        /// Which setting.
        name: &'static str,
        /// The value that was given.
        value: Duration,
    },
}

impl Settings {
    /// Checks that these limits can work.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        if !(1..=DEPTH_MAX_LIMIT).contains(&self.depth_max) {
            return Err(InvalidSettings::Depth { depth_max: self.depth_max });
        }
        if self.wait.is_zero() {
            return Err(InvalidSettings::NoWait);
        }
        let durations = [("wait", self.wait), ("pass_after", self.pass_after), ("drain", self.drain)];
        match durations.into_iter().find(|(_, value)| *value > DURATION_LIMIT) {
            Some((name, value)) => Err(InvalidSettings::TooLong { name, value }),
            None => Ok(()),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            depth_max: 128,
            wait: Duration::from_secs(60),
            pass_after: Duration::from_secs(5),
            drain: Duration::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_documented_ones_and_valid() {
        let settings = Settings::default();

        assert_eq!(settings.check(), Ok(()));
        assert_eq!((settings.wait.as_secs(), settings.drain.as_secs()), (60, 30));
        assert_eq!((settings.pass_after.as_secs(), settings.depth_max), (5, 128));
    }

    #[test]
    fn limits_that_could_not_work_are_named() {
        let check = |settings: Settings| settings.check().unwrap_err().to_string();
        let good = Settings::default();
        let long = Duration::from_secs(100_000);

        assert_eq!(
            check(Settings { depth_max: 0, ..good }),
            "`depth_max` must be between 1 and 10000000, not 0"
        );
        assert_eq!(check(Settings { wait: Duration::ZERO, ..good }), "`wait` must be longer than zero");
        assert_eq!(
            check(Settings { pass_after: long, ..good }),
            "`pass_after` must be at most 24 hours, not 100000s"
        );
    }
}
