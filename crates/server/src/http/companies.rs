//! Companies and projects: add, list, rename, limit.
//!
//! Guarantees: a company's admins rename it and look after its projects; new companies and limits are the affair of those who
//! look after the installation, for a limit that its owner can lift is none. Does not do: count (the ledger does).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use jiff::Timestamp;
use ledger::documents::{Company, CompanyChange, Project, ProjectRenaming};
use model::access::Permission;
use model::names::title;
use model::quotas::Quota;
use model::{CompanyId, ProjectId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{JsonBody, PathOf};
use crate::app::App;

/// The largest whole number that every JSON reader reads rightly.
const LIMIT_MAX: u64 = (1 << 53) - 1;

/// A company.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CompanyView {
    /// Its id.
    #[schema(example = "acme")]
    id: String,
    /// What people call it.
    name: String,
    /// When it was added.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// How much it may keep.
    quota: QuotaView,
    /// How much it has.
    usage: UsageView,
}

/// How much a company may keep. `null` or left out means no limit.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QuotaView {
    /// At most so many documents.
    #[serde(default)]
    #[schema(maximum = 9007199254740991_u64)]
    documents: Option<u64>,
    /// At most so many bytes in the current files of all documents together.
    #[serde(default)]
    #[schema(maximum = 9007199254740991_u64)]
    bytes: Option<u64>,
}

impl QuotaView {
    fn quota(&self) -> Result<Quota, Problem> {
        let is_small = |limit: &Option<u64>| limit.is_none_or(|limit| limit <= LIMIT_MAX);
        if is_small(&self.documents) && is_small(&self.bytes) {
            Ok(Quota { documents: self.documents, bytes: self.bytes })
        } else {
            Err(Problem::bad_request(format!("A limit is at most {LIMIT_MAX}.")))
        }
    }
}

/// How much a company has.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsageView {
    /// Documents.
    documents: u64,
    /// Bytes of their current files.
    bytes: u64,
}

/// A project.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProjectView {
    /// The company it belongs to.
    company: String,
    /// Its id, unique in the company.
    id: String,
    /// What people call it.
    name: String,
    /// When it was added.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// Something with an id and a name, to be added.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewNamed {
    /// Its id: 1 to 64 of `0-9a-zA-Z._=-`, beginning with a letter or digit.
    #[schema(example = "acme", pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    id: String,
    /// What people call it: 1 to 200 characters, no control characters.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1F\x7F-\x9F]*[^\s\x00-\x1F\x7F-\x9F][^\x00-\x1F\x7F-\x9F]*$"
    )]
    name: String,
}

/// A new name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewName {
    /// What people call it from now on: 1 to 200 characters, no control characters.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1F\x7F-\x9F]*[^\s\x00-\x1F\x7F-\x9F][^\x00-\x1F\x7F-\x9F]*$"
    )]
    name: String,
}

fn plain_name(name: &str) -> Result<String, Problem> {
    title(name).map_err(|refused| Problem::bad_request(refused.to_string()))
}

fn company_view(company: Company) -> CompanyView {
    let Quota { documents, bytes } = company.quota;
    CompanyView {
        id: company.id.to_string(),
        name: company.name,
        created_at: company.created_at,
        quota: QuotaView { documents, bytes },
        usage: UsageView { documents: company.usage.documents, bytes: company.usage.bytes },
    }
}

fn project_view(project: Project) -> ProjectView {
    ProjectView {
        company: project.company.to_string(),
        id: project.id.to_string(),
        name: project.name,
        created_at: project.created_at,
    }
}

pub(super) fn company_id(text: &str) -> Result<CompanyId, Problem> {
    CompanyId::parse(text).map_err(|refused| Problem::id(&refused))
}

