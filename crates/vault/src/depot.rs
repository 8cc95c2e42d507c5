//! A far vault with a depot before it: where blobs wait on the local disk while the far side is away.
//!
//! A put that the far side does not take is kept in the depot, if the operator allows it and there is room; [`Depot::deliver`]
//! brings what is there to the far side, reads it back, and only then lets go of it. Reads look in both places. What cannot be
//! delivered holds up nothing else.
//!
//! Guarantees: a put that returns is durable, there or here, at the same durability as a local vault. A blob leaves the depot
//! after the far side gave it back whole, with every sidecar it had. What cannot be known while the far side is away is not
//! made up: a blob that is not in the depot is `Unavailable` then and not missing, and there is no half a listing.
//! With the depot forbidden the far side's error goes through; what an earlier time left in the depot is still read and delivered.
//! Does not do: decide when to deliver (the server does), or share a depot between instances on different disks.

mod index;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use model::Digest;
use tokio::sync::{OnceCell, RwLock};
use tokio::time::Instant;

use self::index::Index;
pub use self::index::{Fill, Room};
use crate::{BlobReader, Result, Sidecar, Spool, Spooled, StoredBlob, Vault, VaultError, read_verified};

/// After a failure puts go to the depot for so long without asking: nobody's save waits for a dead line again and again.
const AWAY_FOR: Duration = Duration::from_secs(5);
/// A put is waited for so long, and as long as a slow line needs for its bytes; then it goes to the depot. Whoever saves is answered
/// although the far side says nothing and has not been given up by its own client yet.
const PATIENCE: Duration = Duration::from_secs(5);
const LINE_BYTES_PER_S_MIN: u64 = 256 * 1024;
const PAGE: usize = 1000;
/// So many in a row that the far side does not take, and it is probably away.
const REFUSED_MAX: u32 = 3;

/// A far vault with a depot before it.
pub struct Depot {
    far: Arc<dyn Vault>,
    near: Arc<dyn Vault>,
    spool: Spool,
    room: Room,
    index: OnceCell<Index>,
    away_until: Mutex<Option<Instant>>,
    /// Shared by those who put something in; alone for whoever takes something out.
    changes: RwLock<()>,
    /// One delivery or removal at a time, so that what is removed is not delivered afterwards.
    deliveries: tokio::sync::Mutex<()>,
    /// Behind which blob the next round of deliveries begins, and why the last one ended there.
    given_up: Mutex<(Option<Digest>, Option<String>)>,
}

/// What a delivery did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Blobs that are on the far side now.
    pub blobs: u64,
    /// Blobs that are damaged in the depot, or cannot be read; they stay, for a person to look at.
    pub damaged: u64,
    /// Blobs that the far side did not take. [`Depot::last_refusal`] says why.
    pub refused: u64,
}

/// Which side a delivery failed on.
enum Hitch {
    Near(VaultError),
    Far(VaultError),
}

impl Depot {
    /// Puts a vault on the local disk before a far one. Large blobs pass through the spool on their way.
    pub fn before(far: Arc<dyn Vault>, near: Arc<dyn Vault>, (spool, room): (Spool, Room)) -> Self {
        Self {
            far,
            near,
            spool,
            room,
            index: OnceCell::new(),
            away_until: Mutex::default(),
            changes: RwLock::default(),
            deliveries: tokio::sync::Mutex::default(),
            given_up: Mutex::default(),
        }
    }

    /// Why the far side last did not take something that was to be delivered.
    pub fn last_refusal(&self) -> Option<String> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// What is in the depot.
    pub async fn fill(&self) -> Result<Fill> {
        Ok(self.index().await?.fill())
    }

    /// The vault behind it.
    pub fn far(&self) -> Arc<dyn Vault> {
        Arc::clone(&self.far)
    }

    /// How much may be in it.
    pub fn room(&self) -> Room {
        self.room
    }

    /// Brings what is in the depot to the far side. After a few things in a row that the far side does not take it is given up for now;
    /// the next round begins behind them, so that one that is never taken holds up nothing else.
    pub async fn deliver(&self) -> Result<Delivered> {
        let mut delivered = Delivered::default();
        let start = self.given_up.lock().unwrap_or_else(PoisonError::into_inner).0.take();
        let parts = [(start, None), (None, start)];
        for (after, until) in parts.into_iter().take(if start.is_some() { 2 } else { 1 }) {
            if !self.deliver_between(after, until, &mut delivered).await? {
                break;
            }
        }
        if delivered.refused == 0 {
            self.given_up.lock().unwrap_or_else(PoisonError::into_inner).1 = None;
        }
        Ok(delivered)
    }

