//! Blobs in a folder of the local disk.
//!
//! ```text
//! vault/blobs/3f/3fd2…           the bytes
//! vault/blobs/3f/3fd2…~{sidecar} an empty file whose name tells where they came from
//! vault/damaged/3fd2…-{uuid}     what lay under the name of a blob and was not it
//! vault/tmp/…                    being written
//! ```
//!
//! A blob is written to `tmp`, flushed, renamed to its name; then the folder is flushed. The sidecar is a name and not
//! a content, so that the same flush of the folder makes it durable: two flushes a blob. A large content lies in a file of the spool
//! already, and gets a second name instead of a copy if both are on one file system.
//!
//! Guarantees: the port's, on any POSIX file system. A failed flush is never repeated on the same file: it is thrown
//! away and the caller hears of it, for the kernel may have dropped the pages (fsyncgate). A file of the spool whose flush failed is
//! not stored by anybody.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use model::{Digest, Guards};
use tokio::io::AsyncReadExt as _;
use uuid::Uuid;

use crate::names::{BlobName, latest};
use crate::spool::{Body, SpoolFile, run_blocking};
use crate::told::Told;
use crate::{BlobReader, Result, Sidecar, Spooled, StoredBlob, Vault, VaultError};

pub mod tree;

/// The vault on a local disk.
#[derive(Debug, Clone)]
pub struct LocalVault {
    disk: Arc<Disk>,
}

/// The folders, and whether they are flushed.
#[derive(Debug)]
struct Disk {
    blobs: PathBuf,
    damaged: PathBuf,
    temporary: PathBuf,
    flushing: Flushing,
}

/// Whether files and folders are flushed; only the torture harness ever says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushing {
    On,
    Off,
}

impl Flushing {
    pub(crate) fn from_guards(guards: &Guards) -> Self {
        if guards.fsync { Self::On } else { Self::Off }
    }

    /// Flushes a file.
    pub(crate) fn file(self, file: &File) -> io::Result<()> {
        if self == Self::On { file.sync_all() } else { Ok(()) }
    }

    /// Flushes the names in a folder.
    pub(crate) fn folder(self, folder: &Path) -> io::Result<()> {
        if self == Self::On { File::open(folder)?.sync_all() } else { Ok(()) }
    }

    /// Makes a folder and those above it, each durable in the one above.
    pub(crate) fn create_folders(self, folder: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = folder.ancestors().take_while(|each| !each.exists()).collect();
        for each in missing.into_iter().rev() {
            create_folder(each)?;
            if let Some(above) = each.parent().filter(|above| !above.as_os_str().is_empty()) {
                self.folder(above)?;
            }
        }
        Ok(())
    }
}

/// Another instance may have made it at the same moment.
fn create_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

impl LocalVault {
    /// Opens the vault in a folder, creating it as needed.
    pub fn open(folder: &Path, guards: &Guards) -> Result<Self> {
        let disk = Disk {
            blobs: folder.join("blobs"),
            damaged: folder.join("damaged"),
            temporary: folder.join("tmp"),
            flushing: Flushing::from_guards(guards),
        };
        disk.prepare().map_err(VaultError::unavailable("open the vault"))?;
        Ok(Self { disk: Arc::new(disk) })
    }

    /// Removes what was being written when an earlier process ended. Only for whoever has the folder to itself.
    pub fn clean(&self) -> Result<()> {
        self.disk.clean().map_err(VaultError::unavailable("clean the vault"))
    }
}

