//! What the harness did and what it found wrong, with times that can be laid beside the journal of the understudy.
//!
//! Guarantees: nothing found is left out of the counts; a finding names its document, its key and its changes, so that
//! a person can find the cause. Does not judge: `watching` and `checking` do.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use understudy::clock::Clock;

/// How a promise was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Somebody's work is nowhere.
    Lost,
    /// Something is there but is not what it should be.
    Damaged,
    /// Something is there twice, or two things live where only one may.
    Duplicated,
    /// Something does not come to its end.
    Stuck,
}

impl Class {
    pub(crate) const ALL: [Self; 4] = [Self::Lost, Self::Damaged, Self::Duplicated, Self::Stuck];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Damaged => "damaged",
            Self::Duplicated => "duplicated",
            Self::Stuck => "stuck",
        }
    }
}

/// One broken promise.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) class: Class,
    pub(crate) what: String,
    pub(crate) document: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) changes: Vec<String>,
}

impl Violation {
    pub(crate) fn new(class: Class, what: impl Into<String>) -> Self {
        Self { class, what: what.into(), document: None, key: None, changes: Vec::new() }
    }

    pub(crate) fn of_document(self, document: &str) -> Self {
        Self { document: Some(document.to_owned()), ..self }
    }

    pub(crate) fn of_key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    pub(crate) fn of_changes(self, changes: impl IntoIterator<Item = impl ToString>) -> Self {
        Self { changes: changes.into_iter().map(|change| change.to_string()).collect(), ..self }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.class.as_str().to_uppercase(), self.what)?;
        if let Some(document) = &self.document {
            write!(out, " (document {document})")?;
        }
        if let Some(key) = &self.key {
            write!(out, " (key {key})")?;
        }
        if !self.changes.is_empty() {
            write!(out, " (changes {})", self.changes.join(", "))?;
        }
        Ok(())
    }
}

/// One thing the harness did.
#[derive(Debug, Clone)]
pub(crate) struct Deed {
    pub(crate) at_ms: u64,
    pub(crate) document: Option<String>,
    pub(crate) what: String,
}

/// The record of one round.
#[derive(Debug)]
pub(crate) struct Chronicle {
    clock: Clock,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    deeds: Vec<Deed>,
    violations: Vec<Violation>,
    tallies: BTreeMap<String, u64>,
}

impl Chronicle {
    pub(crate) fn new() -> Self {
        Self { clock: Clock::system(), pages: Mutex::default() }
    }

    /// Milliseconds since 1970, as in the understudy's journal.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Writes down what happened to everybody.
    pub(crate) fn note(&self, what: impl Into<String>) {
        let deed = Deed { at_ms: self.now_ms(), document: None, what: what.into() };
        self.pages().deeds.push(deed);
    }

    /// Writes down what happened around one document.
    pub(crate) fn note_of(&self, document: &str, what: impl Into<String>) {
        let deed = Deed { at_ms: self.now_ms(), document: Some(document.to_owned()), what: what.into() };
        self.pages().deeds.push(deed);
    }

    /// Writes down a broken promise; the same one is counted once.
    pub(crate) fn accuse(&self, violation: Violation) {
        let mut pages = self.pages();
        let is_known =
            pages.violations.iter().any(|known| known.what == violation.what && known.document == violation.document);
        if !is_known {
            pages.violations.push(violation);
        }
    }

    /// Counts something worth a line of the summary.
    pub(crate) fn count(&self, what: &str, many: u64) {
        *self.pages().tallies.entry(what.to_owned()).or_default() += many;
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.pages().violations.clone()
    }

    pub(crate) fn deeds(&self) -> Vec<Deed> {
        self.pages().deeds.clone()
    }

    pub(crate) fn tallies(&self) -> BTreeMap<String, u64> {
        self.pages().tallies.clone()
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
