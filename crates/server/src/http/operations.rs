//! For operators: the lanes (what seed 1 reads from jstack), the inbox, and metrics.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use jiff::Timestamp;
use ledger::pruning::Meaning;
use metrics_exporter_prometheus::PrometheusHandle;
use model::disk::Space;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::JsonBody;
use crate::app::App;
use crate::counting;
use crate::delivering;
use crate::examining::{EngineView, engines_seen};
use crate::instances::{self, Heard, Lane, Standing};
use crate::pruning::{PruneError, Pruned, Reach, prune};
use crate::room::space;
use crate::telemetry::{self, LaneTotals};

/// The lanes of all instances.
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
    /// Each lane, the longest waiting first; of another instance at most 100.
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
    /// The instance that works on it.
    #[schema(example = "files-1:8080")]
    pub(crate) instance: String,
}

/// The lanes of all instances: depth and age of each.
#[utoipa::path(get, path = "/api/v1/operations/lanes", tag = "operations", security(("bearer" = [])),
    responses((status = 200, body = LanesView), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_lanes(
    State(app): State<Arc<App>>,
    session: Session,
) -> Result<Json<LanesView>, Problem> {
    session.allow_operating()?;
    let standings = working(&app).await;
    let each = || standings.iter().map(|heard| &heard.what);
    let mut lanes: Vec<LaneView> =
        each().flat_map(|it| it.lanes.iter().map(|lane| view(lane, &it.name))).collect();
    lanes.sort_by_key(|lane| std::cmp::Reverse(lane.oldest_ms));
    Ok(Json(LanesView {
        count: each().map(|it| it.documents).sum(),
        is_empty: each().all(|it| it.is_empty),
        is_drained: each().all(|it| it.is_drained),
        jobs: each().map(|it| it.jobs).sum(),
        lanes,
    }))
}

/// How the instances stand that are there: this one, and all that were heard of lately.
async fn working(app: &Arc<App>) -> Vec<Heard<Standing>> {
    let mut standings = instances::standings(app).await;
    standings.retain(|heard| !heard.is_silent());
    standings
}

fn view(lane: &Lane, instance: &str) -> LaneView {
    LaneView {
        name: format!("callback-{}", lane.document),
        document: lane.document.clone(),
        line: lane.line.clone(),
        waiting: lane.waiting,
        preparing: lane.preparing,
        finishing: lane.finishing,
        oldest_ms: lane.oldest_ms,
        instance: instance.to_owned(),
    }
}

/// An instance.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct InstanceView {
    /// The machine and the port.
    #[schema(example = "files-1:8080")]
    name: String,
    /// Its version.
    version: String,
    /// Since when it works.
    #[schema(value_type = String)]
    started_at: Timestamp,
    /// `ready`, `stopping`, or `silent`: nothing was heard of it for ten seconds.
    #[schema(value_type = String)]
    state: &'static str,
    /// How long ago it was heard of.
    heard_seconds_ago: u64,
    /// Whether it is the one that answers.
    is_this: bool,
    /// Documents whose saves it works on.
    documents: usize,
    /// Free bytes on the disk of its data folder, if they can be told.
    disk_free_bytes: Option<u64>,
}

/// The instances that work on this ledger, by name. One that ended without a word is told of for an hour.
#[utoipa::path(get, path = "/api/v1/operations/instances", tag = "operations", security(("bearer" = [])),
    responses((status = 200, body = Vec<InstanceView>), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_instances(
    State(app): State<Arc<App>>,
    session: Session,
) -> Result<Json<Vec<InstanceView>>, Problem> {
    session.allow_operating()?;
    let standings = instances::standings(&app).await.into_iter().enumerate();
    let mut views: Vec<InstanceView> = standings.map(instance_view).collect();
    views.sort_by(|one, other| (&one.name, one.started_at).cmp(&(&other.name, other.started_at)));
    Ok(Json(views))
}

/// The one that answers comes first.
fn instance_view((place, heard): (usize, Heard<Standing>)) -> InstanceView {
    let state = match &heard {
        _ if heard.is_silent() => "silent",
        _ if heard.what.is_ready => "ready",
        _ => "stopping",
    };
    InstanceView {
        state,
        heard_seconds_ago: heard.age.as_secs(),
        is_this: place == 0,
        name: heard.what.name,
        version: heard.what.version,
        started_at: heard.what.started_at,
        documents: heard.what.documents,
        disk_free_bytes: heard.what.disk_free_bytes,
    }
}

/// The state of the installation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StatusView {
    /// Whether the instance that answers takes new work.
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
    /// Room on the disk, of the instance that has the least: `plenty`, `low`, `saves-only` (uploads are refused) or `exhausted` (saves are put off).
    disk: &'static str,
    /// Free bytes on the disk of the data folder, the least of all instances, if they can be told.
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
    let totals = counting::totals(&app).await?;
    let present = app.ledger.present().await?;
    let standings = working(&app).await;
    let each = || standings.iter().map(|heard| &heard.what);
    let forgotten = instances::forgotten_of(&standings);
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
        disk: each().map(|it| it.disk).max().unwrap_or(Space::Plenty).as_str(),
        disk_free_bytes: each().filter_map(|it| it.disk_free_bytes).min(),
        depot_blobs: each().map(|it| it.depot_blobs).sum(),
        depot_bytes: each().map(|it| it.depot_bytes).sum(),
        forgotten_files: forgotten.waiting,
        forgotten_files_staying: forgotten.staying,
        forgotten_files_oldest_seconds: forgotten.oldest_seconds,
        spool_files: each().map(|it| it.spool_files).sum(),
        spool_bytes: each().map(|it| it.spool_bytes).sum(),
        engines: engines_seen(&app).engines,
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
    let totals = counting::totals(&app).await?;
    telemetry::set_gauges(lane_totals(&app), &totals);
    telemetry::set_present(&app.ledger.present().await?);
    telemetry::set_room(app.disk.room(), space(&app));
    telemetry::set_depot(delivering::fill(&app).await, app.now());
    telemetry::set_forgotten(instances::forgotten_of(&working(&app).await));
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
