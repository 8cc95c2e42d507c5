//! The audit trail as a hash chain: each entry names the hash of the one before it.
//!
//! Guarantees: changing, removing or reordering any entry of a chain changes the hash of every later one, so whoever
//! holds the last hash can tell. The forms that are hashed are fixed here and never change (`v1`, `v2`).
//! Does not do: store entries, decide what is worth an entry, sign anything, or compare chains ([`trail`](crate::trail) does).

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::Digest;

/// The hash before the first entry of a chain.
pub const CHAIN_START: Digest = Digest::new([0; 32]);

/// One act, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which chain: a document's id, or `company:` and a company's.
    pub chain: String,
    /// Its place in the chain, counted from 1.
    pub sequence: u64,
    /// When it happened, by our clock, in whole milliseconds.
    pub at: Timestamp,
    /// Who did it: a user's id, or `document-server`, or `saveguard`.
    pub actor: String,
    /// From where: a client's address, `document-server` or `saveguard`; empty if that is not known.
    pub from: String,
    /// What was done, a word: `version-published`, `key-issued`.
    pub action: String,
    /// What came of it, a word: `done`, `version`, `conflict`. Only entries of the form `v1` have none.
    pub outcome: String,
    /// The particulars, as canonical JSON.
    pub details: String,
}

impl Entry {
    /// Entries that were written before places and outcomes were noted have neither, and keep the form they had.
    fn is_first_form(&self) -> bool {
        self.from.is_empty() && self.outcome.is_empty()
    }
}

/// The hash of an entry that follows `previous`.
pub fn hash_of(previous: &Digest, entry: &Entry) -> Digest {
    let (sequence, at) = (entry.sequence.to_string(), entry.at.as_millisecond().to_string());
    let (name, fields): (&[u8], &[&str]) = if entry.is_first_form() {
        (b"saveguard audit v1", &[&entry.chain, &sequence, &at, &entry.actor, &entry.action, &entry.details])
    } else {
        let Entry { chain, actor, from, action, outcome, details, .. } = entry;
        (b"saveguard audit v2", &[chain, &sequence, &at, actor, from, action, outcome, details])
    };
    let mut hasher = Sha256::new();
    hasher.update(name);
    hasher.update(previous.as_bytes());
    for field in fields {
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
            from: "192.0.2.7".to_owned(),
            action: "version-published".to_owned(),
            outcome: "done".to_owned(),
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
    fn the_hashed_forms_never_change() {
        let first = Entry { from: String::new(), outcome: String::new(), ..entry(1, "{}") };

        let hashes = [first, entry(1, "{}")].map(|entry| hash_of(&CHAIN_START, &entry).to_string());

        assert_eq!(
            hashes,
            [
                "831266d21085a85317a62ea02c032a72d441bd12e27ab5fd78509f9c9c0d4a25",
                "32171e4d6e5588d5d2392fc045dbb1a973f3a0469df34f198cac2483a050a70a"
            ]
        );
    }

    #[test]
    fn every_field_counts() {
        let whole = entry(1, "{}");
        let hash = hash_of(&CHAIN_START, &whole);
        let x = || "x".to_owned();

        let changed = [
            Entry { chain: x(), ..whole.clone() },
            Entry { sequence: 2, ..whole.clone() },
            Entry { at: Timestamp::UNIX_EPOCH, ..whole.clone() },
            Entry { actor: x(), ..whole.clone() },
            Entry { from: x(), ..whole.clone() },
            Entry { action: x(), ..whole.clone() },
            Entry { outcome: x(), ..whole.clone() },
            Entry { details: x(), ..whole.clone() },
            Entry { from: String::new(), outcome: String::new(), ..whole.clone() },
        ];

        assert!(changed.iter().all(|entry| hash_of(&CHAIN_START, entry) != hash));
    }
}
