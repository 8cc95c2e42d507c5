//! The published tree in a folder of the local disk.
//!
//! To publish: write `{name}.tmp.{uuid}` in full and flush it, link what stands under the name to its backup name,
//! rename the new file over the name, flush the folder. The name never vanishes, and no step destroys a byte.
//!
//! Guarantees: the port's. Should another program replace the file between the link and the rename, that is noticed
//! (another inode) and the link is made again, so that the backup is the very file that was replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use model::{Digest, Guards};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use uuid::Uuid;

use super::{Flushing, open};
use crate::spool::run_blocking;
use crate::tree::{Glance, Place, Publication, Replaced, Tree, is_backup, is_temporary_of, temporary_suffix};
use crate::{BlobReader, Result, VaultError, read_verified};

/// Other programs may replace the file while we do; after so many times we leave it for later.
const LINK_ATTEMPTS: usize = 8;
/// Backups of the same instant get a number; more than this is no accident.
const BACKUP_NAMES_MAX: u32 = 1000;

/// The published tree on a local disk.
#[derive(Debug, Clone)]
pub struct LocalTree {
    root: Arc<PathBuf>,
    flushing: Flushing,
}

impl LocalTree {
    /// Opens the tree in a folder, creating it as needed.
    pub fn open(folder: &Path, guards: &Guards) -> Result<Self> {
        let flushing = Flushing::from_guards(guards);
        flushing.create_folders(folder).map_err(VaultError::unavailable("open the published tree"))?;
        Ok(Self { root: Arc::new(folder.to_owned()), flushing })
    }

    /// Ids are single path components by construction, and so is the name.
    fn folder_of(&self, place: &Place) -> PathBuf {
        self.root.join(place.company.as_str()).join(place.project.as_str()).join(place.document.as_str())
    }
}

#[async_trait]
impl Tree for LocalTree {
    async fn publish(&self, publication: &Publication, content: BlobReader) -> Result<Option<Replaced>> {
        let (folder, flushing) = (self.folder_of(&publication.place), self.flushing);
        let temporary = folder.join(publication.place.name.with_suffix(&temporary_suffix(&Uuid::new_v4())));
        let made = folder.clone();
        run_blocking("make a folder of the published tree", move || flushing.create_folders(&made)).await?;
        if let Err(cause) = write(&temporary, content, publication.digest).await {
            // What cannot be removed now is found by `tidy`.
            let _ = tokio::fs::remove_file(&temporary).await;
            return Err(VaultError::unavailable("write a published file")(cause));
        }
        steps::reached("publish.written");
        let publication = publication.clone();
        run_blocking("publish a file", move || {
            let backup = flushing.file(&File::open(&temporary)?);
            let backup = backup.and_then(|()| replace(&folder, &temporary, &publication));
            if backup.is_err() {
                let _ = fs::remove_file(&temporary);
            }
            let backup = backup?;
            steps::reached("publish.renamed");
            flushing.folder(&folder)?;
            backup.map(|backup| replaced(&folder, backup)).transpose()
        })
        .await
    }

    async fn withdraw(&self, place: &Place, backup_suffix: &str) -> Result<Option<Replaced>> {
        let (folder, flushing) = (self.folder_of(place), self.flushing);
        let (place, suffix) = (place.clone(), backup_suffix.to_owned());
        run_blocking("withdraw a published file", move || {
            let backup = take_away(&folder, &place, &suffix)?;
            steps::reached("publish.withdrawn");
            if backup.is_some() {
                flushing.folder(&folder)?;
            }
            backup.map(|backup| replaced(&folder, backup)).transpose()
        })
        .await
    }

    async fn shown(&self, place: &Place) -> Result<Option<(Digest, u64)>> {
        let path = self.folder_of(place).join(place.name.as_str());
        run_blocking("read a published file", move || match File::open(path) {
            Ok(file) => hash(file).map(Some),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(cause),
        })
        .await
    }

