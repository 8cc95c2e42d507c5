//! Blobs into far stores, each beside the tool that does the bare work: SFTP beside OpenSSH's own `sftp`.
//!
//! Every store gives its rows by one function that takes the [`Load`]s; another store is another module and another line in [`run`].
//! Rounds of both sides alternate and the medians are shown. Connecting is part of each round, on both sides.

mod sftp;

use std::time::Instant;

use anyhow::Result;
use bytes::Bytes;
use vault::{Spool, Spooled};

use crate::gauge::median;
use crate::report::{Report, Row};

/// Odd, so that the median is a measured figure.
const ROUNDS: usize = 5;

const PREFACE: &str = "\
Blobs into a vault on a server of this machine. ours: the vault's own way, which ends with a sidecar and a flushed folder.
limit: OpenSSH's `sftp` with one batch of `put` and `rename` (side by side: as many batches at once). flushed: we flush every
blob and its folder, the batch every file (`put -f`), so we flush twice as often. not flushed: neither does. Connecting is included.";

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

pub(crate) fn run() -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let rows = runtime.block_on(sftp::rows(&LOADS))?;
    Ok(Report::new("vaults", rows, PREFACE))
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

/// As the service has them when they have arrived: hashed.
fn spooled(contents: &[Bytes]) -> Vec<Spooled> {
    contents.iter().cloned().map(Spool::hold).collect()
}

/// How long some work takes, in seconds.
async fn timed(work: impl Future<Output = Result<()>>) -> Result<f64> {
    let began = Instant::now();
    work.await?;
    Ok(began.elapsed().as_secs_f64())
}