#[async_trait]
impl Vault for LocalVault {
    fn kind(&self) -> &'static str {
        "local"
    }

    async fn put(&self, spooled: &Spooled, sidecar: &Sidecar) -> Result<()> {
        let (disk, spooled, word) = (Arc::clone(&self.disk), spooled.clone(), sidecar.to_word());
        run_blocking("store a blob", move || disk.put(&spooled, &word)).await
    }

    async fn mend(&self, spooled: &Spooled) -> Result<()> {
        let (disk, spooled) = (Arc::clone(&self.disk), spooled.clone());
        run_blocking("mend a blob", move || disk.mend(&spooled)).await
    }

    async fn open(&self, digest: &Digest, range: Option<Range<u64>>) -> Result<BlobReader> {
        let (disk, shown) = (Arc::clone(&self.disk), *digest);
        let opened = tokio::task::spawn_blocking(move || open(&disk.path_now(&shown)?, range));
        let opened = opened.await.map_err(io::Error::other);
        match opened.and_then(|opened| opened) {
            Ok(reader) => Ok(reader),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                Err(VaultError::not_found(format!("blob {shown}")))
            }
            Err(cause) => Err(VaultError::unavailable("open a blob")(cause)),
        }
    }

    async fn size_of(&self, digest: &Digest) -> Result<Option<u64>> {
        let (disk, digest) = (Arc::clone(&self.disk), *digest);
        run_blocking("look for a blob", move || size_of(&disk.path_now(&digest)?)).await
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>> {
        let (disk, after) = (Arc::clone(&self.disk), after.copied());
        run_blocking("list the vault", move || disk.list(after, limit)).await
    }

    async fn sidecars(&self, digests: &[Digest]) -> Result<Vec<Vec<Sidecar>>> {
        let (disk, digests) = (Arc::clone(&self.disk), digests.to_vec());
        run_blocking("read where blobs came from", move || disk.sidecars(&digests)).await
    }

    async fn remove(&self, digest: &Digest, life: u64) -> Result<()> {
        let (disk, name) = (Arc::clone(&self.disk), BlobName { digest: *digest, life });
        run_blocking("remove a blob", move || disk.remove(name)).await
    }

    async fn probe(&self) -> Result<()> {
        let disk = Arc::clone(&self.disk);
        run_blocking("write to the vault", move || {
            let path = disk.temporary.join(format!("probe-{}", Uuid::new_v4().simple()));
            let written = disk.write(&path, |file| file.write_all(b"saveguard"));
            fs::remove_file(&path)?;
            written.and_then(|()| disk.flushing.folder(&disk.temporary))
        })
        .await
    }
}

impl Disk {
    /// All folders are made at the start, so that storing a blob never has to flush more than its own folder.
    fn prepare(&self) -> io::Result<()> {
        self.flushing.create_folders(&self.blobs)?;
        self.flushing.create_folders(&self.temporary)?;
        for byte in 0..=u8::MAX {
            let folder = self.blobs.join(format!("{byte:02x}"));
            if !folder.exists() {
                create_folder(&folder)?;
            }
        }
        self.flushing.folder(&self.blobs)
    }

