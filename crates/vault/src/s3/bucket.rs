//! What the vault and the tree need of a bucket: objects written under a condition, read, listed and deleted.
//!
//! Guarantees: a write that returns `Written` is in the store whole; one that returns `Refused` changed nothing, unless the store
//! said first that it had failed and was asked again: whoever relies on it looks. What fits into the memory that parts would take goes
//! up in one request; a larger content goes up in parts, a few at a time, and on any failure the upload is aborted. No
//! content needs more memory than [`PARTS_AT_ONCE`] + 1 parts. A slow line is no silence: what is large may take its time.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use model::Digest;
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};
use object_store::multipart::{MultipartStore as _, PartId};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error, GetOptions, GetRange, ObjectMeta, ObjectStore as _, ObjectStoreExt as _,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, UpdateVersion,
};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::conditions::{Conditions, Habits, Hashes, find_out};
use super::reading::ObjectReader;
use super::settings::Settings;
use super::signing::{Known, of_known};
use crate::spool::Body;
use crate::{Spooled, read_verified};

/// No part but the last may be smaller than 5 MiB.
const PART_BYTES: usize = 8 * 1024 * 1024;
const PARTS_AT_ONCE: usize = 3;
/// What is not larger goes up in one request: a store that has parts puts them together afterwards, which takes it twice as long.
const WHOLE_BYTES_MAX: usize = (PARTS_AT_ONCE + 1) * PART_BYTES;
/// A line that is slower than this cannot have large contents. The library knows no progress of what it sends, only silence.
const LINE_BYTES_PER_S_MIN: usize = 256 * 1024;

/// `x-amz-meta-saveguard-sidecar`
const TOLD: Attribute = Attribute::Metadata(Cow::Borrowed("saveguard-sidecar"));

/// On what the store is to insist when it takes an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Any,
    /// Nothing has the name.
    Absent,
    /// What has the name is still this.
    Is(String),
}

/// How an object is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) condition: &'a Condition,
    /// A word that goes with it as metadata.
    pub(super) told: Option<&'a str>,
}

impl<'a> Terms<'a> {
    /// With nothing told.
    pub(super) fn just(condition: &'a Condition) -> Self {
        Self { condition, told: None }
    }

    fn attributes(&self) -> Attributes {
        self.told.map(|word| (TOLD, word.to_owned())).into_iter().collect()
    }
}

/// An object as it is now.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) meta: ObjectMeta,
    /// The word that was written with it.
    pub(super) told: Option<String>,
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Written,
    /// The condition does not hold.
    Refused,
}

/// A bucket and the place in it that is ours.
#[derive(Debug)]
pub(super) struct Bucket {
    store: AmazonS3,
    /// The same store for what is large.
    patient: AmazonS3,
    /// The same, whose every request insists that nothing has the name.
    creating: AmazonS3,
    settings: Settings,
    habits: OnceLock<Habits>,
    /// Set once the bucket was seen.
    seen: OnceLock<()>,
}

