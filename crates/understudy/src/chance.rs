//! Random choices that repeat: the same seed gives the same numbers.
//!
//! Guarantees: a draw depends only on its arguments, so it is the same on every machine and in every release.
//!
//! Does not serve secrets; nothing drawn here may be hard to guess.

/// Mixes a seed, a name and a count into an even 64-bit number.
pub fn draw(seed: u64, name: &str, count: u64) -> u64 {
    // FNV-1a over the name, then the finaliser of SplitMix64.
    let named = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mut mixed = seed ^ named.rotate_left(17) ^ count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Whether something with that chance happens.
pub fn happens(percent: u8, drawn: u64) -> bool {
    drawn % 100 < u64::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_another_does_not() {
        assert_eq!(draw(1, "key", 1), draw(1, "key", 1));
        assert_ne!(draw(1, "key", 1), draw(2, "key", 1));
        assert_ne!(draw(1, "key", 1), draw(1, "key", 2));
        assert_ne!(draw(1, "key", 1), draw(1, "kez", 1));
    }
}
