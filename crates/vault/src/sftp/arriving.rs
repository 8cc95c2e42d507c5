//! One blob on its way to the SFTP server: written, made sure of, named.
//!
//! Guarantees: it gets its name when all of it is on the server, flushed or read back; what lies under the name and is not the blob is
//! kept aside before it loses it. Each attempt writes to a name of its own, so a request of a dead connection that is carried out late
//! can only name a whole blob.

use std::io::Cursor;

use futures_util::future::{join, join3};
use model::Digest;

use super::blobs::{Paths, list_folder};
use super::connection::{Connection, RemoteFile, Seen};
use super::failure::{Failure, Outcome, if_there};
use super::pool::Attempt;
use super::transfer::Promise;
use crate::Spooled;
use crate::names::BlobName;
use crate::spool::Body;

/// Names that only this work has.
pub(super) struct Names {
    /// One for each attempt.
    temporaries: [String; 2],
    /// For what lies under the blob's name and is not it; the same for both attempts, so that it is moved once.
    aside: String,
}

impl Names {
    pub(super) fn fresh(paths: &Paths, digest: &Digest) -> Self {
        let temporaries = [paths.fresh_temporary(), paths.fresh_temporary()];
        Self { temporaries, aside: paths.fresh_aside(digest) }
    }
}

/// A blob on its way into the vault.
pub(super) struct Arriving<'a> {
    pub(super) paths: &'a Paths,
    pub(super) spooled: &'a Spooled,
    pub(super) names: &'a Names,
}

