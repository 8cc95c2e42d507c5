//! Blobs on an SFTP server, laid out as the local vault lays them out.
//!
//! ```text
//! {vault folder}/blobs/3f/3fd2…           the bytes
//! {vault folder}/blobs/3f/3fd2…~{sidecar} an empty file whose name tells where they came from
//! {vault folder}/tmp/…                    being written
//! ```
//!
//! Guarantees: the port's. A blob gets its name when all of it is on the server, flushed or read back. Each attempt writes to a
//! name of its own, so a request of a dead connection that is carried out late can only name a whole blob. No extension is
//! needed; without `posix-rename@openssh.com` a blob that is there is never touched, and one of the wrong length is moved aside first.

use std::collections::BTreeMap;
use std::io::{self, Cursor};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::Digest;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::connection::Connection;
use super::failure::{Failure, Outcome};
use super::pool::{Attempt, Pool};
use super::reader;
use super::transfer::Promise;
use crate::spool::Body;
use crate::{BlobReader, Result, Sidecar, Spooled, StoredBlob, Vault, VaultError};

/// Folders looked at or made at once: as many open handles, and far fewer than the library bears.
const FOLDERS_AT_ONCE: usize = 16;

/// The vault on an SFTP server.
#[derive(Clone)]
pub struct SftpVault {
    pool: Arc<Pool>,
    paths: Arc<Paths>,
    ready: Arc<OnceCell<()>>,
}

/// Where things are.
struct Paths {
    blobs: String,
    temporary: String,
}

impl Paths {
    fn folder_of(&self, digest: &Digest) -> String {
        format!("{}/{}", self.blobs, digest.short(2))
    }

    fn path_of(&self, digest: &Digest) -> String {
        format!("{}/{digest}", self.folder_of(digest))
    }

    fn fresh_temporary(&self) -> String {
        format!("{}/{}", self.temporary, Uuid::new_v4().simple())
    }
}

