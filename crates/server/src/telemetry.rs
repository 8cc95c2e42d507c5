//! Every log field and metric name, in one place, and how logging starts.
//!
//! Guarantees: labels are closed sets, never ids; contents, file names, tokens and signed links are never logged.
//! `docs/logging.md` is the list for operators.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing::Instrument as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::config::{Log, LogFormat, Traces};
use crate::{pulse, traces};

const CALLBACKS: &str = "saveguard_callbacks_total";
const SAVES: &str = "saveguard_saves_total";
const STEP_SECONDS: &str = "saveguard_save_step_seconds";
const ANSWER_SECONDS: &str = "saveguard_callback_answer_seconds";
const FETCHES: &str = "saveguard_fetches_total";
const RECORDS: &str = "saveguard_change_records_total";
const PRUNED: &str = "saveguard_pruned_total";
const FOREIGN_LINKS: &str = "saveguard_foreign_links_total";
const OPENINGS: &str = "saveguard_openings_total";
const PUBLICATIONS: &str = "saveguard_publications_total";
const RECOVERY_ROUNDS: &str = "saveguard_recovery_rounds_total";
const FORGOTTEN: &str = "saveguard_forgotten_files_total";
const FINDINGS: &str = "saveguard_findings_total";
const ALERTS: &str = "saveguard_alerts_total";
const LANES: &str = "saveguard_lanes";
const LANE_TASKS: &str = "saveguard_lane_tasks";
const LANE_OLDEST: &str = "saveguard_lane_oldest_seconds";
const STATE: &str = "saveguard_ledger_rows";
const DRAINS: &str = "saveguard_drains_total";
const DEPOT_BLOBS: &str = "saveguard_depot_blobs";
const DEPOT_BYTES: &str = "saveguard_depot_bytes";
const DEPOT_OLDEST: &str = "saveguard_depot_oldest_seconds";
const DISK_FREE: &str = "saveguard_disk_free_bytes";
const DISK_TOTAL: &str = "saveguard_disk_total_bytes";
const DISK_LEVEL: &str = "saveguard_disk_level";
const WEBHOOKS: &str = "saveguard_webhooks_total";
const STORAGE_ERRORS: &str = "saveguard_storage_errors_total";
const SERVER_ERRORS: &str = "saveguard_document_server_errors_total";
const SESSIONS: &str = "saveguard_sessions";
const PEOPLE: &str = "saveguard_people";
const UNSETTLED: &str = "saveguard_kept_unsettled";
const WEBHOOKS_WAITING: &str = "saveguard_webhooks_waiting";
const SPANS_DROPPED: &str = "saveguard_spans_dropped_total";
const FORGOTTEN_WAITING: &str = "saveguard_forgotten_waiting";
const FORGOTTEN_OLDEST: &str = "saveguard_forgotten_oldest_seconds";
const READY: &str = "saveguard_ready";

/// Outcomes of saves whose content was stored.
const STORED: [&str; 5] = ["version", "checkpoint", "filed", "conflict", "quarantine"];

/// Starts logging to stderr; data goes to stdout.
pub fn start_logging(log: &Log, traces: Option<&Traces>) {
    let filter = EnvFilter::try_new(&log.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match log.format {
        LogFormat::Text => {
            lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).with_filter(filter).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    };
    let registry = tracing_subscriber::registry().with(lines);
    // A second start (in tests) keeps the first subscriber.
    let _ = registry.with(traces.and_then(traces::layer)).try_init();
}

/// Starts metrics; the handle renders them. One recorder serves the whole process, also when tests start several
/// services in it.
pub fn start_metrics() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(install_recorder).clone()
}

fn install_recorder() -> PrometheusHandle {
    let matcher = Matcher::Suffix("_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(matcher, &pulse::BOUNDS_SECONDS);
    let recorder = builder.unwrap_or_else(|_| PrometheusBuilder::new()).build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!("metrics were started by somebody else and cannot be shown");
    }
    describe();
    begin_at_zero();
    handle
}

