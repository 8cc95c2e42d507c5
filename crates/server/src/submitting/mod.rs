//! Submissions: a workbook becomes a summary log, a preview, and, once somebody confirms it, records.
//!
//! The way of a log, each step safe to repeat:
//! 1. [`upload`]: the bytes are stored, then the log is written down; older unsubmitted logs of its scope make way.
//! 2. [`assess`](assessing): the workbook is read by its template; rows and problems are staged; the rows are compared with the records.
//! 3. [`confirm`]: somebody confirms the preview; the log is `submitting`.
//! 4. [`apply`](applying): the versions are appended out of sight, then one small step makes all of them visible.
//!
//! Steps 2 and 4 are work that is owed: [`work_soon`] begins it at once, [`look_after`] takes up what nobody works on any more. Whoever works
//! has a run of the ledger; an older run changes nothing, however long it was paused.
//!
//! Guarantees: what was previewed is what is stored; a fault of ours leaves the state and is tried again, a few times; then the log is
//! `validation_failed`, or `validated` again with the reason, and the scope is free. Does not do: say who may, show records.

mod applying;
mod assessing;
mod bringing;
mod grounds;
mod scanning;
mod shifting;
mod staging;
#[cfg(test)]
mod tests;
mod uploading;
mod working;

use ledger::LedgerError;
use ledger::records::Commit;
use model::submissions::LogState;
use vault::VaultError;

use crate::incoming::{StoreError, UploadError};

pub(crate) use applying::told_of;
pub use applying::{ASKS, Confirmation, Confirmed, confirm};
pub use bringing::{Stored, put_bytes, upload_stored};
pub use grounds::Grounds;
pub use uploading::{Bringing, Upload, undo, upload, upload_content};
pub use working::look_after;
pub(crate) use working::work_soon;

/// Why a submission does not go on. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SubmissionError {
    /// No such scope, log or commit.
    #[error("there is no such thing")]
    NotFound,
    /// The registration has no template, or its template has no version that counts.
    #[error("the registration has no template that counts")]
    NoTemplate,
    /// Another log of the scope is being submitted.
    #[error("a submission is in progress")]
    InProgress,
    /// A newer log took its place.
    #[error("a newer summary log has been uploaded")]
    Superseded,
    /// The records moved since the preview; it is computed again.
    #[error("the records changed since the preview")]
    Stale {
        /// By this submission.
        by: Option<Box<Commit>>,
    },
    /// There is no preview to confirm.
    #[error("the summary log is {}", .state.as_str())]
    NotValidated {
        /// What it is.
        state: LogState,
    },
    /// A warning asks something that whoever submits has to answer.
    #[error("a warning has to be answered first")]
    Unanswered {
        /// Its code.
        warning: &'static str,
    },
    /// The bytes are not those that were announced, or are not there.
    #[error("the file is not the one that was announced")]
    OtherBytes,
    /// More bytes than allowed.
    #[error("the upload is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The upload broke off.
    #[error("the upload broke off")]
    BrokenOff,
    /// There is too little room on the disk.
    #[error("there is too little room on the disk")]
    NoRoom,
    /// The bytes could not be stored or read.
    #[error("could not store or read the workbook")]
    Vault(#[from] VaultError),
    /// The ledger could not do it.
    #[error("could not write it down")]
    Ledger(#[from] LedgerError),
    /// The workbook could not be read, through a fault of ours.
    #[error("the workbook could not be read")]
    Read(#[from] sheets::Unreadable),
    /// The scanner did not say what it found.
    #[error("the scanner did not say what it found: {what}")]
    Scanner {
        /// What it did instead.
        what: String,
    },
    /// The work was interrupted.
    #[error("the work was interrupted")]
    Interrupted,
}

impl From<UploadError> for SubmissionError {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::TooLarge { limit_bytes } => Self::TooLarge { limit_bytes },
            UploadError::BrokenOff => Self::BrokenOff,
            UploadError::NoRoom => Self::NoRoom,
            UploadError::Spool(cause) => Self::Vault(cause),
        }
    }
}

impl From<StoreError> for SubmissionError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Ledger(cause) => Self::Ledger(cause),
            StoreError::Vault(cause) => Self::Vault(cause),
        }
    }
}
