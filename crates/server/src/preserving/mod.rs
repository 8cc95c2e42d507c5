//! Preserving: a copy of everything in another folder, made while the service runs, and the way back.
//!
//! A backup takes three steps: a snapshot of the ledger, then every blob it names (those are durable before a row names
//! them, so they are there), then the manifest, which makes the backup count. A second one into the same folder copies only
//! what is new. A restore goes the other way into an empty folder, and the ledger *begins again* before anybody works with
//! it, so that no key is issued twice.
//!
//! ```text
//! manifest.json                 what this backup is; written last, replaced whole
//! ledger-{name}.sqlite          the snapshot
//! SHA256SUMS-{name}             every file with its hash, for `sha256sum -c`
//! vault/blobs/3f/3fd2…          the bytes, as in the data folder
//! ```
//!
//! Guarantees: a backup that is broken off leaves the one before it whole; every byte is hashed on both ways; one that
//! cannot be read keeps no other from being copied, and is named. Does not do: secrets and configuration, which are told
//! of as left out; the published tree, which is made again.

mod backup;
mod copying;
mod files;
mod ledger_copy;
mod manifest;
mod moving;
mod restore;

pub use backup::{BackedUp, back_up};
pub(crate) use files::hash_of;
pub use ledger_copy::{CopiedLedger, copy_ledger};
pub use manifest::Manifest;
pub use moving::{Moved, copy_vault};
pub use restore::{Restored, restore, unfinished};

use std::path::PathBuf;

/// Why a backup or a restore did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum PreserveError {
    /// The folder cannot be used for this.
    #[error("{folder} {why}")]
    Unsuitable {
        /// The folder.
        folder: String,
        /// Why.
        why: &'static str,
    },
    /// A file of the backup cannot be read or written.
    #[error("could not {attempt} {file}")]
    File {
        /// What was attempted.
        attempt: &'static str,
        /// The file.
        file: String,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The backup is not what its manifest says.
    #[error("the backup is damaged: {what}")]
    Damaged {
        /// What was found.
        what: String,
    },
    /// It is a backup of an installation with another name.
    #[error(
        "it is a backup of `{theirs}`, and `server.environment` is `{ours}`: the names must be the same, they are part of every editor key"
    )]
    Foreign {
        /// Its name.
        theirs: String,
        /// The configured one.
        ours: String,
    },
    /// The folder cannot be opened.
    #[error(transparent)]
    Start(#[from] crate::app::StartError),
    /// The ledger failed.
    #[error("the ledger failed")]
    Ledger(#[from] ledger::LedgerError),
    /// A vault failed.
    #[error("a vault failed")]
    Vault(#[from] vault::VaultError),
    /// The work was interrupted.
    #[error("the work was interrupted")]
    Interrupted,
}

impl PreserveError {
    fn file(attempt: &'static str, file: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let file = file.into().display().to_string();
        move |cause| Self::File { attempt, file, cause }
    }
}