fn describe() {
    describe_counter!(CALLBACKS, "Callbacks of the Document Server by status and answer");
    describe_counter!(SAVES, "Saves by what became of them");
    describe_histogram!(STEP_SECONDS, "Time of each step of a save");
    describe_histogram!(ANSWER_SECONDS, "Time from the receipt of a callback to its answer");
    describe_counter!(FETCHES, "Downloads from the Document Server by result");
    describe_counter!(RECORDS, "Records of changes that came with final saves, by result");
    describe_counter!(PRUNED, "What the retention policy let go, by kind");
    describe_counter!(FOREIGN_LINKS, "Links that named another host than the configured ones");
    describe_counter!(OPENINGS, "Editor configurations by mode and result");
    describe_counter!(PUBLICATIONS, "Publications into the tree by result");
    describe_counter!(RECOVERY_ROUNDS, "Rounds of recovery by result");
    describe_counter!(FORGOTTEN, "Forgotten files by what became of them");
    describe_counter!(FINDINGS, "Findings of the office check by code and effect");
    describe_counter!(ALERTS, "Things a person should look at, by kind");
    describe_gauge!(LANES, "Documents with saves in progress");
    describe_gauge!(LANE_TASKS, "Saves in progress by phase");
    describe_gauge!(LANE_OLDEST, "Age of the oldest save in progress");
    describe_gauge!(STATE, "Rows of the ledger by kind");
    describe_counter!(DRAINS, "Drains by how they ended");
    describe_gauge!(DISK_FREE, "Free bytes on the disk of the data folder");
    describe_gauge!(DISK_TOTAL, "All bytes of the disk of the data folder");
    describe_gauge!(DISK_LEVEL, "0 plenty of room, 1 low, 2 uploads refused, 3 saves put off");
    describe_gauge!(DEPOT_BLOBS, "Blobs that wait on the local disk for the far vault");
    describe_gauge!(DEPOT_BYTES, "Their bytes");
    describe_gauge!(DEPOT_OLDEST, "How long the oldest of them has been waiting");
    describe_counter!(WEBHOOKS, "Calls of webhooks by what came of them");
    describe_counter!(STORAGE_ERRORS, "Calls of a store that failed");
    describe_counter!(SERVER_ERRORS, "Commands to the Document Server that failed");
    describe_gauge!(SESSIONS, "Editing sessions with somebody inside");
    describe_gauge!(PEOPLE, "People inside editing sessions");
    describe_gauge!(UNSETTLED, "Kept copies that wait for a person, by kind");
    describe_gauge!(WEBHOOKS_WAITING, "Deliveries to webhooks that wait");
    describe_counter!(SPANS_DROPPED, "Spans of traces that the collector did not take");
    describe_gauge!(
        FORGOTTEN_WAITING,
        "Forgotten files of ours that the Document Server keeps, all and those that stay"
    );
    describe_gauge!(FORGOTTEN_OLDEST, "How long the oldest of them has been waiting");
    describe_gauge!(READY, "1 while the service takes work");
}

/// What is counted under one label, with its label and all words there are for it. A counter that appears with its first event
/// shows no increase, so each is there from the start.
const COUNTED: [(&str, &str, &[&str]); 9] = [
    (
        SAVES,
        "outcome",
        &[
            "version",
            "checkpoint",
            "filed",
            "nothing-new",
            "conflict",
            "quarantine",
            "alert",
            "repeated",
            "postponed",
            "expired",
        ],
    ),
    (FETCHES, "result", &["fetched", "gone", "not-the-file", "broken", "too-large", "bad-link", "spool"]),
    (PUBLICATIONS, "result", &["published", "failed"]),
    (RECOVERY_ROUNDS, "result", &["whole", "partial"]),
    (
        FORGOTTEN,
        "result",
        &["collected", "known", "refused", "in-use", "failed", "foreign", "unknown-document", "replaced"],
    ),
    (ALERTS, "kind", &ALERT_KINDS),
    (DRAINS, "result", &["safe", "at-risk"]),
    (WEBHOOKS, "result", &["delivered", "failed", "given-up"]),
    (STORAGE_ERRORS, "store", &["ledger", "vault"]),
];

/// Kinds of things a person should look at.
const ALERT_KINDS: [&str; 19] = [
    "clock-skew",
    "conflict",
    "content-vanished",
    "depot-damaged",
    "depot-full",
    "depot-used",
    "disk-exhausted",
    "disk-low",
    "disk-saves-only",
    "expired-save",
    "external-change",
    "failed-save",
    "forgotten-of-unknown-document",
    "host-keys",
    "over-quota",
    "quarantine",
    "stranded-changes",
    "stray-blob",
    "webhook-given-up",
];

