//! The reference: what a durable save cannot do without. SHA-256, inflating with checksums, a flushed file under its
//! hash, a flushed folder, and two flushed records in a log, whose flushes are shared by saves that meet (as our ledger's
//! are). No HTTP, no token, no database, no order, no second copy.

use std::fs::{File, OpenOptions};
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use super::Figures;
use crate::gauge::cpu_s;
use crate::stage::Template;

/// As much as a page of a database.
const RECORD: [u8; 4096] = [7; 4096];
/// Numbers of the reference never meet those of the driver.
static NEXT: AtomicU64 = AtomicU64::new(1 << 40);

/// Keeps `depth` saves on their way for a time.
pub(super) fn round(depth: usize, time: Duration, template: &Template) -> Result<Figures> {
    let folder = tempfile::tempdir_in(std::env::current_exe()?.parent().context("no folder")?)?;
    for byte in 0..=u8::MAX {
        std::fs::create_dir(folder.path().join(format!("{byte:02x}")))?;
    }
    let log = Log::start(folder.path())?;
    let cpu_before = cpu_s(std::process::id());
    let began = Instant::now();
    let saves = std::thread::scope(|scope| -> Result<u64> {
        let workers: Vec<_> =
            (0..depth).map(|_| scope.spawn(|| work(folder.path(), &log, (began, time), template))).collect();
        let mut saves = 0;
        for worker in workers {
            saves += worker.join().map_err(|_| anyhow::anyhow!("a worker of the reference panicked"))??;
        }
        Ok(saves)
    })?;
    let seconds = began.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "counts of saves are small")]
    let saves = saves as f64;
    Ok(Figures {
        per_second: saves / seconds,
        cpu_ms: (cpu_s(std::process::id()) - cpu_before) * 1000.0 / saves,
    })
}

fn work(folder: &Path, log: &Log, (began, time): (Instant, Duration), template: &Template) -> Result<u64> {
    let mut done = 0;
    while began.elapsed() < time {
        let bytes = template.copy(NEXT.fetch_add(1, Ordering::Relaxed));
        log.append()?;
        let name: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        inflate(&bytes)?;
        store(folder, &name, &bytes)?;
        log.append()?;
        done += 1;
    }
    Ok(done)
}

fn inflate(bytes: &[u8]) -> Result<()> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes))?;
    for at in 0..archive.len() {
        std::io::copy(&mut archive.by_index(at)?, &mut std::io::sink())?;
    }
    Ok(())
}

fn store(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let temporary = folder.join(format!("{name}.tmp"));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    let target = folder.join(&name[..2]);
    std::fs::rename(&temporary, target.join(name))?;
    Ok(File::open(target)?.sync_all()?)
}

/// A log with group commit: records that meet share a flush.
struct Log {
    line: mpsc::Sender<mpsc::Sender<()>>,
}

impl Log {
    fn start(folder: &Path) -> Result<Self> {
        let mut file = OpenOptions::new().create(true).append(true).open(folder.join("log"))?;
        let (line, waiting) = mpsc::channel::<mpsc::Sender<()>>();
        std::thread::spawn(move || {
            while let Ok(first) = waiting.recv() {
                let mut batch = vec![first];
                batch.extend(waiting.try_iter());
                let records: Vec<u8> = RECORD.repeat(batch.len());
                if file.write_all(&records).and_then(|()| file.sync_data()).is_err() {
                    return;
                }
                for each in batch {
                    let _ = each.send(());
                }
            }
        });
        Ok(Self { line })
    }

    fn append(&self) -> Result<()> {
        let (done, wait) = mpsc::channel();
        self.line.send(done).context("the log ended")?;
        wait.recv().context("the log failed")
    }
}
