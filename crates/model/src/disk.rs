//! How much room is left, and what is still taken then.
//!
//! A full disk must not be found out by a save that fails half way. So room is kept back in steps: first people are told, then
//! uploads are refused (whoever uploads has the file), and last saves, which the Document Server keeps and repeats.
//!
//! Guarantees: total and pure; less room never allows more. Does not do: measure, refuse, tell.

use serde::{Deserialize, Serialize};

/// A disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// What we may still write.
    pub free_bytes: u64,
    /// All there is.
    pub total_bytes: u64,
}

/// Below which room what happens. From the first to the last, each mark is at most the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// People are told below this many bytes …
    pub warn_bytes: u64,
    /// … or below this part of the disk, in percent.
    pub warn_percent: u64,
    /// Uploads are refused, and the published tree waits.
    pub uploads_bytes: u64,
    /// Saves are put off, too.
    pub saves_bytes: u64,
}

/// What the room is enough for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// Everything.
    Plenty,
    /// Everything, but not for long.
    Low,
    /// Saves only.
    SavesOnly,
    /// Nothing that could wait.
    Exhausted,
}

impl Space {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plenty => "plenty",
            Self::Low => "low",
            Self::SavesOnly => "saves-only",
            Self::Exhausted => "exhausted",
        }
    }

    /// Whether an upload may begin.
    pub fn takes_uploads(self) -> bool {
        self < Self::SavesOnly
    }

    /// Whether the bytes of a save may be fetched.
    pub fn takes_saves(self) -> bool {
        self < Self::Exhausted
    }
}

/// Says what the room is enough for.
pub fn rule_on_space(marks: &Marks, room: Room) -> Space {
    let is_small_part =
        u128::from(room.free_bytes) * 100 < u128::from(room.total_bytes) * u128::from(marks.warn_percent);
    match room.free_bytes {
        free if free < marks.saves_bytes => Space::Exhausted,
        free if free < marks.uploads_bytes => Space::SavesOnly,
        free if free < marks.warn_bytes || is_small_part => Space::Low,
        _ => Space::Plenty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: Marks = Marks { warn_bytes: 1000, warn_percent: 5, uploads_bytes: 500, saves_bytes: 100 };

    #[test]
    fn room_is_kept_back_in_steps() {
        for (free_bytes, total_bytes, expected) in [
            (0, 10_000, Space::Exhausted),
            (99, 10_000, Space::Exhausted),
            (100, 10_000, Space::SavesOnly),
            (499, 10_000, Space::SavesOnly),
            (500, 10_000, Space::Low),
            (999, 10_000, Space::Low),
            (1000, 10_000, Space::Plenty),
            (1000, 100_000, Space::Low),
            (5000, 100_000, Space::Plenty),
            (u64::MAX, u64::MAX, Space::Plenty),
        ] {
            let space = rule_on_space(&MARKS, Room { free_bytes, total_bytes });

            assert_eq!(space, expected, "{free_bytes} of {total_bytes}");
        }
    }

    #[test]
    fn less_room_never_allows_more() {
        let spaces: Vec<Space> = (0..2000)
            .map(|free_bytes| rule_on_space(&MARKS, Room { free_bytes, total_bytes: 10_000 }))
            .collect();

        assert!(spaces.is_sorted_by(|less, more| less >= more));
        assert!(Space::Low.takes_uploads() && !Space::SavesOnly.takes_uploads());
        assert!(Space::SavesOnly.takes_saves() && !Space::Exhausted.takes_saves());
    }
}
