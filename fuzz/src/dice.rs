//! All chance of a run comes from here: one seed, the same numbers for ever.
//!
//! Guarantees: a seed means the same run with every compiler and every version of every crate, because the generator
//! (SplitMix64) is these few lines. Does not do: surprise an attacker.

/// A row of numbers that look like chance.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(crate) fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.throw() % (end as u64).max(1)).unwrap_or_default()
    }

    /// A length up to `max`, short ones more often: 1, up to 2, up to 4, and so on are equally likely.
    pub(crate) fn length(&mut self, max: usize) -> usize {
        let doublings = self.below(usize::BITS.saturating_sub(max.leading_zeros()) as usize + 1);
        1 + self.below((1_usize << doublings.min(24)).min(max.max(1)))
    }

    /// Whether something happens that happens once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A byte.
    pub(crate) fn byte(&mut self) -> u8 {
        self.throw().to_le_bytes()[0]
    }

    /// One of several; there must be one.
    pub(crate) fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// A piece of something of this length: where it begins and ends.
    pub(crate) fn span(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        start..(start + self.length(length - start)).min(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_numbers_for_ever() {
        let mut dice = Dice::of(7);

        assert_eq!([dice.throw(), dice.throw()], [7_191_089_600_892_374_487, 309_689_372_594_955_804]);
    }

    #[test]
    fn spans_are_inside() {
        let mut dice = Dice::of(1);
        for length in (0..100).chain([5_000, 70_000]) {
            for _ in 0..100 {
                let span = dice.span(length);
                assert!(span.start <= span.end && span.end <= length, "{span:?} of {length}");
            }
        }
    }
}
