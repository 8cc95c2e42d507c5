//! What joins workbooks and documents: a workbook with its problems marked, a document that is submitted, a rejected upload that is opened.
//!
//! Guarantees: each side is asked for its own permission: the company for documents, the organisation for what is handed in. A document tells of
//! a log only to whoever acts for the log's organisation too.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use ledger::logs::{LogSource, LogsPage, SummaryLog};
use model::access::{Organisations, Permission, may_for, may_operate};
use model::names::FileName;
use model::{AccreditationId, DocumentId, Label, ProjectId};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::companies::company_id;
use super::documents::DocumentView;
use super::extract::{JsonBody, PathOf, QueryOf};
use super::summary_logs::{LogsQuery, LogsView, SummaryLogView, accepted, log_of, new_log_id, scope_of};
use crate::app::App;
use crate::opening::{self, version};
use crate::recording::{marked, stream_of};
use crate::submitting::{Bringing, Upload, upload_content};

const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

/// The workbook as it was brought, with its problems marked in their cells and listed on a sheet of their own.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs/{log}/marked", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ("log" = String, Path)),
    responses((status = 200, description = "The workbook", body = Vec<u8>, content_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "DOC_002: it is no workbook that can be marked", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn read_marked_workbook(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, log)): PathOf<(String, String, String)>,
) -> Result<Response, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::Download)?;
    let log = log_of(&app, &scope, &log).await?;
    let workbook = marked(&app, &log).await?;
    let length = HeaderValue::from(workbook.size_bytes);
    let mut response = Body::from_stream(stream_of(workbook)).into_response();
    let name =
        format!("attachment; filename*=UTF-8''{}", utf8_percent_encode(&marked_name(&log), NON_ALPHANUMERIC));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, length);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(XLSX));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// `returns (marked).xlsx` for `returns.xlsx`.
fn marked_name(log: &SummaryLog) -> String {
    let name = match &log.source {
        LogSource::Workbook { name, .. } => name.as_str(),
        LogSource::Undo(_) => "workbook.xlsx",
    };
    let stem = name.strip_suffix(".xlsx").unwrap_or(name);
    format!("{stem} (marked).xlsx")
}

/// A document to be submitted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DocumentToSubmit {
    /// The document.
    #[schema(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    document: String,
    /// Which version (`14`) or checkpoint (`14.2`); the head if none is named.
    #[schema(pattern = r"^[1-9][0-9]{0,8}(\.[1-9][0-9]{0,8})?$")]
    version: Option<String>,
    /// The accreditation it is for, if the template asks for one.
    #[schema(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    accreditation: Option<String>,
    /// The id of the log, if your application gives it: sent again, it finds what the first call made.
    #[schema(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    id: Option<String>,
}

/// Makes a summary log of a version of a document.
#[utoipa::path(post, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs/from-document", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path)), request_body = DocumentToSubmit,
    responses((status = 202, body = SummaryLogView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "SUB_001: a submission is in progress; SUB_005: no template", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn submit_document(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration)): PathOf<(String, String)>,
    JsonBody(wish): JsonBody<DocumentToSubmit>,
) -> Result<Response, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::Submit)?;
    let document = session.document(&app, &wish.document, Permission::View).await?;
    let label = wish.version.as_deref().map(|text| {
        Label::parse(text).ok_or_else(|| Problem::bad_request("A version is a number like 14 or 14.2."))
    });
    let content = version(&app, &document, label.transpose()?).await?;
    let accreditation = wish.accreditation.as_deref().map(AccreditationId::parse).transpose();
    let new = Upload {
        id: new_log_id(wish.id.as_deref())?,
        scope,
        accreditation: accreditation.map_err(|refused| Problem::id(&refused))?,
        name: document.name.to_string(),
        upload: None,
        who: session.author(),
    };
    let bringing = Bringing { blob: content.blob, document: Some((document.id, content.label)) };
    Ok(accepted(StatusCode::ACCEPTED, upload_content(&app, new, bringing).await?))
}

/// The summary logs that were made of a document, the newest first: those of organisations the caller acts for.
#[utoipa::path(get, path = "/api/v1/documents/{document}/summary-logs", tag = "submissions", security(("bearer" = [])),
    params(("document" = String, Path), LogsQuery),
    responses((status = 200, body = LogsView), (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_logs_of_document(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    QueryOf(query): QueryOf<LogsQuery>,
) -> Result<Json<LogsView>, Problem> {
    let document = session.document(&app, &document, Permission::View).await?;
    let organisations = match &session.0.organisations {
        _ if may_operate(&session.0) => None,
        Organisations::All => None,
        Organisations::Only(organisations) => {
            let is_seen = |each: &&model::OrganisationId| may_for(&session.0, Permission::View, each);
            Some(organisations.iter().filter(is_seen).cloned().collect())
        }
    };
    let page = LogsPage { organisations, document: Some(document.id), ..LogsPage::default() };
    Ok(Json(LogsView::read(&app, query, page).await?))
}

/// Where the document shall be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaceForDocument {
    /// The company.
    #[schema(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    company: String,
    /// Its project.
    #[schema(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    project: String,
    /// What it is called; otherwise as the workbook, with `(marked)`.
    #[schema(min_length = 1, max_length = 1024)]
    name: Option<String>,
    /// Its id, if your application gives it.
    #[schema(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    id: Option<String>,
}

/// Makes a document of the workbook of a log, with its problems marked, so that people can correct it together.
#[utoipa::path(post, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs/{log}/open-as-document", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ("log" = String, Path)),
    request_body = PlaceForDocument,
    responses((status = 201, body = DocumentView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "API_006: the id is taken; API_010: the quota is used up", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "DOC_002: it is no workbook that can be marked", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn open_log_as_document(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, log)): PathOf<(String, String, String)>,
    JsonBody(place): JsonBody<PlaceForDocument>,
) -> Result<(StatusCode, Json<DocumentView>), Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::Download)?;
    let company = company_id(&place.company)?;
    session.allow(Permission::Edit, &company)?;
    let log = log_of(&app, &scope, &log).await?;
    let id = place.id.unwrap_or_else(|| uuid::Uuid::now_v7().simple().to_string());
    let name = place.name.unwrap_or_else(|| marked_name(&log));
    let new = opening::Upload {
        id: DocumentId::parse(&id).map_err(|refused| Problem::id(&refused))?,
        company,
        project: ProjectId::parse(&place.project).map_err(|refused| Problem::id(&refused))?,
        name: FileName::parse(&name).map_err(Problem::name)?,
        author: session.author(),
    };
    let workbook = marked(&app, &log).await?;
    let document = opening::upload(&app, new, stream_of(workbook)).await?;
    Ok((StatusCode::CREATED, Json(document.into())))
}
