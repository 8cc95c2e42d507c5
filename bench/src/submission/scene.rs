//! A registration and its summary logs, as a host application drives them over HTTP, and what the service used meanwhile.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use serde_json::{Value, json};

use super::workbooks;
use crate::gauge::cpu_s;
use crate::stage::Service;

/// A log is looked at so often; for a long one, less often, so that looking does not count.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOK_EVERY_LONG: Duration = Duration::from_millis(250);
const LONG_ROWS: u32 = 100_000;
const PATIENCE: Duration = Duration::from_secs(900);
/// Staged rows are cleared away some seconds after a submission. The service has come to rest when it used less than that for a while.
const REST: Duration = Duration::from_secs(7);
const REST_CPU_S: f64 = 0.02;

/// What something took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    pub(super) seconds: f64,
    pub(super) cpu_s: f64,
}

impl Used {
    pub(super) fn and(self, other: Self) -> Self {
        Self { seconds: self.seconds + other.seconds, cpu_s: self.cpu_s + other.cpu_s }
    }
}

/// A preview and a submission, and how often the log told how far it was: when it was asked, and by its events. The latter are
/// followed for long ones only.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Done {
    pub(crate) preview: Used,
    pub(crate) submit: Used,
    pub(crate) reports: Reports,
}

/// How often a log told how far it was.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reports {
    pub(super) answers: usize,
    pub(super) events: usize,
}

/// Adds the template of the bench.
pub(crate) async fn add_template(service: &Service) -> Result<()> {
    service.post_bytes("/api/v1/templates", Bytes::from(workbooks::template())).await.map(drop)
}

/// A registration of an organisation.
pub(crate) struct Scene<'a> {
    service: &'a Service,
    path: String,
}

impl<'a> Scene<'a> {
    pub(crate) async fn begin(service: &'a Service, name: &str) -> Result<Self> {
        service.put(&format!("/api/v1/organisations/{name}"), &json!({})).await?;
        let path = format!("/api/v1/organisations/{name}/registrations/r1");
        service.put(&path, &json!({ "number": "R-1", "template": "bench" })).await?;
        Ok(Self { service, path })
    }

    /// Uploads a workbook, waits for its preview, confirms it and waits until it is done.
    pub(crate) async fn submit(&self, workbook: &Path, (rows, changes): (u32, u32)) -> Result<Done> {
        let bytes = Bytes::from(std::fs::read(workbook)?);
        let mut reports = Reports::default();
        let began = self.begin_gauge();
        let log =
            self.service.post_bytes(&format!("{}/summary-logs?name=bench.xlsx", self.path), bytes).await?;
        let link = format!("{}/summary-logs/{}", self.path, log["id"].as_str().context("a log without id")?);
        let log = self.settled(&link, rows, &mut reports).await?;
        let preview = self.used_since(began);
        ensure!(log["state"] == "validated", "the preview ended as {log}");
        let stats = &log["previewStats"];
        let promised = stats["created"].as_u64().zip(stats["updated"].as_u64());
        ensure!(
            promised.is_some_and(|(new, other)| new + other == u64::from(changes)),
            "it promises {stats}"
        );
        let began = self.begin_gauge();
        self.service.post(&format!("{link}/submit"), "bench", &json!({})).await?;
        let log = self.settled(&link, rows, &mut reports).await?;
        let submit = self.used_since(began);
        ensure!(log["state"] == "submitted", "the submission ended as {log}");
        ensure!(log["applied"] == changes, "{} of {changes} versions were written", log["applied"]);
        Ok(Done { preview, submit, reports })
    }

    async fn settled(&self, link: &str, rows: u32, reports: &mut Reports) -> Result<Value> {
        let events = format!("{link}/events");
        if rows < LONG_ROWS {
            // The stream ends when there is nothing more to wait for.
            self.service.listen(&events).await?;
            return self.asked(link, LOOK_EVERY, &mut reports.answers).await;
        }
        let (log, told) = tokio::try_join!(
            self.asked(link, LOOK_EVERY_LONG, &mut reports.answers),
            self.service.listen(&events)
        )?;
        reports.events += told.matches("event: log").count();
        Ok(log)
    }

    async fn asked(&self, link: &str, every: Duration, answers: &mut usize) -> Result<Value> {
        let deadline = Instant::now() + PATIENCE;
        let mut told = (Value::Null, Value::Null);
        while Instant::now() < deadline {
            let log = self.service.get(link).await?;
            let state = log["state"].as_str().unwrap_or_default();
            if !["preprocessing", "validating", "submitting"].contains(&state) {
                return Ok(log);
            }
            let tells = (log["rows"].clone(), log["applied"].clone());
            *answers += usize::from(tells != told);
            told = tells;
            tokio::time::sleep(every).await;
        }
        bail!("nothing came of {link}")
    }

    fn begin_gauge(&self) -> (Instant, f64) {
        (Instant::now(), cpu_s(self.service.process()))
    }

    fn used_since(&self, (began, cpu_before_s): (Instant, f64)) -> Used {
        Used { seconds: began.elapsed().as_secs_f64(), cpu_s: cpu_s(self.service.process()) - cpu_before_s }
    }
}

/// Waits until the service has nothing left to do; what that took.
pub(super) async fn rest(service: &Service) -> Used {
    let (began, first_s) = (Instant::now(), cpu_s(service.process()));
    loop {
        let before_s = cpu_s(service.process());
        tokio::time::sleep(REST).await;
        let now_s = cpu_s(service.process());
        if now_s - before_s <= REST_CPU_S || began.elapsed() > PATIENCE {
            return Used { seconds: began.elapsed().as_secs_f64(), cpu_s: now_s - first_s };
        }
    }
}
