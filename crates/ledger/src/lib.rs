//! The ledger: documents, versions, keys, the inbox of callbacks, kept copies and the audit trail.
//!
//! This is the port: what the flows need, in our words, one atomic step per method. A step happens in one transaction
//! or not at all, and a step that returned `Ok` survives a power cut. Rules are not decided here: adapters read the
//! facts inside the transaction and ask [`model`].
//!
//! The port has nineteen parts, so that each fits a screen: [`Documents`], [`Keys`], [`Sessions`], [`Saves`], [`Changes`],
//! [`History`], [`Publications`], [`Trail`], [`Callers`], [`Shares`], [`Snapshots`], [`Operations`], [`Outbox`], [`Pruning`],
//! and for submissions [`Scopes`], [`Templates`], [`Logs`], [`Staging`], [`Records`].
//! Adapters stand beside it ([`sqlite`], [`postgres`]), the suite every adapter passes is
//! [`contract`], and [`faulty`] wraps any ledger so that its n-th call fails. [`turns`] only say who does what now,
//! and [`reports`] tell other instances of it.
//!
//! Does not do: bytes (the vault), network, waiting for people.

mod adapting;
mod callback_text;
pub mod callers;
pub mod changes;
pub mod contract;
pub mod documents;
pub mod faulty;
pub mod history;
pub mod keys;
pub mod logs;
pub mod moving;
pub mod operations;
pub mod outbox;
pub mod postgres;
pub mod pruning;
pub mod publications;
pub mod records;
pub mod reports;
pub mod saves;
pub mod scopes;
pub mod searching;
pub mod sessions;
pub mod shares;
pub mod snapshots;
pub mod sqlite;
pub mod staging;
pub mod templates;
pub mod trail;
pub mod turns;
mod wishes;

pub use callers::Callers;
pub use changes::Changes;
pub use documents::Documents;
pub use history::History;
pub use keys::Keys;
pub use logs::Logs;
pub use operations::Operations;
pub use outbox::Outbox;
pub use pruning::Pruning;
pub use publications::Publications;
pub use records::Records;
pub use reports::Reports;
pub use saves::Saves;
pub use scopes::Scopes;
pub use sessions::Sessions;
pub use shares::Shares;
pub use snapshots::Snapshots;
pub use staging::Staging;
pub use templates::Templates;
pub use trail::Trail;
pub use turns::Turns;

use model::quotas::Exceeded;

/// The whole port. Flows hold an `Arc<dyn Ledger>`.
pub trait Ledger:
    Documents
    + Keys
    + Sessions
    + Saves
    + Changes
    + Publications
    + Trail
    + Callers
    + Shares
    + Snapshots
    + Operations
    + Outbox
    + History
    + Pruning
    + Scopes
    + Templates
    + Logs
    + Staging
    + Records
{
}

impl<L> Ledger for L where
    L: Documents
        + Keys
        + Sessions
        + Saves
        + Changes
        + Publications
        + Trail
        + Callers
        + Shares
        + Snapshots
        + Operations
        + Outbox
        + History
        + Pruning
        + Scopes
        + Templates
        + Logs
        + Staging
        + Records
{
}

/// Why a step did not happen, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The line to the writer is too long or the lock was not had in time: try again later.
    #[error("the ledger is busy")]
    Busy,
    /// The store itself fails (disk full, I/O error, closed): nothing was changed, try again later.
    #[error("the ledger cannot be written or read")]
    Unavailable {
        /// What the engine said.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The thing to be created is there already.
    #[error("{what} exists already")]
    AlreadyExists {
        /// The thing.
        what: String,
    },
    /// The thing the step needs is not there.
    #[error("{what} is not in the ledger")]
    NotFound {
        /// The thing.
        what: String,
    },
    /// A row does not say what it must: somebody or something damaged the database.
    #[error("the ledger is damaged: {what}")]
    Damaged {
        /// What was found.
        what: String,
    },
    /// A new document would pass a limit of its company.
    #[error("the company may keep no more than {0}")]
    OverQuota(Exceeded),
    /// There is no version of this template by which something could be handed in.
    #[error("there is no version of the template `{template}` that is not retired")]
    NoTemplate {
        /// The template.
        template: model::TemplateId,
    },
    /// A thing would have more parts than it may.
    #[error("there are at most {limit} {what}")]
    TooMany {
        /// The parts.
        what: &'static str,
        /// How many there may be.
        limit: u32,
    },
    /// The first day would come after the last one.
    #[error("the days do not fit: {0}")]
    Reversed(model::scopes::Reversed),
    /// The blob is just being removed, or was removed after it was stored: store it again, then repeat the step.
    #[error("the blob is being removed")]
    BlobGoing,
    /// Somebody else works on the summary log now, or it is in a state in which nobody does: stop.
    #[error("{what} is not this run's to work on any more")]
    Overtaken {
        /// The log.
        what: String,
    },
}

impl LedgerError {
    /// A missing thing, named.
    pub fn not_found(what: impl std::fmt::Display) -> Self {
        Self::NotFound { what: what.to_string() }
    }

    /// A run that does not count any more.
    pub fn overtaken(log: &model::SummaryLogId) -> Self {
        Self::Overtaken { what: format!("summary log `{log}`") }
    }

    /// A damaged row, described.
    pub fn damaged(what: impl std::fmt::Display) -> Self {
        Self::Damaged { what: what.to_string() }
    }
}

/// What every method returns.
pub type Result<T> = std::result::Result<T, LedgerError>;
