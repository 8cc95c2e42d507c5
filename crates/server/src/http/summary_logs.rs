//! Summary logs over HTTP: upload, look, confirm.
//!
//! Guarantees: a log is found only through its own organisation and registration, and a foreign one looks exactly like a missing one;
//! uploading and confirming need the permission to submit; what is asked twice is answered the same.
//! Does not do: decide whether a log may be submitted (`model::submissions`).

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use ledger::logs::{LogSource, LogsPage, SummaryLog};
use model::access::{Permission, may_for};
use model::names::FileName;
use model::records::PreviewStats;
use model::submissions::LogState;
use model::{AccreditationId, OrganisationId, RegistrationId, Scope, SummaryLogId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::bytes::send;
use super::caller::Session;
use super::extract::{PathOf, QueryOf};
use crate::app::App;
use crate::submitting::{ASKS, Confirmation, Confirmed, Upload, confirm, undo, upload};

/// Most entries of a page.
pub(super) const PAGE_MAX: u32 = 500;
/// Entries of a page if nobody says.
pub(super) const PAGE: u32 = 100;

/// A summary log.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SummaryLogView {
    /// Its id.
    pub(super) id: String,
    /// Who hands in.
    organisation: String,
    /// For what.
    registration: String,
    /// Under which licence.
    accreditation: Option<String>,
    /// Where it is.
    #[schema(
        pattern = "^(preprocessing|validating|validated|invalid|submitting|submitted|superseded|validation_failed)$"
    )]
    pub(super) state: &'static str,
    /// The template it is read by.
    template: String,
    /// The template's version.
    template_version: String,
    /// What its file is called; none if it undoes a submission.
    file_name: Option<String>,
    /// The submission it undoes.
    undoes: Option<u64>,
    /// The document and version it was submitted from.
    document: Option<[String; 2]>,
    /// The SHA-256 of its file.
    sha256: Option<String>,
    /// The length of its file.
    size_bytes: Option<u64>,
    /// Who brought it.
    uploaded_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    uploaded_at: Timestamp,
    /// When it was validated; every version it makes says so.
    #[serde(rename = "validatedAt")]
    #[schema(value_type = Option<String>, format = DateTime)]
    validated_at: Option<Timestamp>,
    /// What submitting it does.
    #[serde(rename = "previewStats")]
    preview_stats: Option<PreviewStatsView>,
    /// Whether the records moved since the preview.
    is_stale: bool,
    /// Rows that were read so far.
    rows: u64,
    /// Versions that were written so far.
    applied: u64,
    /// What is wrong with it, in exact numbers.
    problems: ProblemTotalsView,
    /// What was found in it: tables with their sheets, columns and totals, and single values.
    #[schema(value_type = Option<Object>)]
    found: Value,
    /// Who confirmed it.
    submitted_by: Option<String>,
    /// The number of its submission in its scope.
    submission: Option<u64>,
    /// When it was submitted.
    #[schema(value_type = Option<String>, format = DateTime)]
    submitted_at: Option<Timestamp>,
    /// Why it is where it is, if there is something to say.
    reason: Option<String>,
    /// The log that took its place.
    superseded_by: Option<String>,
}

/// What a submission does, in numbers.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(super) struct PreviewStatsView {
    /// Records that will be new.
    created: u64,
    /// Records that will have other values.
    updated: u64,
    /// Rows that say what is known.
    unchanged: u64,
    /// Records that will end.
    removed: u64,
}

impl From<PreviewStats> for PreviewStatsView {
    fn from(stats: PreviewStats) -> Self {
        let PreviewStats { created, updated, unchanged, removed } = stats;
        Self { created, updated, unchanged, removed }
    }
}

/// How many problems there are.
#[derive(Debug, Serialize, ToSchema)]
struct ProblemTotalsView {
    /// That stop it.
    fatal: u64,
    /// That stop a row from counting.
    error: u64,
    /// Worth a look.
    warning: u64,
}

