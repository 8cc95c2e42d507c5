//! The published tree on an SFTP server.
//!
//! To publish: write `{name}.tmp.{uuid}` in full and flush it, link what stands under the name to its backup name (or copy it, where
//! the server cannot link), rename the new file over the name, flush the folder. The name never vanishes, and no step
//! destroys a byte.
//!
//! Guarantees: the port's, and that no connection is held while the content is waited for, which may come from the same server.
//! After an unknown outcome the temporary file is first taken away from whatever the dead connection may still do with it: either
//! the rename has happened, or it never will. Should another program replace the file between the backup and the rename,
//! that is noticed by its length and time, for SFTP tells no inode; then the backup is made again.

mod backup;

use std::io::{self, Cursor};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use model::Digest;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use uuid::Uuid;

use super::blobs::unavailable;
use super::connection::Connection;
use super::failure::{Failure, Outcome, if_there};
use super::pool::{Attempt, Pool};
use super::reader;
use super::transfer::Promise;
use crate::tree::{Glance, Place, Publication, Replaced, Tree, is_backup, is_temporary_of, temporary_suffix};
use crate::{BlobReader, Result, VaultError, read_verified};
use backup::Backup;

/// Other programs may replace the file while we do; after so many times we leave it for later.
const ATTEMPTS: usize = 8;
/// What is taken from the content before a connection is asked for.
const WINDOW_BYTES: u64 = 2 * 1024 * 1024;

const CANNOT_REPLACE: &str = "the SFTP server cannot rename a file over another: it lacks the extension posix-rename@openssh.com, which \
    OpenSSH has. Without it a published name would vanish for a moment at every save. Switch the published tree off, \
    keep it on another server, or allow the request (`posix-rename` in the list of sftp-server's -p, or not in that of -P)";

/// The published tree on an SFTP server.
#[derive(Clone)]
pub struct SftpTree {
    pool: Arc<Pool>,
    root: Arc<str>,
    /// Set once the folder is there.
    ready: Arc<OnceLock<()>>,
}

impl SftpTree {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        let root = pool.settings().tree_folder.trim_end_matches('/').into();
        Self { pool, root, ready: Arc::default() }
    }

    /// Connects, makes the folder, and refuses a server that cannot have a tree, if nobody has yet. Nobody waits for another's attempt.
    pub async fn ready(&self) -> Result<()> {
        if self.ready.get().is_none() {
            let root = &self.root;
            let prepared = self.pool.run(|connection, _| async move {
                must_replace(&connection)?;
                connection.make_folders(root).await
            });
            prepared.await.map_err(unavailable("open the published tree"))?;
            let _ = self.ready.set(());
        }
        Ok(())
    }

    /// Ids are single path components by construction, and so is the name.
    fn folder_of(&self, place: &Place) -> String {
        format!("{}/{}/{}/{}", self.root, place.company, place.project, place.document)
    }

    fn path_of(&self, place: &Place) -> String {
        format!("{}/{}", self.folder_of(place), place.name)
    }

    /// Writes the content to a temporary file, flushed. Returns its length.
    async fn write(&self, (folder, path): (&str, &str), content: BlobReader, digest: Digest) -> Outcome<()> {
        let mut content = std::pin::pin!(read_verified(content.reader, digest));
        let mut at = 0;
        loop {
            let window = read_window(&mut content).await.map_err(Failure::Ours)?;
            let is_last = (window.len() as u64) < WINDOW_BYTES;
            let end = at + window.len() as u64;
            let promise = is_last.then_some(Promise { digest, size_bytes: end });
            // The same bytes at the same place do no harm a second time, however late the first may come.
            let part = Part { folder, path, at, window: &window, promise };
            self.pool.run(|connection, _| async move { part.write(&connection).await }).await?;
            if is_last {
                return Ok(());
            }
            at = end;
        }
    }
}

fn must_replace(connection: &Connection) -> Outcome<()> {
    if connection.abilities.replaces { Ok(()) } else { Err(Failure::ours(CANNOT_REPLACE)) }
}

async fn read_window(content: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut window = Vec::new();
    content.take(WINDOW_BYTES).read_to_end(&mut window).await?;
    Ok(window)
}

