//! What the scenarios are played with: lanes with known limits, work that lasts, and a journal.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lanes::{Lanes, Settings};

/// Lanes with the default limits on the current runtime.
pub(crate) fn lanes() -> Lanes<&'static str> {
    Lanes::new(Settings::default()).unwrap()
}

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Work that takes this long. Time is paused, so nobody waits for it in earnest.
pub(crate) async fn work(milliseconds: u64) {
    let _ = tokio::time::timeout(ms(milliseconds), std::future::pending::<()>()).await;
}

/// Lets every task that can run do so until it has to wait.
pub(crate) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// What happened, in order.
#[derive(Debug, Clone)]
pub(crate) struct Journal<T>(Arc<Mutex<Vec<T>>>);

impl<T: Clone> Journal<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn note(&self, entry: T) {
        self.0.lock().unwrap().push(entry);
    }

    pub(crate) fn read(&self) -> Vec<T> {
        self.0.lock().unwrap().clone()
    }
}

/// Counts how many are inside at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room(Arc<Mutex<(usize, usize)>>);

impl Room {
    pub(crate) fn enter(&self) -> Inside {
        let mut counts = self.0.lock().unwrap();
        counts.0 += 1;
        counts.1 = counts.1.max(counts.0);
        Inside(self.clone())
    }

    pub(crate) fn inside(&self) -> usize {
        self.0.lock().unwrap().0
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

/// Leaves the room when dropped.
pub(crate) struct Inside(Room);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().0 -= 1;
    }
}