impl From<SummaryLog> for SummaryLogView {
    fn from(log: SummaryLog) -> Self {
        let is_stale = log.is_stale();
        let (file_name, undoes, document, blob) = match log.source {
            LogSource::Workbook { name, blob, document } => (Some(name), None, document, Some(blob)),
            LogSource::Undo(sequence) => (None, Some(sequence), None, None),
        };
        Self {
            id: log.id.to_string(),
            organisation: log.scope.organisation.to_string(),
            registration: log.scope.registration.to_string(),
            accreditation: log.accreditation.map(|id| id.to_string()),
            state: log.state.as_str(),
            template: log.template,
            template_version: log.template_version,
            file_name,
            undoes,
            document: document.map(|(document, label)| [document.to_string(), label.to_string()]),
            sha256: blob.as_ref().map(|blob| blob.digest.to_string()),
            size_bytes: blob.map(|blob| blob.size_bytes),
            uploaded_by: log.who.name,
            uploaded_at: log.uploaded_at,
            validated_at: log.validated_at,
            preview_stats: log.stats.map(PreviewStatsView::from),
            is_stale,
            rows: log.staged_rows,
            applied: log.applied,
            problems: ProblemTotalsView {
                fatal: log.problems.fatal,
                error: log.problems.error,
                warning: log.problems.warning,
            },
            found: log.facts.and_then(|facts| serde_json::from_str(&facts).ok()).unwrap_or_default(),
            submitted_by: log.submitted_by.map(|who| who.name),
            submission: log.commit.map(|(sequence, _)| sequence),
            submitted_at: log.commit.map(|(_, at)| at),
            reason: log.reason,
            superseded_by: log.superseded_by.map(|id| id.to_string()),
        }
    }
}

/// The scope of a path, if this caller may do this for it.
pub(super) fn scope_of(
    session: &Session,
    (organisation, registration): (&str, &str),
    permission: Permission,
) -> Result<Scope, Problem> {
    let organisation = OrganisationId::parse(organisation).map_err(|refused| Problem::id(&refused))?;
    let registration = RegistrationId::parse(registration).map_err(|refused| Problem::id(&refused))?;
    if may_for(&session.0, permission, &organisation) {
        Ok(Scope { organisation, registration })
    } else if may_for(&session.0, Permission::View, &organisation) {
        Err(Problem::forbidden())
    } else {
        Err(Problem::not_found())
    }
}

/// A log of a scope.
pub(super) async fn log_of(app: &App, scope: &Scope, id: &str) -> Result<SummaryLog, Problem> {
    let id = SummaryLogId::parse(id).map_err(|refused| Problem::id(&refused))?;
    app.ledger.log(scope, &id).await?.ok_or_else(Problem::not_found)
}

/// An answer that a log goes on without the caller, and where to look.
pub(super) fn accepted(status: StatusCode, log: SummaryLog) -> Response {
    let link = format!(
        "/api/v1/organisations/{}/registrations/{}/summary-logs/{}",
        log.scope.organisation, log.scope.registration, log.id
    );
    let mut response = (status, Json(SummaryLogView::from(log))).into_response();
    if let Ok(link) = HeaderValue::from_str(&link) {
        response.headers_mut().insert(header::LOCATION, link);
    }
    response
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UploadLogQuery {
    /// What the file is called.
    #[param(min_length = 1, max_length = 1024, example = "returns-march.xlsx")]
    name: Option<String>,
    /// The accreditation it is for, if the template asks for one.
    #[param(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    accreditation: Option<String>,
    /// The id of the log, if your application gives it: sent again, the upload finds what the first one made.
    #[param(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    id: Option<String>,
}

/// Brings a workbook: its bytes are the body.
///
/// It is read in the background; follow the link in `Location`. An older unsubmitted log of the registration is superseded, unless the
/// template lets previews stand side by side.
#[utoipa::path(post, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), UploadLogQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 202, body = SummaryLogView, headers(("Location" = String, description = "Where to look"))),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "SUB_001: a submission is in progress; SUB_005: no template", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, body = ProblemDocument, content_type = "application/problem+json")))]
#[allow(clippy::too_many_arguments, reason = "each is an extractor")]
pub(super) async fn upload_summary_log(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration)): PathOf<(String, String)>,
    QueryOf(query): QueryOf<UploadLogQuery>,
    body: Body,
) -> Result<Response, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::Submit)?;
    let new = new_upload(&session, scope, query)?;
    let log = upload(&app, new, body.into_data_stream()).await?;
    Ok(accepted(StatusCode::ACCEPTED, log))
}

fn new_upload(session: &Session, scope: Scope, query: UploadLogQuery) -> Result<Upload, Problem> {
    let name = query.name.as_deref().unwrap_or("workbook.xlsx");
    let name = FileName::parse(name).map_err(Problem::name)?;
    let accreditation = query.accreditation.as_deref().map(AccreditationId::parse).transpose();
    Ok(Upload {
        id: new_log_id(query.id.as_deref())?,
        scope,
        accreditation: accreditation.map_err(|refused| Problem::id(&refused))?,
        name: name.to_string(),
        upload: None,
        who: session.author(),
    })
}

/// The id that was given, or a new one.
pub(super) fn new_log_id(given: Option<&str>) -> Result<SummaryLogId, Problem> {
    let made = uuid::Uuid::now_v7().simple().to_string();
    SummaryLogId::parse(given.unwrap_or(&made)).map_err(|refused| Problem::id(&refused))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LogsQuery {
    /// In this state only.
    #[param(
        pattern = "^(preprocessing|validating|validated|invalid|submitting|submitted|superseded|validation_failed)$"
    )]
    state: Option<String>,
    /// After this one: `next` of the page before.
    before: Option<u64>,
    /// How many at most; never more than 500.
    limit: Option<u32>,
}

