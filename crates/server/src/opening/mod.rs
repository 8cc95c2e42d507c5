//! Opening: bring a document in, hand it to an editor, serve its bytes.
//!
//! [`upload`] takes a new document in. [`configure`] gives an editor its key and its signed configuration; it waits for
//! a final save in progress, asks the Document Server when only that knows, and never hands out a key that would hide
//! somebody's work. [`source`] serves `document.url`: the key's base and nothing else, until the key is spent.
//! [`content`] gives the bytes of versions to people, [`history`] shows them in the editor. [`save_as`] brings in what the editor
//! made of a document.
//!
//! Guarantees: no new document without its bytes; at most one live edit key per document; a source that is always the
//! one the key was issued on, whole, and never empty.

mod configure;
mod content;
mod history;
mod save_as;
mod source;
mod upload;

#[cfg(test)]
mod tests;

pub use configure::{Configured, configure};
pub use content::{read, version};
pub use history::{History, HistoryEntry, history, history_data};
pub use save_as::{SaveAs, save_as};
pub(crate) use source::derive;
pub use source::{Readers, StreamRefused, StreamTokens, Streamed, changes, source};
pub use upload::{Upload, upload};

use crate::incoming::{StoreError, UploadError};

/// Why a document could not be opened or brought in.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such document, version or project.
    #[error("{what} does not exist")]
    NotFound {
        /// The thing.
        what: String,
    },
    /// A final save of it is still being stored.
    #[error("the document is being saved")]
    BeingSaved,
    /// The Document Server holds changes beside a forgotten file that is damaged: a person has to look.
    #[error("the Document Server holds changes beside a damaged file")]
    DamagedThere,
    /// The Document Server must be asked and is away.
    #[error("the Document Server cannot be reached")]
    ServerAway,
    /// The bytes are not a whole file.
    #[error("the file is not whole: {reason}")]
    NotWhole {
        /// What was found, for people.
        reason: String,
    },
    /// The id is taken.
    #[error("{what} exists already")]
    Exists {
        /// The thing.
        what: String,
    },
    /// The company has as much as it may.
    #[error("the company may keep no more than {0}")]
    OverQuota(model::quotas::Exceeded),
    /// The upload is larger than allowed.
    #[error("the upload is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The upload could not be checked.
    #[error("the file could not be checked")]
    Check(#[from] crate::incoming::CheckError),
    /// The upload broke off.
    #[error("the upload broke off")]
    BrokenOff,
    /// There is too little room on the disk.
    #[error("there is too little room on the disk")]
    NoRoom,
    /// What was to be saved as a new document could not be fetched.
    #[error("the file could not be fetched")]
    Fetch(#[source] crate::editors::FetchError),
    /// The stream token does not count, or its key is spent.
    #[error(transparent)]
    Stream(#[from] StreamRefused),
    /// The ledger failed.
    #[error("the ledger failed")]
    Ledger(#[source] ledger::LedgerError),
    /// The vault failed.
    #[error("the vault failed")]
    Vault(#[source] vault::VaultError),
}

impl From<ledger::LedgerError> for OpenError {
    fn from(cause: ledger::LedgerError) -> Self {
        match cause {
            ledger::LedgerError::NotFound { what } => Self::NotFound { what },
            ledger::LedgerError::AlreadyExists { what } => Self::Exists { what },
            ledger::LedgerError::OverQuota(exceeded) => Self::OverQuota(exceeded),
            cause => Self::Ledger(cause),
        }
    }
}

impl From<UploadError> for OpenError {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::TooLarge { limit_bytes } => Self::TooLarge { limit_bytes },
            UploadError::BrokenOff => Self::BrokenOff,
            UploadError::NoRoom => Self::NoRoom,
            UploadError::Spool(cause) => Self::Vault(cause),
        }
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Ledger(cause) => cause.into(),
            StoreError::Vault(cause) => Self::Vault(cause),
        }
    }
}

impl From<vault::VaultError> for OpenError {
    fn from(cause: vault::VaultError) -> Self {
        Self::Vault(cause)
    }
}
