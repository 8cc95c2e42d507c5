//! Many chains as one trail: the chain of a company holds *anchors*, which name the heads of its documents' chains.
//!
//! A chain alone cannot tell that its end was cut off: what is left still fits together. An anchor is a witness that stands
//! in another chain. [`Checker`] reads entry after entry, companies first, and tells what does not fit.
//!
//! Guarantees: an edited, removed, reordered or spliced entry is found in its own chain; a chain that is shorter than an
//! anchor (or a receipt) says, or that has another entry there, is found by the anchor. Memory grows with the number of
//! chains and anchored heads, not with the entries.
//! Does not do: read or store anything. What no anchor and no receipt has seen yet can be cut off unnoticed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::audit::{CHAIN_START, Entry, hash_of};
use crate::{CompanyId, Digest, OrganisationId};

/// How the name of a company's chain begins. No document's id has a colon.
pub const COMPANY_PREFIX: &str = "company:";
/// The action of an anchor.
pub const ANCHOR: &str = "heads-anchored";
/// More flaws than this tell nobody anything new.
const FLAWS_MAX: usize = 1000;

/// The chain of a company.
pub fn chain_of(company: &CompanyId) -> String {
    format!("{COMPANY_PREFIX}{company}")
}

/// The chain of an organisation: what is said of it, its registrations, and what it handed in.
pub fn chain_of_organisation(organisation: &OrganisationId) -> String {
    format!("organisation:{organisation}")
}

/// Whether a chain is a company's.
pub fn is_company_chain(chain: &str) -> bool {
    chain.starts_with(COMPANY_PREFIX)
}

/// The details of an anchor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The heads, by chain.
    pub heads: BTreeMap<String, AnchoredHead>,
}

/// The end of a chain, when it was anchored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchoredHead {
    /// Its last entry's place.
    pub sequence: u64,
    /// Its last entry's hash, in hexadecimal.
    pub hash: String,
}

/// Who says that an entry was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Witness {
    /// An anchor in a company's chain.
    Anchor {
        /// The chain.
        chain: Arc<str>,
        /// Its place.
        sequence: u64,
    },
    /// Whoever asks: from a receipt, from a log, from an older export.
    Caller,
}

impl fmt::Display for Witness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anchor { chain, sequence } => write!(out, "anchor {sequence} of {chain}"),
            Self::Caller => out.write_str("what was expected"),
        }
    }
}

/// What does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// An entry does not follow the one before it: edited, removed, reordered or spliced.
    #[error("the audit chain of {chain} does not hold at entry {sequence}")]
    Broken {
        /// The chain.
        chain: String,
        /// The first entry that does not fit.
        sequence: u64,
    },
    /// The chain is shorter than somebody saw it.
    #[error(
        "the audit chain of {chain} ends at entry {ends_at}, but {witness} saw entry {seen}: its end was cut off"
    )]
    CutOff {
        /// The chain.
        chain: String,
        /// Its last entry.
        ends_at: u64,
        /// The entry that was there.
        seen: u64,
        /// Who saw it.
        witness: Witness,
    },
    /// Another entry stands where somebody saw one.
    #[error("entry {sequence} of the audit chain of {chain} is not the one that {witness} saw")]
    Replaced {
        /// The chain.
        chain: String,
        /// The entry.
        sequence: u64,
        /// Who saw another.
        witness: Witness,
    },
    /// An anchor cannot be read.
    #[error("entry {sequence} of the audit chain of {chain} is no readable anchor")]
    Unreadable {
        /// The chain.
        chain: String,
        /// The entry.
        sequence: u64,
    },
    /// Companies come first, so that their anchors are known when the documents come.
    #[error("the audit chain of {chain} comes after chains of documents")]
    OutOfOrder {
        /// The chain.
        chain: String,
    },
}

/// Where a chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Its last entry's place.
    pub sequence: u64,
    /// Its last entry's hash.
    pub hash: Digest,
    is_broken: bool,
    anchored: u64,
}

/// What was read, and what does not fit.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The end of every chain.
    pub ends: BTreeMap<String, End>,
    /// How many entries were read.
    pub entries: u64,
    /// How many entries of documents are newer than the last anchor of theirs.
    pub unanchored: u64,
    /// What does not fit.
    pub flaws: Vec<Flaw>,
}

