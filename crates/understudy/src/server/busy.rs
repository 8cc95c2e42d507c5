//! Counts what is going on, so that somebody can wait for quiet.
//!
//! Guarantees: a guard counts from its making to its drop; [`Busy::idle_but`] returns only when the count is what
//! was asked for and no sleeper of the clock is just waking.
//!
//! Does not count what waits for the clock: callers take a [`Rest`] while they sleep.

use std::sync::Arc;

use tokio::sync::watch;

use crate::clock::Clock;

const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(1);

/// The counter; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Busy(Arc<watch::Sender<usize>>);

/// Counts as one thing going on.
#[derive(Debug)]
pub(crate) struct BusyGuard(Busy);

/// Takes one thing out of the count while it only waits for the clock.
#[derive(Debug)]
pub(crate) struct Rest(Busy);

impl Busy {
    pub(crate) fn rest(&self) -> Rest {
        self.0.send_modify(|count| *count -= 1);
        Rest(self.clone())
    }

    pub(crate) fn new() -> Busy {
        Busy(Arc::new(watch::Sender::new(0)))
    }

    pub(crate) fn begin(&self) -> BusyGuard {
        self.0.send_modify(|count| *count += 1);
        BusyGuard(self.clone())
    }

    /// Waits until only `but` things are going on: answers that a host keeps back on purpose, for example.
    pub(crate) async fn idle_but(&self, clock: &Clock, but: &(dyn Fn() -> usize + Sync)) {
        let mut count = self.0.subscribe();
        loop {
            let going_on = *count.borrow_and_update();
            if clock.waking() == 0 && going_on == but() && *count.borrow() == going_on {
                return;
            }
            // What is excepted may change without a word to us, so look again before long.
            let _ = tokio::time::timeout(LOOK_AGAIN, count.changed()).await;
        }
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count += 1);
    }
}
