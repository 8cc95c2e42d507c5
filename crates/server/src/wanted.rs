//! Work that was asked for and has not begun: publications of documents, work on summary logs.
//!
//! Guarantees: each piece is in it once, so that a document that is saved many times a second is looked at once for all of them; it leaves when
//! its work begins, or will not be done. Does not do: remember anything that matters; the ledger knows what is owed.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// What waits.
#[derive(Debug, Clone)]
pub struct Wanted<K: Eq + Hash>(Arc<Mutex<HashSet<K>>>);

/// A piece of work that waits for as long as this is there.
#[derive(Debug)]
pub(crate) struct Waiting<K: Eq + Hash> {
    wanted: Wanted<K>,
    key: K,
}

impl<K: Eq + Hash> Default for Wanted<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Clone> Wanted<K> {
    /// Asks for work; `None` if it waits already.
    pub(crate) fn ask(&self, key: &K) -> Option<Waiting<K>> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        is_new.then(|| Waiting { wanted: self.clone(), key: key.clone() })
    }

    /// How much waits.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl<K: Eq + Hash> Drop for Waiting<K> {
    fn drop(&mut self) {
        self.wanted.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_once_until_its_turn_comes() {
        let wanted = Wanted::default();
        let (first, other) = (wanted.ask(&"12345"), wanted.ask(&"other"));
        assert!(first.is_some() && other.is_some());
        assert!(wanted.ask(&"12345").is_none());
        assert_eq!(wanted.count(), 2);

        drop(first);

        assert!(wanted.ask(&"12345").is_some());
    }
}
