//! All chance of a run comes from here: one seed, one generator per purpose.
//!
//! Guarantees: the same seed and name give the same throws, whatever other tasks do meanwhile, so that a story does
//! not change because another one was faster. Does not make real processes deterministic.

use std::ops::Range;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use understudy::chance;

/// A generator for one purpose.
#[derive(Debug)]
pub(crate) struct Dice {
    seed: u64,
    throws: StdRng,
}

impl Dice {
    /// The generator of a whole round.
    pub(crate) fn of(seed: u64) -> Self {
        Self { seed, throws: StdRng::seed_from_u64(seed) }
    }

    /// A generator for a part of it, by name and number.
    pub(crate) fn part(&self, name: &str, number: u64) -> Self {
        Self::of(chance::draw(self.seed, name, number))
    }

    /// The seed of this generator, for somebody else's.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// A number from a range.
    pub(crate) fn number(&mut self, range: Range<u64>) -> u64 {
        self.throws.random_range(range)
    }

    /// Whether something of this likelihood happens.
    pub(crate) fn happens(&mut self, percent: u64) -> bool {
        self.number(0..100) < percent
    }

    /// One of several.
    pub(crate) fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let last = choices.len().saturating_sub(1);
        &choices[self.throws.random_range(0..=last)]
    }

    /// One of several, by their weights.
    pub(crate) fn weighted<'a, T>(&mut self, choices: &'a [(u64, T)]) -> &'a T {
        let total = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.number(0..total);
        for (weight, choice) in choices {
            if left < *weight {
                return choice;
            }
            left -= weight;
        }
        unreachable!("the weights add up to the total")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_disturb_each_other() {
        let dice = Dice::of(7);
        let mut alone = dice.part("kills", 1);
        let (mut one, mut other) = (dice.part("kills", 1), dice.part("load", 1));

        let expected: Vec<u64> = (0..20).map(|_| alone.number(0..1000)).collect();
        let seen: Vec<u64> = (0..20)
            .map(|_| {
                other.number(0..1000);
                one.number(0..1000)
            })
            .collect();

        assert_eq!(seen, expected);
    }

    #[test]
    fn weights_count() {
        let mut dice = Dice::of(1);
        let mut thrown = [0_u32; 3];
        for _ in 0..1000 {
            thrown[*dice.weighted(&[(1, 0_usize), (0, 1), (9, 2)])] += 1;
        }

        assert!(thrown[0] > 50 && thrown[1] == 0 && thrown[2] > 800, "{thrown:?}");
    }
}