impl SftpVault {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        let folder = pool.settings().vault_folder.trim_end_matches('/');
        let paths = Paths { blobs: format!("{folder}/blobs"), temporary: format!("{folder}/tmp") };
        Self { pool, paths: Arc::new(paths), ready: Arc::default() }
    }

    /// Connects and makes the folders, once.
    pub async fn ready(&self) -> Result<()> {
        let prepared = self.ready.get_or_try_init(|| async {
            self.pool.run(|connection, _| prepare(connection, Arc::clone(&self.paths))).await
        });
        prepared.await.map(drop).map_err(unavailable("open the vault"))
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
        let word = sidecar.to_word();
        // One for each attempt.
        let temporaries = [self.paths.fresh_temporary(), self.paths.fresh_temporary()];
        let stored = self.pool.run(|connection, attempt| {
            let blob = Arriving { paths: Arc::clone(&self.paths), spooled, temporaries: &temporaries };
            let word = &word;
            async move { blob.put(&connection, attempt, word).await }
        });
        stored.await.map_err(unavailable("store a blob"))
    }

    async fn open(&self, digest: &Digest, range: Option<Range<u64>>) -> Result<BlobReader> {
        self.ready().await?;
        match reader::open(Arc::clone(&self.pool), self.paths.path_of(digest), range).await {
            Err(Failure::Missing) => Err(VaultError::not_found(format!("blob {digest}"))),
            opened => opened.map_err(unavailable("open a blob")),
        }
    }

    async fn size_of(&self, digest: &Digest) -> Result<Option<u64>> {
        self.ready().await?;
        let path = self.paths.path_of(digest);
        let looked = self.pool.run(|connection, _| {
            let path = &path;
            async move { connection.look(path).await }
        });
        Ok(looked.await.map_err(unavailable("look for a blob"))?.map(|seen| seen.size_bytes))
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

    async fn remove(&self, digest: &Digest) -> Result<()> {
        self.ready().await?;
        let digest = *digest;
        let removed = self.pool.run(|connection, _| {
            let paths = Arc::clone(&self.paths);
            async move { remove(&connection, &paths, &digest).await }
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
    connection.make_folders(&paths.temporary).await?;
    let there: Vec<String> = connection.list(&paths.blobs).await?.into_iter().map(|(name, _)| name).collect();
    let missing: Vec<String> =
        (0..=u8::MAX).map(|byte| format!("{byte:02x}")).filter(|name| !there.contains(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let connection = &*connection;
    let made = missing.into_iter().map(|name| {
        let path = format!("{}/{name}", paths.blobs);
        async move { connection.make_folder(&path).await }
    });
    stream::iter(made).buffer_unordered(FOLDERS_AT_ONCE).try_collect::<()>().await?;
    connection.flush_folder(&paths.blobs).await
}

/// A blob on its way into the vault.
struct Arriving<'a> {
    paths: Arc<Paths>,
    spooled: &'a Spooled,
    temporaries: &'a [String; 2],
}

impl Arriving<'_> {
    async fn put(&self, connection: &Connection, attempt: Attempt, word: &str) -> Outcome<()> {
        let (folder, path) =
            (self.paths.folder_of(&self.spooled.digest), self.paths.path_of(&self.spooled.digest));
        let [first, second] = self.temporaries;
        let temporary = match attempt {
            Attempt::First => first,
            Attempt::Again => {
                // What the first attempt left. Should it still be renamed, it was whole.
                connection.remove(first).await?;
                second
            }
        };
        if !self.is_there(connection, &path).await? {
            let stored = self.write(connection, temporary, &path).await;
            if matches!(stored, Err(Failure::Refused { .. } | Failure::Ours(_) | Failure::Missing)) {
                // What cannot be removed now is removed by `clean`.
                let _ = connection.remove(temporary).await;
            }
            stored?;
        }
        steps::reached("vault.blob-named");
        let sidecar = connection.open_to_write(&format!("{path}~{word}")).await?;
        let flushed = if connection.abilities.flushes && !connection.abilities.flushes_folders {
            // The youngest name in the folder: most file systems make the older ones durable with it.
            connection.flush(&sidecar).await
        } else {
            Ok(())
        };
        connection.close(sidecar).await?;
        flushed?;
        connection.flush_folder(&folder).await?;
        steps::reached("vault.blob-durable");
        Ok(())
    }

    /// Whether the blob is there already, and if so makes sure of it: whoever wrote it may not have come to flush it.
    async fn is_there(&self, connection: &Connection, path: &str) -> Outcome<bool> {
        match connection.look(path).await? {
            Some(seen) if seen.size_bytes == self.spooled.size_bytes => {}
            _ => return Ok(false),
        }
        if !connection.abilities.flushes {
            return Ok(connection.hash(path).await?.0 == self.spooled.digest);
        }
        let file = connection.open(path).await?;
        let flushed = connection.flush(&file).await;
        connection.close(file).await?;
        flushed.map(|()| true)
    }

    async fn write(&self, connection: &Connection, temporary: &str, path: &str) -> Outcome<()> {
        let file = connection.open_to_write(temporary).await?;
        let written = match self.spooled.body() {
            Body::Memory(bytes) => connection.write(&file, 0, Cursor::new(bytes)).await,
            Body::File(source) => match tokio::fs::File::open(&source.path).await {
                Ok(source) => connection.write(&file, 0, source).await,
                Err(cause) => Err(Failure::Ours(cause)),
            },
        };
        if let Err(failure) = written {
            if !matches!(failure, Failure::Lost { .. }) {
                connection.close(file).await?;
            }
            return Err(failure);
        }
        let promise = Promise { digest: self.spooled.digest, size_bytes: self.spooled.size_bytes };
        connection.finish(file, (temporary, promise)).await?;
        steps::reached("vault.blob-written");
        if connection.abilities.replaces {
            return connection.replace(temporary, path).await;
        }
        self.name(connection, temporary, path).await
    }

    /// Names a blob with a rename that never replaces.
    async fn name(&self, connection: &Connection, temporary: &str, path: &str) -> Outcome<()> {
        let Err(failure) = connection.rename(temporary, path).await else { return Ok(()) };
        if !matches!(failure, Failure::Refused { .. }) {
            return Err(failure);
        }
        if self.is_there(connection, path).await? {
            // Somebody else was faster with the same bytes.
            return connection.remove(temporary).await;
        }
        if connection.look(path).await?.is_none() {
            return Err(failure);
        }
        // Not the bytes its name says. Nothing is thrown away.
        connection.rename(path, &format!("{temporary}-damaged")).await?;
        connection.rename(temporary, path).await
    }
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
        let some = some.iter().cloned().map(|folder| list_folder(connection, folder));
        let listed: Vec<Vec<StoredBlob>> = stream::iter(some).buffered(FOLDERS_AT_ONCE).try_collect().await?;
        found.extend(
            listed.into_iter().flatten().filter(|blob| after.is_none_or(|after| blob.digest > after)),
        );
        if found.len() >= limit {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// The blobs of one folder in order, each with its sidecars.
async fn list_folder(connection: &Connection, folder: String) -> Outcome<Vec<StoredBlob>> {
    let mut blobs = BTreeMap::new();
    let mut sidecars = Vec::new();
    for (name, seen) in connection.list(&folder).await? {
        if let Some((digest, word)) = name.split_once('~') {
            sidecars.extend(Digest::parse_hex(digest).zip(Sidecar::parse_word(word)));
        } else if let Some(digest) = Digest::parse_hex(&name) {
            let (size_bytes, stored_at) = (seen.size_bytes, seen.modified_at);
            blobs.insert(digest, StoredBlob { digest, size_bytes, stored_at, sidecars: Vec::new() });
        }
    }
    sidecars.sort_by_key(|(_, sidecar)| sidecar.to_word());
    for (digest, sidecar) in sidecars {
        if let Some(blob) = blobs.get_mut(&digest) {
            blob.sidecars.push(sidecar);
        }
    }
    Ok(blobs.into_values().collect())
}

/// The bytes first: should this be cut short, what is left is a name that says nothing.
async fn remove(connection: &Connection, paths: &Paths, digest: &Digest) -> Outcome<()> {
    let folder = paths.folder_of(digest);
    connection.remove(&paths.path_of(digest)).await?;
    steps::reached("vault.blob-removed");
    let prefix = format!("{digest}~");
    for (name, _) in connection.list(&folder).await? {
        if name.starts_with(&prefix) {
            connection.remove(&format!("{folder}/{name}")).await?;
        }
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
