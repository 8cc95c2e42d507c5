//! Verifying: proves at rest that every promise still holds, and mends what can be mended.
//!
//! Guarantees: [`verify`] changes nothing but the times when blobs were last read back, and may run beside the service; with
//! every byte read, a single flipped bit of a stored blob is found. [`repair`] only adds (adopted blobs, publications, sound bytes in the
//! place of damaged ones, which are kept aside) and never removes a content.
//! Does not do: ask the Document Server (`doctor` and the recovery rounds do).

mod mend;
mod repair;
mod walk;

pub use crate::progress::Progress;
pub use repair::{Remedies, Repaired, publish_missing, repair};
pub use walk::verify;

use serde::Serialize;

/// Whether every byte of every blob is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadData {
    /// Names and lengths are compared.
    No,
    /// Every byte is read and hashed.
    Yes,
}

/// Something that should not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which promise it breaks, in a word.
    pub invariant: String,
    /// What was found.
    pub what: String,
    /// Whether `saveguard repair` can mend it.
    pub mendable: bool,
}

/// What was looked at, and what was found.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Documents looked at.
    pub documents: u64,
    /// Blobs looked at.
    pub blobs: u64,
    /// Bytes read and hashed.
    pub bytes_read: u64,
    /// What should not be.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn found(&mut self, invariant: &str, what: String, mendable: Mendable) {
        let mendable = mendable == Mendable::Yes;
        self.findings.push(Finding { invariant: invariant.to_owned(), what, mendable });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mendable {
    Yes,
    No,
}

/// Why it could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The ledger failed.
    #[error("the ledger cannot be read")]
    Ledger(#[from] ledger::LedgerError),
    /// The vault or the tree failed.
    #[error("the vault cannot be read")]
    Vault(#[from] vault::VaultError),
    /// A part of the recovery failed.
    #[error("a part of the repair failed")]
    Recovery(#[from] crate::recovering::RecoveryError),
}
