//! Which keys a table has had so far, so that every copy is found.
//!
//! Guarantees: a few words of memory for each row, whatever its key looks like; keys are compared by 128 bits of two hashes with
//! secret seeds, which no file can aim at.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// The keys of one table.
#[derive(Default)]
pub(crate) struct Keys {
    seeds: [RandomState; 2],
    seen: HashMap<[u64; 2], Seen>,
}

struct Seen {
    row: u32,
    is_told: bool,
    content: u64,
}

/// An earlier row with the same key.
pub(crate) struct Earlier {
    /// Its row.
    pub(crate) row: u32,
    /// Whether nobody has been told of it.
    pub(crate) is_news: bool,
    /// Whether it is the same in everything.
    pub(crate) is_identical: bool,
}

impl Keys {
    /// Takes a row in; an earlier one with its key comes back. Where nobody asks whether copies are identical, there is no content.
    pub(crate) fn take(&mut self, key: &str, content: Option<&str>, row: u32) -> Option<Earlier> {
        let hash = [self.seeds[0].hash_one(key), self.seeds[1].hash_one(key)];
        let content = content.map_or(0, |content| self.seeds[0].hash_one(content));
        if let Some(seen) = self.seen.get_mut(&hash) {
            let is_news = !seen.is_told;
            seen.is_told = true;
            return Some(Earlier { row: seen.row, is_news, is_identical: seen.content == content });
        }
        self.seen.insert(hash, Seen { row, is_told: false, content });
        None
    }
}
