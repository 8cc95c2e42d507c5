//! The end: no new work, then what is there is finished, then what is left is stopped.
//!
//! Guarantees an end within the time given plus [`STOP_GRACE`], and a report of everything that was cut off.
//! Cannot end a task that blocks its thread; [`Lanes::is_drained`] stays false as long as one does.

use std::fmt::Display;
use std::future::poll_fn;
use std::hash::Hash;
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::time::timeout;

use crate::lanes::Lanes;
use crate::snapshot::LaneSnapshot;
use crate::state::shard::Shard;

/// How long a stopped task gets to notice. It needs only to be polled once more.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// What a drain left undone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "it says which tasks were stopped"]
pub struct Drained<K> {
    /// The lanes that were cut off, as they were at that moment. Empty when everything was finished.
    pub left: Vec<LaneSnapshot<K>>,
}

impl<K> Drained<K> {
    /// Whether every task was finished.
    pub fn is_clean(&self) -> bool {
        self.left.is_empty()
    }

    /// How many tasks were stopped.
    pub fn stopped(&self) -> usize {
        self.left.iter().map(|lane| lane.waiting + lane.preparing + lane.finishing).sum()
    }
}

impl<K: Eq + Hash + Clone + Display + Send + Sync + 'static> Lanes<K> {
    /// [`drain_within`](Self::drain_within) the time of [`Settings::drain`](crate::Settings::drain).
    pub async fn drain(&self) -> Drained<K> {
        self.drain_within(self.shared.settings.drain).await
    }

    /// Refuses new work, lets what runs and what waits finish for at most this long, then stops the rest.
    ///
    /// Refusing begins at once and lasts for ever, also if the returned future is dropped half way.
    pub async fn drain_within(&self, duration: Duration) -> Drained<K> {
        self.shards().for_each(Shard::close);
        if timeout(duration, self.emptied()).await.is_ok() {
            return Drained { left: Vec::new() };
        }
        let left = self.snapshot();
        self.shards().flat_map(Shard::stop).for_each(Waker::wake);
        // A second timeout means that something blocks its thread: there is no more that can be done about it.
        let _ = timeout(STOP_GRACE, self.emptied()).await;
        Drained { left }
    }

    /// Whether a drain was begun and nothing is left to do, so that nothing will ever run again.
    pub fn is_drained(&self) -> bool {
        self.shards().all(Shard::is_over)
    }

    /// Waits until no shard has a lane. Only of use after all are closed: an open one may fill again.
    async fn emptied(&self) {
        poll_fn(|context| match self.shards().all(|shard| shard.watch(context.waker())) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}
