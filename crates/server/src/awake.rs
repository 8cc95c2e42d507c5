//! Whether this process ran all the time: it may have been stopped, by a signal, by whoever looks after virtual machines, or for want of
//! a processor.
//!
//! What is read right afterwards may have come long before. Then nobody knows whether the other side still waits for its answer, or
//! has gone on with somebody else: so it counts as old as it may be.
//!
//! Guarantees: a stop is noticed by whoever asks first afterwards. One that the machine's own clock does not count (a virtual machine that was
//! paused) is noticed as soon as the clock of a shared ledger is heard, which is every two seconds ([`Awake::did_not_count`]); until then
//! whoever answers a final save looks whether somebody was named in what is the future here (`saving`).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::clock::Missed;

/// How often it is looked whether the process runs.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Nobody looked for so long: it did not run.
pub(crate) const STOPPED: Duration = Duration::from_secs(1);
/// By then everything is read that came during a stop.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// When this process ran.
#[derive(Debug, Default)]
pub struct Awake {
    looks: Mutex<Looks>,
}

#[derive(Debug, Default)]
struct Looks {
    /// The last one; none while nobody looks regularly.
    last: Option<Instant>,
    stop: Option<Stop>,
}

impl Looks {
    fn stopped(&mut self, from: Instant, until: Instant) -> &mut Stop {
        // What came during the stop before may not have been read in between.
        let before = self.stop.filter(|stop| from.saturating_duration_since(stop.until) < READ_WITHIN);
        self.stop.insert(Stop { from: before.map_or(from, |stop| stop.from.min(from)), until })
    }
}

/// The last time it did not run.
#[derive(Debug, Clone, Copy)]
struct Stop {
    from: Instant,
    until: Instant,
}

impl Awake {
    /// When what is read now came, at the earliest.
    pub(crate) fn came(&self) -> Instant {
        let now = Instant::now();
        match self.last_stop(now) {
            Some(stop) if now.duration_since(stop.until) < READ_WITHIN => stop.from,
            _ => now,
        }
    }

    /// For how long it has run without a stop, if there was one.
    pub(crate) fn since_last_stop(&self) -> Option<Duration> {
        self.last_stop(Instant::now()).map(|stop| stop.until.elapsed())
    }

    /// More time has passed than this machine counted.
    pub(crate) fn did_not_count(&self, Missed { time, since }: Missed) {
        if time <= STOPPED {
            return;
        }
        tracing::warn!(
            seconds = time.as_secs_f64(),
            "this machine stood still: what it reads now may be old"
        );
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let stop = looks.stopped(since, Instant::now());
        // All that came before is older by so much.
        stop.from = stop.from.checked_sub(time).unwrap_or(stop.from);
    }

    fn last_stop(&self, now: Instant) -> Option<Stop> {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = looks.last {
            if now.duration_since(last) > STOPPED {
                looks.stopped(last, now);
            }
            looks.last = Some(now);
        }
        looks.stop
    }

    fn set_looking(&self, last: Option<Instant>) {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).last = last;
    }
}

/// Somebody looks regularly for as long as this is there.
struct Looking(Arc<App>);

impl Looking {
    fn begin(app: Arc<App>) -> Self {
        app.awake.set_looking(Some(Instant::now()));
        Self(app)
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.awake.set_looking(None);
    }
}

/// Looks regularly, until the end.
pub(crate) async fn follow(app: Arc<App>, end: CancellationToken) {
    let looking = Looking::begin(app);
    loop {
        tokio::select! {
            () = end.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if looking.0.awake.since_last_stop().is_some_and(|ago| ago < LOOK_EVERY) {
            tracing::warn!("this process did not run for a while: what it reads now may be old");
        }
    }
}

#[cfg(test)]
impl Awake {
    /// As if it had not run for so long until now.
    pub(crate) fn stopped_for(&self, time: Duration) {
        self.set_looking(Some(Instant::now() - time));
        self.last_stop(Instant::now());
        self.set_looking(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_right_after_a_stop_may_have_come_when_it_began() {
        let awake = Awake::default();
        let before = Instant::now();
        assert!(awake.came() >= before && awake.since_last_stop().is_none());

        awake.stopped_for(Duration::from_secs(30));

        assert!(awake.came() <= Instant::now() - Duration::from_secs(30));
        assert!(awake.since_last_stop().is_some());
    }

    #[test]
    fn two_stops_right_after_one_another_are_one() {
        let awake = Awake::default();
        let began = Instant::now() - Duration::from_secs(30);
        let first = Stop { from: began, until: began + Duration::from_secs(25) };
        awake.looks.lock().unwrap().stop = Some(first);

        awake.stopped_for(Duration::from_millis(4_500));

        assert_eq!(awake.came(), began);
    }

    #[test]
    fn time_that_was_not_counted_is_a_stop() {
        let awake = Awake::default();

        let since = Instant::now() - Duration::from_secs(2);

        awake.did_not_count(Missed { time: Duration::from_millis(300), since });
        assert!(awake.since_last_stop().is_none());
        awake.did_not_count(Missed { time: Duration::from_secs(30), since });
        assert_eq!(
            awake.came(),
            since - Duration::from_secs(30),
            "it may have come right after the last look"
        );
        awake.did_not_count(Missed { time: Duration::from_secs(10), since: Instant::now() });

        assert_eq!(awake.came(), since - Duration::from_secs(40), "what lay there before lay there longer");
    }

    #[test]
    fn whoever_is_only_slow_was_not_stopped() {
        let awake = Awake::default();

        awake.stopped_for(Duration::from_millis(900));

        let now = Instant::now();
        assert!(awake.came() >= now && awake.since_last_stop().is_none());
    }
}