    /// Returns whether it came to the end.
    async fn deliver_between(
        &self,
        mut after: Option<Digest>,
        until: Option<Digest>,
        delivered: &mut Delivered,
    ) -> Result<bool> {
        let mut refused_in_a_row = 0;
        loop {
            let page = self.near.list(after.as_ref(), PAGE).await?;
            for blob in page.iter().filter(|blob| until.is_none_or(|until| blob.digest <= until)) {
                match self.deliver_one(blob).await {
                    Ok(()) => {
                        delivered.blobs += 1;
                        refused_in_a_row = 0;
                    }
                    Err(Hitch::Near(cause)) => {
                        tracing::warn!(digest = %blob.digest, %cause, "a blob of the depot cannot be delivered");
                        delivered.damaged += 1;
                    }
                    Err(Hitch::Far(cause)) => {
                        delivered.refused += 1;
                        refused_in_a_row += 1;
                        let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
                        given_up.1 = Some(with_sources(&cause));
                        if refused_in_a_row == REFUSED_MAX {
                            given_up.0 = Some(blob.digest);
                            return Ok(false);
                        }
                    }
                }
            }
            match page.last() {
                Some(last) if until.is_none_or(|until| last.digest < until) => after = Some(last.digest),
                _ => return Ok(true),
            }
        }
    }

    async fn deliver_one(&self, blob: &StoredBlob) -> std::result::Result<(), Hitch> {
        let _one = self.deliveries.lock().await;
        let mut told: Vec<Sidecar> = Vec::new();
        if self.near.size_of(&blob.digest).await.map_err(Hitch::Near)?.is_none() {
            return Ok(());
        }
        let mut now = self.told_here(&blob.digest).await.map_err(Hitch::Near)?;
        let content = self.take_up(&blob.digest).await.map_err(Hitch::Near)?.in_life(blob.life);
        loop {
            for sidecar in now.iter().filter(|each| !told.contains(each)) {
                self.far.put(&content, sidecar).await.map_err(Hitch::Far)?;
            }
            told.clone_from(&now);
            self.prove(&content).await.map_err(Hitch::Far)?;
            steps::reached("depot.delivered");
            let _alone = self.changes.write().await;
            // Somebody may have stored the same bytes meanwhile, for another reason.
            now = self.told_here(&blob.digest).await.map_err(Hitch::Near)?;
            if now.iter().all(|each| told.contains(each)) {
                self.near.remove(&blob.digest, blob.life).await.map_err(Hitch::Near)?;
                self.count_out(&blob.digest).await.map_err(Hitch::Near)?;
                self.is_back();
                return Ok(());
            }
        }
    }

    /// A blob was removed here, unless it came again meanwhile.
    async fn count_out(&self, digest: &Digest) -> Result<()> {
        if self.near.size_of(digest).await?.is_none() {
            self.index().await?.forget(digest);
        }
        Ok(())
    }

    /// What is told of it in the depot. A process that ended between the bytes and their sidecar left them nobody's.
    async fn told_here(&self, digest: &Digest) -> Result<Vec<Sidecar>> {
        Ok(Sidecar::or_nobodys(self.near.sidecars(&[*digest]).await?.concat()))
    }

    async fn take_up(&self, digest: &Digest) -> Result<Spooled> {
        let reader = self.near.open(digest, None).await?.reader;
        let content = self.spool.take_in(reader, "read a blob of the depot").await?;
        if content.digest == *digest { Ok(content) } else { Err(VaultError::Damaged { digest: *digest }) }
    }

    /// The far side gives it back whole. What it has had for longer, and is not the blob, makes way for what was delivered.
    async fn prove(&self, content: &Spooled) -> Result<()> {
        let attempt = "read back what was delivered";
        match self.read_back(&content.digest).await? {
            Err(cause) if cause.kind() == std::io::ErrorKind::InvalidData => {
                tracing::warn!(digest = %content.digest, "a blob was damaged in the far vault: mended from the depot");
                self.far.mend(content).await?;
                self.read_back(&content.digest).await?.map_err(VaultError::unavailable(attempt))
            }
            read => read.map_err(VaultError::unavailable(attempt)),
        }
    }

    async fn read_back(&self, digest: &Digest) -> Result<std::io::Result<()>> {
        let reader = self.far.open(digest, None).await?.reader;
        let mut reader = std::pin::pin!(read_verified(reader, *digest));
        Ok(tokio::io::copy(&mut reader, &mut tokio::io::sink()).await.map(|_| ()))
    }

    /// With the depot behind it nobody waits for a silent far side. A put that was given up there and happened all the same does no harm.
    async fn put_far(&self, spooled: &Spooled, sidecar: &Sidecar) -> Result<()> {
        let put = self.far.put(spooled, sidecar);
        if self.room == Room::None {
            return put.await;
        }
        let patience = PATIENCE + Duration::from_secs(spooled.size_bytes / LINE_BYTES_PER_S_MIN);
        tokio::time::timeout(patience, put).await.unwrap_or_else(|_| Err(silent()))
    }

    async fn keep(&self, spooled: &Spooled, sidecar: &Sidecar, cause: VaultError) -> Result<()> {
        let Room::Bytes(bytes_max) = self.room else { return Err(cause) };
        let index = self.index().await?;
        let Some(place) = index.reserve(spooled, bytes_max) else {
            tracing::error!(bytes_max, "the depot is full: saves are refused until the far vault is back");
            return Err(cause);
        };
        let _shared = self.changes.read().await;
        self.near.put(spooled, sidecar).await?;
        place.take();
        Ok(())
    }

