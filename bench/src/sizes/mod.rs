//! A simulation of saves by companies of unequal size on one or several clusters, each with one PostgreSQL: how many saves they
//! carry by how much of the busiest is used, how long a save waits there, and where it saturates.
//!
//! Saves arrive at random, and a company's share of them falls with its rank: the largest of a thousand makes 13 %. A company
//! lives whole in one cluster; the largest are placed first, each where least is. A save takes a core of its PostgreSQL for a
//! time that varies around the measured one, and waits if all cores are taken. Guarantees: the same input has the same
//! output. Does not do: disks that saturate before the cores, people who give up, failures.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::options;
use crate::report::{Report, Row};

/// Processor time of PostgreSQL for one save: two cores, shared with who asked, made 800 commits a second in `bench cluster`.
const SAVE_MS: f64 = 2.5;
/// Cores of the machine each PostgreSQL has for itself.
const CORES: usize = 8;
const COMPANIES: usize = 1000;
const CLUSTERS: [usize; 5] = [1, 2, 4, 8, 16];
/// Of the cores of the busiest cluster.
const USED: [f64; 5] = [0.25, 0.5, 0.75, 0.9, 0.95];
/// As many saves are simulated, and the first tenth is not counted: queues begin empty.
const SAVES: usize = 400_000;

/// What the simulation is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Options {
    save_ms: f64,
    cores: usize,
}

impl Options {
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self { save_ms: SAVE_MS, cores: CORES };
        options::read(arguments, |name, values| {
            match name {
                "--save-ms" => options.save_ms = values.next()?.parse().ok().filter(|ms| *ms > 0.0)?,
                "--cores" => options.cores = values.next()?.parse().ok().filter(|cores| *cores > 0)?,
                _ => return None,
            }
            Some(())
        })?;
        Some(options)
    }
}

pub(crate) fn run(options: Options) -> Report {
    let shares = shares();
    let mut rows = Vec::new();
    for clusters in CLUSTERS {
        let saturated_per_s = capacity_per_s(options) / busiest(&shares, clusters);
        for used in USED {
            let wait_ms = percentile_99(waits_ms(options, capacity_per_s(options) * used));
            let name = format!("{clusters} clusters, {:.0} % used", used * 100.0);
            let row = Row::new(&name, "saves/s", (saturated_per_s * used, None, None));
            rows.push(row.noted(&format!("99 of 100 saves wait at most {wait_ms:.1} ms")));
        }
        let name = format!("{clusters} clusters, saturated");
        rows.push(Row::new(&name, "saves/s", (saturated_per_s, None, None)));
    }
    let preface = format!(
        "{COMPANIES} companies, the largest with {:.1} % of all saves; {} cores in each cluster, and {} ms of one for a save.\n\
         used: how much of the cores of the busiest cluster. Waits are those in it.",
        shares[0] * 100.0,
        options.cores,
        options.save_ms
    );
    Report::new("sizes", rows, preface)
}

/// What one PostgreSQL could do without a pause.
fn capacity_per_s(options: Options) -> f64 {
    f64::from(u32::try_from(options.cores).unwrap_or(u32::MAX)) * 1000.0 / options.save_ms
}

/// What each company has of all saves, the largest first; together 1.
fn shares() -> Vec<f64> {
    let weights: Vec<f64> =
        (1..=u16::try_from(COMPANIES).unwrap_or(u16::MAX)).map(|rank| 1.0 / f64::from(rank)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// What the busiest cluster has of all saves, if companies are placed the largest first, each where least is.
fn busiest(shares: &[f64], clusters: usize) -> f64 {
    let mut loads = vec![0.0_f64; clusters];
    for share in shares {
        if let Some(least) = loads.iter_mut().min_by(|one, other| one.total_cmp(other)) {
            *least += share;
        }
    }
    loads.into_iter().fold(0.0, f64::max)
}

fn percentile_99(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 99 / 100).copied().unwrap_or_default()
}

/// How long saves wait that come to one PostgreSQL at such a pace, in milliseconds.
fn waits_ms(options: Options, per_s: f64) -> Vec<f64> {
    let mut chance = Chance(1);
    // When each core is free again, in nanoseconds; the first of them takes the next save.
    let mut free: BinaryHeap<Reverse<u64>> = (0..options.cores).map(|_| Reverse(0)).collect();
    let mut now_ns = 0_u64;
    let mut waits = Vec::with_capacity(SAVES);
    for number in 0..SAVES {
        now_ns += chance.around_ns(1_000_000_000.0 / per_s);
        let Some(Reverse(free_ns)) = free.pop() else { break };
        let begins_ns = free_ns.max(now_ns);
        free.push(Reverse(begins_ns + chance.around_ns(options.save_ms * 1_000_000.0)));
        if number >= SAVES / 10 {
            #[allow(clippy::cast_precision_loss, reason = "waits are short")]
            waits.push((begins_ns - now_ns) as f64 / 1_000_000.0);
        }
    }
    waits
}

/// A fixed sequence that looks like chance.
struct Chance(u64);

impl Chance {
    /// Between 0, excluded, and 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        #[allow(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
        let whole = (mixed >> 11) as f64;
        (whole + 1.0) / 9_007_199_254_740_992.0
    }

    /// A time around a mean, as independent events have it.
    fn around_ns(&mut self, mean_ns: f64) -> u64 {
        let drawn = -self.next().ln() * mean_ns;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "never negative, and far below the limit"
        )]
        let whole = drawn as u64;
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options { save_ms: 2.0, cores: 4 };

    #[test]
    fn companies_share_all_saves_and_are_spread_as_evenly_as_the_largest_allows() {
        let shares = shares();

        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!((busiest(&shares, 4) - 0.25).abs() < 0.01, "{}", busiest(&shares, 4));
        assert!((busiest(&shares, 16) - shares[0]).abs() < 1e-9, "the largest alone");
    }

    #[test]
    fn waits_are_as_the_theory_of_queues_has_them() {
        let waits = waits_ms(OPTIONS, 1600.0);

        // Four cores that are used to 80 %: by Erlang's formula the mean wait is 0.746 of the 2 ms of a save.
        #[allow(clippy::cast_precision_loss, reason = "counts are small")]
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        assert!((mean - 1.491).abs() < 0.1, "{mean}");
    }

    #[test]
    fn waits_grow_with_what_is_used_and_are_the_same_again() {
        let wait = |per_s: f64| percentile_99(waits_ms(OPTIONS, per_s));

        assert!(wait(500.0) < wait(1500.0) && wait(1500.0) < wait(1900.0));
        assert_eq!(wait(1500.0).to_bits(), wait(1500.0).to_bits());
    }
}
