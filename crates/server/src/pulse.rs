//! The last hour, for the charts of operators: how many saves were stored, and how long callbacks waited for their answer.
//!
//! Guarantees: bounded memory (360 slots of ten seconds, 90 bytes each), a few nanoseconds per note; somebody who opens the page sees
//! the past as well. What several instances remember is put together. Does not do: outlive the process, or keep more than an hour;
//! `/metrics` and a collector do.

use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

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

/// Slots in which something happened, by how many of them ago that was.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Pulse {
    slots: Vec<(u64, Slot)>,
    /// How many slots the process has lived, at most an hour of them.
    length: u64,
}

/// The last hour of this process.
pub(crate) fn own() -> Pulse {
    let (began, slots) = &*PULSE;
    let now = began.elapsed().as_secs() / SLOT_SECONDS;
    slots.lock().unwrap_or_else(PoisonError::into_inner).pulse(now)
}

/// How far the last slot is, in seconds; at least one.
pub(crate) fn last_slot_seconds() -> u64 {
    (PULSE.0.elapsed().as_secs() % SLOT_SECONDS).max(1)
}

/// Every slot of the last hour since the first of these began, the oldest first; the last one is not over yet. Each was told so long
/// ago.
pub(crate) fn together(told: &[(Duration, Pulse)]) -> Vec<Beat> {
    let mut slots = vec![Slot::default(); usize::try_from(SLOTS).unwrap_or_default()];
    let mut length = 0;
    for (age, pulse) in told {
        let later = age.as_secs() / SLOT_SECONDS;
        length = length.max((pulse.length + later).min(SLOTS));
        for (ago, slot) in &pulse.slots {
            let place = usize::try_from(ago + later).unwrap_or(usize::MAX);
            if let Some(sum) = slots.get_mut(place) {
                sum.add(slot);
            }
        }
    }
    slots.truncate(usize::try_from(length).unwrap_or(usize::MAX));
    slots.iter().rev().map(Slot::beat).collect()
}

fn note(what: impl FnOnce(&mut Slot)) {
    let (began, slots) = &*PULSE;
    let now = began.elapsed().as_secs() / SLOT_SECONDS;
    what(slots.lock().unwrap_or_else(PoisonError::into_inner).at(now));
}

fn bucket_of(took: Duration) -> usize {
    BOUNDS_SECONDS.iter().position(|bound| took.as_secs_f64() <= *bound).unwrap_or(BUCKETS - 1)
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Slot {
    #[serde(skip)]
    number: u64,
    saves: u32,
    answers: [u32; BUCKETS],
}

impl Slot {
    fn add(&mut self, other: &Self) {
        self.saves = self.saves.saturating_add(other.saves);
        for (sum, more) in self.answers.iter_mut().zip(other.answers) {
            *sum = sum.saturating_add(more);
        }
    }

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

    fn pulse(&self, now: u64) -> Pulse {
        let recent = self.0.iter().filter(|slot| slot.number + SLOTS > now);
        let slots = recent.map(|slot| (now.saturating_sub(slot.number), *slot)).collect();
        Pulse { slots, length: (now + 1).min(SLOTS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beats(slots: &Slots, now: u64) -> Vec<Beat> {
        together(&[(Duration::ZERO, slots.pulse(now))])
    }

    #[test]
    fn what_happened_is_told_slot_by_slot_and_quiet_times_are_zero() {
        let mut slots = Slots::default();
        slots.at(1).saves += 2;
        slots.at(1).answers[bucket_of(Duration::from_millis(4))] += 19;
        slots.at(1).answers[bucket_of(Duration::from_secs(900))] += 1;
        slots.at(3).saves += 1;

        let beats = beats(&slots, 4);

        assert_eq!(beats.iter().map(|beat| beat.saves).collect::<Vec<_>>(), [0, 2, 0, 1, 0]);
        assert_eq!((beats[1].p50_ms, beats[1].p95_ms), (Some(5.0), Some(5.0)));
        assert_eq!((beats[0].p50_ms, beats[3].p95_ms), (None, None));
        slots.at(3).answers[bucket_of(Duration::from_secs(900))] += 1;
        assert_eq!(self::tests::beats(&slots, 4)[3].p95_ms, Some(120_000.0), "beyond the last bound");
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let mut slots = Slots::default();
        for number in 0..SLOTS * 3 {
            slots.at(number).saves += 1;
        }

        let beats = beats(&slots, SLOTS * 3 - 1);

        assert_eq!((beats.len() as u64, slots.0.len() as u64), (SLOTS, SLOTS));
        assert!(beats.iter().all(|beat| beat.saves == 1));
        assert_eq!(
            self::tests::beats(&slots, SLOTS * 5).iter().map(|beat| beat.saves).sum::<u32>(),
            0,
            "long ago"
        );
    }

    #[test]
    fn a_note_that_comes_late_counts_in_the_newest_slot() {
        let mut slots = Slots::default();
        slots.at(7).saves += 1;
        slots.at(6).saves += 1;

        assert_eq!(
            beats(&slots, 7).iter().map(|beat| beat.saves).collect::<Vec<_>>(),
            [0, 0, 0, 0, 0, 0, 0, 2]
        );
    }

    #[test]
    fn what_instances_remember_is_added_up_by_when_it_was() {
        let (mut young, mut old) = (Slots::default(), Slots::default());
        young.at(1).saves += 1;
        young.at(1).answers[bucket_of(Duration::from_millis(4))] += 1;
        old.at(98).saves += 10;
        old.at(100).saves += 100;
        old.at(100).answers[bucket_of(Duration::from_millis(400))] += 3;

        let beats = together(&[(Duration::ZERO, young.pulse(2)), (Duration::from_secs(14), old.pulse(100))]);

        assert_eq!(beats.len(), 102, "since the older one began");
        let saves: Vec<_> = beats.iter().rev().take(5).map(|beat| beat.saves).collect();
        assert_eq!(saves, [0, 101, 0, 10, 0], "told one slot ago, so one slot further back");
        assert_eq!((beats[100].p50_ms, beats[100].p95_ms), (Some(500.0), Some(500.0)));
    }
}
