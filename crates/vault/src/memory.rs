//! A vault and a tree in memory, for tests.
//!
//! Guarantees: the ports', except that nothing outlives the process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Cursor, Read as _};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use model::Digest;
use tokio::io::AsyncReadExt as _;

use crate::names::{BlobName, latest};
use crate::tree::{Glance, Place, Publication, Replaced, Tree, is_backup};
use crate::{BlobReader, Result, Sidecar, Spooled, StoredBlob, Vault, VaultError, read_verified};

/// Blobs in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryVault {
    blobs: Arc<Mutex<Blobs>>,
    rotten: Arc<Mutex<BTreeSet<Digest>>>,
}

type Blobs = BTreeMap<BlobName, Held>;

type Held = (Bytes, Vec<Sidecar>);

impl MemoryVault {
    /// Changes a stored blob behind everybody's back, as a failing disk would.
    pub fn damage(&self, digest: &Digest) {
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, (bytes, _)) in blobs.iter_mut().filter(|(name, _)| name.digest == *digest) {
            *bytes = damaged(bytes);
        }
    }

    /// From now on, whatever is stored under this digest is damaged at once, as on a bad sector.
    pub fn rot(&self, digest: &Digest) {
        self.rotten.lock().unwrap_or_else(PoisonError::into_inner).insert(*digest);
        self.damage(digest);
    }

    /// What becomes of bytes that are stored.
    fn kept(&self, digest: &Digest, bytes: Vec<u8>) -> Bytes {
        let is_rotten = self.rotten.lock().unwrap_or_else(PoisonError::into_inner).contains(digest);
        if is_rotten { damaged(&bytes) } else { Bytes::from(bytes) }
    }

    fn find(&self, digest: &Digest) -> Option<Bytes> {
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        current(&blobs, digest).map(|(_, (bytes, _))| bytes.clone())
    }
}

/// What is under a digest, in its latest life.
fn current<'a>(blobs: &'a Blobs, digest: &Digest) -> Option<(&'a BlobName, &'a Held)> {
    blobs.range(BlobName::first(digest)..=BlobName { digest: *digest, life: u64::MAX }).next_back()
}

fn damaged(bytes: &[u8]) -> Bytes {
    let mut changed = bytes.to_vec();
    if let Some(byte) = changed.last_mut() {
        *byte ^= 1;
    }
    Bytes::from(changed)
}

fn reader(bytes: &Bytes, range: Range<u64>) -> BlobReader {
    let end = usize::try_from(range.end).unwrap_or(usize::MAX).min(bytes.len());
    let start = usize::try_from(range.start).unwrap_or(usize::MAX).min(end);
    BlobReader { size_bytes: bytes.len() as u64, reader: Box::pin(Cursor::new(bytes.slice(start..end))) }
}

#[async_trait]
impl Vault for MemoryVault {
    fn kind(&self) -> &'static str {
        "memory"
    }

    async fn put(&self, spooled: &Spooled, sidecar: &Sidecar) -> Result<()> {
        let mut bytes = Vec::new();
        spooled.reader()?.read_to_end(&mut bytes).map_err(VaultError::unavailable("store a blob"))?;
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        let (held, sidecars) = blobs.entry(BlobName::of(spooled)).or_default();
        // New, or damaged.
        if Digest::of(held) != spooled.digest {
            *held = self.kept(&spooled.digest, bytes);
        }
        if !sidecars.contains(sidecar) {
            sidecars.push(sidecar.clone());
        }
        Ok(())
    }

    async fn mend(&self, spooled: &Spooled) -> Result<()> {
        let mut bytes = Vec::new();
        spooled.reader()?.read_to_end(&mut bytes).map_err(VaultError::unavailable("mend a blob"))?;
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        let name = current(&blobs, &spooled.digest).map_or(BlobName::of(spooled), |(name, _)| *name);
        blobs.entry(name).or_default().0 = self.kept(&spooled.digest, bytes);
        Ok(())
    }

    async fn open(&self, digest: &Digest, range: Option<Range<u64>>) -> Result<BlobReader> {
        let bytes = self.find(digest).ok_or_else(|| VaultError::not_found(format!("blob {digest}")))?;
        Ok(reader(&bytes, range.unwrap_or(0..u64::MAX)))
    }

    async fn size_of(&self, digest: &Digest) -> Result<Option<u64>> {
        Ok(self.find(digest).map(|bytes| bytes.len() as u64))
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>> {
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        let later = blobs.iter().filter(|(name, _)| after.is_none_or(|after| name.digest > *after));
        let stored = later.map(|(name, (bytes, _))| StoredBlob {
            digest: name.digest,
            size_bytes: bytes.len() as u64,
            stored_at: Timestamp::UNIX_EPOCH,
            life: name.life,
        });
        Ok(latest(stored.collect()).into_iter().take(limit).collect())
    }

    async fn sidecars(&self, digests: &[Digest]) -> Result<Vec<Vec<Sidecar>>> {
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        let told =
            digests.iter().map(|digest| current(&blobs, digest).map(|(_, (_, sidecars))| sidecars.clone()));
        Ok(told.map(Option::unwrap_or_default).collect())
    }

    async fn remove(&self, digest: &Digest, life: u64) -> Result<()> {
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        blobs.retain(|name, _| name.digest != *digest || name.life > life);
        Ok(())
    }

    async fn probe(&self) -> Result<()> {
        Ok(())
    }
}

