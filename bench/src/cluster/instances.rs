//! Instances of the service on what they share, and the load on them.
//!
//! Saves go round the instances: a worker and its document belong to one. So what is measured is what instances carry
//! together, and not how a balancer spreads. Does not do: check what was saved; every answer must be 0, and the tests do.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;

use crate::gauge::cpu_s;
use crate::stage::{Callback, DocumentServer, Service, Template, Wire, open_document};
use crate::submission::scene::{Scene, add_template};

/// Saves of one instance that are on their way at once.
const DEPTH: usize = 8;
/// Workbooks that one instance is handed at once: as many as it works on.
const WORKBOOKS: usize = 2;

/// A running instance.
pub(super) struct Instance {
    service: Service,
}

impl Instance {
    pub(super) async fn start(
        (documents, program): (&DocumentServer, &Path),
        settings: &[(&str, String)],
    ) -> Result<Self> {
        let service = Service::start_bare(&documents.url(), Some(program), settings).await?;
        Ok(Self { service })
    }

    pub(super) fn service(&self) -> &Service {
        &self.service
    }

    fn cpu_s(&self) -> f64 {
        cpu_s(self.service.process())
    }
}

/// What came of a round, for each instance.
pub(super) struct Round {
    per_s: Vec<f64>,
    /// Of a core, that it used.
    percent: Vec<f64>,
}

impl Round {
    pub(super) fn saves_per_s(&self) -> f64 {
        self.per_s.iter().sum()
    }

    /// What the idlest used of a core, in percent.
    pub(super) fn least_percent(&self) -> f64 {
        self.percent.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

impl std::fmt::Display for Round {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:.0}/s", self.saves_per_s())?;
        for (per_s, percent) in self.per_s.iter().zip(&self.percent) {
            write!(out, ", {per_s:.1}/s with {percent:.1} %")?;
        }
        Ok(())
    }
}

/// Saves that go on and on.
pub(super) struct Driver {
    documents: DocumentServer,
    template: Template,
    next: AtomicU64,
}

impl Driver {
    pub(super) fn new(documents: DocumentServer, template: Template) -> Arc<Self> {
        Arc::new(Self { documents, template, next: AtomicU64::new(1) })
    }

    /// Opens the documents that an instance is to save.
    pub(super) async fn open(&self, service: &Service, name: &str) -> Result<Vec<String>> {
        let mut keys = Vec::new();
        for number in 0..DEPTH {
            keys.push(open_document(service, &format!("{name}-{number}"), &self.template).await?);
        }
        Ok(keys)
    }

    /// Has some instances save for a time.
    pub(super) async fn round(
        self: &Arc<Self>,
        instances: &[(&Instance, &[String])],
        time: Duration,
    ) -> Result<Round> {
        let began = Instant::now();
        let cpu_before_s: Vec<f64> = instances.iter().map(|(instance, _)| instance.cpu_s()).collect();
        let mut workers = JoinSet::new();
        for (at, (instance, keys)) in instances.iter().enumerate() {
            for key in *keys {
                let (driver, key, address) = (Arc::clone(self), key.clone(), instance.service.address);
                workers.spawn(async move {
                    let mut wire = Wire::connect(address).await?;
                    let mut saves = 0_u32;
                    while began.elapsed() < time {
                        driver.save(&mut wire, &key).await?;
                        saves += 1;
                    }
                    anyhow::Ok((at, saves))
                });
            }
        }
        let mut saves = vec![0; instances.len()];
        while let Some(done) = workers.join_next().await {
            let (at, done) = done??;
            saves[at] += done;
        }
        let elapsed_s = began.elapsed().as_secs_f64();
        let used =
            instances.iter().zip(cpu_before_s).map(|((instance, _), before)| instance.cpu_s() - before);
        Ok(Round {
            per_s: saves.iter().map(|saves| f64::from(*saves) / elapsed_s).collect(),
            percent: used.map(|used_s| used_s * 100.0 / elapsed_s).collect(),
        })
    }

    async fn save(&self, wire: &mut Wire, key: &str) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let callback = Callback { key, status: 6, number };
        self.documents.offer(&callback.path(), self.template.copy(number), Duration::ZERO);
        wire.deliver(&callback.body(&self.documents)?).await
    }
}

/// Submits workbooks through some instances until each has done its share; says how many there are in a minute.
pub(super) async fn submit(
    instances: &[&Instance],
    (workbook, rows): (&Path, u32),
    (name, each): (&str, usize),
) -> Result<f64> {
    let began = Instant::now();
    let lines = instances.iter().enumerate().flat_map(|(at, instance)| {
        (0..WORKBOOKS).map(move |line| async move {
            for round in 0..each {
                let scene = Scene::begin(&instance.service, &format!("{name}-{at}-{line}-{round}")).await?;
                scene.submit(workbook, (rows, rows)).await?;
            }
            anyhow::Ok(())
        })
    });
    futures_util::future::try_join_all(lines).await.context("a submission")?;
    #[allow(clippy::cast_precision_loss, reason = "a handful of workbooks")]
    let submissions = (instances.len() * WORKBOOKS * each) as f64;
    Ok(submissions * 60.0 / began.elapsed().as_secs_f64())
}

/// Makes the template of workbooks known, once for all instances.
pub(super) async fn furnish(first: &Instance) -> Result<()> {
    first.service.furnish().await?;
    add_template(&first.service).await
}
