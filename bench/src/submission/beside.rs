//! Saves of documents at an even pace, and how long each takes from its callback to the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::stage::{Callback, Stage, Template, Wire};

const SIZE_BYTES: usize = 100_000;
const DOCUMENTS: usize = 8;
/// 20 saves a second in all.
const PACE: Duration = Duration::from_millis(400);

/// Documents that people save while something else goes on.
pub(super) struct Savers {
    stage: Arc<Stage>,
    template: Arc<Template>,
    keys: Vec<String>,
    next: Arc<AtomicU64>,
}

impl Savers {
    pub(super) async fn open(stage: &Arc<Stage>) -> Result<Self> {
        let template = Arc::new(Template::new(SIZE_BYTES)?);
        let mut keys = Vec::new();
        for number in 0..DOCUMENTS {
            keys.push(stage.open_document(&format!("beside{number}"), &template).await?);
        }
        Ok(Self { stage: Arc::clone(stage), template, keys, next: Arc::new(AtomicU64::new(1)) })
    }

    /// Saves while something goes on; returns what came of it and how long each save took, in milliseconds.
    pub(super) async fn beside<T>(&self, work: impl Future<Output = Result<T>>) -> Result<(T, Vec<f64>)> {
        let goes_on = Arc::new(AtomicBool::new(true));
        let mut workers = JoinSet::new();
        for (number, key) in self.keys.iter().enumerate() {
            let saver = Saver {
                stage: Arc::clone(&self.stage),
                template: Arc::clone(&self.template),
                key: key.clone(),
                next: Arc::clone(&self.next),
            };
            let first = PACE * u32::try_from(number)? / u32::try_from(DOCUMENTS)?;
            workers.spawn(saver.save(first, Arc::clone(&goes_on)));
        }
        let done = work.await;
        goes_on.store(false, Ordering::Relaxed);
        let mut times_ms = Vec::new();
        while let Some(times) = workers.join_next().await {
            times_ms.extend(times??);
        }
        Ok((done?, times_ms))
    }
}

struct Saver {
    stage: Arc<Stage>,
    template: Arc<Template>,
    key: String,
    next: Arc<AtomicU64>,
}

impl Saver {
    async fn save(self, first: Duration, goes_on: Arc<AtomicBool>) -> Result<Vec<f64>> {
        let mut wire = Wire::connect(self.stage.service.address).await?;
        let mut times_ms = Vec::new();
        let mut turns = tokio::time::interval_at(tokio::time::Instant::now() + first, PACE);
        // A save that is late is no reason to send the next ones in a heap.
        turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while goes_on.load(Ordering::Relaxed) {
            turns.tick().await;
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let callback = Callback { key: &self.key, status: 6, number };
            self.stage.documents.offer(&callback.path(), self.template.copy(number), Duration::ZERO);
            let body = callback.body(&self.stage.documents)?;
            let began = Instant::now();
            wire.deliver(&body).await?;
            times_ms.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(times_ms)
    }
}

/// The time that so many of a hundred saves stay below.
pub(super) fn percentile(times_ms: &[f64], percent: usize) -> f64 {
    let mut sorted = times_ms.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}
