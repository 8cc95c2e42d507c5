//! Blobs in a bucket of an S3 store: AWS, MinIO, Garage, Ceph and their like.
//!
//! ```text
//! {prefix}blobs/3fd2…           the bytes
//! {prefix}blobs/3fd2…~{sidecar} an empty object whose name tells where they came from
//! {prefix}damaged/3fd2…-{uuid}  what lay under the name of a blob and was not it
//! {prefix}probes/…              written and removed again, to see what the store can do
//! ```
//!
//! Guarantees: the port's, as far as the store keeps its word: an object appears whole or not at all, and is durable when
//! the store says so. A blob is only ever created (If-None-Match), its bytes are signed and checked by their SHA-256 on
//! the other side, and a large one goes up in parts that are given up together. A store that ignores conditions is
//! found out at the first call; there every blob is read back. What is left of an upload that a crash interrupted has
//! no name: let the bucket's lifecycle abort incomplete uploads after a day.
//! Does not do: make buckets, or remember what could not be stored (`standing_in` does).

mod bucket;
mod conditions;
mod places;
mod reading;
mod settings;
pub mod tree;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use model::Digest;
use object_store::ObjectMeta;
use object_store::path::Path;
use uuid::Uuid;

use self::bucket::{Bucket, Condition, Outcome};
pub use self::settings::{Addressing, Credentials, PlainHttp, Settings};
use crate::spool::Body;
use crate::{BlobReader, Result, Sidecar, Spooled, StoredBlob, Vault, VaultError, read_verified};