    async fn glance(&self, place: &Place) -> Result<Option<Glance>> {
        let path = self.folder_of(place).join(place.name.as_str());
        run_blocking("look at a published file", move || match fs::metadata(path) {
            Ok(metadata) => {
                let modified_at = metadata.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
                Ok(Some(Glance { size_bytes: metadata.len(), modified_at: modified_at.unwrap_or_default() }))
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(cause),
        })
        .await
    }

    async fn backups(&self, place: &Place) -> Result<Vec<String>> {
        let folder = self.folder_of(place);
        run_blocking("list backups", move || {
            let mut names = Vec::new();
            for entry in read_folder(&folder)? {
                names.extend(entry?.file_name().to_str().filter(|name| is_backup(name)).map(str::to_owned));
            }
            names.sort();
            Ok(names)
        })
        .await
    }

    async fn remove_backup(&self, place: &Place, backup: &str) -> Result<()> {
        let (folder, flushing, backup) = (self.folder_of(place), self.flushing, backup.to_owned());
        let is_shown = backup == place.name.as_str();
        run_blocking("remove a backup", move || {
            if is_shown || !is_backup(&backup) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            match fs::remove_file(folder.join(backup)) {
                Ok(()) => flushing.folder(&folder),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(cause) => Err(cause),
            }
        })
        .await
    }

    async fn leave(&self, place: &Place) -> Result<()> {
        let folder = self.folder_of(place);
        run_blocking("remove a folder of the published tree", move || match fs::remove_dir(folder) {
            // Somebody else's files are in it, or it is gone.
            Err(cause)
                if !matches!(cause.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) =>
            {
                Err(cause)
            }
            _ => Ok(()),
        })
        .await
    }

    async fn open_backup(&self, place: &Place, backup: &str) -> Result<BlobReader> {
        let is_one_name = !backup.contains('/') && backup != "." && backup != "..";
        let path = self.folder_of(place).join(backup);
        run_blocking("open a backup", move || {
            if is_one_name { open(&path, None) } else { Err(io::ErrorKind::InvalidInput.into()) }
        })
        .await
    }

    async fn tidy(&self, place: &Place) -> Result<()> {
        let (folder, name) = (self.folder_of(place), place.name.clone());
        run_blocking("tidy a folder of the published tree", move || {
            for entry in fs::read_dir(&folder).into_iter().flatten() {
                let entry = entry?;
                let is_ours = entry.file_name().to_str().is_some_and(|found| is_temporary_of(&name, found));
                if is_ours && entry.file_type()?.is_file() {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        })
        .await
    }
}

/// The entries of a folder; none if it is not there.
fn read_folder(folder: &Path) -> io::Result<Vec<io::Result<fs::DirEntry>>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.collect()),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(cause) => Err(cause),
    }
}

async fn write(path: &Path, content: BlobReader, digest: Digest) -> io::Result<()> {
    let mut file = tokio::fs::OpenOptions::new().write(true).create_new(true).open(path).await?;
    let mut reader = std::pin::pin!(read_verified(content.reader, digest));
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match reader.read(&mut buffer).await? {
            0 => return file.flush().await,
            count => file.write_all(&buffer[..count]).await?,
        }
    }
}

/// Takes the file away from under the name; returns the name it has now.
fn take_away(folder: &Path, place: &Place, suffix: &str) -> io::Result<Option<String>> {
    let shown = folder.join(place.name.as_str());
    for _ in 0..LINK_ATTEMPTS {
        let Some(backup) = link_to_backup(folder, &shown, (place, suffix))? else { return Ok(None) };
        if same_file(&shown, &folder.join(&backup))? {
            fs::remove_file(&shown)?;
            return Ok(Some(backup));
        }
        // Another program replaced what is backed up there: that may be its last name, so it stays.
    }
    Err(io::Error::other("another program keeps replacing the published file"))
}

/// Puts the new file under the name; returns the name of what stood there.
fn replace(folder: &Path, temporary: &Path, publication: &Publication) -> io::Result<Option<String>> {
    let shown = folder.join(publication.place.name.as_str());
    for _ in 0..LINK_ATTEMPTS {
        let backup = link_to_backup(folder, &shown, (&publication.place, &publication.backup_suffix))?;
        steps::reached("publish.linked");
        let is_still_it = match &backup {
            Some(backup) => same_file(&shown, &folder.join(backup))?,
            None => !shown.exists(),
        };
        if is_still_it {
            fs::rename(temporary, &shown)?;
            return Ok(backup);
        }
        // Another program replaced what is backed up there: that may be its last name, so it stays.
    }
    Err(io::Error::other("another program keeps replacing the published file"))
}

fn link_to_backup(
    folder: &Path,
    shown: &Path,
    (place, suffix): (&Place, &str),
) -> io::Result<Option<String>> {
    for number in 1..=BACKUP_NAMES_MAX {
        let suffix = match number {
            1 => suffix.to_owned(),
            number => suffix.replace(".bak", &format!("-{number}.bak")),
        };
        let backup = place.name.with_suffix(&suffix);
        match fs::hard_link(shown, folder.join(&backup)) {
            Ok(()) => return Ok(Some(backup)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            // Linked by an attempt that was interrupted before the rename: that is the backup.
            Err(cause)
                if cause.kind() == io::ErrorKind::AlreadyExists
                    && same_file(shown, &folder.join(&backup))? =>
            {
                return Ok(Some(backup));
            }
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(cause),
        }
    }
    Err(io::Error::other("too many backups of one instant"))
}

fn same_file(one: &Path, other: &Path) -> io::Result<bool> {
    let inode = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(Some((metadata.dev(), metadata.ino()))),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    };
    let one = inode(one)?;
    Ok(one.is_some() && one == inode(other)?)
}

fn replaced(folder: &Path, backup: String) -> io::Result<Replaced> {
    let (digest, size_bytes) = hash(OpenOptions::new().read(true).open(folder.join(&backup))?)?;
    Ok(Replaced { backup, digest, size_bytes })
}

/// The hash and length of a file.
pub(super) fn hash(mut file: File) -> io::Result<(Digest, u64)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut size_bytes = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((Digest::new(hasher.finalize().into()), size_bytes)),
            count => {
                hasher.update(&buffer[..count]);
                size_bytes += count as u64;
            }
        }
    }
}