    fn clean(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.temporary)? {
            fs::remove_file(entry?.path())?;
        }
        Ok(())
    }

    fn folder_of(&self, digest: &Digest) -> PathBuf {
        self.blobs.join(digest.short(2))
    }

    fn path_of(&self, name: BlobName) -> PathBuf {
        self.folder_of(&name.digest).join(name.to_string())
    }

    /// Under which name a blob is found now; that of its first life if there is none.
    fn path_now(&self, digest: &Digest) -> io::Result<PathBuf> {
        let first = self.path_of(BlobName::first(digest));
        if first.exists() {
            return Ok(first);
        }
        let found = list_folder(&self.folder_of(digest))?;
        let found = found.iter().find(|blob| blob.digest == *digest);
        Ok(found.map_or(first, |blob| self.path_of(BlobName { digest: *digest, life: blob.life })))
    }

    fn put(&self, spooled: &Spooled, sidecar: &str) -> io::Result<()> {
        let name = BlobName::of(spooled);
        let path = self.path_of(name);
        match size_of(&path)? {
            // Perhaps left by a process that ended before it could flush: make sure before anybody relies on it. And perhaps damaged
            // since: never again will there be sound bytes so near at hand.
            Some(size_bytes) if size_bytes == spooled.size_bytes && hash_of(&path)? == spooled.digest => {
                self.flushing.file(&File::open(&path)?)?;
            }
            Some(_) => {
                self.keep_aside(&path, &spooled.digest)?;
                self.write_blob(spooled, &path)?;
            }
            None => self.write_blob(spooled, &path)?,
        }
        steps::reached("vault.blob-named");
        let sidecar = self.folder_of(&spooled.digest).join(name.sidecar(sidecar));
        OpenOptions::new().create(true).append(true).open(sidecar)?;
        self.flushing.folder(&self.folder_of(&spooled.digest))?;
        steps::reached("vault.blob-durable");
        Ok(())
    }

    fn mend(&self, spooled: &Spooled) -> io::Result<()> {
        let now = self.path_now(&spooled.digest)?;
        let path = if now.exists() { now } else { self.path_of(BlobName::of(spooled)) };
        self.keep_aside(&path, &spooled.digest)?;
        self.write_blob(spooled, &path)?;
        self.flushing.folder(&self.folder_of(&spooled.digest))
    }

    /// What is not the blob gets a second name before it loses the first; on a disk that cannot link, a moment later.
    fn keep_aside(&self, path: &Path, digest: &Digest) -> io::Result<()> {
        self.flushing.create_folders(&self.damaged)?;
        let aside = self.damaged.join(format!("{digest}-{}", Uuid::new_v4().simple()));
        match fs::hard_link(path, &aside).or_else(|_| fs::rename(path, &aside)) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
            kept => kept?,
        }
        self.flushing.folder(&self.damaged)
    }

    /// The bytes first: should this be cut short, what is left is a name that says nothing.
    fn remove(&self, name: BlobName) -> io::Result<()> {
        let folder = self.folder_of(&name.digest);
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let found = entry.file_name();
            let Some(found) = found.to_str().filter(|found| name.covers(found)) else { continue };
            if !found.contains('~') {
                remove_if_there(&entry.path())?;
            }
        }
        steps::reached("vault.blob-removed");
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|found| name.covers(found)) {
                remove_if_there(&entry.path())?;
            }
        }
        self.flushing.folder(&folder)
    }

    fn write_blob(&self, spooled: &Spooled, path: &Path) -> io::Result<()> {
        let temporary = self.temporary.join(Uuid::new_v4().simple().to_string());
        let written = match spooled.body() {
            Body::Memory(bytes) => self.write(&temporary, |file| file.write_all(bytes)),
            Body::File(source) => self.take_over(source, &temporary),
        };
        steps::reached("vault.blob-written");
        let named = written.and_then(|()| fs::rename(&temporary, path));
        if named.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        named
    }

    /// Gives a file of the spool a second name and flushes it; copies it where that cannot be.
    fn take_over(&self, source: &SpoolFile, path: &Path) -> io::Result<()> {
        if source.is_doubtful() {
            return Err(io::Error::other("an earlier flush of these bytes failed"));
        }
        if fs::hard_link(&source.path, path).is_err() {
            return self.write(path, |file| copy(&source.path, file));
        }
        let flushed = File::open(path).and_then(|file| self.flushing.file(&file));
        flushed.inspect_err(|_| source.doubt())
    }

    /// Writes a new file in full and flushes it.
    fn write(&self, path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        write(&mut file)?;
        self.flushing.file(&file)
    }

    fn list(&self, after: Option<Digest>, limit: usize) -> io::Result<Vec<StoredBlob>> {
        let first = after.map_or(0, |after| after.as_bytes()[0]);
        let mut found = Vec::new();
        for byte in first..=u8::MAX {
            let mut folder = list_folder(&self.blobs.join(format!("{byte:02x}")))?;
            folder.retain(|blob| after.is_none_or(|after| blob.digest > after));
            found.append(&mut folder);
            if found.len() >= limit {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    fn sidecars(&self, digests: &[Digest]) -> io::Result<Vec<Vec<Sidecar>>> {
        let folders: BTreeSet<PathBuf> = digests.iter().map(|digest| self.folder_of(digest)).collect();
        let mut told = Told::of(digests);
        for folder in folders {
            for entry in fs::read_dir(folder)? {
                entry?.file_name().to_str().into_iter().for_each(|name| told.note(name));
            }
        }
        Ok(told.in_order())
    }
}

fn copy(source: &Path, target: &mut File) -> io::Result<()> {
    let mut source = File::open(source)?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match source.read(&mut buffer)? {
            0 => return Ok(()),
            count => target.write_all(&buffer[..count])?,
        }
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}

fn size_of(path: &Path) -> io::Result<Option<u64>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

fn open(path: &Path, range: Option<Range<u64>>) -> io::Result<BlobReader> {
    let mut file = File::open(path)?;
    let size_bytes = file.metadata()?.len();
    let range = range.unwrap_or(0..size_bytes);
    file.seek(SeekFrom::Start(range.start))?;
    let reader = tokio::fs::File::from_std(file).take(range.end.saturating_sub(range.start));
    Ok(BlobReader { size_bytes, reader: Box::pin(reader) })
}

/// The blobs of one folder in order.
fn list_folder(folder: &Path) -> io::Result<Vec<StoredBlob>> {
    let mut blobs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().and_then(BlobName::parse) else { continue };
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // It was removed since its name was read.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
            Err(cause) => return Err(cause),
        };
        let stored_at =
            metadata.modified().ok().and_then(|at| Timestamp::try_from(at).ok()).unwrap_or_default();
        let (digest, size_bytes, life) = (name.digest, metadata.len(), name.life);
        blobs.push(StoredBlob { digest, size_bytes, stored_at, life });
    }
    Ok(latest(blobs))
}

