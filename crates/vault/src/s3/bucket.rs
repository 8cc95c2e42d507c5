//! What the vault and the tree need of a bucket: objects written under a condition, read, listed and deleted.
//!
//! Guarantees: a write that returns `Written` is in the store whole; one that returns `Refused` changed nothing. A large
//! content goes up in parts, a few at a time, and on any failure the upload is aborted. No content needs more memory than
//! [`PARTS_AT_ONCE`] + 1 parts.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};
use object_store::multipart::{MultipartStore as _, PartId};
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload,
    UpdateVersion,
};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::conditions::{Conditions, find_out};
use super::reading::ObjectReader;
use super::settings::Settings;
use crate::spool::Body;
use crate::{Spooled, read_verified};

/// What is smaller goes up in one request. No part but the last may be smaller than 5 MiB.
const PART_BYTES: usize = 8 * 1024 * 1024;
const PARTS_AT_ONCE: usize = 3;

/// On what the store is to insist when it takes an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Any,
    /// Nothing has the name.
    Absent,
    /// What has the name is still this.
    Is(String),
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
    settings: Settings,
    conditions: OnceCell<Conditions>,
    /// Set once the bucket was seen.
    seen: OnceCell<()>,
}

impl Bucket {
    pub(super) fn open(settings: &Settings) -> io::Result<Self> {
        let store = settings.client(HeaderMap::new())?;
        Ok(Self { store, settings: settings.clone(), conditions: OnceCell::new(), seen: OnceCell::new() })
    }

    /// As it is, not percent-encoded: names in the bucket are for people too.
    pub(super) fn key(&self, below: &str) -> io::Result<Path> {
        Path::parse(format!("{}{below}", self.settings.prefix)).map_err(io::Error::other)
    }

    /// Asked once, at the first write; the store need not be there when the service starts.
    pub(super) async fn keeps_conditions(&self) -> io::Result<bool> {
        let key = self.key(&format!("probes/{}", Uuid::new_v4().simple()))?;
        let found = self.conditions.get_or_try_init(|| find_out(&self.store, &key)).await?;
        Ok(*found == Conditions::Kept)
    }

    pub(super) async fn probe(&self) -> io::Result<()> {
        self.keeps_conditions().await?;
        let key = self.key(&format!("probes/{}", Uuid::new_v4().simple()))?;
        self.put(&key, Bytes::from_static(b"saveguard"), &Condition::Any).await?;
        self.delete(&key).await
    }

    pub(super) async fn head(&self, key: &Path) -> io::Result<Option<ObjectMeta>> {
        self.sure(found(self.store.head(key).await)?).await
    }

    /// An object of a bucket that is not there is not absent: nobody knows. Asked once, at the first thing that is not found.
    async fn sure<T>(&self, found: Option<T>) -> io::Result<Option<T>> {
        if found.is_none() {
            self.seen.get_or_try_init(|| self.see_bucket()).await?;
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

    pub(super) async fn delete(&self, key: &Path) -> io::Result<()> {
        found(self.store.delete(key).await).map(|_| ())
    }

    /// Deletes the object if it is still this.
    pub(super) async fn delete_if(&self, key: &Path, e_tag: &str) -> io::Result<Outcome> {
        let condition = Condition::Is(e_tag.to_owned());
        if !self.keeps_conditions().await? {
            if !self.holds(key, &condition).await? {
                return Ok(Outcome::Refused);
            }
            return self.delete(key).await.map(|()| Outcome::Written);
        }
        outcome(self.client_under(&condition)?.delete(key).await)
    }

    /// Writes a content that is in memory.
    pub(super) async fn put(&self, key: &Path, bytes: Bytes, condition: &Condition) -> io::Result<Outcome> {
        let mode = match condition {
            _ if !self.keeps_conditions().await? => {
                if !self.holds(key, condition).await? {
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
        outcome(self.store.put_opts(key, PutPayload::from_bytes(bytes), mode.into()).await)
    }

    /// Writes a content that has arrived; what is sent is proved by its hash before the object gets its name.
    pub(super) async fn write_spooled(
        &self,
        key: &Path,
        spooled: &Spooled,
        condition: &Condition,
    ) -> io::Result<Outcome> {
        match spooled.body() {
            Body::Memory(bytes) => self.put(key, bytes.clone(), condition).await,
            Body::File(file) => {
                let content = tokio::fs::File::open(&file.path).await?;
                self.write(key, Box::pin(read_verified(content, spooled.digest)), condition).await
            }
        }
    }

    /// Writes a content of any length.
    async fn write(
        &self,
        key: &Path,
        mut content: impl AsyncRead + Send + Unpin,
        condition: &Condition,
    ) -> io::Result<Outcome> {
        let first = read_part(&mut content).await?;
        if first.len() < PART_BYTES {
            return self.put(key, first, condition).await;
        }
        if !self.keeps_conditions().await? && !self.holds(key, condition).await? {
            return Ok(Outcome::Refused);
        }
        let id = self.store.create_multipart(key).await.map_err(io::Error::other)?;
        steps::reached("vault.upload-begun");
        let written = match self.write_parts((key, &id), first, content).await {
            Ok(parts) => self.complete((key, &id), parts, condition).await,
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
        first: Bytes,
        mut content: impl AsyncRead + Send + Unpin,
    ) -> io::Result<Vec<PartId>> {
        let mut under_way = JoinSet::new();
        let mut done: Vec<Option<PartId>> = Vec::new();
        let mut part = first;
        while !part.is_empty() {
            if under_way.len() == PARTS_AT_ONCE {
                take(&mut under_way, &mut done).await?;
            }
            let (store, key, id, at) = (self.store.clone(), key.clone(), id.clone(), done.len());
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
        if *condition == Condition::Any || !self.keeps_conditions().await? {
            return outcome(self.store.complete_multipart(key, id, parts).await);
        }
        outcome(self.client_under(condition)?.complete_multipart(key, id, parts).await)
    }

    /// object_store has no word for a condition on completing an upload or on deleting. A client whose requests all carry the
    /// header has one; it is used for that request alone.
    fn client_under(&self, condition: &Condition) -> io::Result<AmazonS3> {
        let header: Option<(HeaderName, &str)> = match condition {
            Condition::Any => None,
            Condition::Absent => Some((IF_NONE_MATCH, "*")),
            Condition::Is(e_tag) => Some((IF_MATCH, e_tag)),
        };
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = header {
            headers.insert(name, HeaderValue::from_str(value).map_err(io::Error::other)?);
        }
        self.settings.client(headers)
    }

    /// For stores that do not look themselves: somebody may come in between, which is why they are warned of.
    async fn holds(&self, key: &Path, condition: &Condition) -> io::Result<bool> {
        Ok(match condition {
            Condition::Any => true,
            Condition::Absent => self.head(key).await?.is_none(),
            Condition::Is(e_tag) => self.head(key).await?.and_then(|meta| meta.e_tag).as_ref() == Some(e_tag),
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