fn begin_at_zero() {
    for (name, label, words) in COUNTED {
        for word in words {
            counter!(name, label => *word).increment(0);
        }
    }
    for (status, answer) in ["2", "6"]
        .into_iter()
        .flat_map(|status| ["saved", "not-saved", "try-again", "closed"].map(|answer| (status, answer)))
    {
        counter!(CALLBACKS, "status" => status, "answer" => answer).increment(0);
    }
    counter!(CALLBACKS, "status" => "other", "answer" => "refused").increment(0);
    counter!(FOREIGN_LINKS).increment(0);
    counter!(SPANS_DROPPED).increment(0);
    for command in
        ["info", "forcesave", "drop", "getForgotten", "getForgottenList", "deleteForgotten", "version"]
    {
        for kind in ["away", "refused"] {
            counter!(SERVER_ERRORS, "command" => command, "kind" => kind).increment(0);
        }
    }
    gauge!(FORGOTTEN_WAITING).set(0.0);
}

/// An error with its causes, for the log: where it is handled, once.
pub fn report(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// A callback was answered.
pub fn callback_answered(status: u8, answer: &'static str, took: Duration) {
    let status = match status {
        1..=7 => ["1", "2", "3", "4", "5", "6", "7"][usize::from(status) - 1],
        _ => "other",
    };
    counter!(CALLBACKS, "status" => status, "answer" => answer).increment(1);
    histogram!(ANSWER_SECONDS).record(took.as_secs_f64());
    pulse::answered(took);
}

/// A save ended.
pub fn save_ended(outcome: &'static str) {
    counter!(SAVES, "outcome" => outcome).increment(1);
    if STORED.contains(&outcome) {
        pulse::saved();
    }
}

/// Runs a step of a save and notes how long it took.
pub(crate) async fn timed<T>(step: &'static str, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let result = work.instrument(step_span(step)).await;
    histogram!(STEP_SECONDS, "step" => step).record(began.elapsed().as_secs_f64());
    result
}

fn step_span(step: &'static str) -> tracing::Span {
    let kind = if step == "fetch" { "client" } else { "internal" };
    tracing::debug_span!(target: traces::TARGET, "step", otel.name = step, otel.kind = kind)
}

/// A download ended.
pub fn fetch_ended(result: &'static str) {
    counter!(FETCHES, "result" => result).increment(1);
}

/// The record of the changes of a save was kept, or could not be.
pub fn record_ended(result: &'static str) {
    counter!(RECORDS, "result" => result).increment(1);
}

/// So many things of a kind were let go.
pub fn pruned(kind: &'static str, count: u64) {
    counter!(PRUNED, "kind" => kind).increment(count);
}

/// A link named another host.
pub fn foreign_link() {
    counter!(FOREIGN_LINKS).increment(1);
}

/// A configuration was asked for.
pub fn opening_ended(mode: &'static str, result: &'static str) {
    counter!(OPENINGS, "mode" => mode, "result" => result).increment(1);
}

/// A publication ended.
pub fn publication_ended(result: &'static str) {
    counter!(PUBLICATIONS, "result" => result).increment(1);
}

/// A round of recovery ended.
pub fn recovery_round_ended(result: &'static str) {
    counter!(RECOVERY_ROUNDS, "result" => result).increment(1);
}

/// The office check found something, and this follows from it.
pub fn found(code: &'static str, effect: &'static str) {
    counter!(FINDINGS, "code" => code, "effect" => effect).increment(1);
}

/// A forgotten file was dealt with.
pub fn forgotten_ended(result: &'static str) {
    counter!(FORGOTTEN, "result" => result).increment(1);
}

/// A drain ended.
pub fn drain_ended(result: &'static str) {
    counter!(DRAINS, "result" => result).increment(1);
}

/// A webhook was called.
pub fn webhook_ended(result: &'static str) {
    counter!(WEBHOOKS, "result" => result).increment(1);
}

/// A call of a store failed.
pub fn storage_failed(store: &'static str) {
    counter!(STORAGE_ERRORS, "store" => store).increment(1);
}

/// A command to the Document Server failed.
pub fn document_server_failed(command: &'static str, kind: &'static str) {
    counter!(SERVER_ERRORS, "command" => command, "kind" => kind).increment(1);
}

/// What there is at this moment.
pub fn set_present(present: &ledger::operations::Present) {
    #[allow(clippy::cast_precision_loss, reason = "gauges are floats")]
    let float = |value: u64| value as f64;
    gauge!(SESSIONS).set(float(present.sessions));
    gauge!(PEOPLE).set(float(present.people));
    gauge!(WEBHOOKS_WAITING).set(float(present.deliveries));
    for (kind, count) in
        [("conflict", present.conflicts), ("quarantine", present.quarantined), ("orphan", present.orphans)]
    {
        gauge!(UNSETTLED, "kind" => kind).set(float(count));
    }
}

/// A span of a trace was not taken.
pub fn span_dropped() {
    counter!(SPANS_DROPPED).increment(1);
}

/// A person should look at this.
pub fn alert(kind: &'static str) {
    counter!(ALERTS, "kind" => kind).increment(1);
}

/// What the lanes hold now.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaneTotals {
    /// Documents with saves in progress.
    pub lanes: usize,
    /// Waiting for their turn.
    pub waiting: usize,
    /// Being fetched and checked.
    pub preparing: usize,
    /// Being committed.
    pub finishing: usize,
    /// Age of the oldest.
    pub oldest_ms: u64,
}

