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

    /// Has some instances save for a time; says how many saves there are in a second.
    pub(super) async fn round(
        self: &Arc<Self>,
        instances: &[(&Instance, &[String])],
        time: Duration,
    ) -> Result<f64> {
        let began = Instant::now();
        let mut workers = JoinSet::new();
        for (instance, keys) in instances {
            for key in *keys {
                let (driver, key, address) = (Arc::clone(self), key.clone(), instance.service.address);
                workers.spawn(async move {
                    let mut wire = Wire::connect(address).await?;
                    let mut saves = 0_u32;
                    while began.elapsed() < time {
                        driver.save(&mut wire, &key).await?;
                        saves += 1;
                    }
                    anyhow::Ok(saves)
                });
            }
        }
        let mut saves = 0;
        while let Some(done) = workers.join_next().await {
            saves += done??;
        }
        Ok(f64::from(saves) / began.elapsed().as_secs_f64())
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
