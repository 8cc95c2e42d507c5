//! Blobs into far stores, each beside the tool that does the bare work: SFTP beside OpenSSH's own `sftp`, S3 beside the client
//! library.
//!
//! Every store gives its rows by one function that takes the [`Load`]s; another store is another module and another line in [`run`].
//! Rounds of both sides alternate and the medians are shown.

mod s3;
mod sftp;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use model::EditorKey;
use tokio::task::JoinSet;
use vault::{Sidecar, Spool, Spooled, Vault};

use crate::gauge::median;
use crate::report::{Report, Row};

/// Odd, so that the median is a measured figure.
const ROUNDS: usize = 5;

const PREFACE: &str = "\
Blobs into a vault on a server of this machine. ours: the vault's own way, which ends with a sidecar and, over SFTP, a flushed folder.
sftp, limit: OpenSSH's `sftp` with one batch of `put` and `rename` (side by side: as many batches at once). flushed: we flush every
blob and its folder, the batch every file (`put -f`), so we flush twice as often. not flushed: neither does.
s3, limit: the client library (object_store) that only puts the same bytes, from memory. Connecting is included with sftp, on both sides;
S3 stores have been connected to, and tried out, before the time begins, as they are when a service is ready.";
/// What is promised for SFTP, beside OpenSSH's batch, and for S3, beside the bare client.
const SFTP_SMALL_MIN: f64 = 0.8;
const SFTP_LARGE_MIN: f64 = 0.9;
const S3_MIN: f64 = 0.9;

/// What is stored in one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    name: &'static str,
    files: usize,
    size_bytes: usize,
    /// How many are on their way at once.
    side_by_side: usize,
}

const LOADS: [Load; 3] = [
    Load { name: "1000 x 100 KB", files: 1000, size_bytes: 100_000, side_by_side: 1 },
    Load { name: "1000 x 100 KB, 8 at once", files: 1000, size_bytes: 100_000, side_by_side: 8 },
    Load { name: "10 x 20 MB", files: 10, size_bytes: 20_000_000, side_by_side: 1 },
];

/// Which stores are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Only {
    All,
    S3,
    Sftp,
}

pub(crate) fn run(only: Only) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut rows = Vec::new();
    if only != Only::S3 {
        rows.extend(runtime.block_on(sftp::rows(&LOADS))?);
    }
    if only != Only::Sftp {
        rows.extend(runtime.block_on(s3::rows(&LOADS))?);
    }
    let failures = rows.iter().filter_map(missed).collect();
    Ok(Report::new("vaults", rows, PREFACE).failed(failures))
}

/// What is said of a row that falls short.
fn missed(row: &Row) -> Option<String> {
    let min = match (row.name.starts_with("s3 "), row.unit) {
        (true, _) => S3_MIN,
        (false, "MB/s") => SFTP_LARGE_MIN,
        (false, _) => SFTP_SMALL_MIN,
    };
    let ratio = row.ratio_limit()?;
    (ratio < min).then(|| format!("{}: {ratio} of the limit, and {min} is promised", row.name))
}

impl Load {
    /// Its files, all different from those of every other round.
    fn contents(&self, round: usize) -> Vec<Bytes> {
        (0..self.files).map(|file| content(self.size_bytes, (round * self.files + file) as u64)).collect()
    }

    /// Megabytes for large files, and files for small ones.
    fn row(&self, name: &str, seconds: (Vec<f64>, Vec<f64>)) -> Row {
        #[allow(clippy::cast_precision_loss, reason = "counts of files and bytes are small")]
        let (amount, unit) = match self.size_bytes {
            0..1_000_000 => (self.files as f64, "files/s"),
            size_bytes => ((self.files * size_bytes) as f64 / 1e6, "MB/s"),
        };
        let [ours, limit] = [seconds.0, seconds.1].map(|seconds| amount / median(seconds));
        Row::new(name, unit, (ours, Some(limit), None))
    }
}

/// Bytes that no compression makes smaller; a stream of its own for each seed.
fn content(size_bytes: usize, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(size_bytes).collect()
}

/// As the service has them when they have arrived: hashed, small ones in memory and large ones in the spool, which goes with
/// its folder.
async fn spooled(contents: &[Bytes], parent: &Path) -> Result<(Vec<Spooled>, tempfile::TempDir)> {
    let folder = tempfile::tempdir_in(parent)?;
    let spool = Spool::open(folder.path())?;
    let mut blobs = Vec::new();
    for content in contents {
        let mut writer = spool.begin();
        writer.write(content).await?;
        blobs.push(writer.finish().await?);
    }
    Ok((blobs, folder))
}

/// Puts all of them into a vault, some at once.
async fn put_all<V: Vault + 'static>(vault: Arc<V>, blobs: Vec<Spooled>, side_by_side: usize) -> Result<()> {
    let key = EditorKey::parse("prod_12345_edit_1.k").context("a key")?;
    let sidecar = Arc::new(Sidecar::Saved { key, status: 2 });
    each(blobs, side_by_side, move |blob| {
        let (vault, sidecar) = (Arc::clone(&vault), Arc::clone(&sidecar));
        async move { Ok(vault.put(&blob, &sidecar).await?) }
    })
    .await
}

/// Does something with each, some at once.
async fn each<T, W>(
    items: Vec<T>,
    side_by_side: usize,
    work: impl Fn(T) -> W + Clone + Send + 'static,
) -> Result<()>
where
    T: Send + 'static,
    W: Future<Output = Result<()>> + Send + 'static,
{
    let items = Arc::new(Mutex::new(items.into_iter()));
    let mut workers = JoinSet::new();
    for _ in 0..side_by_side {
        let (items, work) = (Arc::clone(&items), work.clone());
        workers.spawn(async move {
            let next = || items.lock().ok().and_then(|mut items| items.next());
            while let Some(item) = next() {
                work(item).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(())
}

/// How long some work takes, in seconds.
async fn timed(work: impl Future<Output = Result<()>>) -> Result<f64> {
    let began = Instant::now();
    work.await?;
    Ok(began.elapsed().as_secs_f64())
}