/// Refreshes the gauges just before they are read.
pub fn set_gauges(lanes: LaneTotals, totals: &ledger::trail::Totals) {
    #[allow(clippy::cast_precision_loss, reason = "gauges are floats")]
    let set = |name: &'static str, label: &'static str, kind: &'static str, value: u64| {
        gauge!(name, label => kind).set(value as f64);
    };
    let count = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
    set(LANES, "kind", "saves", count(lanes.lanes));
    set(LANE_TASKS, "phase", "waiting", count(lanes.waiting));
    set(LANE_TASKS, "phase", "preparing", count(lanes.preparing));
    set(LANE_TASKS, "phase", "finishing", count(lanes.finishing));
    gauge!(LANE_OLDEST).set(Duration::from_millis(lanes.oldest_ms).as_secs_f64());
    for (kind, value) in [
        ("documents", totals.documents),
        ("versions", totals.versions),
        ("checkpoints", totals.checkpoints),
        ("conflicts", totals.conflicts),
        ("quarantined", totals.quarantined),
        ("orphans", totals.orphans),
        ("open-saves", totals.open_saves),
        ("live-keys", totals.live_keys),
        ("owed-publications", totals.owed_publications),
    ] {
        set(STATE, "kind", kind, value);
    }
}

/// What room there is.
pub fn set_room(room: Option<model::disk::Room>, space: model::disk::Space) {
    use model::disk::Space;
    let level = match space {
        Space::Plenty => 0.0,
        Space::Low => 1.0,
        Space::SavesOnly => 2.0,
        Space::Exhausted => 3.0,
    };
    gauge!(DISK_LEVEL).set(level);
    if let Some(room) = room {
        #[allow(clippy::cast_precision_loss, reason = "gauges are floats")]
        let set = |name: &'static str, bytes: u64| gauge!(name).set(bytes as f64);
        set(DISK_FREE, room.free_bytes);
        set(DISK_TOTAL, room.total_bytes);
    }
}

/// What waits for the far vault.
pub fn set_depot(fill: vault::depot::Fill, now: jiff::Timestamp) {
    #[allow(clippy::cast_precision_loss, reason = "gauges are floats")]
    let set = |name: &'static str, value: u64| gauge!(name).set(value as f64);
    set(DEPOT_BLOBS, fill.blobs);
    set(DEPOT_BYTES, fill.bytes);
    let oldest = fill.oldest.map_or(0, |oldest| now.duration_since(oldest).as_secs());
    set(DEPOT_OLDEST, u64::try_from(oldest).unwrap_or(0));
}

/// Forgotten files that wait.
pub fn set_forgotten(counts: crate::forgotten_files::ForgottenCounts) {
    #[allow(clippy::cast_precision_loss, reason = "gauges are floats")]
    let float = |value: u64| value as f64;
    gauge!(FORGOTTEN_WAITING, "kind" => "all").set(float(counts.waiting));
    gauge!(FORGOTTEN_WAITING, "kind" => "staying").set(float(counts.staying));
    gauge!(FORGOTTEN_OLDEST).set(float(counts.oldest_seconds));
}

/// Whether the service takes work.
pub fn set_ready(app: &crate::app::App) {
    gauge!(READY).set(if app.is_ready() { 1.0 } else { 0.0 });
}
