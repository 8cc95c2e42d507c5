//! Blobs on an SFTP server, laid out as the local vault lays them out.
//!
//! ```text
//! {vault folder}/blobs/3f/3fd2…           the bytes
//! {vault folder}/blobs/3f/3fd2….1         the same after they had been removed once
//! {vault folder}/blobs/3f/3fd2…~{sidecar} an empty file whose name tells where they came from
//! {vault folder}/damaged/3fd2…-{uuid}     what lay under the name of a blob and was not it
//! {vault folder}/tmp/…                    being written
//! ```
//!
//! Guarantees: the port's. A blob gets its name when all of it is on the server, flushed or read back. Each attempt writes to a
//! name of its own, so a request of a dead connection that is carried out late can only name a whole blob. No extension is
//! needed; without `posix-rename@openssh.com` a blob that is there is never touched. What is not the blob its name says is moved aside.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures_util::future;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::SignedDuration;
use model::Digest;
use uuid::Uuid;

use super::arriving::{Arriving, Names};
use super::connection::Connection;
use super::failure::{Failure, Outcome, if_there};
use super::pool::Pool;
use super::reader;
use super::transfer::Promise;
use crate::names::{BlobName, latest};
use crate::told::Told;
use crate::{BlobReader, Result, Sidecar, Spooled, StoredBlob, Vault, VaultError};

/// Folders looked at or made at once: as many open handles, and far fewer than the library bears.
const FOLDERS_AT_ONCE: usize = 16;
/// What was written to so long ago, nobody writes any more. Several services may share the folder.
const LEFT_BEHIND_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// The vault on an SFTP server.
#[derive(Clone)]
pub struct SftpVault {
    pool: Arc<Pool>,
    paths: Arc<Paths>,
    /// Set once the folders are there.
    ready: Arc<OnceLock<()>>,
}

/// Where things are.
pub(super) struct Paths {
    pub(super) blobs: String,
    pub(super) damaged: String,
    pub(super) temporary: String,
}

impl Paths {
    pub(super) fn folder_of(&self, digest: &Digest) -> String {
        format!("{}/{}", self.blobs, digest.short(2))
    }

    pub(super) fn path_of(&self, name: BlobName) -> String {
        format!("{}/{name}", self.folder_of(&name.digest))
    }

    pub(super) fn fresh_temporary(&self) -> String {
        format!("{}/{}", self.temporary, Uuid::new_v4().simple())
    }

    pub(super) fn fresh_aside(&self, digest: &Digest) -> String {
        format!("{}/{digest}-{}", self.damaged, Uuid::new_v4().simple())
    }
}

impl SftpVault {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        let folder = pool.settings().vault_folder.trim_end_matches('/');
        let paths = Paths {
            blobs: format!("{folder}/blobs"),
            damaged: format!("{folder}/damaged"),
            temporary: format!("{folder}/tmp"),
        };
        Self { pool, paths: Arc::new(paths), ready: Arc::default() }
    }

    /// Connects and makes the folders, if nobody has yet. Those who come meanwhile do the same: if they waited for each other, each
    /// would wait for all before it while the server is silent.
    pub async fn ready(&self) -> Result<()> {
        if self.ready.get().is_none() {
            let prepared = self.pool.run(|connection, _| prepare(connection, Arc::clone(&self.paths))).await;
            prepared.map_err(unavailable("open the vault"))?;
            let _ = self.ready.set(());
        }
        Ok(())
    }

    /// A blob that is not there in its first life: in a later one, if it has any. A blob of a folder that is not there is not absent:
    /// nobody knows. A disk of the server may not be mounted.
    async fn later(&self, digest: &Digest) -> Outcome<Option<StoredBlob>> {
        let folder = &self.paths.folder_of(digest);
        let listed = self
            .pool
            .run(|connection, _| async move { if_there(list_folder(&connection, folder.clone()).await) });
        match listed.await? {
            Some(blobs) => Ok(blobs.into_iter().find(|blob| blob.digest == *digest)),
            None => Err(Failure::ours("the folder of the vault is not there")),
        }
    }

    /// Removes what was being written when an earlier process ended. Only for whoever has the folder to itself.
    pub async fn clean(&self) -> Result<()> {
        self.ready().await?;
        let cleaned = self.pool.run(|connection, _| {
            let folder = self.paths.temporary.clone();
            async move {
                for (name, _) in connection.list(&folder).await? {
                    connection.remove(&format!("{folder}/{name}")).await?;
                }
                Ok(())
            }
        });
        cleaned.await.map_err(unavailable("clean the vault"))
    }
}

