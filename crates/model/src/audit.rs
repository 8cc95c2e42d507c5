//! The audit trail as a hash chain: each entry names the hash of the one before it.
//!
//! Guarantees: changing, removing or reordering any entry of a chain changes the hash of every later one, so whoever
//! holds the last hash can tell. The form that is hashed is fixed here and never changes (`v1`).
//! Does not do: store entries, decide what is worth an entry, or sign anything.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::Digest;

/// The hash before the first entry of a chain.
pub const CHAIN_START: Digest = Digest::new([0; 32]);

/// One act, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which chain: a document's id, or a submission scope.
    pub chain: String,
    /// Its place in the chain, counted from 1.
    pub sequence: u64,
    /// When it happened, by our clock, in whole milliseconds.
    pub at: Timestamp,
    /// Who did it: a user's id, or `document-server`, or `saveguard`.
    pub actor: String,
    /// What was done, a word: `version-published`, `key-issued`.
    pub action: String,
    /// The particulars, as canonical JSON.
    pub details: String,
}

/// The hash of an entry that follows `previous`.
pub fn hash_of(previous: &Digest, entry: &Entry) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update(b"saveguard audit v1");
    hasher.update(previous.as_bytes());
    for field in [
        entry.chain.as_str(),
        &entry.sequence.to_string(),
        &entry.at.as_millisecond().to_string(),
        &entry.actor,
        &entry.action,
        &entry.details,
    ] {
        // The length comes first, so that no two different entries feed the hasher the same bytes.
        hasher.update((field.len() as u64).to_be_bytes());
        hasher.update(field.as_bytes());
    }
    Digest::new(hasher.finalize().into())
}

/// Where a chain breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the audit chain `{chain}` does not hold at entry {sequence}")]
pub struct BrokenChain {
    /// The chain.
    pub chain: String,
    /// The first entry that does not fit.
    pub sequence: u64,
}

/// Checks a chain from its first entry; returns its last hash.
pub fn verify<'a>(entries: impl IntoIterator<Item = (&'a Entry, Digest)>) -> Result<Digest, BrokenChain> {
    let mut previous = CHAIN_START;
    for (expected, (entry, hash)) in (1..).zip(entries) {
        if entry.sequence != expected || hash_of(&previous, entry) != hash {
            return Err(BrokenChain { chain: entry.chain.clone(), sequence: expected });
        }
        previous = hash;
    }
    Ok(previous)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sequence: u64, details: &str) -> Entry {
        Entry {
            chain: "12345".to_owned(),
            sequence,
            at: Timestamp::from_millisecond(1_794_770_000_123).unwrap(),
            actor: "u1".to_owned(),
            action: "version-published".to_owned(),
            details: details.to_owned(),
        }
    }

    fn chain() -> Vec<(Entry, Digest)> {
        let mut previous = CHAIN_START;
        (1..=4)
            .map(|sequence| {
                let entry = entry(sequence, &format!("{{\"version\":{sequence}}}"));
                previous = hash_of(&previous, &entry);
                (entry, previous)
            })
            .collect()
    }

    fn broken_at(chain: &[(Entry, Digest)]) -> Option<u64> {
        verify(chain.iter().map(|(entry, hash)| (entry, *hash))).err().map(|broken| broken.sequence)
    }

    #[test]
    fn an_untouched_chain_verifies() {
        assert_eq!(broken_at(&chain()), None);
        assert_eq!(broken_at(&[]), None);
    }

    #[test]
    fn an_edited_removed_or_reordered_entry_is_found() {
        let mut edited = chain();
        edited[1].0.details = "{}".to_owned();
        let mut removed = chain();
        removed.remove(2);
        let mut reordered = chain();
        reordered.swap(0, 1);

        assert_eq!(broken_at(&edited), Some(2));
        assert_eq!(broken_at(&removed), Some(3));
        assert_eq!(broken_at(&reordered), Some(1));
    }

    #[test]
    fn the_hashed_form_never_changes() {
        let hash = hash_of(&CHAIN_START, &entry(1, "{}"));

        assert_eq!(hash.to_string(), "831266d21085a85317a62ea02c032a72d441bd12e27ab5fd78509f9c9c0d4a25");
    }
}
