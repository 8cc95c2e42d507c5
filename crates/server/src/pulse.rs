//! The last hour of this process, for the charts of operators: how many saves were stored, and how long callbacks waited for their answer.
//!
//! Guarantees: bounded memory (360 slots of ten seconds, 90 bytes each), a few nanoseconds per note; somebody who opens the page sees
//! the past as well. Does not do: outlive the process, or tell of other instances; `/metrics` and a collector do.

use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How much a slot holds.
pub(crate) const SLOT_SECONDS: u64 = 10;
/// An hour.
pub(crate) const SLOTS: u64 = 360;
/// Up to how long an answer took, in seconds. What took longer is in a bucket of its own.
pub(crate) const BOUNDS_SECONDS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 120.0];

const BUCKETS: usize = BOUNDS_SECONDS.len() + 1;

static PULSE: LazyLock<(Instant, Mutex<Slots>)> = LazyLock::new(|| (Instant::now(), Mutex::default()));

/// What happened in one slot.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Beat {
    /// Saves that were stored.
    pub(crate) saves: u32,
    /// Half of the answers took no longer, in ms; none if there were no answers.
    pub(crate) p50_ms: Option<f64>,
    /// Nineteen of twenty answers took no longer.
    pub(crate) p95_ms: Option<f64>,
}

/// A save was stored.
pub(crate) fn saved() {
    note(|slot| slot.saves += 1);
}

/// A callback was answered.
pub(crate) fn answered(took: Duration) {
    let bucket = bucket_of(took);
    note(|slot| slot.answers[bucket] += 1);
}

/// Every slot since the process began, at most an hour of them, the oldest first; the last one is not over yet.
pub(crate) fn last_hour() -> Vec<Beat> {
    let (began, slots) = &*PULSE;
    let now = began.elapsed().as_secs() / SLOT_SECONDS;
    slots.lock().unwrap_or_else(PoisonError::into_inner).beats(now)
}

/// How far the last slot is, in seconds; at least one.
pub(crate) fn last_slot_seconds() -> u64 {
    (PULSE.0.elapsed().as_secs() % SLOT_SECONDS).max(1)
}

fn note(what: impl FnOnce(&mut Slot)) {
    let (began, slots) = &*PULSE;
    let now = began.elapsed().as_secs() / SLOT_SECONDS;
    what(slots.lock().unwrap_or_else(PoisonError::into_inner).at(now));
}

fn bucket_of(took: Duration) -> usize {
    BOUNDS_SECONDS.iter().position(|bound| took.as_secs_f64() <= *bound).unwrap_or(BUCKETS - 1)
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    number: u64,
    saves: u32,
    answers: [u32; BUCKETS],
}

impl Slot {
    fn beat(&self) -> Beat {
        Beat { saves: self.saves, p50_ms: self.quantile(50), p95_ms: self.quantile(95) }
    }

    /// The bound below which so many of a hundred answers were.
    fn quantile(&self, percent: u64) -> Option<f64> {
        let all: u64 = self.answers.iter().map(|count| u64::from(*count)).sum();
        let mut seen = 0;
        let bucket = self.answers.iter().position(|count| {
            seen += u64::from(*count);
            all > 0 && seen * 100 >= all * percent
        })?;
        let last = BOUNDS_SECONDS.len() - 1;
        Some(BOUNDS_SECONDS[bucket.min(last)] * 1000.0)
    }
}

/// Only slots in which something happened; times in between were quiet.
#[derive(Debug, Default)]
struct Slots(VecDeque<Slot>);

impl Slots {
    fn at(&mut self, now: u64) -> &mut Slot {
        while self.0.front().is_some_and(|oldest| oldest.number + SLOTS <= now) {
            self.0.pop_front();
        }
        if self.0.back().is_none_or(|last| last.number < now) {
            self.0.push_back(Slot { number: now, ..Slot::default() });
        }
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    fn beats(&self, now: u64) -> Vec<Beat> {
        let first = (now + 1).saturating_sub(SLOTS);
        let of =
            |number| self.0.iter().find(|slot| slot.number == number).map_or(Beat::default(), Slot::beat);
        (first..=now).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_told_slot_by_slot_and_quiet_times_are_zero() {
        let mut slots = Slots::default();
        slots.at(1).saves += 2;
        slots.at(1).answers[bucket_of(Duration::from_millis(4))] += 19;
        slots.at(1).answers[bucket_of(Duration::from_secs(900))] += 1;
        slots.at(3).saves += 1;

        let beats = slots.beats(4);

        assert_eq!(beats.iter().map(|beat| beat.saves).collect::<Vec<_>>(), [0, 2, 0, 1, 0]);
        assert_eq!((beats[1].p50_ms, beats[1].p95_ms), (Some(5.0), Some(5.0)));
        assert_eq!((beats[0].p50_ms, beats[3].p95_ms), (None, None));
        slots.at(3).answers[bucket_of(Duration::from_secs(900))] += 1;
        assert_eq!(slots.beats(4)[3].p95_ms, Some(120_000.0), "beyond the last bound");
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let mut slots = Slots::default();
        for number in 0..SLOTS * 3 {
            slots.at(number).saves += 1;
        }

        let beats = slots.beats(SLOTS * 3 - 1);

        assert_eq!((beats.len() as u64, slots.0.len() as u64), (SLOTS, SLOTS));
        assert!(beats.iter().all(|beat| beat.saves == 1));
        assert_eq!(slots.beats(SLOTS * 5).iter().map(|beat| beat.saves).sum::<u32>(), 0, "long ago");
    }

    #[test]
    fn a_note_that_comes_late_counts_in_the_newest_slot() {
        let mut slots = Slots::default();
        slots.at(7).saves += 1;
        slots.at(6).saves += 1;

        assert_eq!(
            slots.beats(7).iter().map(|beat| beat.saves).collect::<Vec<_>>(),
            [0, 0, 0, 0, 0, 0, 0, 2]
        );
    }
}
