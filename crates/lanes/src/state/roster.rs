//! The lanes of a shard: the first beside the lock, the others in a table.
//!
//! Most of the time a shard has one lane or none. Kept where the lock is, it comes with the lock when another core takes
//! the shard over; a table would have to be fetched too, piece by piece.
//!
//! Guarantees: a crowd that has gone leaves no memory behind. Does not do: keep an order, or check that a lane is new.

use hashbrown::HashTable;

use super::lane::{Lane, TaskId};

/// A table this small is not worth giving back.
const CAPACITY_KEPT: usize = 64;

#[derive(Debug)]
pub(super) struct Roster<K> {
    first: Option<Named<K>>,
    more: HashTable<Named<K>>,
}

/// A lane and whose it is.
#[derive(Debug)]
pub(super) struct Named<K> {
    pub(super) key: K,
    pub(super) hash: u64,
    /// The id of the task that opened it: no two lanes ever have the same.
    pub(super) id: TaskId,
    pub(super) lane: Lane,
}

impl<K> Roster<K> {
    pub(super) fn new() -> Self {
        Self { first: None, more: HashTable::new() }
    }

    pub(super) fn find(&mut self, hash: u64, is_it: impl Fn(&Named<K>) -> bool) -> Option<&mut Named<K>> {
        match &mut self.first {
            Some(first) if is_it(first) => Some(first),
            _ if self.more.is_empty() => None,
            _ => self.more.find_mut(hash, is_it),
        }
    }

    pub(super) fn insert(&mut self, named: Named<K>) {
        if self.first.is_none() {
            self.first = Some(named);
        } else {
            self.more.insert_unique(named.hash, named, |named| named.hash);
        }
    }

    pub(super) fn remove(&mut self, hash: u64, id: TaskId) -> Option<Named<K>> {
        if let Some(named) = self.first.take_if(|first| first.id == id) {
            return Some(named);
        }
        let (named, _) = self.more.find_entry(hash, |named| named.id == id).ok()?.remove();
        self.give_memory_back();
        Some(named)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Named<K>> {
        self.first.iter().chain(&self.more)
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.more.capacity()
    }

    fn give_memory_back(&mut self) {
        let capacity = self.more.capacity();
        // A factor of 8 between shrinking and growing again keeps this rare however the crowd moves.
        if capacity > CAPACITY_KEPT && self.more.len() < capacity / 8 {
            self.more.shrink_to(capacity / 4, |named| named.hash);
        }
    }
}
