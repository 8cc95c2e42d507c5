//! Which of several servers counts after another one took over.
//!
//! When a standby takes over, PostgreSQL counts on in a new *timeline*. A former primary that comes back by itself still takes changes, in the old
//! one: what is committed there is gone as soon as somebody makes it follow its successor.
//!
//! Guarantees: whoever has been connected to a successor once is not connected to its predecessor again, and gives up the connections of before.
//! Does not do: know of a successor that nobody here has seen yet; only those who run the servers can keep two of them from taking changes
//! at once. Does not survive the process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use deadpool_postgres::{ClientWrapper, Hook, HookError, Metrics};

/// The first eight digits of a file of the log are its timeline.
const WHICH: &str =
    "SELECT system_identifier::text AS system, left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline
                     FROM pg_control_system()";

/// The newest primary that was seen.
#[derive(Debug, Default)]
pub(super) struct Primary {
    seen: Mutex<Option<Seen>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// Servers that follow each other have this in common.
    system: String,
    timeline: u32,
    /// No connection that is older leads to it.
    since: Option<Instant>,
}

impl Primary {
    /// What is asked of each new connection.
    pub(super) fn on_connecting(self: &Arc<Self>) -> Hook {
        let primary = Arc::clone(self);
        Hook::async_fn(move |connection, _| {
            let primary = Arc::clone(&primary);
            Box::pin(async move {
                match which(connection).await {
                    Some((system, timeline)) if !primary.admits(&system, timeline) => {
                        tracing::warn!(
                            timeline,
                            "a PostgreSQL that was succeeded by another takes changes again: it is not used"
                        );
                        Err(HookError::message("this server was succeeded by another"))
                    }
                    _ => Ok(()),
                }
            })
        })
    }

    /// What is asked of each connection before it is used again.
    pub(super) fn on_reuse(self: &Arc<Self>) -> Hook {
        let primary = Arc::clone(self);
        Hook::sync_fn(move |_, metrics: &Metrics| match primary.is_of_before(metrics.created) {
            true => Err(HookError::message("another server took over since")),
            false => Ok(()),
        })
    }

    fn admits(&self, system: &str, timeline: u32) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match &*seen {
            Some(known) if known.system == system && known.timeline > timeline => false,
            Some(known) if known.system == system && known.timeline == timeline => true,
            known => {
                // The very first one has no predecessor. Another system is another database, which somebody put there on purpose.
                let since = known.is_some().then(Instant::now);
                *seen = Some(Seen { system: system.to_owned(), timeline, since });
                true
            }
        }
    }

    fn is_of_before(&self, created: Instant) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().and_then(|seen| seen.since).is_some_and(|since| created < since)
    }
}

/// Which server it is, as far as it may be asked: services that offer PostgreSQL do not all tell.
async fn which(connection: &ClientWrapper) -> Option<(String, u32)> {
    let row = match connection.query_one(WHICH, &[]).await {
        Ok(row) => row,
        Err(cause) => {
            tracing::debug!(error = %cause, "the server does not say which one it is");
            return None;
        }
    };
    let timeline = u32::from_str_radix(row.try_get("timeline").ok()?, 16).ok()?;
    Some((row.try_get("system").ok()?, timeline))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_counts_and_its_predecessor_does_not_come_back() {
        let primary = Primary::default();
        let before = Instant::now();
        assert!(primary.admits("a", 1) && primary.admits("a", 1));
        assert!(!primary.is_of_before(before), "the first one has no predecessor");

        assert!(primary.admits("a", 2));

        assert!(primary.is_of_before(before), "what leads to the predecessor is given up");
        assert!(!primary.is_of_before(Instant::now()));
        assert!(!primary.admits("a", 1));
        assert!(primary.admits("b", 1), "another system");
    }
}
