//! Traces: the spans of requests and saves, sent to a collector as OTLP over HTTP in its JSON form.
//!
//! Off unless `traces.endpoint` is set. A request is a span, a lane's work for it is a span below it, and so is each step of a
//! save: fetch, check, store, commit. A caller's `traceparent` is continued. The format is that of OpenTelemetry and small, so
//! it is written here; the crates for it would bring a second way to encode and to send.
//!
//! Guarantees: nothing waits for a collector; what it cannot take is dropped and counted; memory is bounded. No content, file
//! name, person, token or link is in a span. Does not do: sampling, metrics, logs.

mod export;
mod layer;

use std::sync::OnceLock;

use tokio::sync::{mpsc, oneshot};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::config::Traces;

/// Spans of ours that are for traces only; logs do not show them.
pub(crate) const TARGET: &str = "saveguard::trace";
/// Spans that wait for the collector. More than that are dropped.
const WAITING_MAX: usize = 8192;

/// What the exporter is told.
enum Message {
    Ended(Ended),
    /// Send what waits, and tell when that is done.
    Flush(oneshot::Sender<()>),
}

/// A span that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ended {
    trace: u128,
    span: u64,
    parent: Option<u64>,
    name: String,
    kind: u8,
    began_ns: i128,
    ended_ns: i128,
    attributes: Vec<(&'static str, String)>,
}

static LINE: OnceLock<mpsc::Sender<Message>> = OnceLock::new();

/// The layer that collects spans, if somebody wants them; it begins to send at once.
pub(crate) fn layer<S>(traces: &Traces) -> Option<impl Layer<S> + use<S>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let endpoint = traces.endpoint.clone()?;
    let (line, messages) = mpsc::channel(WAITING_MAX);
    LINE.set(line.clone()).ok()?;
    tokio::spawn(export::run(endpoint, traces.service.clone(), messages));
    Some(layer::Collecting { line }.with_filter(filter_fn(is_wanted)))
}

fn is_wanted(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && (metadata.target() == TARGET || metadata.name() == "lane")
}

/// Sends what waits, before the process ends.
pub(crate) async fn flush() {
    let Some(line) = LINE.get() else { return };
    let (done, sent) = oneshot::channel();
    if line.send(Message::Flush(done)).await.is_ok() {
        let _ = sent.await;
    }
}
