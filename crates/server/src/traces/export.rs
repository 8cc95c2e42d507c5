//! On the way to the collector: in batches, without waiting for anybody, and without trying again.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use url::Url;

use super::{Ended, Message};
use crate::telemetry::{self, report};

/// Spans in one request.
const BATCH_MAX: usize = 512;
/// A span waits at most this long for others.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// A collector that takes longer loses spans.
const SEND_MAX: Duration = Duration::from_secs(5);
/// How often it is told that a collector does not take spans.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Sends until nobody hands over spans any more.
pub(super) async fn run(endpoint: Url, service: String, mut messages: mpsc::Receiver<Message>) {
    let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    let client = match builder.timeout(SEND_MAX).build() {
        Ok(client) => client,
        Err(cause) => return tracing::error!(error = %report(&cause), "traces cannot be sent"),
    };
    let mut collector = Collector { client, endpoint, service, told_at: None };
    loop {
        let (batch, flushed) = gather(&mut messages).await;
        let is_over = batch.is_empty() && flushed.is_none();
        if !batch.is_empty() {
            collector.send(&batch).await;
        }
        if let Some(done) = flushed {
            // Whoever asked may be gone.
            let _ = done.send(());
        }
        if is_over {
            return;
        }
    }
}

/// As many spans as there are, up to a batch, waiting for others a moment after the first. Nothing at all: it is over.
async fn gather(messages: &mut mpsc::Receiver<Message>) -> (Vec<Ended>, Option<oneshot::Sender<()>>) {
    let mut batch = Vec::new();
    let mut until = Instant::now() + Duration::from_secs(86_400);
    while batch.len() < BATCH_MAX {
        match tokio::time::timeout_at(until, messages.recv()).await {
            Ok(Some(Message::Ended(span))) => {
                if batch.is_empty() {
                    until = Instant::now() + WAIT_MAX;
                }
                batch.push(span);
            }
            Ok(Some(Message::Flush(done))) => return (batch, Some(done)),
            Ok(None) => break,
            Err(_) if batch.is_empty() => until = Instant::now() + Duration::from_secs(86_400),
            Err(_) => break,
        }
    }
    (batch, None)
}

struct Collector {
    client: reqwest::Client,
    endpoint: Url,
    service: String,
    told_at: Option<Instant>,
}

impl Collector {
    async fn send(&mut self, batch: &[Ended]) {
        let sent = self.client.post(self.endpoint.clone()).json(&body(&self.service, batch)).send().await;
        let why = match sent {
            Ok(response) if response.status().is_success() => return,
            Ok(response) => format!("it answered {}", response.status()),
            Err(cause) => report(&cause.without_url()),
        };
        batch.iter().for_each(|_| telemetry::span_dropped());
        if self.told_at.is_none_or(|told_at| told_at.elapsed() >= TELL_EVERY) {
            self.told_at = Some(Instant::now());
            tracing::warn!(why, "the collector of traces does not take them; they are dropped");
        }
    }
}

fn body(service: &str, batch: &[Ended]) -> Value {
    json!({ "resourceSpans": [{
        "resource": { "attributes": [attribute("service.name", service), attribute("service.version", env!("CARGO_PKG_VERSION"))] },
        "scopeSpans": [{ "scope": { "name": "saveguard" }, "spans": batch.iter().map(span).collect::<Vec<_>>() }],
    }] })
}

fn span(ended: &Ended) -> Value {
    json!({
        "traceId": format!("{:032x}", ended.trace),
        "spanId": format!("{:016x}", ended.span),
        "parentSpanId": ended.parent.map_or_else(String::new, |parent| format!("{parent:016x}")),
        "name": ended.name,
        "kind": ended.kind,
        "startTimeUnixNano": ended.began_ns.to_string(),
        "endTimeUnixNano": ended.ended_ns.to_string(),
        "attributes": ended.attributes.iter().map(|(name, text)| attribute(name, text)).collect::<Vec<_>>(),
    })
}

fn attribute(name: &str, text: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": text } })
}
