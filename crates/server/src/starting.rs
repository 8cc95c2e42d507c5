//! What can keep the service from starting, and what keeps a second one out.

use std::path::Path;

/// Keeps a second service out of a data folder. Goes with the process, however that ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: std::fs::File,
}

impl FolderLock {
    /// Takes a folder, if nobody has it.
    pub(crate) fn take(data: &Path) -> Result<Self, StartError> {
        let folder = data.display().to_string();
        let failed = |cause| StartError::Folder { folder: folder.clone(), cause };
        std::fs::create_dir_all(data).map_err(failed)?;
        let file =
            std::fs::OpenOptions::new().create(true).append(true).open(data.join("lock")).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(std::fs::TryLockError::WouldBlock) => Err(StartError::InUse { folder }),
            Err(std::fs::TryLockError::Error(cause)) => Err(failed(cause)),
        }
    }
}

/// Why the service cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder cannot be used.
    #[error("the data folder {folder} cannot be used")]
    Folder {
        /// Where it is.
        folder: String,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// Another process has it.
    #[error("another Saveguard is using the data folder {folder}; stop it first")]
    InUse {
        /// Where it is.
        folder: String,
    },
    /// A restore was broken off.
    #[error("the restore into {folder} was not finished; run `saveguard restore` again")]
    HalfRestored {
        /// Where it is.
        folder: String,
    },
    /// The ledger cannot be opened.
    #[error("the ledger in {place} cannot be opened")]
    Ledger {
        /// Where it is.
        place: String,
        /// Why.
        #[source]
        cause: ledger::LedgerError,
    },
    /// The vault, the spool or the published tree cannot be opened.
    #[error("the vault in {folder} cannot be opened")]
    Vault {
        /// Where it is.
        folder: String,
        /// Why.
        #[source]
        cause: vault::VaultError,
    },
    /// The ledger names files, and there is no vault.
    #[error(
        "there is no vault in {folder}, and the ledger names files that must be there; is its disk mounted? If they are lost, make the \
         folder, start again, and let `saveguard verify` say what is missing"
    )]
    NoVault {
        /// Where it should be.
        folder: String,
    },
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Client(#[from] reqwest::Error),
    /// The signals cannot be made.
    #[error("`signals.redis` cannot be used")]
    Signals(#[from] signals::redis::AddressError),
    /// The lanes refuse their settings.
    #[error("the lanes cannot be made")]
    Lanes(#[from] lanes::InvalidSettings),
}
