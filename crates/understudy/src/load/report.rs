//! What came of a load run, as numbers.
//!
//! Guarantees: counts are complete when the run has ended; latencies are exact up to a limit and sampled beyond.
//!
//! Does not draw conclusions.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

/// Latencies kept per kind.
const KEPT_MAX: usize = 200_000;

/// Numbers of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub seconds: f64,
    /// What happened how often: `opened`, `refreshed`, `changes`, `force_saves`, `taken_by_host`, …
    pub counts: BTreeMap<String, u64>,
    /// What failed how often, by reason.
    pub failures: BTreeMap<String, u64>,
    pub latencies_ms: BTreeMap<String, Latency>,
}

/// How long something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    pub count: usize,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

#[derive(Default)]
pub(super) struct Tally(Mutex<Sheet>);

#[derive(Default)]
struct Sheet {
    counts: BTreeMap<&'static str, u64>,
    failures: BTreeMap<String, u64>,
    times: BTreeMap<&'static str, Vec<Duration>>,
}

impl Tally {
    pub(super) fn count(&self, what: &'static str) {
        *self.sheet().counts.entry(what).or_default() += 1;
    }

    pub(super) fn failed(&self, why: impl Into<String>) {
        *self.sheet().failures.entry(why.into()).or_default() += 1;
    }

    pub(super) fn took(&self, what: &'static str, time: Duration) {
        let mut sheet = self.sheet();
        let times = sheet.times.entry(what).or_default();
        if times.len() < KEPT_MAX {
            times.push(time);
        }
    }

    pub(super) fn report(&self, elapsed: Duration) -> Report {
        let sheet = self.sheet();
        let counts = sheet.counts.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect();
        let latencies =
            sheet.times.iter().map(|(what, times)| ((*what).to_owned(), latency(times))).collect();
        Report {
            seconds: elapsed.as_secs_f64(),
            counts,
            failures: sheet.failures.clone(),
            latencies_ms: latencies,
        }
    }

    fn sheet(&self) -> MutexGuard<'_, Sheet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn latency(times: &[Duration]) -> Latency {
    let mut sorted = times.to_vec();
    sorted.sort();
    let at = |percent: usize| {
        let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(place).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    Latency { count: sorted.len(), p50: at(50), p95: at(95), p99: at(99), max: at(100) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();

        let latency = latency(&times);

        assert_eq!((latency.p50, latency.p95, latency.p99, latency.max), (50.0, 95.0, 99.0, 100.0));
        assert_eq!(super::latency(&[]).max, 0.0);
    }
}
