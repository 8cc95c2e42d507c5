//! The part of the port about looking after the installation as a whole.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::Result;
use crate::documents::Author;
use crate::keys::KeyRecord;

/// What operators need.
#[async_trait]
pub trait Operations: Send + Sync {
    /// Every edit key under which the Document Server may hold unsaved work: those that are live, and those of which it last
    /// said that somebody is inside, whatever became of them.
    async fn keys_in_use(&self) -> Result<Vec<KeyRecord>>;
    /// Whether the ledger answers, and when that was by its own clock, if instances go by it; `None` if there is one process only.
    /// Costs nothing, however much is in it.
    async fn ping(&self) -> Result<Option<Timestamp>>;
    /// Callbacks that were received and are not finished.
    async fn count_open_saves(&self) -> Result<u64>;
    /// Counts that change from minute to minute.
    async fn present(&self) -> Result<Present>;
    /// Writes an act on the installation as a whole into its audit chain.
    async fn note_operation(&self, operation: &Operation) -> Result<()>;
}

/// What there is at this moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Present {
    /// Editing sessions with somebody inside, as the Document Server last said.
    pub sessions: u64,
    /// People inside, counted once per session.
    pub people: u64,
    /// Conflict copies that nobody has used or dismissed.
    pub conflicts: u64,
    /// Quarantined copies that nobody has dismissed.
    pub quarantined: u64,
    /// Orphans that nobody has dismissed.
    pub orphans: u64,
    /// Deliveries to webhooks that wait.
    pub deliveries: u64,
}

/// An act on the installation as a whole.
#[derive(Debug, Clone)]
pub struct Operation {
    /// What was done, in a word.
    pub action: &'static str,
    /// More of it, as JSON.
    pub details: String,
    /// Who did it.
    pub who: Author,
    /// When.
    pub at: Timestamp,
}
