//! Durable saves of a 100 KB docx: callbacks over HTTP, each fetched, hashed, inflated, stored, flushed and committed,
//! beside a reference that does the same flushes, hashing and inflating and nothing else.
//!
//! Depth is how many saves are on their way at once, each of another document. Rounds of both alternate and the medians
//! are shown. A last run of 100,000 saves shows whether the server's memory stays flat.

mod reference;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::gauge::{cpu_s, median, resident_bytes};
use crate::report::{Report, Row};
use crate::stage::{Callback, Stage, Template, Wire};

const SIZE_BYTES: usize = 100_000;
const DEPTHS: [usize; 3] = [1, 8, 64];
const ROUNDS: usize = 5;
const ROUND_TIME: Duration = Duration::from_secs(3);
const LONG_RUN_SAVES: u64 = 100_000;
const LONG_RUN_DEPTH: usize = 8;
/// Each save: its blob, the folder of the blob, the inbox row, the commit.
const FLUSHES: &str =
    "4 flushes a save: blob, its folder, inbox row, commit; the last two are shared by saves that meet";

/// Saves per second and processor time per save.
#[derive(Clone, Copy)]
struct Figures {
    per_second: f64,
    cpu_ms: f64,
}

pub(crate) fn run() -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<Report> {
    let template = Arc::new(Template::new(SIZE_BYTES)?);
    let stage = Stage::start().await?;
    let mut keys = Vec::new();
    for number in 0..DEPTHS[DEPTHS.len() - 1] {
        keys.push(stage.open_document(&format!("d{number}"), &template).await?);
    }
    let driver = Arc::new(Driver { stage, template: Arc::clone(&template), keys, next: AtomicU64::new(1) });
    let mut rows = Vec::new();
    for depth in DEPTHS {
        let (mut ours, mut limit) = (Vec::new(), Vec::new());
        for round in 1..=ROUNDS {
            let of_ours = driver.round(depth, ROUND_TIME).await?;
            let template = Arc::clone(&template);
            let of_limit =
                tokio::task::spawn_blocking(move || reference::round(depth, ROUND_TIME, &template)).await??;
            let [ours_per_s, limit_per_s] = [of_ours, of_limit].map(|figures| figures.per_second);
            eprintln!(
                "depth {depth}: round {round} of {ROUNDS}: {ours_per_s:.0} saves/s, limit {limit_per_s:.0}"
            );
            ours.push(of_ours);
            limit.push(of_limit);
        }
        rows.extend(rows_of(depth, &ours, &limit));
    }
    rows.push(long_run(&driver).await?);
    let preface = format!(
        "A docx of {SIZE_BYTES} bytes, all different. {FLUSHES}.\n\
         limit: the same flushes, SHA-256 and inflating, without HTTP, tokens, SQL or order. The driver shares the machine with us."
    );
    Ok(Report::new("saves", rows, preface))
}

fn rows_of(depth: usize, ours: &[Figures], limit: &[Figures]) -> [Row; 2] {
    let speed = |figures: &[Figures]| median(figures.iter().map(|each| each.per_second).collect());
    let cpu = |figures: &[Figures]| median(figures.iter().map(|each| each.cpu_ms).collect());
    [
        Row::new(&format!("depth {depth}"), "saves/s", (speed(ours), Some(speed(limit)), None)),
        Row::new(&format!("depth {depth}, CPU per save"), "ms", (cpu(ours), Some(cpu(limit)), None)),
    ]
}

/// Sends saves and waits for their answers.
struct Driver {
    stage: Stage,
    template: Arc<Template>,
    keys: Vec<String>,
    next: AtomicU64,
}

impl Driver {
    /// Keeps `depth` saves on their way for a time.
    async fn round(self: &Arc<Self>, depth: usize, time: Duration) -> Result<Figures> {
        let cpu_before = cpu_s(self.stage.service.process());
        let began = Instant::now();
        let saves = self.work_side_by_side(depth, move |_| began.elapsed() < time).await?;
        let seconds = began.elapsed().as_secs_f64();
        let cpu = cpu_s(self.stage.service.process()) - cpu_before;
        #[allow(clippy::cast_precision_loss, reason = "counts of saves are small")]
        let saves = saves as f64;
        Ok(Figures { per_second: saves / seconds, cpu_ms: cpu * 1000.0 / saves })
    }

    /// Saves `depth` documents, each again and again; returns how often in all.
    async fn work_side_by_side(
        self: &Arc<Self>,
        depth: usize,
        goes_on: impl Fn(u64) -> bool + Copy + Send + 'static,
    ) -> Result<u64> {
        let mut workers = tokio::task::JoinSet::new();
        for document in 0..depth {
            let driver = Arc::clone(self);
            workers.spawn(async move { driver.work(document, goes_on).await });
        }
        let mut saves = 0;
        while let Some(done) = workers.join_next().await {
            saves += done??;
        }
        Ok(saves)
    }

    async fn work(&self, document: usize, goes_on: impl Fn(u64) -> bool) -> Result<u64> {
        let key = &self.keys[document];
        let mut wire = Wire::connect(self.stage.service.address).await?;
        let mut done = 0;
        while goes_on(done) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let callback = Callback { key, status: 6, number };
            self.stage.documents.offer(&callback.path(), self.template.copy(number), Duration::ZERO);
            wire.deliver(&callback.body(&self.stage.documents)?).await?;
            done += 1;
        }
        Ok(done)
    }
}

/// Many saves; memory at the end over memory after the first tenth.
async fn long_run(driver: &Arc<Driver>) -> Result<Row> {
    let share = LONG_RUN_SAVES / LONG_RUN_DEPTH as u64;
    eprintln!("{LONG_RUN_SAVES} saves, to see whether memory stays flat");
    let mut memory = Vec::new();
    for count in [share / 10, share - share / 10] {
        driver.work_side_by_side(LONG_RUN_DEPTH, move |done| done < count).await?;
        memory.push(resident_bytes(driver.stage.service.process()) / (1024.0 * 1024.0));
    }
    let row = Row::new("memory after 100000 saves", "MiB", (memory[1], Some(memory[0]), None));
    Ok(row.noted("limit: the server's memory after the first 10000"))
}
