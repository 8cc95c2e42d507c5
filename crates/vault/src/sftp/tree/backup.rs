//! What stands under a published name gets a second name, before anything else takes the first.
//!
//! Guarantees: no backup is ever overwritten, and the one that is named holds the bytes that were shown. A backup that an interrupted
//! attempt made is found by its bytes and used.

use std::io::Cursor;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

use super::super::connection::{Connection, Seen};
use super::super::failure::{Failure, Outcome, if_there};
use super::super::transfer::Promise;
use crate::tree::{Place, Replaced, temporary_suffix};
use model::Digest;

/// Backups of the same instant get a number; more than this is no accident.
const BACKUP_NAMES_MAX: u32 = 1000;
/// What is copied at once where the server cannot link.
const COPY_BYTES: u64 = 2 * 1024 * 1024;

/// The backups of one published name.
#[derive(Clone, Copy)]
pub(super) struct Backup<'a> {
    folder: &'a str,
    place: &'a Place,
    suffix: &'a str,
}

impl<'a> Backup<'a> {
    pub(super) fn new(folder: &'a str, place: &'a Place, suffix: &'a str) -> Self {
        Self { folder, place, suffix }
    }

    pub(super) fn folder(&self) -> &'a str {
        self.folder
    }

    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    pub(super) fn shown(&self) -> String {
        self.path(self.place.name.as_str())
    }

    /// The names it may have, in order.
    fn names(&self) -> impl Iterator<Item = String> + Send {
        let (place, suffix) = (self.place, self.suffix);
        (1..=BACKUP_NAMES_MAX).map(move |number| match number {
            1 => place.name.with_suffix(suffix),
            number => place.name.with_suffix(&suffix.replace(".bak", &format!("-{number}.bak"))),
        })
    }

    /// Backs up what is shown; the name of the backup, or nothing if nothing is shown.
    pub(super) async fn make(&self, connection: &Connection) -> Outcome<Option<String>> {
        for name in self.names() {
            let Some(seen) = connection.look(&self.shown()).await? else { return Ok(None) };
            let path = self.path(&name);
            match connection.look(&path).await? {
                Some(there) if self.has_bytes_of(connection, (&path, there), seen).await? => {
                    return Ok(Some(name));
                }
                Some(_) => continue,
                None => {}
            }
            match self.keep(connection, &path).await {
                Ok(()) => return Ok(Some(name)),
                Err(Failure::Missing) => return Ok(None),
                // Somebody may have been faster with this name.
                Err(failure @ Failure::Refused { .. }) if connection.look(&path).await?.is_none() => {
                    return Err(failure);
                }
                Err(Failure::Refused { .. }) => {}
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::ours("too many backups of one instant"))
    }

    /// Gives what is shown a second name. Some disks cannot link, whatever the server says: then it is copied.
    async fn keep(&self, connection: &Connection, path: &str) -> Outcome<()> {
        if connection.abilities.links {
            let linked = connection.link(&self.shown(), path).await;
            if !matches!(linked, Err(Failure::Refused { .. })) || connection.look(path).await?.is_some() {
                return linked;
            }
        }
        self.copy(connection, path).await
    }

    /// Whether a backup that is there holds what is shown: made by an attempt that was interrupted.
    async fn has_bytes_of(
        &self,
        connection: &Connection,
        (path, there): (&str, Seen),
        shown: Seen,
    ) -> Outcome<bool> {
        if there.size_bytes != shown.size_bytes {
            return Ok(false);
        }
        let shown = if_there(connection.hash(&self.shown()).await)?;
        Ok(shown.is_some() && shown == if_there(connection.hash(path).await)?)
    }

    /// For a server that cannot link: whole and flushed before it has the name of a backup.
    async fn copy(&self, connection: &Connection, path: &str) -> Outcome<()> {
        let temporary = self.path(&self.place.name.with_suffix(&temporary_suffix(&Uuid::new_v4())));
        let copied = self.copy_to(connection, &temporary).await;
        let named = match copied {
            Ok(()) => connection.rename(&temporary, path).await,
            Err(failure) => Err(failure),
        };
        if matches!(named, Err(Failure::Refused { .. } | Failure::Ours(_) | Failure::Missing)) {
            let _ = connection.remove(&temporary).await;
        }
        named
    }

    async fn copy_to(&self, connection: &Connection, temporary: &str) -> Outcome<()> {
        let (digest, size_bytes) = connection.hash(&self.shown()).await?;
        let source = connection.open(&self.shown()).await?;
        let target = connection.open_to_write(temporary).await?;
        let mut at = 0;
        let copied = loop {
            let window = match connection.read(&source, at..size_bytes.min(at + COPY_BYTES)).await {
                Ok(window) if window.is_empty() => break Ok(()),
                Ok(window) => window,
                Err(failure) => break Err(failure),
            };
            match connection.write(&target, at, Cursor::new(&window)).await {
                Ok(end) => at = end,
                Err(failure) => break Err(failure),
            }
        };
        connection.close(source).await?;
        connection.finish(target, (temporary, Promise { digest, size_bytes })).await?;
        copied?;
        if connection.hash(temporary).await?.0 == digest {
            return Ok(());
        }
        Err(Failure::ours("the published file was replaced while it was copied"))
    }

    /// Whether the name still shows what was backed up, as far as length and time can tell, or else by its bytes.
    pub(super) async fn is_still_it(&self, connection: &Connection, backup: Option<&str>) -> Outcome<bool> {
        let shown = connection.look(&self.shown()).await?;
        let Some(backup) = backup else { return Ok(shown.is_none()) };
        let (Some(shown), Some(kept)) = (shown, connection.look(&self.path(backup)).await?) else {
            return Ok(false);
        };
        if shown == kept {
            return Ok(true);
        }
        // A copy has a time of its own.
        Ok(shown.size_bytes == kept.size_bytes
            && if_there(connection.hash(&self.shown()).await)?
                == if_there(connection.hash(&self.path(backup)).await)?)
    }

    /// Takes the file away from under the name, by a rename that never replaces; returns the name it has now.
    pub(super) async fn take_away(
        &self,
        connection: &Connection,
        kept: &Mutex<Option<String>>,
    ) -> Outcome<Option<String>> {
        let tried = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(name) = tried
            && connection.look(&self.shown()).await?.is_none()
        {
            // The first attempt did it, and its answer was lost.
            return Ok(connection.look(&self.path(&name)).await?.map(|_| name));
        }
        for name in self.names() {
            let path = self.path(&name);
            if connection.look(&path).await?.is_some() {
                continue;
            }
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(name.clone());
            match connection.rename(&self.shown(), &path).await {
                Ok(()) => return Ok(Some(name)),
                Err(Failure::Missing) => return Ok(None),
                Err(failure @ Failure::Refused { .. }) if connection.look(&path).await?.is_none() => {
                    return Err(failure);
                }
                Err(Failure::Refused { .. }) => {}
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::ours("too many backups of one instant"))
    }

    /// What a backup holds.
    pub(super) async fn replaced(&self, connection: &Connection, backup: String) -> Outcome<Replaced> {
        let (digest, size_bytes): (Digest, u64) = connection.hash(&self.path(&backup)).await?;
        Ok(Replaced { backup, digest, size_bytes })
    }
}