impl Arriving<'_> {
    pub(super) async fn put(&self, connection: &Connection, attempt: Attempt, word: &str) -> Outcome<()> {
        let (folder, path) =
            (self.paths.folder_of(&self.spooled.digest), self.paths.path_of(BlobName::of(self.spooled)));
        let temporary = self.temporary(connection, attempt).await?;
        // Questions that do not wait for each other go out together: a round trip may be long.
        let (seen, folder, file) = join3(
            connection.look(&path),
            connection.open_folder(&folder),
            connection.open_to_write(temporary),
        )
        .await;
        let (seen, folder, file) = (seen?, folder?, file?);
        let sidecar = format!("{path}~{word}");
        let is_it = self.is_it(connection, &path, seen).await?;
        if seen.is_some() && !is_it {
            self.keep_aside(connection, &path).await?;
        }
        let sidecar = if is_it {
            let (closed, removed) = join(connection.close(file), connection.remove(temporary)).await;
            closed.and(removed)?;
            connection.open_to_write(&sidecar).await?
        } else {
            let stored = self.write(connection, (file, temporary), (&path, &sidecar)).await;
            if matches!(stored, Err(Failure::Refused { .. } | Failure::Ours(_) | Failure::Missing)) {
                // What cannot be removed now is removed by `clean`.
                let _ = connection.remove(temporary).await;
            }
            stored?
        };
        steps::reached("vault.blob-named");
        if folder.is_none() && connection.abilities.flushes {
            // The youngest name in the folder: most file systems make the older ones durable with it.
            connection.flush(&sidecar).await?;
        }
        let (closed, flushed) = join(connection.close(sidecar), connection.flush_and_close(folder)).await;
        closed.and(flushed)?;
        steps::reached("vault.blob-durable");
        Ok(())
    }

    /// Puts the bytes under their name, whatever lies there.
    pub(super) async fn mend(&self, connection: &Connection, attempt: Attempt) -> Outcome<()> {
        let path = self.path_now(connection).await?;
        let temporary = self.temporary(connection, attempt).await?;
        let file = connection.open_to_write(temporary).await?;
        let mended = async {
            self.write_whole(connection, file, temporary).await?;
            self.keep_aside(connection, &path).await?;
            self.name(connection, temporary, &path).await
        };
        let mended = mended.await;
        if matches!(mended, Err(Failure::Refused { .. } | Failure::Ours(_) | Failure::Missing)) {
            let _ = connection.remove(temporary).await;
        }
        mended?;
        connection.flush_folder(&self.paths.damaged).await?;
        connection.flush_folder(&self.paths.folder_of(&self.spooled.digest)).await
    }

    /// Where the blob is; where it is to be, if there is none.
    async fn path_now(&self, connection: &Connection) -> Outcome<String> {
        let folder = self.paths.folder_of(&self.spooled.digest);
        let listed = if_there(list_folder(connection, folder).await)?.unwrap_or_default();
        let digest = self.spooled.digest;
        let found = listed.iter().find(|blob| blob.digest == digest);
        let name = found.map_or(BlobName::of(self.spooled), |blob| BlobName { digest, life: blob.life });
        Ok(self.paths.path_of(name))
    }

    /// Where this attempt writes.
    async fn temporary(&self, connection: &Connection, attempt: Attempt) -> Outcome<&str> {
        let [first, second] = &self.names.temporaries;
        if attempt == Attempt::Again {
            // What the first attempt left. Should it still be renamed, it was whole.
            connection.remove(first).await?;
            return Ok(second);
        }
        Ok(first)
    }

    /// Gives what lies under the blob's name, and is not it, another name: a second one where the server can link and replace.
    async fn keep_aside(&self, connection: &Connection, path: &str) -> Outcome<()> {
        let aside = &self.names.aside;
        if connection.look(aside).await?.is_some() {
            // By the first attempt, whose answer was lost.
            return Ok(());
        }
        if connection.abilities.links && connection.abilities.replaces {
            let linked = connection.link(path, aside).await;
            if !matches!(linked, Err(Failure::Refused { .. })) {
                return if_there(linked).map(drop);
            }
        }
        // Some disks cannot link, whatever the server says.
        if_there(connection.rename(path, aside).await).map(drop)
    }

    /// Whether what was seen is the blob, and if so makes sure of it: whoever wrote it may not have come to flush it.
    async fn is_it(&self, connection: &Connection, path: &str, seen: Option<Seen>) -> Outcome<bool> {
        if seen.is_none_or(|seen| seen.size_bytes != self.spooled.size_bytes) {
            return Ok(false);
        }
        // Damaged since? Never again will there be sound bytes so near at hand.
        if connection.hash(path).await?.0 != self.spooled.digest {
            return Ok(false);
        }
        if !connection.abilities.flushes {
            return Ok(true);
        }
        let file = connection.open(path).await?;
        let flushed = connection.flush(&file).await;
        connection.close(file).await?;
        flushed.map(|()| true)
    }

    /// Writes the blob, names it, and begins its sidecar.
    async fn write(
        &self,
        connection: &Connection,
        (file, temporary): (RemoteFile, &str),
        (path, sidecar): (&str, &str),
    ) -> Outcome<RemoteFile> {
        self.write_whole(connection, file, temporary).await?;
        steps::reached("vault.blob-written");
        let (named, sidecar) =
            join(self.name(connection, temporary, path), connection.open_to_write(sidecar)).await;
        named?;
        sidecar
    }

    /// Writes all of it to a temporary file, and makes sure of it.
    async fn write_whole(&self, connection: &Connection, file: RemoteFile, temporary: &str) -> Outcome<()> {
        let written = match self.spooled.body() {
            Body::Memory(bytes) => connection.write(&file, 0, Cursor::new(bytes)).await,
            Body::File(source) => match tokio::fs::File::open(&source.path).await {
                Ok(source) => connection.write(&file, 0, source).await,
                Err(cause) => Err(Failure::Ours(cause)),
            },
        };
        written?;
        let promise = Promise { digest: self.spooled.digest, size_bytes: self.spooled.size_bytes };
        connection.finish(file, (temporary, promise)).await
    }

    /// Gives the blob its name. Whatever has it already has the same bytes, or is damaged.
    async fn name(&self, connection: &Connection, temporary: &str, path: &str) -> Outcome<()> {
        if connection.abilities.replaces {
            return connection.replace(temporary, path).await;
        }
        self.name_without_replacing(connection, temporary, path).await
    }

    /// Names a blob with a rename that never replaces.
    async fn name_without_replacing(
        &self,
        connection: &Connection,
        temporary: &str,
        path: &str,
    ) -> Outcome<()> {
        let Err(failure) = connection.rename(temporary, path).await else { return Ok(()) };
        if !matches!(failure, Failure::Refused { .. }) {
            return Err(failure);
        }
        let seen = connection.look(path).await?;
        if seen.is_none() {
            return Err(failure);
        }
        if self.is_it(connection, path, seen).await? {
            // Somebody else was faster with the same bytes.
            return connection.remove(temporary).await;
        }
        // Not the bytes its name says. Nothing is thrown away.
        self.keep_aside(connection, path).await?;
        connection.rename(temporary, path).await
    }
}
