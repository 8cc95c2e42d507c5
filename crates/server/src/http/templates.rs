//! Templates over HTTP: list, read, add, retire.
//!
//! Guarantees: whoever acts for some organisation reads them, and those who look after the installation add and retire them. A
//! version that was added never changes; the same text again is nothing new.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use ledger::templates::{Added, NewTemplate, Template, TemplateEntry, TemplateRetirement};
use model::{TemplateId, TemplateVersion};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::answer_submissions::{template_not_valid, template_version_taken};
use super::caller::Session;
use super::extract::PathOf;
use crate::app::App;
use crate::registering::{self, TEMPLATE_BYTES_MAX};

const TOML: &str = "application/toml";

/// A version of a template.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TemplateView {
    /// The template.
    #[schema(example = "waste-records")]
    id: String,
    /// Its version; 2.10 is newer than 2.9.
    #[schema(example = "2.1")]
    version: String,
    /// What people call it.
    title: String,
    /// The id of who added it.
    added_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    added_at: Timestamp,
    /// When it was retired: no upload is read by it since then.
    #[schema(value_type = Option<String>, format = DateTime)]
    retired_at: Option<Timestamp>,
}

impl From<TemplateEntry> for TemplateView {
    fn from(entry: TemplateEntry) -> Self {
        Self {
            id: entry.id.to_string(),
            version: entry.version.to_string(),
            title: entry.title,
            added_by: entry.added_by,
            added_at: entry.added_at,
            retired_at: entry.retired_at,
        }
    }
}

fn place(id: &str, version: &str) -> Result<(TemplateId, TemplateVersion), Problem> {
    let id = TemplateId::parse(id).map_err(|refused| Problem::id(&refused))?;
    let version = TemplateVersion::parse(version);
    Ok((id, version.map_err(|refused| Problem::bad_request(format!("{refused}.")))?))
}

async fn find(app: &App, id: &TemplateId, version: &TemplateVersion) -> Result<Template, Problem> {
    app.ledger.template(id, version).await?.ok_or_else(Problem::not_found)
}

/// Every version of every template, by id and then the newest first; retired ones too.
#[utoipa::path(get, path = "/api/v1/templates", tag = "templates", security(("bearer" = [])),
    responses((status = 200, body = [TemplateView]), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_templates(
    State(app): State<Arc<App>>,
    session: Session,
) -> Result<Json<Vec<TemplateView>>, Problem> {
    session.allow_templates()?;
    Ok(Json(app.ledger.templates(None).await?.into_iter().map(TemplateView::from).collect()))
}

/// Adds a version of a template; its id, version and title are in its text. The same text again changes nothing.
#[utoipa::path(post, path = "/api/v1/templates", tag = "templates", security(("bearer" = [])),
    request_body(content = String, content_type = "text/plain", description = "The template, at most 4 MiB. Its type is not looked at"),
    responses((status = 200, description = "It was there, with this very text", body = TemplateView),
        (status = 201, body = TemplateView),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "SUB_021: the version is there with another text; SUB_023: there are too many", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "SUB_020: the template has mistakes, all of them are told", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn add_template(
    State(app): State<Arc<App>>,
    session: Session,
    body: Body,
) -> Result<(StatusCode, Json<TemplateView>), Problem> {
    session.allow_operating()?;
    let new = read(&app, &session, body).await?;
    let status = match app.ledger.add_template(&new).await? {
        Added::New => StatusCode::CREATED,
        Added::Same => StatusCode::OK,
        Added::OtherText => {
            let what = format!("Version {} of the template `{}`", new.version, new.id);
            return Err(template_version_taken(&what));
        }
    };
    Ok((status, Json(find(&app, &new.id, &new.version).await?.entry.into())))
}

/// Reads a body as a template. Thousands of rules take a while, so it is done beside the requests.
async fn read(app: &App, session: &Session, body: Body) -> Result<NewTemplate, Problem> {
    let limit = usize::try_from(TEMPLATE_BYTES_MAX).unwrap_or(usize::MAX);
    let bytes = to_bytes(body, limit).await.map_err(|_| Problem::too_large(TEMPLATE_BYTES_MAX))?;
    let text =
        String::from_utf8(bytes.into()).map_err(|_| Problem::bad_request("The template is not UTF-8."))?;
    let who = (session.author(), app.now());
    let reading = tokio::task::spawn_blocking(move || registering::read_template(text, who));
    let read =
        reading.await.map_err(|_| Problem::unavailable("The check of the template was interrupted."))?;
    read.map_err(|mistakes| template_not_valid(&mistakes))
}

/// The text of a version, as it was added.
#[utoipa::path(get, path = "/api/v1/templates/{template}/versions/{template_version}", tag = "templates", security(("bearer" = [])),
    params(("template" = String, Path), ("template_version" = String, Path)),
    responses((status = 200, body = String, content_type = "application/toml"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn read_template(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((template, version)): PathOf<(String, String)>,
) -> Result<Response, Problem> {
    session.allow_templates()?;
    let (id, version) = place(&template, &version)?;
    let found = find(&app, &id, &version).await?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(TOML))], found.text).into_response())
}

/// Retires a version: no upload is read by it from now on. It stays readable.
#[utoipa::path(post, path = "/api/v1/templates/{template}/versions/{template_version}/retire", tag = "templates", security(("bearer" = [])),
    params(("template" = String, Path), ("template_version" = String, Path)),
    responses((status = 204, description = "It is retired"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn retire_template(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((template, version)): PathOf<(String, String)>,
) -> Result<StatusCode, Problem> {
    session.allow_operating()?;
    let (id, version) = place(&template, &version)?;
    let retirement = TemplateRetirement { id, version, by: session.author(), at: app.now() };
    app.ledger.retire_template(&retirement).await?;
    Ok(StatusCode::NO_CONTENT)
}
