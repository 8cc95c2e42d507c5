//! Where the time comes from: the system's clock, or one that a test moves by hand.
//!
//! Guarantees: with a manual clock nothing that waits here ever wakes by itself, sleepers wake in the
//! order of their deadlines, and a sleeper that was woken counts as [`Clock::waking`] until it dropped
//! its [`Woken`], so that "nothing is going on" can be told without a gap.
//!
//! Does not scale time: the wall clock stays true (tokens and links carry it); it is the *delays* that
//! [`crate::Timings::scaled`] divides.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;

/// A clock; cheap to clone, clones share the time.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// `None` for the system's clock.
    manual: Option<Mutex<Manual>>,
    waking: AtomicUsize,
}

#[derive(Debug)]
struct Manual {
    now_ms: u64,
    tickets: u64,
    sleepers: BTreeMap<(u64, u64), oneshot::Sender<()>>,
}

/// Held by whoever was woken, until it has begun what it woke up for.
#[derive(Debug)]
pub struct Woken(Clock);

impl Drop for Woken {
    fn drop(&mut self) {
        self.0.0.waking.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Clock {
    /// The real time.
    pub fn system() -> Clock {
        Clock(Arc::new(Inner { manual: None, waking: AtomicUsize::new(0) }))
    }

    /// A clock that stands at the present time until [`Clock::advance`] moves it.
    pub fn manual() -> Clock {
        Clock::manual_at(system_now_ms())
    }

    /// A clock that stands at the given time (milliseconds since 1970).
    pub fn manual_at(now_ms: u64) -> Clock {
        let manual = Manual { now_ms, tickets: 0, sleepers: BTreeMap::new() };
        Clock(Arc::new(Inner { manual: Some(Mutex::new(manual)), waking: AtomicUsize::new(0) }))
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        match &self.0.manual {
            None => system_now_ms(),
            Some(manual) => lock(manual).now_ms,
        }
    }

    /// Seconds since 1970, rounded down.
    pub fn now_s(&self) -> u64 {
        self.now_ms() / 1000
    }

    /// Waits until the clock shows `deadline_ms`.
    pub async fn sleep_until(&self, deadline_ms: u64) -> Woken {
        let Some(manual) = &self.0.manual else {
            let wait_ms = deadline_ms.saturating_sub(system_now_ms());
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            return self.woken();
        };
        let bell = {
            let mut manual = lock(manual);
            if manual.now_ms >= deadline_ms {
                drop(manual);
                return self.woken();
            }
            manual.tickets += 1;
            let place = (deadline_ms, manual.tickets);
            let (ring, bell) = oneshot::channel();
            manual.sleepers.insert(place, ring);
            Bed { clock: self.clone(), place, bell, rested: false }
        };
        bell.rest().await;
        // `advance` has already counted us as waking.
        Woken(self.clone())
    }

    /// Waits for a while.
    pub async fn sleep(&self, wait_ms: u64) -> Woken {
        self.sleep_until(self.now_ms().saturating_add(wait_ms)).await
    }

    /// Moves a manual clock forward and wakes whoever is due; does nothing to the system's clock.
    pub fn advance(&self, by: Duration) {
        let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.advance_to(self.now_ms().saturating_add(by_ms));
    }

    /// Moves a manual clock to a time, never back.
    pub fn advance_to(&self, to_ms: u64) {
        let Some(manual) = &self.0.manual else { return };
        let mut manual = lock(manual);
        manual.now_ms = manual.now_ms.max(to_ms);
        while let Some(entry) = manual.sleepers.first_entry() {
            if entry.key().0 > to_ms {
                break;
            }
            self.0.waking.fetch_add(1, Ordering::SeqCst);
            if entry.remove().send(()).is_err() {
                self.0.waking.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// The next time at which somebody wants to wake; `None` for the system's clock.
    pub fn next_wake_ms(&self) -> Option<u64> {
        let manual = lock(self.0.manual.as_ref()?);
        manual.sleepers.keys().next().map(|place| place.0)
    }

    /// How many sleepers were woken and have not yet begun.
    pub fn waking(&self) -> usize {
        self.0.waking.load(Ordering::SeqCst)
    }

    fn woken(&self) -> Woken {
        self.0.waking.fetch_add(1, Ordering::SeqCst);
        Woken(self.clone())
    }
}

/// A sleeper's entry; leaving early (a dropped future) takes it out of the list again.
struct Bed {
    clock: Clock,
    place: (u64, u64),
    bell: oneshot::Receiver<()>,
    rested: bool,
}

impl Bed {
    async fn rest(mut self) {
        // An error means the clock itself is gone, which cannot be while we hold it.
        let _ = (&mut self.bell).await;
        self.rested = true;
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let Some(manual) = &self.clock.0.manual else { return };
        if self.rested {
            return;
        }
        let waiting = lock(manual).sleepers.remove(&self.place).is_some();
        if !waiting && self.bell.try_recv().is_ok() {
            self.clock.0.waking.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn lock(manual: &Mutex<Manual>) -> std::sync::MutexGuard<'_, Manual> {
    manual.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that the rule points to")]
fn system_now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_wakes_sleepers_only_when_moved() {
        let clock = Clock::manual_at(1_000);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(500).await.0.now_ms() }
        });
        while clock.next_wake_ms().is_none() {
            tokio::task::yield_now().await;
        }

        clock.advance(Duration::from_millis(499));
        assert_eq!(clock.waking(), 0);
        clock.advance(Duration::from_millis(1));

        assert_eq!(sleeper.await.unwrap(), 1_500);
        assert_eq!(clock.waking(), 0);
    }

    #[tokio::test]
    async fn a_dropped_sleeper_leaves_no_trace() {
        let clock = Clock::manual_at(0);

        let slept = tokio::time::timeout(Duration::from_millis(1), clock.sleep(10)).await;

        assert!(slept.is_err());
        assert_eq!(clock.next_wake_ms(), None);
    }
}