/// A part of a file that is being written.
#[derive(Clone, Copy)]
struct Part<'a> {
    folder: &'a str,
    path: &'a str,
    at: u64,
    window: &'a [u8],
    /// With the last part comes what the whole must be.
    promise: Option<Promise>,
}

impl Part<'_> {
    async fn write(self, connection: &Connection) -> Outcome<()> {
        let file = match if_there(connection.open_to_write(self.path).await)? {
            Some(file) => file,
            None => {
                connection.make_folders(self.folder).await?;
                connection.open_to_write(self.path).await?
            }
        };
        let written = connection.write(&file, self.at, Cursor::new(self.window)).await;
        match (written, self.promise) {
            (Ok(_), Some(promise)) => connection.finish(file, (self.path, promise)).await,
            (Err(failure @ Failure::Lost { .. }), _) => Err(failure),
            (written, _) => {
                connection.close(file).await?;
                written.map(drop)
            }
        }
    }
}

#[async_trait]
impl Tree for SftpTree {
    async fn publish(&self, publication: &Publication, content: BlobReader) -> Result<Option<Replaced>> {
        self.ready().await?;
        let (place, folder) = (&publication.place, self.folder_of(&publication.place));
        let [first, second] = [Uuid::new_v4(), Uuid::new_v4()]
            .map(|id| format!("{folder}/{}", place.name.with_suffix(&temporary_suffix(&id))));
        if let Err(failure) = self.write((&folder, &first), content, publication.digest).await {
            // What cannot be removed now is found by `tidy`.
            let first = &first;
            let _ = self.pool.run(|connection, _| async move { connection.remove(first).await }).await;
            return Err(unavailable("write a published file")(failure));
        }
        steps::reached("publish.written");
        let swap = Swap {
            backup: Backup::new(&folder, place, &publication.backup_suffix),
            digest: publication.digest,
            temporaries: [&first, &second],
            kept: &Mutex::new(None),
        };
        let swapped = self.pool.run(|connection, attempt| async move {
            let swapped = swap.swap(&connection, attempt).await;
            if matches!(swapped, Err(Failure::Refused { .. } | Failure::Ours(_) | Failure::Missing)) {
                let _ = connection.remove(swap.temporaries[0]).await;
                let _ = connection.remove(swap.temporaries[1]).await;
            }
            swapped
        });
        swapped.await.map_err(unavailable("publish a file"))
    }

    async fn withdraw(&self, place: &Place, backup_suffix: &str) -> Result<Option<Replaced>> {
        self.ready().await?;
        let folder = self.folder_of(place);
        let (backup, kept) = (Backup::new(&folder, place, backup_suffix), Mutex::new(None));
        let (backup, kept) = (&backup, &kept);
        let withdrawn = self.pool.run(|connection, _| async move {
            let Some(name) = backup.take_away(&connection, kept).await? else { return Ok(None) };
            steps::reached("publish.withdrawn");
            connection.flush_folder(backup.folder()).await?;
            backup.replaced(&connection, name).await.map(Some)
        });
        withdrawn.await.map_err(unavailable("withdraw a published file"))
    }

    async fn shown(&self, place: &Place) -> Result<Option<(Digest, u64)>> {
        let path = &self.path_of(place);
        let hashed = self.pool.run(|connection, _| async move { if_there(connection.hash(path).await) });
        hashed.await.map_err(unavailable("read a published file"))
    }

    async fn glance(&self, place: &Place) -> Result<Option<Glance>> {
        let path = &self.path_of(place);
        let looked = self.pool.run(|connection, _| async move { connection.look(path).await });
        let seen = looked.await.map_err(unavailable("look at a published file"))?;
        Ok(seen.map(|seen| Glance { size_bytes: seen.size_bytes, modified_at: seen.modified_at }))
    }

    async fn backups(&self, place: &Place) -> Result<Vec<String>> {
        let folder = &self.folder_of(place);
        let listed = self.pool.run(|connection, _| async move { if_there(connection.list(folder).await) });
        let listed = listed.await.map_err(unavailable("list backups"))?.unwrap_or_default();
        let mut names: Vec<String> =
            listed.into_iter().map(|(name, _)| name).filter(|name| is_backup(name)).collect();
        names.sort();
        Ok(names)
    }