/// Somebody else may be storing or giving up the same blob at the same moment; after so many times the caller hears of it.
const PUT_ATTEMPTS: usize = 5;
/// A connection that was kept and whose server has gone fails at once. Putting a blob again is harmless.
const DEAD_CONNECTIONS_MAX: u32 = 4;
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

    fn key_of(&self, digest: &Digest) -> io::Result<Path> {
        self.bucket.key(&format!("blobs/{digest}"))
    }

    async fn put_blob(&self, spooled: &Spooled) -> io::Result<()> {
        let key = self.key_of(&spooled.digest)?;
        if matches!(spooled.body(), Body::File(_)) && self.is_whole(&key, spooled).await? {
            return Ok(());
        }
        let mut condition = Condition::Absent;
        for _ in 0..PUT_ATTEMPTS {
            match self.bucket.write_spooled(&key, spooled, &condition).await? {
                Outcome::Written => return self.confirm(spooled).await,
                Outcome::Refused if self.is_whole(&key, spooled).await? => {
                    return self.confirm(spooled).await;
                }
                // Under its name lies something of another length: not the blob, whoever wrote it. Or nothing any more.
                Outcome::Refused => condition = self.keep_aside(&spooled.digest).await?,
            }
        }
        Err(io::Error::other("the store refuses the blob and does not have it"))
    }

    async fn mend_blob(&self, spooled: &Spooled) -> io::Result<()> {
        let key = self.key_of(&spooled.digest)?;
        for _ in 0..PUT_ATTEMPTS {
            let condition = self.keep_aside(&spooled.digest).await?;
            if self.bucket.write_spooled(&key, spooled, &condition).await? == Outcome::Written {
                return self.confirm(spooled).await;
            }
        }
        Err(io::Error::other("somebody else keeps writing the blob"))
    }

    /// Copies what lies under the blob's name to another; returns on what to insist when it is replaced.
    async fn keep_aside(&self, digest: &Digest) -> io::Result<Condition> {
        let key = self.key_of(digest)?;
        let Some(found) = self.bucket.head(&key).await? else { return Ok(Condition::Absent) };
        let aside = self.bucket.key(&format!("damaged/{digest}-{}", Uuid::new_v4().simple()))?;
        self.bucket.copy(&key, &aside).await?;
        Ok(found.e_tag.map_or(Condition::Any, Condition::Is))
    }

    async fn is_whole(&self, key: &Path, spooled: &Spooled) -> io::Result<bool> {
        Ok(self.bucket.head(key).await?.is_some_and(|found| found.size == spooled.size_bytes))
    }

    /// A store that ignores conditions may be careless with more: what it has is read back.
    async fn confirm(&self, spooled: &Spooled) -> io::Result<()> {
        if self.bucket.keeps_conditions().await? {
            return Ok(());
        }
        let key = self.key_of(&spooled.digest)?;
        let (_, reader) = self.bucket.get(&key, None).await?.ok_or(io::ErrorKind::NotFound)?;
        let mut reader = std::pin::pin!(read_verified(reader, spooled.digest));
        tokio::io::copy(&mut reader, &mut tokio::io::sink()).await.map(|_| ())
    }

    async fn put_sidecar(&self, digest: &Digest, sidecar: &Sidecar) -> io::Result<()> {
        let key = self.bucket.key(&format!("blobs/{digest}~{}", sidecar.to_word()))?;
        self.bucket.put(&key, bytes::Bytes::new(), &Condition::Any).await.map(|_| ())
    }

    async fn open_blob(&self, digest: &Digest, range: Option<Range<u64>>) -> io::Result<Option<BlobReader>> {
        let key = self.key_of(digest)?;
        let Some(asked) = range else { return self.read(&key, None).await };
        // A store refuses a range that holds nothing; to us it is an empty read.
        let Some(found) = self.bucket.head(&key).await? else { return Ok(None) };
        let end = asked.end.min(found.size);
        if asked.start >= end {
            return Ok(Some(BlobReader { size_bytes: found.size, reader: Box::pin(tokio::io::empty()) }));
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
                let Some((digest, sidecar)) = parse_name(&object) else { continue };
                if let Some(word) = sidecar {
                    // Sidecars follow their blob; one without a blob says nothing.
                    let blob = found.last_mut().filter(|last| last.digest == digest);
                    if let Some(blob) = blob {
                        blob.sidecars.extend(Sidecar::parse_word(word));
                    }
                } else if found.len() == limit {
                    return Ok(found);
                } else {
                    found.push(stored_blob(digest, &object));
                }
            }
        }
        Ok(found)
    }

    /// The bytes first: should this be cut short, what is left is a name that says nothing.
    async fn remove_blob(&self, digest: &Digest) -> io::Result<()> {
        self.bucket.delete(&self.key_of(digest)?).await?;
        steps::reached("vault.blob-removed");
        let mut pages = self.bucket.pages(&format!("blobs/{digest}~"), None);
        while let Some(page) = pages.next().await? {
            for object in page {
                self.bucket.delete(&object.location).await?;
            }
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
            // Side by side: a sidecar whose blob never came is skipped by `list`.
            let blob = self.put_blob(spooled);
            let both = futures_util::future::try_join(blob, self.put_sidecar(&spooled.digest, sidecar)).await;
            match both {
                Ok(_) => break,
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
        let attempt = "look for a blob in the S3 store";
        let key = self.key_of(digest).map_err(VaultError::unavailable(attempt))?;
        let found = self.bucket.head(&key).await.map_err(VaultError::unavailable(attempt))?;
        Ok(found.map(|found| found.size))
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        self.list_blobs(after, limit).await.map_err(VaultError::unavailable("list the S3 store"))
    }

    async fn remove(&self, digest: &Digest) -> Result<()> {
        self.remove_blob(digest).await.map_err(VaultError::unavailable("remove a blob from the S3 store"))
    }

    async fn probe(&self) -> Result<()> {
        self.bucket.probe().await.map_err(VaultError::unavailable("write to the S3 store"))
    }
}

/// The digest in an object's name, and the sidecar's word if it is one.
fn parse_name(object: &ObjectMeta) -> Option<(Digest, Option<&str>)> {
    let name = object.location.filename()?;
    let (digest, word) = name.split_once('~').map_or((name, None), |(digest, word)| (digest, Some(word)));
    Digest::parse_hex(digest).map(|digest| (digest, word))
}

fn stored_blob(digest: Digest, object: &ObjectMeta) -> StoredBlob {
    StoredBlob { digest, size_bytes: object.size, stored_at: modified_at(object), sidecars: Vec::new() }
}

fn modified_at(object: &ObjectMeta) -> Timestamp {
    Timestamp::from_millisecond(object.last_modified.timestamp_millis()).unwrap_or_default()
}
