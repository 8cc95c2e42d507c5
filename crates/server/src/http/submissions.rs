//! Submissions, for those who look after the installation: what is on its way, another try, and a scope that is freed.
//!
//! Guarantees: every act is in the audit trail of its scope, with who wanted it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use ledger::logs::{LogsPage, SummaryLog};
use model::SummaryLogId;
use model::submissions::LogState;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{PathOf, QueryOf};
use crate::app::App;
use crate::submitting::work_soon;

/// Most entries of a page.
const PAGE_MAX: u32 = 500;
/// Entries of a page if nobody says.
const PAGE: u32 = 100;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct OnTheirWayQuery {
    /// In this state only; otherwise all that hold their registration: preprocessing, validating, validated, submitting.
    #[param(
        pattern = "^(preprocessing|validating|validated|invalid|submitting|submitted|superseded|validation_failed)$"
    )]
    state: Option<String>,
    /// After this one: `next` of the page before.
    before: Option<u64>,
    /// How many at most; never more than 500.
    limit: Option<u32>,
}

/// Summary logs on their way, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OnTheirWayView {
    /// Them.
    submissions: Vec<OnItsWayView>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// A summary log, for those who look after the installation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OnItsWayView {
    /// Its id.
    pub(crate) log: String,
    /// Who hands in.
    pub(crate) organisation: String,
    /// For what.
    pub(crate) registration: String,
    /// Where it is.
    pub(crate) state: &'static str,
    /// When it came in.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) uploaded_at: Timestamp,
    /// The id of who brought it.
    pub(crate) uploaded_by: String,
    /// How often it was taken up in its state.
    pub(crate) attempts: u32,
    /// Somebody works on it until then, as far as known.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) worked_until: Option<Timestamp>,
    /// Rows that were read so far.
    pub(crate) rows: u64,
    /// Versions that were written so far.
    pub(crate) applied: u64,
    /// Why it is where it is, if there is something to say.
    pub(crate) reason: Option<String>,
}

impl From<SummaryLog> for OnItsWayView {
    fn from(log: SummaryLog) -> Self {
        Self {
            log: log.id.to_string(),
            organisation: log.scope.organisation.to_string(),
            registration: log.scope.registration.to_string(),
            state: log.state.as_str(),
            uploaded_at: log.uploaded_at,
            uploaded_by: log.who.id,
            attempts: log.attempts,
            worked_until: log.worked_until,
            rows: log.staged_rows,
            applied: log.applied,
            reason: log.reason,
        }
    }
}

/// Summary logs that hold their registration, of all organisations, the newest first.
#[utoipa::path(get, path = "/api/v1/operations/submissions", tag = "operations", security(("bearer" = [])), params(OnTheirWayQuery),
    responses((status = 200, body = OnTheirWayView), (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_on_their_way(
    State(app): State<Arc<App>>,
    session: Session,
    QueryOf(query): QueryOf<OnTheirWayQuery>,
) -> Result<Json<OnTheirWayView>, Problem> {
    session.allow_operating()?;
    let states = match query.state.as_deref().map(LogState::parse) {
        Some(None) => return Err(Problem::bad_request("There is no such state.")),
        Some(Some(state)) => vec![state],
        None => active_states(),
    };
    let limit = query.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let page = LogsPage { states, before: query.before, limit, ..LogsPage::default() };
    let found = app.ledger.logs(&page).await?;
    let is_full = found.len() == limit as usize;
    let next = found.last().filter(|_| is_full).map(|last| last.number);
    Ok(Json(OnTheirWayView { submissions: found.into_iter().map(OnItsWayView::from).collect(), next }))
}

/// The states of logs that hold their scope.
pub(crate) fn active_states() -> Vec<LogState> {
    LogState::ALL.iter().map(|(state, _)| *state).filter(|state| state.is_active()).collect()
}

/// Tries the work on a summary log again, now.
#[utoipa::path(post, path = "/api/v1/operations/submissions/{log}/retry", tag = "operations", security(("bearer" = [])),
    params(("log" = String, Path)),
    responses((status = 204, description = "It is tried again"), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "API_001: there is no such log, or it does not wait for work", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn retry_submission(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(log): PathOf<String>,
) -> Result<http::StatusCode, Problem> {
    session.allow_operating()?;
    let log = log_id(&log)?;
    if !app.ledger.retry_log(&log, &session.author(), app.now()).await? {
        return Err(Problem::not_found());
    }
    work_soon(&app, log);
    Ok(http::StatusCode::NO_CONTENT)
}

/// Frees the registration that a summary log holds: what is being read fails, what is being submitted goes back to its preview, and a
/// preview is superseded.
#[utoipa::path(post, path = "/api/v1/operations/submissions/{log}/release", tag = "operations", security(("bearer" = [])),
    params(("log" = String, Path)),
    responses((status = 204, description = "Its registration is free, or one step nearer"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "API_001: there is no such log, or it does not hold its registration", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn release_submission(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(log): PathOf<String>,
) -> Result<http::StatusCode, Problem> {
    session.allow_operating()?;
    if !app.ledger.release_log(&log_id(&log)?, &session.author(), app.now()).await? {
        return Err(Problem::not_found());
    }
    app.logs_moved.notify_waiters();
    Ok(http::StatusCode::NO_CONTENT)
}

fn log_id(text: &str) -> Result<SummaryLogId, Problem> {
    SummaryLogId::parse(text).map_err(|refused| Problem::id(&refused))
}
