//! Companies and projects.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use jiff::Timestamp;
use ledger::documents::{Company, Project};
use model::access::Permission;
use model::{CompanyId, ProjectId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{JsonBody, PathOf};
use crate::app::App;

/// Longest name of a company or project.
const NAME_CHARACTERS_MAX: usize = 200;

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
    #[schema(example = "acme")]
    id: String,
    /// What people call it.
    name: String,
}

impl NewNamed {
    fn name(&self) -> Result<String, Problem> {
        let name = self.name.trim();
        let is_plain = !name.is_empty()
            && name.chars().count() <= NAME_CHARACTERS_MAX
            && !name.chars().any(char::is_control);
        if is_plain {
            Ok(name.to_owned())
        } else {
            Err(Problem::bad_request(format!(
                "A name needs 1 to {NAME_CHARACTERS_MAX} characters and no control characters."
            )))
        }
    }
}

fn company_view(company: Company) -> CompanyView {
    CompanyView { id: company.id.to_string(), name: company.name, created_at: company.created_at }
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
    let company = Company { id: company_id(&new.id)?, name: new.name()?, created_at: app.now() };
    app.ledger.create_company(&company).await?;
    Ok((StatusCode::CREATED, Json(company_view(company))))
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
    let project = Project { company, id, name: new.name()?, created_at: app.now() };
    app.ledger.create_project(&project).await?;
    Ok((StatusCode::CREATED, Json(project_view(project))))
}