/// Reads a trail: the chains of companies first, each chain in order.
#[derive(Debug, Default)]
pub struct Checker {
    ends: BTreeMap<String, End>,
    seen: HashMap<String, BTreeMap<u64, (Digest, Witness)>>,
    entries: u64,
    has_documents: bool,
    flaws: Vec<Flaw>,
}

impl Checker {
    /// Somebody saw this entry.
    pub fn expect(&mut self, chain: &str, sequence: u64, (hash, witness): (Digest, Witness)) {
        let known = self.seen.entry(chain.to_owned()).or_default();
        if known.get(&sequence).is_some_and(|(other, _)| *other != hash) {
            self.found(Flaw::Replaced { chain: chain.to_owned(), sequence, witness });
        } else {
            known.insert(sequence, (hash, witness));
        }
    }

    /// The next entry, with the hash that stands beside it.
    pub fn read(&mut self, entry: &Entry, hash: Digest) {
        self.entries += 1;
        self.follow(entry, hash);
        if is_company_chain(&entry.chain) {
            if self.has_documents {
                self.found(Flaw::OutOfOrder { chain: entry.chain.clone() });
            } else if entry.action == ANCHOR {
                self.read_anchor(entry);
            }
        } else {
            self.has_documents = true;
        }
    }

    /// Does the entry follow the one before it, and is it the one that was seen?
    fn follow(&mut self, entry: &Entry, hash: Digest) {
        let start = End { sequence: 0, hash: CHAIN_START, is_broken: false, anchored: 0 };
        let end = self.ends.entry(entry.chain.clone()).or_insert(start);
        let (expected, previous) = (end.sequence + 1, end.hash);
        let holds = entry.sequence == expected && hash_of(&previous, entry) == hash;
        let is_news = !holds && !end.is_broken;
        (end.sequence, end.hash) = (entry.sequence, hash);
        end.is_broken |= !holds;
        let seen = self.seen.get_mut(&entry.chain).and_then(|seen| seen.remove(&entry.sequence));
        if seen.is_some() {
            end.anchored = entry.sequence;
        }
        if is_news {
            self.found(Flaw::Broken { chain: entry.chain.clone(), sequence: expected });
        }
        if let Some((_, witness)) = seen.filter(|(seen, _)| *seen != hash) {
            self.found(Flaw::Replaced { chain: entry.chain.clone(), sequence: entry.sequence, witness });
        }
    }

    fn read_anchor(&mut self, entry: &Entry) {
        let Some(heads) = heads_in(&entry.details) else {
            return self.found(Flaw::Unreadable { chain: entry.chain.clone(), sequence: entry.sequence });
        };
        let chain: Arc<str> = entry.chain.as_str().into();
        for (of, sequence, hash) in heads {
            let witness = Witness::Anchor { chain: Arc::clone(&chain), sequence: entry.sequence };
            self.expect(&of, sequence, (hash, witness));
        }
    }

    fn found(&mut self, flaw: Flaw) {
        if self.flaws.len() < FLAWS_MAX {
            self.flaws.push(flaw);
        }
    }

    /// All was read. Only chains that `is_here` names must be there.
    pub fn finish(mut self, is_here: impl Fn(&str) -> bool) -> Verdict {
        let mut cut_off = Vec::new();
        for (chain, seen) in std::mem::take(&mut self.seen) {
            let ends_at = self.ends.get(&chain).map_or(0, |end| end.sequence);
            let last = seen.into_iter().next_back().filter(|(seen, _)| *seen > ends_at && is_here(&chain));
            if let Some((seen, (_, witness))) = last {
                cut_off.push(Flaw::CutOff { chain, ends_at, seen, witness });
            }
        }
        cut_off.sort_by_key(|flaw| flaw.to_string());
        cut_off.into_iter().for_each(|flaw| self.found(flaw));
        let documents = self.ends.iter().filter(|(chain, _)| !is_company_chain(chain));
        let unanchored = documents.map(|(_, end)| end.sequence.saturating_sub(end.anchored)).sum();
        Verdict { ends: self.ends, entries: self.entries, unanchored, flaws: self.flaws }
    }
}

fn heads_in(details: &str) -> Option<Vec<(String, u64, Digest)>> {
    let anchor = serde_json::from_str::<Anchor>(details).ok()?;
    let heads = anchor.heads.into_iter();
    heads.map(|(chain, head)| Some((chain, head.sequence, Digest::parse_hex(&head.hash)?))).collect()
}

#[cfg(test)]
#[path = "trail_tests.rs"]
mod tests;
