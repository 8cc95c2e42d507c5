//! A load, and how the contestants that live in this process carry it.

use std::time::{Duration, Instant};

use anyhow::Result;
use lanes::{Lanes, Settings};
use tokio::runtime::Builder;

use crate::gauge;

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) shape: Shape,
    pub(crate) keys: u64,
    pub(crate) tasks: u64,
    /// How many rounds of mixing one task is.
    pub(crate) mixing: u32,
}

/// Who waits when.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// So many callers, each of which submits one task, waits for it, and goes on with the next.
    Callers(usize),
    /// So many tasks for every key are submitted before the first is waited for.
    Burst(u64),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Contestant {
    Lanes,
    Spawn,
}

/// What one round showed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) tasks: u64,
    pub(crate) tasks_per_s: f64,
    pub(crate) cpu_us_per_task: f64,
    pub(crate) p99_us: f64,
    /// Memory the process held when all was done but nothing was torn down.
    pub(crate) resident_bytes: f64,
}

impl Sample {
    pub(crate) fn new(tasks: u64, elapsed: Duration, cpu_s: f64, p99: Duration) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "there are not that many tasks")]
        let count = tasks as f64;
        Self {
            tasks,
            tasks_per_s: count / elapsed.as_secs_f64(),
            cpu_us_per_task: cpu_s * 1e6 / count,
            p99_us: p99.as_secs_f64() * 1e6,
            resident_bytes: 0.0,
        }
    }
}

/// Carries a load on a runtime of its own, with as many threads as there are cores.
pub(crate) fn measure(load: Load, contestant: Contestant) -> Result<Sample> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let settings = Settings { depth_max: 1_000_000, ..Default::default() };
    let lanes: Lanes<Document> = Lanes::on(runtime.handle().clone(), settings)?;
    let (idle, mixing) = (lanes.clone(), load.mixing);

    let cpu_s = gauge::cpu_s(std::process::id());
    let began = Instant::now();
    let latencies = match contestant {
        Contestant::Lanes => runtime.block_on(carry(load, move |document, seed| {
            let submitted = lanes.submit(document, async move { mix(seed, mixing) });
            async move { submitted.expect("the line is long enough").wait().await.expect("it does not fail") }
        })),
        Contestant::Spawn => runtime.block_on(carry(load, move |_, seed| {
            let spawned = tokio::spawn(async move { mix(seed, mixing) });
            async move { spawned.await.expect("it does not fail") }
        })),
    };
    let elapsed = began.elapsed();
    let cpu_s = gauge::cpu_s(std::process::id()) - cpu_s;
    let sample = Sample::new(load.tasks, elapsed, cpu_s, p99(latencies));
    let resident_bytes = gauge::resident_bytes(std::process::id());
    anyhow::ensure!(idle.is_empty(), "a lane was left behind");
    Ok(Sample { resident_bytes, ..sample })
}

/// A key as a server would have it: parsed, small, and printed only when somebody looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Document(u64);

impl std::fmt::Display for Document {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "document-{}.docx", self.0)
    }
}

/// The task. The same as in `bench/java/Peer.java`.
fn mix(seed: u64, rounds: u32) -> u64 {
    (0..rounds).fold(seed, |hash, _| (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9))
}

/// `start` begins a task and returns what waits for it. Returns how long each caller waited each time.
async fn carry<S, W>(load: Load, start: S) -> Vec<Duration>
where
    S: Fn(Document, u64) -> W + Clone + Send + 'static,
    W: Future<Output = u64> + Send + 'static,
{
    match load.shape {
        Shape::Callers(count) => {
            let call = |first| tokio::spawn(call(load, first, count, start.clone()));
            let callers: Vec<_> = (0..count as u64).map(call).collect();
            let mut latencies = Vec::new();
            for caller in callers {
                latencies.extend(caller.await.expect("callers do not fail"));
            }
            latencies
        }
        Shape::Burst(per_key) => {
            let wave = load.keys * per_key;
            let bursts = async move {
                for first in (0..load.tasks).step_by(usize::try_from(wave).unwrap_or(usize::MAX)) {
                    let waits: Vec<_> = (first..first + wave)
                        .map(|number| start(Document(number % load.keys), number))
                        .collect();
                    for wait in waits {
                        std::hint::black_box(wait.await);
                    }
                }
            };
            // In a task of its own, as a request would be: what is submitted from a worker thread stays near it.
            tokio::spawn(bursts).await.expect("it does not fail");
            Vec::new()
        }
    }
}

async fn call<S, W>(load: Load, first: u64, count: usize, start: S) -> Vec<Duration>
where
    S: Fn(Document, u64) -> W,
    W: Future<Output = u64>,
{
    let mut latencies = Vec::new();
    for number in (first..load.tasks).step_by(count) {
        let began = Instant::now();
        std::hint::black_box(start(Document(number % load.keys), number).await);
        latencies.push(began.elapsed());
    }
    latencies
}

fn p99(mut latencies: Vec<Duration>) -> Duration {
    latencies.sort_unstable();
    latencies.get(latencies.len() * 99 / 100).copied().unwrap_or_default()
}