/// What failed, as the port says it.
pub(super) fn unavailable(attempt: &'static str) -> impl FnOnce(Failure) -> VaultError {
    move |failure| VaultError::unavailable(attempt)(io::Error::from(failure))
}

#[async_trait]
impl Vault for SftpVault {
    fn kind(&self) -> &'static str {
        "sftp"
    }

    async fn put(&self, spooled: &Spooled, sidecar: &Sidecar) -> Result<()> {
        self.ready().await?;
        let (word, names) = (sidecar.to_word(), Names::fresh(&self.paths, &spooled.digest));
        let stored = self.pool.run(|connection, attempt| {
            let blob = Arriving { paths: &self.paths, spooled, names: &names };
            let word = &word;
            async move { blob.put(&connection, attempt, word).await }
        });
        stored.await.map_err(unavailable("store a blob"))
    }

    async fn mend(&self, spooled: &Spooled) -> Result<()> {
        self.ready().await?;
        let names = Names::fresh(&self.paths, &spooled.digest);
        let mended = self.pool.run(|connection, attempt| {
            let blob = Arriving { paths: &self.paths, spooled, names: &names };
            async move { blob.mend(&connection, attempt).await }
        });
        mended.await.map_err(unavailable("mend a blob"))
    }

    async fn open(&self, digest: &Digest, range: Option<Range<u64>>) -> Result<BlobReader> {
        self.ready().await?;
        let attempt = "open a blob";
        let open = |name| reader::open(Arc::clone(&self.pool), self.paths.path_of(name), range.clone());
        match open(BlobName::first(digest)).await {
            Err(Failure::Missing) => match self.later(digest).await.map_err(unavailable(attempt))? {
                Some(blob) => {
                    open(BlobName { digest: *digest, life: blob.life }).await.map_err(unavailable(attempt))
                }
                None => Err(VaultError::not_found(format!("blob {digest}"))),
            },
            opened => opened.map_err(unavailable(attempt)),
        }
    }

    async fn size_of(&self, digest: &Digest) -> Result<Option<u64>> {
        self.ready().await?;
        let (attempt, path) = ("look for a blob", self.paths.path_of(BlobName::first(digest)));
        let looked = self.pool.run(|connection, _| {
            let path = &path;
            async move { connection.look(path).await }
        });
        match looked.await.map_err(unavailable(attempt))? {
            Some(seen) => Ok(Some(seen.size_bytes)),
            None => Ok(self.later(digest).await.map_err(unavailable(attempt))?.map(|blob| blob.size_bytes)),
        }
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>> {
        self.ready().await?;
        let after = after.copied();
        let listed = self.pool.run(|connection, _| {
            let paths = Arc::clone(&self.paths);
            async move { list(&connection, &paths, (after, limit)).await }
        });
        listed.await.map_err(unavailable("list the vault"))
    }

    async fn sidecars(&self, digests: &[Digest]) -> Result<Vec<Vec<Sidecar>>> {
        self.ready().await?;
        let read = self.pool.run(|connection, _| {
            let paths = Arc::clone(&self.paths);
            async move { sidecars(&connection, &paths, digests).await }
        });
        read.await.map_err(unavailable("read where blobs came from"))
    }

    async fn remove(&self, digest: &Digest, life: u64) -> Result<()> {
        self.ready().await?;
        let name = BlobName { digest: *digest, life };
        let removed = self.pool.run(|connection, _| {
            let paths = Arc::clone(&self.paths);
            async move { remove(&connection, &paths, name).await }
        });
        removed.await.map_err(unavailable("remove a blob"))
    }

    async fn probe(&self) -> Result<()> {
        self.ready().await?;
        let probed = self.pool.run(|connection, _| {
            let paths = Arc::clone(&self.paths);
            async move { probe(&connection, &paths).await }
        });
        probed.await.map_err(unavailable("write to the vault"))
    }
}

/// All folders are made at the start, so that storing a blob never has to flush more than its own folder.
async fn prepare(connection: Arc<Connection>, paths: Arc<Paths>) -> Outcome<()> {
    connection.make_folders(&paths.blobs).await?;
    connection.make_folders(&paths.damaged).await?;
    connection.make_folders(&paths.temporary).await?;
    remove_left_behind(&connection, &paths).await?;
    let there: Vec<String> = connection.list(&paths.blobs).await?.into_iter().map(|(name, _)| name).collect();
    let missing: Vec<String> =
        (0..=u8::MAX).map(|byte| format!("{byte:02x}")).filter(|name| !there.contains(name)).collect();
    if !connection.abilities.flushes {
        tracing::warn!(
            "the SFTP server cannot flush what it is sent (fsync@openssh.com): everything is read back, and what its machine had not              written when it loses power is gone"
        );
    }
    let connection = &*connection;
    let made = missing.into_iter().map(|name| {
        let path = format!("{}/{name}", paths.blobs);
        async move { connection.make_folder(&path).await }
    });
    stream::iter(made).buffer_unordered(FOLDERS_AT_ONCE).try_collect::<()>().await?;
    // Also what an earlier process made and did not come to flush.
    connection.flush_folder(&paths.blobs).await
}

