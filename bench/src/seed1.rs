//! Seed 1's table, played through the running server: every download takes half a second, as there.
//!
//! The peer is what the seed promises (2.5, 1.0 and 5.0 s: callbacks of one document one after another). Ours prepares
//! all saves of a document side by side and commits them in order of arrival; the limit is one download.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::report::{Report, Row};
use crate::stage::{Callback, Stage, Template, Wire};

const DOWNLOAD: Duration = Duration::from_millis(500);
const SIZE_BYTES: usize = 100_000;

/// A row: documents and how many callbacks each gets at once.
const SCENARIOS: [(&str, &[usize], f64); 3] =
    [("3 documents x 5", &[5, 5, 5], 2.5), ("mixed", &[2, 2, 2], 1.0), ("same document x 10", &[10], 5.0)];

pub(crate) fn run() -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<Report> {
    let stage = Stage::start().await?;
    let template = Template::new(SIZE_BYTES)?;
    let mut rows = Vec::new();
    for (at, (name, counts, promised)) in SCENARIOS.into_iter().enumerate() {
        let mut keys = Vec::new();
        for document in 0..counts.len() {
            keys.push(stage.open_document(&format!("s{at}-{document}"), &template).await?);
        }
        let seconds = play(&stage, &template, &keys, counts).await?;
        let versions = check(&stage, at, counts).await?;
        let row = Row::new(name, "s", (seconds, Some(DOWNLOAD.as_secs_f64()), Some(promised)));
        rows.push(row.noted(&format!("versions {versions}")));
    }
    let preface =
        "Callbacks sent at once, each result trickled over 500 ms; seconds until the last answer.\n\
                   limit: one download; peer: what seed 1 promises."
            .to_owned();
    Ok(Report::new("seed1", rows, preface))
}

/// Sends all callbacks at once, in the order of their numbers; returns the time until the last answer.
async fn play(stage: &Stage, template: &Template, keys: &[String], counts: &[usize]) -> Result<f64> {
    let mut deliveries = Vec::new();
    for (key, count) in keys.iter().zip(counts) {
        for number in 1..=*count as u64 {
            // Final saves, as the seed's SAVE: each one is a version.
            let callback = Callback { key, status: 2, number };
            stage.documents.offer(&callback.path(), template.copy(number), DOWNLOAD);
            deliveries.push((Wire::connect(stage.service.address).await?, callback.body(&stage.documents)?));
        }
    }
    let began = Instant::now();
    let mut sent = Vec::new();
    for (mut wire, body) in deliveries {
        sent.push(tokio::spawn(async move { wire.deliver(&body).await }));
        // Order of arrival is what is promised, so they arrive one after the other, a moment apart.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for delivery in sent {
        delivery.await??;
    }
    Ok(began.elapsed().as_secs_f64())
}

/// Every callback is one version, in order of arrival, the last one at the head.
async fn check(stage: &Stage, scenario: usize, counts: &[usize]) -> Result<String> {
    let mut shown = Vec::new();
    for (document, count) in counts.iter().enumerate() {
        let id = format!("s{scenario}-{document}");
        let versions = stage.get(&format!("/api/v1/documents/{id}/versions")).await?;
        let labels: Vec<&str> =
            versions.as_array().into_iter().flatten().filter_map(|each| each["version"].as_str()).collect();
        let expected: Vec<String> = (1..=count + 1).rev().map(|label| label.to_string()).collect();
        ensure!(labels == expected, "document {id} has versions {labels:?} instead of {expected:?}");
        let times: Vec<&str> =
            versions.as_array().into_iter().flatten().filter_map(|each| each["saved_at"].as_str()).collect();
        ensure!(
            times.is_sorted_by(|newer, older| newer > older),
            "document {id} has its versions in another order: {times:?}"
        );
        shown.push(format!("1 to {}", count + 1));
    }
    Ok(shown.join(", "))
}