/// Summary logs, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LogsView {
    /// Them.
    logs: Vec<SummaryLogView>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// The summary logs of a registration, the newest first.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), LogsQuery),
    responses((status = 200, body = LogsView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_summary_logs(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration)): PathOf<(String, String)>,
    QueryOf(query): QueryOf<LogsQuery>,
) -> Result<Json<LogsView>, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::View)?;
    app.ledger.registration(&scope).await?.ok_or_else(Problem::not_found)?;
    let page = LogsPage { scope: Some(scope), ..LogsPage::default() };
    Ok(Json(LogsView::read(&app, query, page).await?))
}

impl LogsView {
    /// The page of logs that a query asks for, among those that are meant.
    pub(super) async fn read(app: &App, query: LogsQuery, page: LogsPage) -> Result<Self, Problem> {
        let limit = query.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
        let state = query.state.as_deref().map(|word| LogState::parse(word).ok_or_else(unknown_word));
        let states = state.transpose()?.into_iter().collect();
        let logs = app.ledger.logs(&LogsPage { states, before: query.before, limit, ..page }).await?;
        let is_full = logs.len() == limit as usize;
        let next = logs.last().map(|log| log.number).filter(|_| is_full);
        Ok(Self { logs: logs.into_iter().map(SummaryLogView::from).collect(), next })
    }
}

pub(super) fn unknown_word() -> Problem {
    Problem::bad_request("The query has a word that is not one of those the API description lists.")
}

/// A summary log.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs/{log}", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ("log" = String, Path)),
    responses((status = 200, body = SummaryLogView),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn find_summary_log(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, log)): PathOf<(String, String, String)>,
) -> Result<Json<SummaryLogView>, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::View)?;
    Ok(Json(log_of(&app, &scope, &log).await?.into()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SubmitQuery {
    /// A warning that asks something, and that is right as it is: `ROWS_SEEM_SHIFTED`.
    #[param(pattern = "^ROWS_SEEM_SHIFTED$")]
    despite: Option<String>,
}

/// Confirms the preview of a summary log: its records are written.
///
/// 202 while they are being written, 200 when they are there; asking again gives the same answer and writes nothing twice.
#[utoipa::path(post, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs/{log}/submit", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ("log" = String, Path), SubmitQuery),
    responses((status = 200, body = SummaryLogView), (status = 202, body = SummaryLogView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "SUB_001 in progress, SUB_002 a newer one was uploaded, SUB_003 the records moved, SUB_004 no preview, SUB_007 a warning is unanswered", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn submit_summary_log(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, log)): PathOf<(String, String, String)>,
    QueryOf(query): QueryOf<SubmitQuery>,
) -> Result<Response, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::Submit)?;
    let log = log_of(&app, &scope, &log).await?;
    if query.despite.as_deref().is_some_and(|warning| warning != ASKS) {
        return Err(unknown_word());
    }
    let confirmation = Confirmation { who: session.author(), despite: query.despite.into_iter().collect() };
    Ok(match confirm(&app, &scope, &log.id, &confirmation).await? {
        Confirmed::Running(log) => accepted(StatusCode::ACCEPTED, *log),
        Confirmed::Done(log) => accepted(StatusCode::OK, *log),
    })
}

/// Undoes a submission: makes a summary log that takes back what it did. It is previewed and confirmed like any other.
#[utoipa::path(post, path = "/api/v1/organisations/{organisation}/registrations/{registration}/submissions/{number}/undo", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ("number" = u64, Path)),
    responses((status = 202, body = SummaryLogView),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "SUB_001: a submission is in progress", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn undo_submission(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, number)): PathOf<(String, String, u64)>,
) -> Result<Response, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::Submit)?;
    let new = Upload {
        id: new_log_id(None)?,
        scope,
        accreditation: None,
        name: String::new(),
        upload: None,
        who: session.author(),
    };
    Ok(accepted(StatusCode::ACCEPTED, undo(&app, new, number).await?))
}

/// The workbook as it was brought.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs/{log}/file", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ("log" = String, Path)),
    responses((status = 200, description = "The bytes", content_type = "application/octet-stream"),
        (status = 206, description = "The part that was asked for"), (status = 304, description = "Known already"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn read_summary_log(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, log)): PathOf<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::Download)?;
    match log_of(&app, &scope, &log).await?.source {
        LogSource::Workbook { name, blob, .. } => send(&app, &headers, &blob, &name).await,
        LogSource::Undo(_) => Err(Problem::not_found()),
    }
}
