//! The vault: immutable bytes under their SHA-256, and the published tree that people and other tools see.
//!
//! Two ports. [`Vault`] keeps blobs: a blob is written in full and durable before it has a name, it never changes, and
//! storing it again is harmless. [`Tree`] shows the head of each document under a readable name: a projection, never
//! the truth. Adapters stand beside the ports: [`local`] (a folder), [`s3`] (a bucket), [`sftp`] (an SFTP server), [`memory`]
//! (tests); [`contract`] is what each must pass, [`faulty`] makes the n-th call fail. [`depot`] stands before a far vault and
//! keeps what that does not take.
//!
//! [`Spool`] takes bytes in: it hashes while it writes and keeps small contents in memory.
//!
//! Does not do: decide what is current (the ledger does), look inside files (`office-check` does).

pub mod contract;
pub mod depot;
pub mod faulty;
pub mod local;
pub mod memory;
mod names;
pub mod s3;
pub mod sftp;
pub mod spool;
mod told;
pub mod tree;
mod verified;

use std::ops::Range;
use std::pin::Pin;

use async_trait::async_trait;
use jiff::Timestamp;
use model::{Digest, DocumentId, EditorKey};
use tokio::io::AsyncRead;

pub use spool::{Spool, SpoolWriter, Spooled};
pub use tree::Tree;
pub use verified::{read_verified, read_whole};

/// Immutable blobs.
#[async_trait]
pub trait Vault: Send + Sync {
    /// Stores spooled bytes under their digest and life, with a sidecar that tells where they came from. Durable when it
    /// returns; a blob that is there already is read back, and mended if it is not what its name says.
    async fn put(&self, spooled: &Spooled, sidecar: &Sidecar) -> Result<()>;
    /// Puts sound bytes under their digest in the place of what lies there, which is kept under a name that is no blob's, where the
    /// store can. Sidecars stay as they are. Durable when it returns. For whoever found the blob damaged.
    async fn mend(&self, spooled: &Spooled) -> Result<()>;
    /// Opens a blob, or a part of it.
    async fn open(&self, digest: &Digest, range: Option<Range<u64>>) -> Result<BlobReader>;
    /// How long a blob is; `None` if there is none.
    async fn size_of(&self, digest: &Digest) -> Result<Option<u64>>;
    /// Blobs in order of digest, from the one after `after`.
    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>>;
    /// Where blobs came from, in the order asked; nothing of one that is not there. A call of its own, because not every store
    /// tells it in a listing: whoever has many to ask for asks for those that lie beside each other at once.
    async fn sidecars(&self, digests: &[Digest]) -> Result<Vec<Vec<Sidecar>>>;
    /// Removes a blob and its sidecars for good, of this life and earlier ones. Durable when it returns; one that is not there is
    /// fine. Carried out late, it does not touch what came again since. Only for whoever made sure that no row names it, and
    /// will not until this is done (`ledger::Pruning`).
    async fn remove(&self, digest: &Digest, life: u64) -> Result<()>;
    /// What kind of store it is, in a word: for receipts.
    fn kind(&self) -> &'static str;
    /// Proves that the vault takes writes now, at the same durability as `put`.
    async fn probe(&self) -> Result<()>;
}

/// Where a blob came from, kept beside it for the day the ledger is restored from an older backup.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sidecar {
    /// It came with a callback of this key and status (0: a forgotten file).
    Saved {
        /// The key, which names the document.
        key: EditorKey,
        /// The callback's status.
        status: u8,
    },
    /// It is the server's record of the changes of a save under this key: worth something only beside that save.
    Changes {
        /// The key.
        key: EditorKey,
    },
    /// It was taken in for this document from the published tree.
    Brought {
        /// The document.
        document: DocumentId,
    },
    /// Somebody uploaded it to become this document, which may have been refused: the document may be another company's.
    Uploaded {
        /// The document it was to become.
        to_become: DocumentId,
    },
}

impl Sidecar {
    /// What is told of a blob, or that it is nobody's: of bytes beside which no sidecar lies any more, only the ledger knows whose
    /// they are.
    pub fn or_nobodys(told: Vec<Self>) -> Vec<Self> {
        if !told.is_empty() {
            return told;
        }
        vec![Self::Uploaded { to_become: DocumentId::parse("unknown").expect("a plain word is an id") }]
    }

