//! What the clients know: their registrations, what they handed in, and what they were promised.
//!
//! Guarantees: a workbook is written down before it is sent, so that the service can hold none that is not here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::truth::Truth;
use super::workbook::Rows;

/// What happens to records whose rows are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    Fatal,
    Tombstone,
    Ignore,
}

/// Whether previews stand side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    OneActive,
    Parallel,
}

/// A registration of the play.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) organisation: &'static str,
    pub(crate) registration: &'static str,
    pub(crate) policy: Policy,
    pub(crate) removal: Removal,
}

impl Scope {
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.organisation, self.registration)
    }

    pub(crate) fn path(&self, below: &str) -> String {
        format!("/api/v1/organisations/{}/registrations/{}{below}", self.organisation, self.registration)
    }

    pub(crate) fn template(&self) -> String {
        let (policy, removed) = self.words();
        format!("loads-{policy}-{removed}")
    }

    /// Its policies as a template says them.
    pub(crate) fn words(&self) -> (&'static str, &'static str) {
        let policy = match self.policy {
            Policy::OneActive => "one-active",
            Policy::Parallel => "parallel",
        };
        let removed = match self.removal {
            Removal::Fatal => "fatal",
            Removal::Tombstone => "tombstone",
            Removal::Ignore => "ignore",
        };
        (policy, removed)
    }
}

const SCOPES: [(&str, &str, Policy, Removal); 6] = [
    ("north", "r1", Policy::OneActive, Removal::Tombstone),
    ("north", "r2", Policy::Parallel, Removal::Ignore),
    ("south", "r1", Policy::OneActive, Removal::Ignore),
    ("south", "r2", Policy::Parallel, Removal::Tombstone),
    ("south", "r3", Policy::OneActive, Removal::Fatal),
    ("north", "r3", Policy::Parallel, Removal::Fatal),
];

/// What a log is made of.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Workbook {
        rows: Arc<Rows>,
        /// Rows with a problem.
        wrong: usize,
    },
    Undo,
}

/// What the clients know.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) scopes: Vec<Scope>,
    /// What the records must be, by scope.
    pub(crate) truths: Vec<tokio::sync::Mutex<Truth>>,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    sources: BTreeMap<String, (usize, Source)>,
    /// Logs that the service said are submitted, with their numbers.
    promised: BTreeMap<String, (usize, u64)>,
    superseded: BTreeSet<String>,
    released: BTreeSet<String>,
    /// What was submitted last, as far as clients know.
    last: BTreeMap<usize, Arc<Rows>>,
    uploads: u64,
}

impl Book {
    pub(crate) fn new() -> Self {
        let scope = |(organisation, registration, policy, removal)| Scope {
            organisation,
            registration,
            policy,
            removal,
        };
        Self {
            scopes: SCOPES.map(scope).into(),
            truths: SCOPES.iter().map(|_| tokio::sync::Mutex::default()).collect(),
            pages: Mutex::default(),
        }
    }

    /// A number nobody else has.
    pub(crate) fn next_number(&self) -> u64 {
        let mut pages = self.pages();
        pages.uploads += 1;
        pages.uploads
    }

    pub(crate) fn add(&self, log: &str, scope: usize, source: Source) {
        self.pages().sources.insert(log.to_owned(), (scope, source));
    }

    pub(crate) fn source(&self, log: &str) -> Option<(usize, Source)> {
        self.pages().sources.get(log).cloned()
    }

    /// The service says that a log is submitted.
    pub(crate) fn promise(&self, log: &str, (scope, number): (usize, u64)) {
        let mut pages = self.pages();
        pages.promised.insert(log.to_owned(), (scope, number));
        if let Some((_, Source::Workbook { rows, .. })) = pages.sources.get(log).cloned() {
            pages.last.insert(scope, rows);
        }
    }

    pub(crate) fn promised(&self) -> BTreeMap<String, (usize, u64)> {
        self.pages().promised.clone()
    }

    /// The service says that a newer log took the place of this one.
    pub(crate) fn supersede(&self, log: &str) {
        self.pages().superseded.insert(log.to_owned());
    }

    pub(crate) fn superseded(&self) -> BTreeSet<String> {
        self.pages().superseded.clone()
    }

    /// An operator is about to free the scope of a log.
    pub(crate) fn release(&self, log: &str) {
        self.pages().released.insert(log.to_owned());
    }

    pub(crate) fn is_released(&self, log: &str) -> bool {
        self.pages().released.contains(log)
    }

    pub(crate) fn last(&self, scope: usize) -> Arc<Rows> {
        self.pages().last.get(&scope).cloned().unwrap_or_default()
    }

    pub(crate) fn set_last(&self, scope: usize, rows: Rows) {
        self.pages().last.insert(scope, Arc::new(rows));
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
