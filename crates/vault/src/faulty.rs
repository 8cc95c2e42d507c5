//! A vault and a tree around others, whose n-th call fails, for tests of flows.
//!
//! Guarantees: a call that fails *before* did nothing; one that fails *after* did everything and its caller does not
//! know. Which call it is, [`Faults`] says.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use model::Digest;
use steps::{Fault, Faults};

use crate::tree::{Glance, Place, Publication, Replaced, Tree};
use crate::{BlobReader, Result, Sidecar, Spooled, StoredBlob, Vault, VaultError};

/// A vault whose calls may fail.
pub struct FaultyVault {
    inner: Arc<dyn Vault>,
    faults: Arc<Faults>,
}

impl FaultyVault {
    /// Wraps a vault.
    pub fn new(inner: Arc<dyn Vault>, faults: Arc<Faults>) -> Self {
        Self { inner, faults }
    }
}

/// A tree whose calls may fail.
pub struct FaultyTree {
    inner: Arc<dyn Tree>,
    faults: Arc<Faults>,
}

impl FaultyTree {
    /// Wraps a tree.
    pub fn new(inner: Arc<dyn Tree>, faults: Arc<Faults>) -> Self {
        Self { inner, faults }
    }
}

fn injected() -> VaultError {
    VaultError::Unavailable {
        attempt: "do what a test forbids",
        cause: std::io::Error::other("injected by a test"),
    }
}

macro_rules! faulty {
    ($port:ident for $wrapper:ident as $prefix:literal { $(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)* } $($infallible:tt)*) => {
        #[async_trait]
        impl $port for $wrapper {
            $(async fn $name(&self, $($arg: $type),*) -> Result<$result> {
                match self.faults.next(concat!($prefix, ".", stringify!($name))) {
                    Fault::None => self.inner.$name($($arg),*).await,
                    Fault::Before => Err(injected()),
                    Fault::After => self.inner.$name($($arg),*).await.and_then(|_| Err(injected())),
                }
            })*

            $($infallible)*
        }
    };
}

faulty!(Vault for FaultyVault as "vault" {
    fn put(spooled: &Spooled, sidecar: &Sidecar) -> ();
    fn mend(spooled: &Spooled) -> ();
    fn open(digest: &Digest, range: Option<Range<u64>>) -> BlobReader;
    fn size_of(digest: &Digest) -> Option<u64>;
    fn list(after: Option<&Digest>, limit: usize) -> Vec<StoredBlob>;
    fn sidecars(digests: &[Digest]) -> Vec<Vec<Sidecar>>;
    fn remove(digest: &Digest, life: u64) -> ();
    fn probe() -> ();
} fn kind(&self) -> &'static str { self.inner.kind() });

faulty!(Tree for FaultyTree as "tree" {
    fn publish(publication: &Publication, content: BlobReader) -> Option<Replaced>;
    fn withdraw(place: &Place, backup_suffix: &str) -> Option<Replaced>;
    fn shown(place: &Place) -> Option<(Digest, u64)>;
    fn glance(place: &Place) -> Option<Glance>;
    fn backups(place: &Place) -> Vec<String>;
    fn remove_backup(place: &Place, backup: &str) -> ();
    fn leave(place: &Place) -> ();
    fn open_backup(place: &Place, backup: &str) -> BlobReader;
    fn tidy(place: &Place) -> ();
});
