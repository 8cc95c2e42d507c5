//! Blobs in a bucket of an S3 store: AWS, MinIO, Garage, Ceph and their like.
//!
//! ```text
//! {prefix}blobs/3fd2…           the bytes, with where they came from in their metadata
//! {prefix}blobs/3fd2….1         the same after they had been removed once
//! {prefix}blobs/3fd2…~{sidecar} an empty object whose name tells where the same bytes came from another time
//! {prefix}damaged/3fd2…-{uuid}  what lay under the name of a blob and was not it
//! {prefix}probes/…              written and removed again, to see what the store can do
//! ```
//!
//! Guarantees: the port's, as far as the store keeps its word: an object appears whole or not at all, and is durable when
//! the store says so. A blob is only ever created (If-None-Match), every request is signed with the SHA-256 of what it brings and checked
//! on the other side, and a large one goes up in parts that are given up together. A store that ignores conditions or does not
//! look at the hash is found out at the first call; there every blob is read back. What is left of an upload that a crash interrupted has
//! no name: let the bucket's lifecycle abort incomplete uploads after a day.
//! Does not do: make buckets, or remember what could not be stored (`depot` does).

mod bucket;
mod conditions;
mod places;
mod reading;
mod settings;
mod signing;
pub mod tree;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use model::Digest;
use object_store::ObjectMeta;
use object_store::path::Path;
use uuid::Uuid;

use self::bucket::{Bucket, Condition, Found, Outcome, Terms};
pub use self::settings::{Addressing, Credentials, PlainHttp, Settings};
use crate::names::BlobName;
use crate::spool::Body;
use crate::{BlobReader, Result, Sidecar, Spooled, StoredBlob, Vault, VaultError, read_verified};

/// Somebody else may be storing or giving up the same blob at the same moment; after so many times the caller hears of it.
const PUT_ATTEMPTS: usize = 5;
/// A connection that was kept and whose server has gone fails at once. Putting a blob again is harmless.
const DEAD_CONNECTIONS_MAX: u32 = 4;
/// Sidecars are asked for blob by blob, so many at once.
const ASKED_AT_ONCE: usize = 16;
const DEAD_WITHIN: Duration = Duration::from_secs(1);

/// The vault in a bucket.
#[derive(Debug, Clone)]
pub struct S3Vault {
    bucket: Arc<Bucket>,
}

impl S3Vault {
    /// Takes the settings; talks to nobody yet.
    pub fn open(settings: &Settings) -> Result<Self> {
        let bucket = Bucket::open(settings).map_err(VaultError::unavailable("set up the S3 store"))?;
        Ok(Self { bucket: Arc::new(bucket) })
    }

    fn key_of(&self, name: BlobName) -> io::Result<Path> {
        self.bucket.key(&format!("blobs/{name}"))
    }

    /// Under which key a blob is found now, and as what.
    async fn find(&self, digest: &Digest) -> io::Result<Option<(Path, Found)>> {
        let first = self.key_of(BlobName::first(digest))?;
        if let Some(found) = self.bucket.head(&first).await? {
            return Ok(Some((first, found)));
        }
        let later = self.lives_of(digest).await?;
        let Some(life) = later.into_iter().max() else { return Ok(None) };
        let key = self.key_of(BlobName { digest: *digest, life })?;
        Ok(self.bucket.head(&key).await?.map(|found| (key, found)))
    }

    async fn lives_of(&self, digest: &Digest) -> io::Result<Vec<u64>> {
        let mut lives = Vec::new();
        let mut pages = self.bucket.pages(&format!("blobs/{digest}"), None);
        while let Some(page) = pages.next().await? {
            let names = page.iter().filter_map(|object| BlobName::parse(object.location.filename()?));
            lives.extend(names.map(|name| name.life));
        }
        Ok(lives)
    }

    /// One request for what is new: the sidecar goes with the bytes.
    async fn put_blob(&self, spooled: &Spooled, sidecar: &Sidecar) -> io::Result<()> {
        let (key, word) = (self.key_of(BlobName::of(spooled))?, sidecar.to_word());
        // What is large is looked for before it is sent.
        let is_there = matches!(spooled.body(), Body::File(_)) && self.bucket.head(&key).await?.is_some();
        if !is_there {
            // Where conditions are ignored, somebody else's bytes may replace these, and what was told with them.
            let told = self.bucket.keeps_conditions().await?.then_some(word.as_str());
            let terms = Terms { condition: &Condition::Absent, told };
            if self.bucket.write_spooled(&key, spooled, terms).await? == Outcome::Written && told.is_some() {
                return self.confirm(&key, spooled).await;
            }
        }
        let told = self.make_whole(&key, spooled).await?;
        if told.is_some_and(|told| told == word) {
            return Ok(());
        }
        self.put_sidecar(BlobName::of(spooled), &word).await
    }

