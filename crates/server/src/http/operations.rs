//! For operators: the lanes (what seed 1 reads from jstack), the inbox, and metrics.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use lanes::Lanes;
use ledger::pruning::Meaning;
use metrics_exporter_prometheus::PrometheusHandle;
use model::DocumentId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::JsonBody;
use crate::app::App;
use crate::delivering;
use crate::examining::{EngineView, engines_seen};
use crate::pruning::{PruneError, Pruned, Reach, prune};
use crate::room::space;
use crate::telemetry::{self, LaneTotals};

/// The lanes of the service.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct LanesView {
    /// Documents with saves in progress.
    pub(crate) count: usize,
    /// Whether no lane holds anything.
    pub(crate) is_empty: bool,
    /// Whether the service is stopping and has finished its work.
    pub(crate) is_drained: bool,
    /// Saves in progress, joined by all their deliveries.
    pub(crate) jobs: usize,
    /// Each lane, the longest waiting first.
    pub(crate) lanes: Vec<LaneView>,
}

/// One lane.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct LaneView {
    /// The name of its span in the log.
    #[schema(example = "callback-12345")]
    pub(crate) name: String,
    /// Its document.
    pub(crate) document: String,
    /// What the lane is for: `arrivals`, `saves` or `publications`.
    pub(crate) line: String,
    /// Waiting for their turn.
    pub(crate) waiting: usize,
    /// Being fetched, checked and stored.
    pub(crate) preparing: usize,
    /// Being committed.
    pub(crate) finishing: usize,
    /// Age of the oldest.
    pub(crate) oldest_ms: u64,
}

/// The lanes: depth and age of each.
#[utoipa::path(get, path = "/api/v1/operations/lanes", tag = "operations", security(("bearer" = [])),
    responses((status = 200, body = LanesView), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_lanes(
    State(app): State<Arc<App>>,
    session: Session,
) -> Result<Json<LanesView>, Problem> {
    session.allow_operating()?;
    let lines = [("arrivals", &app.arrivals), ("saves", &app.saves), ("publications", &app.publications)];
    let mut lanes: Vec<LaneView> = lines.into_iter().flat_map(|(line, lanes)| view(line, lanes)).collect();
    lanes.sort_by_key(|lane| std::cmp::Reverse(lane.oldest_ms));
    Ok(Json(LanesView {
        count: app.saves.count(),
        is_empty: lines.iter().all(|(_, lanes)| lanes.is_empty()),
        is_drained: lines.iter().all(|(_, lanes)| lanes.is_drained()),
        jobs: app.jobs.count(),
        lanes,
    }))
}

fn view(line: &'static str, lanes: &Lanes<DocumentId>) -> Vec<LaneView> {
    let snapshot = lanes.snapshot().into_iter();
    snapshot
        .map(|lane| LaneView {
            name: format!("callback-{}", lane.key),
            document: lane.key.to_string(),
            line: line.to_owned(),
            waiting: lane.waiting,
            preparing: lane.preparing,
            finishing: lane.finishing,
            oldest_ms: lane.oldest_age_ms,
        })
        .collect()
}

/// The state of the installation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StatusView {
    /// Whether new work is taken.
    is_ready: bool,
    /// Documents, also the deleted ones.
    documents: u64,
    /// Deleted documents that can be taken back.
    deleted_documents: u64,
    /// Versions.
    versions: u64,
    /// Checkpoints.
    checkpoints: u64,
    /// Conflict copies.
    conflicts: u64,
    /// Quarantined copies.
    quarantined: u64,
    /// Copies whose document is not known.
    orphans: u64,
    /// Conflict copies that wait for somebody.
    waiting_conflicts: u64,
    /// Quarantined copies that wait for somebody.
    waiting_quarantined: u64,
    /// Copies of no known document that wait for somebody.
    waiting_orphans: u64,
    /// Callbacks received and not finished.
    open_saves: u64,
    /// Live edit keys.
    live_keys: u64,
    /// Publications owed.
    owed_publications: u64,
    /// Room on the disk: `plenty`, `low`, `saves-only` (uploads are refused) or `exhausted` (saves are put off).
    disk: &'static str,
    /// Free bytes on the disk of the data folder, if they can be told.
    disk_free_bytes: Option<u64>,
    /// Contents that wait on the local disk until the far vault is back.
    depot_blobs: u64,
    /// Their bytes.
    depot_bytes: u64,
    /// Forgotten files of this installation that the Document Server kept after the last round.
    forgotten_files: u64,
    /// Those of them that stay for so long that a person should look: 15 minutes.
    forgotten_files_staying: u64,
    /// How long the oldest of them has been waiting.
    forgotten_files_oldest_seconds: u64,
    /// Files on their way through the spool, when it was last looked at.
    spool_files: u64,
    /// Their bytes.
    spool_bytes: u64,
    /// How ledger, vault and Document Server were when they were last asked; empty before the first time.
    engines: Vec<EngineView>,
}