fn hash_of(path: &Path) -> io::Result<Digest> {
    Ok(tree::hash(File::open(path)?)?.0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::Spool;
    use crate::spool::MEMORY_BYTES_MAX;

    fn vault(folder: &Path) -> LocalVault {
        LocalVault::open(&folder.join("vault"), &Guards::ALL).unwrap()
    }

    fn sidecar() -> Sidecar {
        Sidecar::Brought { document: model::DocumentId::parse("large").unwrap() }
    }

    async fn large(spool: &Path) -> Spooled {
        let mut writer = Spool::open(spool).unwrap().begin();
        writer.write(&vec![7; 2 * MEMORY_BYTES_MAX]).await.unwrap();
        writer.finish().await.unwrap()
    }

    #[tokio::test]
    async fn a_large_content_is_stored_without_a_copy_and_outlives_the_spool() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(folder.path());
        let spooled = large(&folder.path().join("spool")).await;

        vault.put(&spooled, &sidecar()).await.unwrap();

        let stored = vault.disk.path_of(BlobName::of(&spooled));
        assert_eq!(fs::metadata(&stored).unwrap().nlink(), 2);
        let digest = spooled.digest;
        drop(spooled);
        assert_eq!(fs::metadata(&stored).unwrap().nlink(), 1);
        assert_eq!(Digest::of(&fs::read(&stored).unwrap()), digest);
    }

    #[tokio::test]
    async fn whoever_brings_the_same_bytes_mends_what_was_damaged_and_keeps_it_aside() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(folder.path());
        let spooled = Spool::hold(bytes::Bytes::from_static(b"whole"));
        vault.put(&spooled, &sidecar()).await.unwrap();
        let path = vault.disk.path_of(BlobName::of(&spooled));
        fs::write(&path, b"whale").unwrap();

        vault.put(&spooled, &sidecar()).await.unwrap();

        assert_eq!(fs::read(&path).unwrap(), b"whole");
        let aside = fs::read_dir(&vault.disk.damaged).unwrap().next().unwrap().unwrap().path();
        assert_eq!(fs::read(aside).unwrap(), b"whale");
    }

    #[tokio::test]
    async fn bytes_whose_flush_failed_are_stored_by_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(folder.path());
        let spooled = large(&folder.path().join("spool")).await;
        let Body::File(file) = spooled.body() else { panic!("a large content is a file") };
        file.doubt();

        let refused = vault.put(&spooled, &sidecar()).await;

        assert!(matches!(refused, Err(VaultError::Unavailable { .. })), "{refused:?}");
        assert!(!vault.disk.path_of(BlobName::of(&spooled)).exists());
    }
}
