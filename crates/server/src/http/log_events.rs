//! How a summary log gets on, as server-sent events.
//!
//! Guarantees: a stream begins with how the log stands, tells every change of its state and, in between, how far it is, and at once when the
//! work on it has ended; it ends when nothing more will happen by itself, when the service stops and after ten minutes. The number of streams is bounded.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use ledger::logs::SummaryLog;
use model::access::Permission;
use model::submissions::LogState;
use model::{Scope, SummaryLogId};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::PathOf;
use super::summary_logs::{SummaryLogView, log_of, scope_of};
use crate::app::App;

/// Looked for by itself at least this often, should a signal be lost.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Progress is told at most this often.
const SPACING: Duration = Duration::from_millis(200);
/// Then the page comes again, with a token that is still good.
const LIFE: Duration = Duration::from_secs(600);

/// An event of the stream; the stream is a row of them.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what the stream writes")]
struct LogEventView {
    /// Always the same.
    #[schema(pattern = "^log$")]
    event: String,
    /// The summary log, as JSON.
    data: String,
}

/// How a summary log gets on, as server-sent events named `log`; their data is the log. The stream ends when the log waits for somebody
/// or is done.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs/{log}/events", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ("log" = String, Path)),
    responses((status = 200, description = "Server-sent events", body = LogEventView, content_type = "text/event-stream"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, description = "API_007: too many streams", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn follow_summary_log(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, log)): PathOf<(String, String, String)>,
) -> Result<Response, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::View)?;
    let log = log_of(&app, &scope, &log).await?;
    let seat = Arc::clone(&app.log_streams).try_acquire_owned();
    let seat = seat.map_err(|_| Problem::unavailable("Too many pages are listening right now."))?;
    let settled = app.logs_settled.subscribe();
    let follower =
        Follower { app, scope, id: log.id, told: None, settled, ends_at: Instant::now() + LIFE, _seat: seat };
    let stream = futures_util::stream::unfold(follower, |mut follower| async move {
        let log = follower.next().await?;
        let data = serde_json::to_string(&SummaryLogView::from(log)).unwrap_or_default();
        Some((Ok::<_, Infallible>(sse::Event::default().event("log").data(data)), follower))
    });
    let mut response = Sse::new(stream).keep_alive(KeepAlive::default()).into_response();
    // Proxies that collect an answer before they pass it on would keep every event back.
    response.headers_mut().insert("x-accel-buffering", http::HeaderValue::from_static("no"));
    Ok(response)
}

struct Follower {
    app: Arc<App>,
    scope: Scope,
    id: SummaryLogId,
    told: Option<SummaryLog>,
    /// Heard at once, so that nobody waits for an end that is there.
    settled: watch::Receiver<()>,
    ends_at: Instant,
    _seat: OwnedSemaphorePermit,
}

impl Follower {
    /// The log, when it is another than was told.
    async fn next(&mut self) -> Option<SummaryLog> {
        if let Some(told) = &self.told {
            if is_settled(told.state) {
                return None;
            }
            // Progress can wait; an end is told when it is there.
            let _ = tokio::time::timeout(SPACING, self.settled.changed()).await;
        }
        while Instant::now() < self.ends_at && self.app.is_ready() {
            // Before looking, so that what happens meanwhile is heard.
            let moved = self.app.logs_moved.notified();
            self.settled.mark_unchanged();
            let log = self.app.ledger.log(&self.scope, &self.id).await.ok()??;
            if self.told.as_ref() != Some(&log) {
                self.told = Some(log.clone());
                return Some(log);
            }
            let app = Arc::clone(&self.app);
            tokio::select! {
                () = moved => {}
                () = app.stopped_being_ready() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
        None
    }
}

/// Whether nothing happens any more unless somebody acts.
fn is_settled(state: LogState) -> bool {
    state.is_final() || state == LogState::Validated
}