    /// Something has the blob's name: it is the blob, as it reads back, or makes way for it. Returns what is told with it.
    async fn make_whole(&self, key: &Path, spooled: &Spooled) -> io::Result<Option<String>> {
        for _ in 0..PUT_ATTEMPTS {
            let found = self.bucket.head(key).await?;
            let told = found.as_ref().and_then(|found| found.told.clone());
            let may_be_whole = found.as_ref().is_some_and(|found| found.meta.size == spooled.size_bytes);
            if may_be_whole && self.is_whole(key, spooled).await? {
                return Ok(told);
            }
            // What it is now is seen the next time round.
            self.replace(key, spooled, found).await?;
        }
        Err(io::Error::other("the store refuses the blob and does not have it"))
    }

    async fn mend_blob(&self, spooled: &Spooled) -> io::Result<()> {
        for _ in 0..PUT_ATTEMPTS {
            let (key, found) = match self.find(&spooled.digest).await? {
                Some((key, found)) => (key, Some(found)),
                None => (self.key_of(BlobName::of(spooled))?, None),
            };
            if self.replace(&key, spooled, found).await? == Outcome::Written {
                return self.confirm(&key, spooled).await;
            }
        }
        Err(io::Error::other("somebody else keeps writing the blob"))
    }

    /// Puts a blob in the place of what was found under its name, which is copied to another; what was told with it stays.
    async fn replace(&self, key: &Path, spooled: &Spooled, found: Option<Found>) -> io::Result<Outcome> {
        let digest = &spooled.digest;
        let told = found.as_ref().and_then(|found| found.told.clone());
        let condition = match found {
            None => Condition::Absent,
            Some(found) => {
                let aside = self.bucket.key(&format!("damaged/{digest}-{}", Uuid::new_v4().simple()))?;
                self.bucket.copy(key, &aside).await?;
                found.meta.e_tag.map_or(Condition::Any, Condition::Is)
            }
        };
        let terms = Terms { condition: &condition, told: told.as_deref() };
        self.bucket.write_spooled(key, spooled, terms).await
    }