/// Counts of everything.
#[utoipa::path(get, path = "/api/v1/operations/status", tag = "operations", security(("bearer" = [])),
    responses((status = 200, body = StatusView), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn status(
    State(app): State<Arc<App>>,
    session: Session,
) -> Result<Json<StatusView>, Problem> {
    session.allow_operating()?;
    let totals = app.ledger.totals().await?;
    let present = app.ledger.present().await?;
    let forgotten = app.forgotten.counts(app.now());
    let depot = delivering::fill(&app).await;
    let seen = engines_seen(&app);
    Ok(Json(StatusView {
        is_ready: app.is_ready(),
        documents: totals.documents,
        deleted_documents: totals.deleted_documents,
        versions: totals.versions,
        checkpoints: totals.checkpoints,
        conflicts: totals.conflicts,
        quarantined: totals.quarantined,
        orphans: totals.orphans,
        waiting_conflicts: present.conflicts,
        waiting_quarantined: present.quarantined,
        waiting_orphans: present.orphans,
        open_saves: totals.open_saves,
        live_keys: totals.live_keys,
        owed_publications: totals.owed_publications,
        disk: space(&app).as_str(),
        disk_free_bytes: app.disk.room().map(|room| room.free_bytes),
        depot_blobs: depot.blobs,
        depot_bytes: depot.bytes,
        forgotten_files: forgotten.waiting,
        forgotten_files_staying: forgotten.staying,
        forgotten_files_oldest_seconds: forgotten.oldest_seconds,
        spool_files: seen.spool_files,
        spool_bytes: seen.spool_bytes,
        engines: seen.engines,
    }))
}

/// Whether it is meant.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PruneWish {
    /// Only say what would be let go.
    #[serde(default)]
    dry_run: bool,
}

/// What was let go, or would be.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PruneView {
    /// Whether nothing was changed.
    pub(crate) dry_run: bool,
    /// What.
    #[serde(flatten)]
    pub(crate) pruned: Pruned,
}

/// Lets go of everything that the retention policy does not keep, now and not in parts.
#[utoipa::path(post, path = "/api/v1/operations/prune", tag = "operations", security(("bearer" = [])), request_body = PruneWish,
    responses((status = 200, body = PruneView), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn prune_now(
    State(app): State<Arc<App>>,
    session: Session,
    JsonBody(wish): JsonBody<PruneWish>,
) -> Result<Json<PruneView>, Problem> {
    session.allow_operating()?;
    let meaning = if wish.dry_run { Meaning::OnlySay } else { Meaning::DoIt };
    // The work goes on although the caller may hang up.
    let pruning = tokio::spawn(async move { prune(&app, meaning, Reach::All).await });
    let pruned = pruning.await.unwrap_or(Err(PruneError::Interrupted))?;
    Ok(Json(PruneView { dry_run: wish.dry_run, pruned }))
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operations", security(("bearer" = [])),
    responses((status = 200, description = "Prometheus text format", body = String, content_type = "text/plain"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn metrics(
    State(app): State<Arc<App>>,
    session: Session,
    axum::Extension(handle): axum::Extension<PrometheusHandle>,
) -> Result<Response, Problem> {
    session.allow_operating()?;
    let totals = app.ledger.totals().await?;
    telemetry::set_gauges(lane_totals(&app), &totals);
    telemetry::set_present(&app.ledger.present().await?);
    telemetry::set_room(app.disk.room(), space(&app));
    telemetry::set_depot(delivering::fill(&app).await, app.now());
    telemetry::set_forgotten(app.forgotten.counts(app.now()));
    telemetry::set_ready(&app);
    handle.run_upkeep();
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], handle.render()).into_response())
}

fn lane_totals(app: &App) -> LaneTotals {
    app.saves.snapshot().iter().fold(LaneTotals::default(), |totals, lane| LaneTotals {
        lanes: totals.lanes + 1,
        waiting: totals.waiting + lane.waiting,
        preparing: totals.preparing + lane.preparing,
        finishing: totals.finishing + lane.finishing,
        oldest_ms: totals.oldest_ms.max(lane.oldest_age_ms),
    })
}