    async fn remove_backup(&self, place: &Place, backup: &str) -> Result<()> {
        if backup == place.name.as_str() || !is_backup(backup) {
            return Err(VaultError::unavailable("remove a backup")(io::ErrorKind::InvalidInput.into()));
        }
        let folder = &self.folder_of(place);
        let removed = self.pool.run(|connection, _| async move {
            connection.remove(&format!("{folder}/{backup}")).await?;
            if_there(connection.flush_folder(folder).await).map(drop)
        });
        removed.await.map_err(unavailable("remove a backup"))
    }

    async fn leave(&self, place: &Place) -> Result<()> {
        let folder = &self.folder_of(place);
        let left = self.pool.run(|connection, _| async move {
            match connection.remove_folder(folder).await {
                // "No" is also what is said when something is in it.
                Err(Failure::Refused { request, cause }) => match if_there(connection.list(folder).await)? {
                    Some(inside) if inside.is_empty() => Err(Failure::Refused { request, cause }),
                    _ => Ok(()),
                },
                outcome => if_there(outcome).map(drop),
            }
        });
        left.await.map_err(unavailable("remove a folder of the published tree"))
    }

    async fn open_backup(&self, place: &Place, backup: &str) -> Result<BlobReader> {
        if backup.contains('/') || matches!(backup, "" | "." | "..") {
            return Err(VaultError::unavailable("open a backup")(io::ErrorKind::InvalidInput.into()));
        }
        let path = format!("{}/{backup}", self.folder_of(place));
        match reader::open(Arc::clone(&self.pool), path, None).await {
            Err(Failure::Missing) => Err(VaultError::not_found(backup)),
            opened => opened.map_err(unavailable("open a backup")),
        }
    }

    async fn tidy(&self, place: &Place) -> Result<()> {
        let folder = &self.folder_of(place);
        let tidied = self.pool.run(|connection, _| async move {
            for (name, seen) in if_there(connection.list(folder).await)?.unwrap_or_default() {
                if is_temporary_of(&place.name, &name) && !seen.is_folder {
                    connection.remove(&format!("{folder}/{name}")).await?;
                }
            }
            Ok(())
        });
        tidied.await.map_err(unavailable("tidy a folder of the published tree"))
    }
}

/// The new file takes the name; what stood there becomes the backup.
struct Swap<'a> {
    backup: Backup<'a>,
    digest: Digest,
    temporaries: [&'a str; 2],
    /// The backup of the first attempt, for the second.
    kept: &'a Mutex<Option<String>>,
}

impl Clone for Swap<'_> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for Swap<'_> {}

impl Swap<'_> {
    async fn swap(&self, connection: &Connection, attempt: Attempt) -> Outcome<Option<Replaced>> {
        must_replace(connection)?;
        let [first, second] = self.temporaries;
        let temporary = match attempt {
            Attempt::First => first,
            // Under another name the dead connection cannot rename it any more.
            Attempt::Again => match if_there(connection.rename(first, second).await)? {
                Some(()) => second,
                None => {
                    self.must_show(connection).await?;
                    return self.settle(connection).await;
                }
            },
        };
        for _ in 0..ATTEMPTS {
            let backup = self.backup.make(connection).await?;
            steps::reached("publish.linked");
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&backup);
            if self.backup.is_still_it(connection, backup.as_deref()).await? {
                connection.replace(temporary, &self.backup.shown()).await?;
                steps::reached("publish.renamed");
                return self.settle(connection).await;
            }
            // Another program replaced what is backed up there: that may be its last name, so it stays.
        }
        Err(Failure::ours("another program keeps replacing the published file"))
    }

    /// The temporary file is gone: has it taken the name?
    async fn must_show(&self, connection: &Connection) -> Outcome<()> {
        match if_there(connection.hash(&self.backup.shown()).await)? {
            Some((digest, _)) if digest == self.digest => Ok(()),
            _ => Err(Failure::ours("the connection was lost, and something else stands under the name")),
        }
    }

    /// The rename has happened: makes it durable and tells what was replaced.
    async fn settle(&self, connection: &Connection) -> Outcome<Option<Replaced>> {
        connection.flush_folder(self.backup.folder()).await?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match kept {
            Some(name) => self.backup.replaced(connection, name).await.map(Some),
            None => Ok(None),
        }
    }
}