/// Removes what a service that was killed was writing. The server's own clock tells how long ago that was.
async fn remove_left_behind(connection: &Connection, paths: &Paths) -> Outcome<()> {
    let left = connection.list(&paths.temporary).await?;
    if left.is_empty() {
        return Ok(());
    }
    let fresh = paths.fresh_temporary();
    let file = connection.open_to_write(&fresh).await?;
    connection.close(file).await?;
    let now = connection.look(&fresh).await?;
    connection.remove(&fresh).await?;
    let Some(now) = now else { return Ok(()) };
    for (name, seen) in left {
        if !seen.is_folder && now.modified_at.duration_since(seen.modified_at) > LEFT_BEHIND_AFTER {
            connection.remove(&format!("{}/{name}", paths.temporary)).await?;
        }
    }
    Ok(())
}

async fn list(
    connection: &Connection,
    paths: &Paths,
    (after, limit): (Option<Digest>, usize),
) -> Outcome<Vec<StoredBlob>> {
    let first = after.map_or(0, |after| after.as_bytes()[0]);
    let folders: Vec<String> = (first..=u8::MAX).map(|byte| format!("{}/{byte:02x}", paths.blobs)).collect();
    let mut found = Vec::new();
    // Some at once and all of them to their end: what is opened must be closed.
    for some in folders.chunks(FOLDERS_AT_ONCE) {
        let listed =
            future::join_all(some.iter().cloned().map(|folder| list_folder(connection, folder))).await;
        for folder in listed {
            found.extend(folder?.into_iter().filter(|blob| after.is_none_or(|after| blob.digest > after)));
        }
        if found.len() >= limit {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// The blobs of one folder in order.
pub(super) async fn list_folder(connection: &Connection, folder: String) -> Outcome<Vec<StoredBlob>> {
    let listed = connection.list(&folder).await?;
    let blobs = listed
        .into_iter()
        .filter_map(|(name, seen)| {
            let BlobName { digest, life } = BlobName::parse(&name)?;
            Some(StoredBlob { digest, size_bytes: seen.size_bytes, stored_at: seen.modified_at, life })
        })
        .collect();
    Ok(latest(blobs))
}

async fn sidecars(connection: &Connection, paths: &Paths, digests: &[Digest]) -> Outcome<Vec<Vec<Sidecar>>> {
    let folders: BTreeSet<String> = digests.iter().map(|digest| paths.folder_of(digest)).collect();
    let folders: Vec<String> = folders.into_iter().collect();
    let mut told = Told::of(digests);
    // Some at once and all of them to their end: what is opened must be closed.
    for some in folders.chunks(FOLDERS_AT_ONCE) {
        let listed = future::join_all(some.iter().map(|folder| connection.list(folder))).await;
        for entries in listed {
            entries?.iter().for_each(|(name, _)| told.note(name));
        }
    }
    Ok(told.in_order())
}

/// The bytes first: should this be cut short, what is left is a name that says nothing.
async fn remove(connection: &Connection, paths: &Paths, name: BlobName) -> Outcome<()> {
    let folder = paths.folder_of(&name.digest);
    let listed = connection.list(&folder).await?.into_iter().map(|(found, _)| found);
    let (sidecars, blobs): (Vec<String>, Vec<String>) =
        listed.filter(|found| name.covers(found)).partition(|found| found.contains('~'));
    for blob in blobs {
        connection.remove(&format!("{folder}/{blob}")).await?;
    }
    steps::reached("vault.blob-removed");
    for sidecar in sidecars {
        connection.remove(&format!("{folder}/{sidecar}")).await?;
    }
    connection.flush_folder(&folder).await
}

async fn probe(connection: &Connection, paths: &Paths) -> Outcome<()> {
    let (bytes, path) = (b"saveguard", paths.fresh_temporary());
    let file = connection.open_to_write(&path).await?;
    let written = connection.write(&file, 0, &bytes[..]).await;
    let promise = Promise { digest: Digest::of(bytes), size_bytes: bytes.len() as u64 };
    let finished = connection.finish(file, (&path, promise)).await;
    connection.remove(&path).await?;
    written?;
    finished?;
    connection.flush_folder(&paths.temporary).await
}