    /// The document it certainly belongs to.
    pub fn document(&self) -> Option<DocumentId> {
        match self {
            Self::Saved { key, .. } => key.parts().map(|parts| parts.document),
            Self::Brought { document } => Some(document.clone()),
            Self::Changes { .. } | Self::Uploaded { .. } => None,
        }
    }

    /// The key it names.
    pub fn key(&self) -> Option<&EditorKey> {
        match self {
            Self::Saved { key, .. } | Self::Changes { key } => Some(key),
            Self::Brought { .. } | Self::Uploaded { .. } => None,
        }
    }

    /// As one word of path-safe characters: `{key}~{status}`, `{key}~changes`, `{document}~brought` or `{document}~uploaded`.
    pub fn to_word(&self) -> String {
        match self {
            Self::Saved { key, status } => format!("{key}~{status}"),
            Self::Changes { key } => format!("{key}~changes"),
            Self::Brought { document } => format!("{document}~brought"),
            Self::Uploaded { to_become } => format!("{to_become}~uploaded"),
        }
    }

    /// Reads the word back.
    pub fn parse_word(word: &str) -> Option<Self> {
        let (subject, what) = word.split_once('~')?;
        match what {
            "changes" => Some(Self::Changes { key: EditorKey::parse(subject)? }),
            "brought" => Some(Self::Brought { document: DocumentId::parse(subject).ok()? }),
            "uploaded" => Some(Self::Uploaded { to_become: DocumentId::parse(subject).ok()? }),
            status => Some(Self::Saved { key: EditorKey::parse(subject)?, status: status.parse().ok()? }),
        }
    }
}

/// A blob as the vault lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    /// Its hash.
    pub digest: Digest,
    /// Its length.
    pub size_bytes: u64,
    /// When it was stored, by the store's clock.
    pub stored_at: Timestamp,
    /// How often it had been removed before it was stored.
    pub life: u64,
}

/// An open blob.
pub struct BlobReader {
    /// The length of the whole blob.
    pub size_bytes: u64,
    /// The bytes asked for.
    pub reader: Pin<Box<dyn AsyncRead + Send>>,
}

impl std::fmt::Debug for BlobReader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("BlobReader").field("size_bytes", &self.size_bytes).finish_non_exhaustive()
    }
}

/// Why a store did not do it, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// There is no such blob or file.
    #[error("{what} is not in the vault")]
    NotFound {
        /// The thing.
        what: String,
    },
    /// The store fails (full, gone, read-only): try again later.
    #[error("the vault could not {attempt}")]
    Unavailable {
        /// What was attempted.
        attempt: &'static str,
        /// What the store said.
        #[source]
        cause: std::io::Error,
    },
    /// Stored bytes are not what their name says.
    #[error("blob {digest} is damaged in the vault")]
    Damaged {
        /// Its name.
        digest: Digest,
    },
}

impl VaultError {
    /// Wraps what a store said, with what was attempted.
    pub(crate) fn unavailable(attempt: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |cause| Self::Unavailable { attempt, cause }
    }

    pub(crate) fn not_found(what: impl std::fmt::Display) -> Self {
        Self::NotFound { what: what.to_string() }
    }
}

/// What every method returns.
pub type Result<T> = std::result::Result<T, VaultError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sidecars_read_back_what_they_say() {
        let saved =
            Sidecar::Saved { key: EditorKey::parse("prod_12345_edit_42.k7q2mz4hxw3t").unwrap(), status: 2 };
        let brought = Sidecar::Brought { document: DocumentId::parse("a=b_c").unwrap() };

        let uploaded = Sidecar::Uploaded { to_become: DocumentId::parse("12345").unwrap() };

        let changes = Sidecar::Changes { key: EditorKey::parse("prod_12345_edit_42.k7q2mz4hxw3t").unwrap() };

        for sidecar in [saved.clone(), brought.clone(), uploaded.clone(), changes] {
            assert_eq!(Sidecar::parse_word(&sidecar.to_word()), Some(sidecar));
        }
        assert_eq!(saved.document().unwrap().as_str(), "12345");
        assert_eq!(brought.document().unwrap().as_str(), "a=b_c");
        assert_eq!(uploaded.document(), None, "whoever uploads may name any document");
        assert_eq!(Sidecar::parse_word("no-tilde"), None);
        assert_eq!(Sidecar::parse_word("../x~brought"), None);
    }
}
