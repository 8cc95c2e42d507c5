//! Reports: what instances on one ledger tell each other of themselves, so that any of them can answer for all.
//!
//! Guarantees: what was told is read by the others until the same instance tells something else of the same subject, or takes it
//! back, or for [`KEPT_FOR`]; its age is by the ledger's own clock, so clocks of instances need not agree.
//! Does not do: last. A report is for people who look now: a crash of the engine may take all of them, and nothing of value rests on
//! one. An instance whose ledger is its own has nobody to tell ([`Alone`]).

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::Result;

/// What was told longer ago is gone.
pub const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// What an instance told last of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Who.
    pub instance: String,
    /// What, in the words of whoever told it.
    pub body: String,
    /// How long ago.
    pub age: Duration,
}

/// Told and heard between instances.
#[async_trait]
pub trait Reports: Send + Sync {
    /// Tells the others, in the place of what this instance told before of the same subject. Returns when that was by the ledger's
    /// clock; `None` if there are no others.
    async fn tell(&self, instance: &str, subject: &str, body: &str) -> Result<Option<Timestamp>>;
    /// Takes back what this instance told of a subject.
    async fn take_back(&self, instance: &str, subject: &str) -> Result<()>;
    /// What the others told of a subject, the latest first.
    async fn told(&self, instance: &str, subject: &str) -> Result<Vec<Report>>;
}

/// The only instance there is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

#[async_trait]
impl Reports for Alone {
    async fn tell(&self, _: &str, _: &str, _: &str) -> Result<Option<Timestamp>> {
        Ok(None)
    }

    async fn take_back(&self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }

    async fn told(&self, _: &str, _: &str) -> Result<Vec<Report>> {
        Ok(Vec::new())
    }
}