/// The companies this caller may see.
#[utoipa::path(get, path = "/api/v1/companies", tag = "companies", security(("bearer" = [])),
    responses((status = 200, body = [CompanyView]), (status = 401, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_companies(
    State(app): State<Arc<App>>,
    session: Session,
) -> Result<Json<Vec<CompanyView>>, Problem> {
    let mut companies = app.ledger.companies().await?;
    companies.retain(|company| session.allow(Permission::View, &company.id).is_ok());
    Ok(Json(companies.into_iter().map(company_view).collect()))
}

/// Adds a company.
#[utoipa::path(post, path = "/api/v1/companies", tag = "companies", security(("bearer" = [])), request_body = NewNamed,
    responses((status = 201, body = CompanyView), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "API_006", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn create_company(
    State(app): State<Arc<App>>,
    session: Session,
    JsonBody(new): JsonBody<NewNamed>,
) -> Result<(StatusCode, Json<CompanyView>), Problem> {
    session.allow_operating()?;
    let company = Company::new(company_id(&new.id)?, plain_name(&new.name)?, app.now());
    app.ledger.create_company(&company, &session.author()).await?;
    Ok((StatusCode::CREATED, Json(company_view(company))))
}

/// One company.
#[utoipa::path(get, path = "/api/v1/companies/{company}", tag = "companies", security(("bearer" = [])),
    params(("company" = String, Path)),
    responses((status = 200, body = CompanyView), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn find_company(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(company): PathOf<String>,
) -> Result<Json<CompanyView>, Problem> {
    let company = company_id(&company)?;
    session.allow(Permission::View, &company)?;
    Ok(Json(company_view(app.ledger.company(&company).await?.ok_or_else(Problem::not_found)?)))
}

/// Renames a company.
#[utoipa::path(patch, path = "/api/v1/companies/{company}", tag = "companies", security(("bearer" = [])),
    params(("company" = String, Path)), request_body = NewName,
    responses((status = 200, body = CompanyView), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn rename_company(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(company): PathOf<String>,
    JsonBody(new): JsonBody<NewName>,
) -> Result<Json<CompanyView>, Problem> {
    let id = company_id(&company)?;
    session.allow(Permission::Administer, &id)?;
    let name = Some(plain_name(&new.name)?);
    let change = CompanyChange { id, name, quota: None, by: session.author(), at: app.now() };
    Ok(Json(company_view(app.ledger.change_company(&change).await?)))
}

/// Sets how much a company may keep. For those who look after the installation.
#[utoipa::path(put, path = "/api/v1/companies/{company}/quota", tag = "companies", security(("bearer" = [])),
    params(("company" = String, Path)), request_body = QuotaView,
    responses((status = 200, body = CompanyView), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn set_quota(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(company): PathOf<String>,
    JsonBody(quota): JsonBody<QuotaView>,
) -> Result<Json<CompanyView>, Problem> {
    let id = company_id(&company)?;
    session.allow(Permission::View, &id)?;
    session.allow_operating()?;
    let quota = Some(quota.quota()?);
    let change = CompanyChange { id, name: None, quota, by: session.author(), at: app.now() };
    Ok(Json(company_view(app.ledger.change_company(&change).await?)))
}

/// The projects of a company.
#[utoipa::path(get, path = "/api/v1/companies/{company}/projects", tag = "companies", security(("bearer" = [])),
    params(("company" = String, Path)),
    responses((status = 200, body = [ProjectView]), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_projects(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(company): PathOf<String>,
) -> Result<Json<Vec<ProjectView>>, Problem> {
    let company = company_id(&company)?;
    session.allow(Permission::View, &company)?;
    app.ledger.company(&company).await?.ok_or_else(Problem::not_found)?;
    Ok(Json(app.ledger.projects(&company).await?.into_iter().map(project_view).collect()))
}

/// Adds a project.
#[utoipa::path(post, path = "/api/v1/companies/{company}/projects", tag = "companies", security(("bearer" = [])),
    params(("company" = String, Path)), request_body = NewNamed,
    responses((status = 201, body = ProjectView), (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "API_006", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn create_project(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(company): PathOf<String>,
    JsonBody(new): JsonBody<NewNamed>,
) -> Result<(StatusCode, Json<ProjectView>), Problem> {
    let company = company_id(&company)?;
    session.allow(Permission::Administer, &company)?;
    let id = ProjectId::parse(&new.id).map_err(|refused| Problem::id(&refused))?;
    let project = Project { company, id, name: plain_name(&new.name)?, created_at: app.now() };
    app.ledger.create_project(&project, &session.author()).await?;
    Ok((StatusCode::CREATED, Json(project_view(project))))
}

/// Renames a project.
#[utoipa::path(patch, path = "/api/v1/companies/{company}/projects/{project}", tag = "companies", security(("bearer" = [])),
    params(("company" = String, Path), ("project" = String, Path)), request_body = NewName,
    responses((status = 200, body = ProjectView), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn rename_project(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((company, project)): PathOf<(String, String)>,
    JsonBody(new): JsonBody<NewName>,
) -> Result<Json<ProjectView>, Problem> {
    let company = company_id(&company)?;
    session.allow(Permission::Administer, &company)?;
    let id = ProjectId::parse(&project).map_err(|refused| Problem::id(&refused))?;
    let name = plain_name(&new.name)?;
    let renaming = ProjectRenaming { company, id, name, by: session.author(), at: app.now() };
    Ok(Json(project_view(app.ledger.rename_project(&renaming).await?)))
}
