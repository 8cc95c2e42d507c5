//! What can be seen of a lane from outside.
//!
//! Guarantees cheap looking: no lane is disturbed and only one shard is locked at a time. Does not promise that
//! all lanes are seen at the same instant.

use tokio::time::Instant;

use crate::state::lane::Counts;

/// One lane as it was when somebody looked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneSnapshot<K> {
    /// Whose lane it is.
    pub key: K,
    /// Tasks that are ready and wait for their turn.
    pub waiting: usize,
    /// Pipelined tasks whose first part is not done.
    pub preparing: usize,
    /// Tasks that have the lane: one or none.
    pub finishing: usize,
    /// How long ago the oldest of all these came in.
    pub oldest_age_ms: u64,
}

impl<K: Clone> LaneSnapshot<K> {
    pub(crate) fn new(key: &K, counts: Counts, now: Instant) -> Self {
        let age = counts.oldest.map_or_else(Default::default, |oldest| now.saturating_duration_since(oldest));
        Self {
            key: key.clone(),
            waiting: counts.waiting,
            preparing: counts.preparing,
            finishing: counts.finishing,
            oldest_age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        }
    }
}
