//! The stores of an [`App`](super::App): vault, published tree and depot, as the configuration names them.
//!
//! Guarantees: what once waited for a far vault is read and delivered, wherever bytes are kept now. Does not do: talk to a far store yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Guards;
use vault::depot::{Depot, Room};
use vault::local::LocalVault;
use vault::local::tree::LocalTree;
use vault::s3::tree::S3Tree;
use vault::s3::{self, S3Vault};
use vault::{Spool, Tree, Vault, VaultError, sftp};

use super::{DEPOT, Purpose};
use crate::config::{StoreKind, Stores};

/// What is needed to open the stores.
pub(super) struct OpeningStores<'a> {
    pub(super) stores: &'a Stores,
    pub(super) data: &'a Path,
    pub(super) guards: Guards,
    pub(super) purpose: Purpose,
    pub(super) spool: &'a Spool,
}

pub(super) type OpenStores = (Arc<dyn Vault>, Arc<dyn Tree>, Option<Arc<Depot>>);

impl OpeningStores<'_> {
    pub(super) fn open(&self) -> Result<OpenStores, VaultError> {
        let sftp = self.sftp()?;
        let vault = self.vault(self.stores.vault, sftp.as_ref())?;
        let tree: Arc<dyn Tree> = match (self.stores.tree, &self.stores.s3, &sftp) {
            (StoreKind::S3, Some(s3), _) => {
                Arc::new(S3Tree::open(&below(s3, "published/"), self.spool.clone())?)
            }
            (StoreKind::Sftp, _, Some(sftp)) => Arc::new(sftp.tree()),
            _ => Arc::new(LocalTree::open(&self.near().join("published"), &self.guards)?),
        };
        // What once waited for a far vault is read and delivered, wherever bytes are kept now.
        if self.stores.vault == StoreKind::Local && !self.data.join(DEPOT).exists() {
            return Ok((vault, tree, None));
        }
        let room = if self.stores.vault == StoreKind::Local { Room::None } else { self.stores.depot };
        let near = Arc::new(self.local(&self.data.join(DEPOT))?);
        let depot = Arc::new(Depot::before(vault, near, (self.spool.clone(), room)));
        Ok((Arc::clone(&depot) as Arc<dyn Vault>, tree, Some(depot)))
    }

    pub(super) fn sftp(&self) -> Result<Option<sftp::Store>, VaultError> {
        let is_used = self.stores.vault == StoreKind::Sftp || self.stores.tree == StoreKind::Sftp;
        let settings = self.stores.sftp.as_ref().filter(|_| is_used);
        settings.map(|settings| sftp::Store::open(settings.clone(), &self.guards)).transpose()
    }

    pub(super) fn vault(
        &self,
        kind: StoreKind,
        sftp: Option<&sftp::Store>,
    ) -> Result<Arc<dyn Vault>, VaultError> {
        Ok(match (kind, &self.stores.s3, sftp) {
            (StoreKind::S3, Some(s3), _) => Arc::new(S3Vault::open(&below(s3, "vault/"))?),
            (StoreKind::Sftp, _, Some(sftp)) => Arc::new(sftp.vault()),
            _ => Arc::new(self.local(&self.near().join("vault"))?),
        })
    }

    /// The folder of a local vault that is not there: its first start, or a disk that is not mounted, in whose place nobody should write.
    pub(super) fn missing_vault(&self) -> Option<PathBuf> {
        let folder = self.near().join("vault");
        (self.stores.vault == StoreKind::Local && !folder.exists()).then_some(folder)
    }

    /// Where local blobs and the local tree are.
    fn near(&self) -> &Path {
        self.stores.folder.as_deref().unwrap_or(self.data)
    }

    fn local(&self, folder: &Path) -> Result<LocalVault, VaultError> {
        let vault = LocalVault::open(folder, &self.guards)?;
        // In a shared folder somebody else may be writing what looks unfinished.
        if self.purpose == Purpose::Serve && folder.starts_with(self.data) {
            vault.clean()?;
        }
        Ok(vault)
    }
}

fn below(settings: &s3::Settings, folder: &str) -> s3::Settings {
    s3::Settings { prefix: format!("{}{folder}", settings.prefix), ..settings.clone() }
}