    /// What a careless store has is read back.
    async fn confirm(&self, key: &Path, spooled: &Spooled) -> io::Result<()> {
        if self.bucket.habits().await?.is_careful() || self.is_whole(key, spooled).await? {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the store gives back other bytes than it took"))
    }

    async fn is_whole(&self, key: &Path, spooled: &Spooled) -> io::Result<bool> {
        let Some((_, reader)) = self.bucket.get(key, None).await? else { return Ok(false) };
        let mut reader = std::pin::pin!(read_verified(reader, spooled.digest));
        match tokio::io::copy(&mut reader, &mut tokio::io::sink()).await {
            Err(cause) if cause.kind() == io::ErrorKind::InvalidData => Ok(false),
            read => read.map(|_| true),
        }
    }

    async fn put_sidecar(&self, name: BlobName, word: &str) -> io::Result<()> {
        let key = self.bucket.key(&format!("blobs/{}", name.sidecar(word)))?;
        self.bucket.put(&key, bytes::Bytes::new(), Terms::just(&Condition::Any)).await.map(|_| ())
    }

    async fn sidecars_of(&self, digest: Digest) -> io::Result<Vec<Sidecar>> {
        let Some((_, found)) = self.find(&digest).await? else { return Ok(Vec::new()) };
        let mut told: Vec<Sidecar> = found.told.iter().filter_map(|word| Sidecar::parse_word(word)).collect();
        let mut pages = self.bucket.pages(&format!("blobs/{digest}"), None);
        while let Some(page) = pages.next().await? {
            let words = page.iter().filter_map(|object| BlobName::parse_sidecar(object.location.filename()?));
            told.extend(words.filter_map(|(_, word)| Sidecar::parse_word(word)));
        }
        told.sort_by_key(Sidecar::to_word);
        told.dedup();
        Ok(told)
    }

    async fn open_blob(&self, digest: &Digest, range: Option<Range<u64>>) -> io::Result<Option<BlobReader>> {
        let first = self.key_of(BlobName::first(digest))?;
        let Some(asked) = range else {
            let read = self.read(&first, None).await?;
            return match read {
                None => match self.find(digest).await? {
                    Some((key, _)) => self.read(&key, None).await,
                    None => Ok(None),
                },
                found => Ok(found),
            };
        };
        // A store refuses a range that holds nothing; to us it is an empty read.
        let Some((key, found)) = self.find(digest).await? else { return Ok(None) };
        let end = asked.end.min(found.meta.size);
        if asked.start >= end {
            return Ok(Some(BlobReader {
                size_bytes: found.meta.size,
                reader: Box::pin(tokio::io::empty()),
            }));
        }
        self.read(&key, Some(asked.start..end)).await
    }

    async fn read(&self, key: &Path, range: Option<Range<u64>>) -> io::Result<Option<BlobReader>> {
        let found = self.bucket.get(key, range).await?;
        Ok(found.map(|(meta, reader)| BlobReader { size_bytes: meta.size, reader: Box::pin(reader) }))
    }

    async fn list_blobs(&self, after: Option<&Digest>, limit: usize) -> io::Result<Vec<StoredBlob>> {
        let mut found: Vec<StoredBlob> = Vec::new();
        let mut pages = self.bucket.pages("blobs/", after.map(|after| format!("blobs/{after}")));
        while let Some(page) = pages.next().await? {
            for object in page {
                let Some(name) = object.location.filename().and_then(BlobName::parse) else { continue };
                let (digest, life) = (name.digest, name.life);
                let is_another = found.last().is_none_or(|last| last.digest != digest);
                if found.len() >= limit && is_another {
                    return Ok(found);
                }
                // Its later lives come behind the one that was asked for.
                if after.is_none_or(|after| digest > *after) {
                    let (size_bytes, stored_at) = (object.size, modified_at(&object));
                    let blob = StoredBlob { digest, size_bytes, stored_at, life };
                    match found.last_mut().filter(|_| !is_another) {
                        Some(last) if last.life < life => *last = blob,
                        Some(_) => {}
                        None => found.push(blob),
                    }
                }
            }
        }
        Ok(found)
    }

    /// The bytes first: should this be cut short, what is left is a name that says nothing.
    async fn remove_blob(&self, name: BlobName) -> io::Result<()> {
        let mut covered = Vec::new();
        let mut pages = self.bucket.pages(&format!("blobs/{}", name.digest), None);
        while let Some(page) = pages.next().await? {
            let names = page.into_iter().map(|object| object.location);
            covered.extend(names.filter(|key| key.filename().is_some_and(|found| name.covers(found))));
        }
        let (sidecars, blobs): (Vec<Path>, Vec<Path>) =
            covered.into_iter().partition(|key| key.filename().is_some_and(|found| found.contains('~')));
        for blob in blobs {
            self.bucket.delete(&blob).await?;
        }
        steps::reached("vault.blob-removed");
        for sidecar in sidecars {
            self.bucket.delete(&sidecar).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Vault for S3Vault {
    fn kind(&self) -> &'static str {
        "s3"
    }

    async fn put(&self, spooled: &Spooled, sidecar: &Sidecar) -> Result<()> {
        let began = Instant::now();
        let mut attempts = 1;
        loop {
            match self.put_blob(spooled, sidecar).await {
                Ok(()) => break,
                Err(_) if attempts < DEAD_CONNECTIONS_MAX && began.elapsed() < DEAD_WITHIN => attempts += 1,
                Err(cause) => return Err(VaultError::unavailable("store a blob in the S3 store")(cause)),
            }
        }
        steps::reached("vault.blob-durable");
        Ok(())
    }

    async fn mend(&self, spooled: &Spooled) -> Result<()> {
        self.mend_blob(spooled).await.map_err(VaultError::unavailable("mend a blob of the S3 store"))
    }

    async fn open(&self, digest: &Digest, range: Option<Range<u64>>) -> Result<BlobReader> {
        let opened = self.open_blob(digest, range).await;
        let opened = opened.map_err(VaultError::unavailable("open a blob of the S3 store"))?;
        opened.ok_or_else(|| VaultError::not_found(format!("blob {digest}")))
    }

    async fn size_of(&self, digest: &Digest) -> Result<Option<u64>> {
        let found = self.find(digest).await;
        let found = found.map_err(VaultError::unavailable("look for a blob in the S3 store"))?;
        Ok(found.map(|(_, found)| found.meta.size))
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        self.list_blobs(after, limit).await.map_err(VaultError::unavailable("list the S3 store"))
    }

    async fn sidecars(&self, digests: &[Digest]) -> Result<Vec<Vec<Sidecar>>> {
        let asked: Vec<_> = digests.iter().map(|digest| self.sidecars_of(*digest)).collect();
        let told = stream::iter(asked).buffered(ASKED_AT_ONCE).try_collect().await;
        told.map_err(VaultError::unavailable("read where blobs of the S3 store came from"))
    }

    async fn remove(&self, digest: &Digest, life: u64) -> Result<()> {
        let removed = self.remove_blob(BlobName { digest: *digest, life }).await;
        removed.map_err(VaultError::unavailable("remove a blob from the S3 store"))
    }

    async fn probe(&self) -> Result<()> {
        self.bucket.probe().await.map_err(VaultError::unavailable("write to the S3 store"))
    }
}

fn modified_at(object: &ObjectMeta) -> Timestamp {
    Timestamp::from_millisecond(object.last_modified.timestamp_millis()).unwrap_or_default()
}