impl Bucket {
    pub(super) fn open(settings: &Settings) -> io::Result<Self> {
        let upload_s = WHOLE_BYTES_MAX / LINE_BYTES_PER_S_MIN;
        let silence_max = settings.silence_max + Duration::from_secs(upload_s as u64);
        let patient = Settings { silence_max, ..settings.clone() };
        Ok(Self {
            store: settings.client(HeaderMap::new())?,
            creating: patient
                .client(HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_static("*"))]))?,
            patient: patient.client(HeaderMap::new())?,
            settings: patient,
            habits: OnceLock::new(),
            seen: OnceLock::new(),
        })
    }

    /// As it is, not percent-encoded: names in the bucket are for people too.
    pub(super) fn key(&self, below: &str) -> io::Result<Path> {
        Path::parse(format!("{}{below}", self.settings.prefix)).map_err(io::Error::other)
    }

    /// Asked at the first write; the store need not be there when the service starts. Those who come meanwhile ask for themselves:
    /// if they waited for each other, each would wait for all before it while the store is silent.
    pub(super) async fn habits(&self) -> io::Result<Habits> {
        if let Some(found) = self.habits.get() {
            return Ok(*found);
        }
        let key = self.key(&format!("probes/{}", Uuid::new_v4().simple()))?;
        let found = find_out(&self.store, &key).await?;
        // Whoever was faster found the same.
        let _ = self.habits.set(found);
        Ok(found)
    }

    pub(super) async fn keeps_conditions(&self) -> io::Result<bool> {
        Ok(self.habits().await?.conditions == Conditions::Kept)
    }

    pub(super) async fn probe(&self) -> io::Result<()> {
        self.habits().await?;
        let key = self.key(&format!("probes/{}", Uuid::new_v4().simple()))?;
        self.put(&key, Bytes::from_static(b"saveguard"), Terms::just(&Condition::Any)).await?;
        self.delete(&key).await
    }

    pub(super) async fn head(&self, key: &Path) -> io::Result<Option<Found>> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let got = self.sure(found(self.store.get_opts(key, options).await)?).await?;
        Ok(got.map(|got| {
            let told = got.attributes.get(&TOLD).map(|word| word.to_string());
            Found { meta: got.meta, told }
        }))
    }

    /// An object of a bucket that is not there is not absent: nobody knows. Asked once, at the first thing that is not found.
    async fn sure<T>(&self, found: Option<T>) -> io::Result<Option<T>> {
        if found.is_none() && self.seen.get().is_none() {
            self.see_bucket().await?;
            let _ = self.seen.set(());
        }
        Ok(found)
    }

    async fn see_bucket(&self) -> io::Result<()> {
        let options = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
        self.store.list_paginated(None, options).await.map(|_| ()).map_err(io::Error::other)
    }

    /// The object as it is now, or a part of it.
    pub(super) async fn get(
        &self,
        key: &Path,
        range: Option<Range<u64>>,
    ) -> io::Result<Option<(ObjectMeta, ObjectReader)>> {
        let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
        let got = self.sure(found(self.store.get_opts(key, options).await)?).await?;
        Ok(got.map(|got| (got.meta.clone(), ObjectReader::new(got.into_stream()))))
    }

    /// Gives an object a second name; what has that already is replaced.
    pub(super) async fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.store.copy(from, to).await.map_err(io::Error::other)
    }

    pub(super) async fn delete(&self, key: &Path) -> io::Result<()> {
        found(self.store.delete(key).await).map(|_| ())
    }

    /// Deletes the object if it is still this.
    pub(super) async fn delete_if(&self, key: &Path, e_tag: &str) -> io::Result<Outcome> {
        // Stores that keep conditions on writing may not know them on deleting, and that cannot be tried out for every way to write.
        if !self.holds(key, &Condition::Is(e_tag.to_owned())).await? {
            return Ok(Outcome::Refused);
        }
        if !self.keeps_conditions().await? {
            return self.delete(key).await.map(|()| Outcome::Written);
        }
        match self.client_if(e_tag)?.delete(key).await {
            Err(Error::NotFound { .. }) => Ok(Outcome::Refused),
            deleted => outcome(deleted),
        }
    }

    /// Writes a content that is in memory.
    pub(super) async fn put(&self, key: &Path, bytes: Bytes, terms: Terms<'_>) -> io::Result<Outcome> {
        let known = Known { digest: Digest::of(&bytes), size_bytes: bytes.len() as u64 };
        self.put_known(&self.store, key, (bytes, known, terms)).await
    }

    async fn put_known(
        &self,
        store: &AmazonS3,
        key: &Path,
        (bytes, known, terms): (Bytes, Known, Terms<'_>),
    ) -> io::Result<Outcome> {
        let mode = match terms.condition {
            _ if !self.keeps_conditions().await? => {
                if !self.holds(key, terms.condition).await? {
                    return Ok(Outcome::Refused);
                }
                PutMode::Overwrite
            }
            Condition::Any => PutMode::Overwrite,
            Condition::Absent => PutMode::Create,
            Condition::Is(e_tag) => {
                PutMode::Update(UpdateVersion { e_tag: Some(e_tag.clone()), version: None })
            }
        };
        let options = PutOptions { mode, attributes: terms.attributes(), ..PutOptions::default() };
        outcome(of_known(known, store.put_opts(key, PutPayload::from_bytes(bytes), options)).await)
    }

    /// Writes a content that has arrived; what is sent is proved by its hash before the object gets its name: by the store, or here if it
    /// does not look.
    pub(super) async fn write_spooled(
        &self,
        key: &Path,
        spooled: &Spooled,
        terms: Terms<'_>,
    ) -> io::Result<Outcome> {
        let known = Known { digest: spooled.digest, size_bytes: spooled.size_bytes };
        match spooled.body() {
            Body::Memory(bytes) => self.put_known(&self.store, key, (bytes.clone(), known, terms)).await,
            Body::File(file) if spooled.size_bytes <= WHOLE_BYTES_MAX as u64 => {
                let prove = self.habits().await?.hashes == Hashes::Ignored;
                let bytes = read_whole(file.path.clone(), prove.then_some(spooled.digest)).await?;
                self.put_known(&self.patient, key, (bytes, known, terms)).await
            }
            Body::File(file) => {
                let content = tokio::fs::File::open(&file.path).await?;
                self.write(key, Box::pin(read_verified(content, spooled.digest)), terms).await
            }
        }
    }

    /// Writes a content of any length, in parts.
    async fn write(
        &self,
        key: &Path,
        content: impl AsyncRead + Send + Unpin,
        terms: Terms<'_>,
    ) -> io::Result<Outcome> {
        if !self.holds(key, terms.condition).await? {
            return Ok(Outcome::Refused);
        }
        let options =
            PutMultipartOptions { attributes: terms.attributes(), ..PutMultipartOptions::default() };
        let id = self.store.create_multipart_opts(key, options).await.map_err(io::Error::other)?;
        steps::reached("vault.upload-begun");
        let written = match self.write_parts((key, &id), content).await {
            Ok(parts) => self.complete((key, &id), parts, terms.condition).await,
            Err(cause) => Err(cause),
        };
        if !matches!(written, Ok(Outcome::Written)) {
            // What cannot be given up now has no name and goes by the bucket's lifecycle.
            let _ = self.store.abort_multipart(key, &id).await;
        }
        written
    }

    async fn write_parts(
        &self,
        (key, id): (&Path, &String),
        mut content: impl AsyncRead + Send + Unpin,
    ) -> io::Result<Vec<PartId>> {
        let mut under_way = JoinSet::new();
        let mut done: Vec<Option<PartId>> = Vec::new();
        let mut part = read_part(&mut content).await?;
        while !part.is_empty() {
            if under_way.len() == PARTS_AT_ONCE {
                take(&mut under_way, &mut done).await?;
            }
            let (store, key, id, at) = (self.patient.clone(), key.clone(), id.clone(), done.len());
            let payload = PutPayload::from_bytes(part);
            under_way.spawn(async move { (at, store.put_part(&key, &id, at, payload).await) });
            done.push(None);
            part = read_part(&mut content).await?;
        }
        while !under_way.is_empty() {
            take(&mut under_way, &mut done).await?;
        }
        Ok(done.into_iter().flatten().collect())
    }

    async fn complete(
        &self,
        (key, id): (&Path, &String),
        parts: Vec<PartId>,
        condition: &Condition,
    ) -> io::Result<Outcome> {
        steps::reached("vault.upload-complete");
        // As on deleting: the store may not look.
        if !self.holds(key, condition).await? {
            return Ok(Outcome::Refused);
        }
        let store = match condition {
            _ if !self.keeps_conditions().await? => &self.patient,
            Condition::Any => &self.patient,
            Condition::Absent => &self.creating,
            Condition::Is(e_tag) => &self.client_if(e_tag)?,
        };
        outcome(store.complete_multipart(key, id, parts).await)
    }

    /// object_store has no word for a condition on completing an upload or on deleting. A client whose requests all carry the
    /// header has one; it is used for that request alone.
    fn client_if(&self, e_tag: &str) -> io::Result<AmazonS3> {
        let value = HeaderValue::from_str(e_tag).map_err(io::Error::other)?;
        self.settings.client(HeaderMap::from_iter([(IF_MATCH, value)]))
    }

    /// For stores that do not look themselves: somebody may come in between, which is why they are warned of.
    async fn holds(&self, key: &Path, condition: &Condition) -> io::Result<bool> {
        Ok(match condition {
            Condition::Any => true,
            Condition::Absent => self.head(key).await?.is_none(),
            Condition::Is(e_tag) => {
                self.head(key).await?.and_then(|found| found.meta.e_tag).as_ref() == Some(e_tag)
            }
        })
    }

    /// The objects whose key begins so, in order, from the one after `after`.
    pub(super) fn pages(&self, beginning: &str, after: Option<String>) -> Pages<'_> {
        let prefix = &self.settings.prefix;
        let options = PaginatedListOptions {
            offset: after.map(|after| format!("{prefix}{after}")),
            ..PaginatedListOptions::default()
        };
        Pages { bucket: self, beginning: format!("{prefix}{beginning}"), next: Some(options) }
    }
}