/// A published tree in memory: file names to bytes, per document.
#[derive(Debug, Clone, Default)]
pub struct MemoryTree {
    files: Arc<Mutex<HashMap<(String, String), Bytes>>>,
}

impl MemoryTree {
    /// Writes a file behind everybody's back, as another program would.
    pub fn overwrite(&self, place: &Place, bytes: &[u8]) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(key(place, place.name.as_str()), Bytes::copy_from_slice(bytes));
    }

    /// The names in a document's folder, sorted.
    pub fn names(&self, place: &Place) -> Vec<String> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<_> = files
            .keys()
            .filter(|(folder, _)| *folder == folder_of(place))
            .map(|(_, name)| name.clone())
            .collect();
        names.sort();
        names
    }
}

fn folder_of(place: &Place) -> String {
    format!("{}/{}/{}", place.company, place.project, place.document)
}

fn key(place: &Place, name: &str) -> (String, String) {
    (folder_of(place), name.to_owned())
}

/// Keeps what stood under the name, under the first name that is free.
fn back_up(
    files: &mut HashMap<(String, String), Bytes>,
    place: &Place,
    (suffix, old): (&str, Bytes),
) -> Replaced {
    let backup = (1..)
        .map(|number| if number == 1 { String::new() } else { format!("-{number}") })
        .map(|number| place.name.with_suffix(&suffix.replace(".bak", &format!("{number}.bak"))))
        .find(|name| !files.contains_key(&key(place, name)))
        .unwrap_or_default();
    let (digest, size_bytes) = (Digest::of(&old), old.len() as u64);
    files.insert(key(place, &backup), old);
    Replaced { backup, digest, size_bytes }
}

#[async_trait]
impl Tree for MemoryTree {
    async fn publish(&self, publication: &Publication, content: BlobReader) -> Result<Option<Replaced>> {
        let mut bytes = Vec::new();
        std::pin::pin!(read_verified(content.reader, publication.digest))
            .read_to_end(&mut bytes)
            .await
            .map_err(VaultError::unavailable("write a published file"))?;
        let place = &publication.place;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = files.insert(key(place, place.name.as_str()), Bytes::from(bytes));
        Ok(replaced.map(|old| back_up(&mut files, place, (&publication.backup_suffix, old))))
    }

    async fn withdraw(&self, place: &Place, backup_suffix: &str) -> Result<Option<Replaced>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = files.remove(&key(place, place.name.as_str()));
        Ok(shown.map(|old| back_up(&mut files, place, (backup_suffix, old))))
    }

    async fn shown(&self, place: &Place) -> Result<Option<(Digest, u64)>> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(files.get(&key(place, place.name.as_str())).map(|bytes| (Digest::of(bytes), bytes.len() as u64)))
    }

    async fn glance(&self, place: &Place) -> Result<Option<Glance>> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = files.get(&key(place, place.name.as_str()));
        // Nobody keeps the time here: only the length tells that another program was at work.
        Ok(shown.map(|bytes| Glance { size_bytes: bytes.len() as u64, modified_at: Timestamp::UNIX_EPOCH }))
    }

    async fn backups(&self, place: &Place) -> Result<Vec<String>> {
        Ok(self.names(place).into_iter().filter(|name| is_backup(name)).collect())
    }

    async fn remove_backup(&self, place: &Place, backup: &str) -> Result<()> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if is_backup(backup) && backup != place.name.as_str() {
            files.remove(&key(place, backup));
        }
        Ok(())
    }

    async fn leave(&self, _place: &Place) -> Result<()> {
        Ok(())
    }

    async fn open_backup(&self, place: &Place, backup: &str) -> Result<BlobReader> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = files.get(&key(place, backup)).ok_or_else(|| VaultError::not_found(backup))?;
        Ok(reader(bytes, 0..u64::MAX))
    }

    async fn tidy(&self, _place: &Place) -> Result<()> {
        Ok(())
    }
}
