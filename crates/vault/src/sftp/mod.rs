//! Blobs and the published tree on an SFTP server.
//!
//! [`Store::open`] reads keys and checks settings, without a network. [`Store::vault`] and [`Store::tree`] are the two ports over
//! one pool of connections; folders are made the first time something is needed, so a server that is away at the start
//! is nothing special.
//!
//! Guarantees: the ports', as far as the server has what it takes. It is asked at every connection
//! ([`connection::Abilities`]): blobs need no extension at all, the tree needs `posix-rename@openssh.com` and is refused without
//! it, for a plain rename never replaces and the name would vanish for a moment. Without `fsync@openssh.com` every
//! file is read back and compared before it has a name. The host key is compared with what the operator gave; no key is ever
//! trusted because it was there.
//!
//! A connection that ends leaves the outcome of its last request unknown. Then the work is looked at and done once more over
//! another connection, in a way that what the dead one may still do cannot harm: each attempt has a temporary name of its
//! own, and only whole, flushed files are ever renamed.
//!
//! Does not do: read the environment (the server's configuration does), RSA keys (the library for them has a known
//! weakness in its timing and is not built in), keep a connection for a slow reader.

mod arriving;
mod blobs;
pub(crate) mod connection;
mod dial;
mod failure;
mod host_key;
mod pool;
mod reader;
mod settings;
mod transfer;
mod tree;

use std::sync::Arc;

use model::Guards;

pub use blobs::SftpVault;
pub use settings::{HostKey, Secret, Settings, Timeouts};
pub use tree::SftpTree;

use crate::local::Flushing;
use crate::{Result, VaultError};
use dial::Dialer;
use pool::Pool;

/// An SFTP server, with the connections to it.
#[derive(Clone)]
pub struct Store {
    pool: Arc<Pool>,
}

impl Store {
    /// Reads the key and checks the settings. Nothing is connected yet.
    pub fn open(settings: Settings, guards: &Guards) -> Result<Self> {
        let dialer = Dialer::prepare(settings).map_err(VaultError::unavailable("use its SFTP settings"))?;
        Ok(Self { pool: Arc::new(Pool::new(dialer, Flushing::from_guards(guards))) })
    }

    /// The vault on it.
    pub fn vault(&self) -> SftpVault {
        SftpVault::new(Arc::clone(&self.pool))
    }

    /// The published tree on it.
    pub fn tree(&self) -> SftpTree {
        SftpTree::new(Arc::clone(&self.pool))
    }
}

/// Connects and makes all folders, so that what is wrong is told at the start. A server that cannot have a tree is refused.
pub async fn connect(settings: Settings, guards: &Guards) -> Result<(SftpVault, SftpTree)> {
    let store = Store::open(settings, guards)?;
    let (vault, tree) = (store.vault(), store.tree());
    vault.ready().await?;
    tree.ready().await?;
    Ok((vault, tree))
}