    async fn index(&self) -> Result<&Index> {
        self.index.get_or_try_init(|| Index::of(self.near.as_ref())).await
    }

    /// Whether a put is to go to the depot without asking. When the time is up one put asks, and all others go on as before until it has
    /// its answer: a far side that is silent holds up one save and not all.
    fn is_away(&self) -> bool {
        let (mut until, now) =
            (self.away_until.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        match *until {
            Some(time) if now < time => true,
            Some(_) => {
                *until = Some(now + AWAY_FOR);
                false
            }
            None => false,
        }
    }

    fn went_away(&self, cause: &VaultError) {
        let mut until = self.away_until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.is_none() {
            tracing::warn!(%cause, "the far vault is away");
        }
        *until = Some(Instant::now() + AWAY_FOR);
    }

    fn is_back(&self) {
        let mut until = self.away_until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.take().is_some() {
            tracing::info!("the far vault is back");
        }
    }
}

#[async_trait]
impl Vault for Depot {
    fn kind(&self) -> &'static str {
        self.far.kind()
    }

    async fn put(&self, spooled: &Spooled, sidecar: &Sidecar) -> Result<()> {
        if self.room != Room::None && self.is_away() {
            return self.keep(spooled, sidecar, away()).await;
        }
        match self.put_far(spooled, sidecar).await {
            Ok(()) => {
                self.is_back();
                Ok(())
            }
            Err(cause @ VaultError::Unavailable { .. }) => {
                self.went_away(&cause);
                self.keep(spooled, sidecar, cause).await
            }
            Err(cause) => Err(cause),
        }
    }

    /// Where it is read from: what waits in the depot is read there and goes to the far side from there.
    async fn mend(&self, spooled: &Spooled) -> Result<()> {
        let _one = self.deliveries.lock().await;
        match self.near.size_of(&spooled.digest).await? {
            Some(_) => {
                let _alone = self.changes.write().await;
                self.near.mend(spooled).await
            }
            None => self.far.mend(spooled).await,
        }
    }

    async fn open(&self, digest: &Digest, range: Option<Range<u64>>) -> Result<BlobReader> {
        match self.near.open(digest, range.clone()).await {
            Err(VaultError::NotFound { .. }) => self.far.open(digest, range).await,
            opened => opened,
        }
    }

    async fn size_of(&self, digest: &Digest) -> Result<Option<u64>> {
        match self.near.size_of(digest).await? {
            None => self.far.size_of(digest).await,
            found => Ok(found),
        }
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>> {
        // The depot first: what is delivered in between is then listed twice, and merged, rather than not at all.
        let near = self.near.list(after, limit).await?;
        let mut merged: BTreeMap<Digest, StoredBlob> = BTreeMap::new();
        for blob in near.into_iter().chain(self.far.list(after, limit).await?) {
            merged.entry(blob.digest).or_insert(blob);
        }
        Ok(merged.into_values().take(limit).collect())
    }

    async fn sidecars(&self, digests: &[Digest]) -> Result<Vec<Vec<Sidecar>>> {
        let mut told = self.near.sidecars(digests).await?;
        for (near, far) in told.iter_mut().zip(self.far.sidecars(digests).await?) {
            let new: Vec<Sidecar> = far.into_iter().filter(|each| !near.contains(each)).collect();
            near.extend(new);
        }
        Ok(told)
    }

    async fn remove(&self, digest: &Digest, life: u64) -> Result<()> {
        let _one = self.deliveries.lock().await;
        // The far side first: should it be away, or say nothing, everything stays as it is and is removed another time. Nobody who stores
        // something waits for that.
        if let Err(cause) = self.far.remove(digest, life).await
            && self.far.size_of(digest).await?.is_some()
        {
            return Err(cause);
        }
        let _alone = self.changes.write().await;
        self.near.remove(digest, life).await?;
        self.count_out(digest).await
    }

    async fn probe(&self) -> Result<()> {
        match self.far.probe().await {
            Err(cause @ VaultError::Unavailable { .. }) => {
                let Room::Bytes(bytes_max) = self.room else { return Err(cause) };
                if self.fill().await?.bytes >= bytes_max { Err(cause) } else { self.near.probe().await }
            }
            probed => probed,
        }
    }
}

/// With all that it was caused by, for a person.
fn with_sources(cause: &VaultError) -> String {
    let mut text = cause.to_string();
    let mut source = std::error::Error::source(cause);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn silent() -> VaultError {
    VaultError::Unavailable {
        attempt: "store a blob: the far vault says nothing",
        cause: std::io::ErrorKind::TimedOut.into(),
    }
}

fn away() -> VaultError {
    VaultError::Unavailable {
        attempt: "store a blob: the far vault is away and the depot is full",
        cause: std::io::ErrorKind::NotConnected.into(),
    }
}