/// A listing that is asked for page by page.
pub(super) struct Pages<'a> {
    bucket: &'a Bucket,
    beginning: String,
    next: Option<PaginatedListOptions>,
}

impl Pages<'_> {
    pub(super) async fn next(&mut self) -> io::Result<Option<Vec<ObjectMeta>>> {
        let Some(options) = self.next.take() else { return Ok(None) };
        let page = self.bucket.store.list_paginated(Some(&self.beginning), options.clone()).await;
        let page = page.map_err(io::Error::other)?;
        self.next = page.page_token.map(|token| PaginatedListOptions { page_token: Some(token), ..options });
        Ok(Some(page.result.objects))
    }
}

async fn take(
    under_way: &mut JoinSet<(usize, object_store::Result<PartId>)>,
    done: &mut [Option<PartId>],
) -> io::Result<()> {
    if let Some(joined) = under_way.join_next().await {
        let (at, part) = joined.map_err(io::Error::other)?;
        done[at] = Some(part.map_err(io::Error::other)?);
    }
    Ok(())
}

/// The file, if it is what its hash says.
async fn read_whole(path: PathBuf, digest: Option<Digest>) -> io::Result<Bytes> {
    let read = tokio::task::spawn_blocking(move || {
        let bytes = std::fs::read(&path)?;
        if digest.is_none_or(|digest| Digest::of(&bytes) == digest) {
            return Ok(Bytes::from(bytes));
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the spool does not hold what it took"))
    });
    read.await.map_err(io::Error::other)?
}

async fn read_part(content: &mut (impl AsyncRead + Send + Unpin)) -> io::Result<Bytes> {
    let mut part = Vec::new();
    content.take(PART_BYTES as u64).read_to_end(&mut part).await?;
    Ok(Bytes::from(part))
}

fn found<T>(result: object_store::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(cause) => Err(io::Error::other(cause)),
    }
}

fn outcome<T>(result: object_store::Result<T>) -> io::Result<Outcome> {
    match result {
        Ok(_) => Ok(Outcome::Written),
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. }) => {
            Ok(Outcome::Refused)
        }
        Err(cause) => Err(io::Error::other(cause)),
    }
}
