//! Organisations over HTTP: who hands in.
//!
//! Guarantees: whoever acts for an organisation sees it, regulators and those who look after the installation see all, and only
//! the latter change what is said of it. A foreign one looks exactly like a missing one.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use jiff::civil::Date;
use ledger::scopes::{How, Organisation, OrganisationWish, Writing};
use model::OrganisationId;
use model::access::{Organisations, Permission, may_for, may_operate};
use model::names::title;
use model::scopes::{day, label};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{JsonBody, PathOf, QueryOf};
use crate::app::App;

const PAGE_DEFAULT: u32 = 100;
const PAGE_MAX: u32 = 1000;

/// An organisation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OrganisationView {
    /// Its id, the one in the `organisations` claim of tokens.
    #[schema(example = "o-50001")]
    id: String,
    /// What people call it.
    name: String,
    /// Its number, as others know it.
    number: Option<String>,
    /// When it was added.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<Organisation> for OrganisationView {
    fn from(organisation: Organisation) -> Self {
        Self {
            id: organisation.id.to_string(),
            name: organisation.name,
            number: organisation.number,
            created_at: organisation.created_at,
        }
    }
}

/// All that is said of an organisation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SaidOfOrganisation {
    /// What people call it: 1 to 200 characters, no control characters. Left out: its id.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1F\x7F-\x9F]*[^\s\x00-\x1F\x7F-\x9F][^\x00-\x1F\x7F-\x9F]*$"
    )]
    name: Option<String>,
    /// Its number, as others know it: 1 to 100 characters, no control characters.
    #[schema(
        min_length = 1,
        max_length = 100,
        pattern = r"^[^\x00-\x1F\x7F-\x9F]*[^\s\x00-\x1F\x7F-\x9F][^\x00-\x1F\x7F-\x9F]*$"
    )]
    number: Option<String>,
}

/// A change by this caller, now: what is said replaces all that was.
pub(super) fn put(app: &App, session: &Session) -> Writing {
    Writing { how: How::Put, by: session.author(), at: app.now() }
}

/// Reads a name, if there is one.
pub(super) fn named(name: Option<&str>) -> Result<Option<String>, Problem> {
    name.map(title).transpose().map_err(|refused| Problem::bad_request(refused.to_string()))
}

/// Reads a number or label, if there is one.
pub(super) fn labelled(field: &str, text: Option<&str>) -> Result<Option<String>, Problem> {
    text.map(label).transpose().map_err(|refused| Problem::bad_request(format!("`{field}`: {refused}.")))
}

/// Reads a day, if there is one.
pub(super) fn dated(field: &str, text: Option<&str>) -> Result<Option<Date>, Problem> {
    text.map(day).transpose().map_err(|refused| Problem::bad_request(format!("`{field}`: {refused}.")))
}

fn organisation_id(text: &str) -> Result<OrganisationId, Problem> {
    OrganisationId::parse(text).map_err(|refused| Problem::id(&refused))
}

/// A page of a list by id.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ByIdQuery {
    /// After this id: the last one of the page before.
    #[param(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    pub(super) after: Option<String>,
    /// At most so many: 1 to 1000, else 100.
    limit: Option<u32>,
}

impl ByIdQuery {
    pub(super) fn limit(&self) -> u32 {
        self.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX)
    }
}

/// The organisations this caller may see, by id, page by page.
#[utoipa::path(get, path = "/api/v1/organisations", tag = "organisations", security(("bearer" = [])), params(ByIdQuery),
    responses((status = 200, body = [OrganisationView])))]
pub(super) async fn list_organisations(
    State(app): State<Arc<App>>,
    session: Session,
    QueryOf(query): QueryOf<ByIdQuery>,
) -> Result<Json<Vec<OrganisationView>>, Problem> {
    let after = query.after.as_deref().map(organisation_id).transpose()?;
    let found = match &session.0.organisations {
        Organisations::Only(ids) if !may_operate(&session.0) => {
            own(&app, &session, ids, (after.as_ref(), query.limit())).await?
        }
        _ => app.ledger.organisations(after.as_ref(), query.limit()).await?,
    };
    Ok(Json(found.into_iter().map(OrganisationView::from).collect()))
}

/// Those of a token, which may name some that nobody wrote down.
async fn own(
    app: &App,
    session: &Session,
    ids: &[OrganisationId],
    (after, limit): (Option<&OrganisationId>, u32),
) -> Result<Vec<Organisation>, Problem> {
    let is_asked = |id: &&OrganisationId| {
        after.is_none_or(|after| after < *id) && may_for(&session.0, Permission::View, id)
    };
    let mut asked: Vec<&OrganisationId> = ids.iter().filter(is_asked).collect();
    asked.sort();
    asked.dedup();
    let mut found = Vec::new();
    for id in asked {
        if found.len() >= limit as usize {
            break;
        }
        found.extend(app.ledger.organisation(id).await?);
    }
    Ok(found)
}

/// One organisation.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}", tag = "organisations", security(("bearer" = [])),
    params(("organisation" = String, Path)),
    responses((status = 200, body = OrganisationView), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn find_organisation(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(organisation): PathOf<String>,
) -> Result<Json<OrganisationView>, Problem> {
    Ok(Json(session.organisation(&app, &organisation, Permission::View).await?.into()))
}

/// Says all there is of an organisation; adds it if it is not there. For those who look after the installation.
#[utoipa::path(put, path = "/api/v1/organisations/{organisation}", tag = "organisations", security(("bearer" = [])),
    params(("organisation" = String, Path)), request_body = SaidOfOrganisation,
    responses((status = 200, body = OrganisationView), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn put_organisation(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(organisation): PathOf<String>,
    JsonBody(said): JsonBody<SaidOfOrganisation>,
) -> Result<Json<OrganisationView>, Problem> {
    let id = organisation_id(&organisation)?;
    session.allow_registering(&id)?;
    let (name, number) = (named(said.name.as_deref())?, labelled("number", said.number.as_deref())?);
    let wish = OrganisationWish { id, name, number };
    Ok(Json(app.ledger.write_organisation(&wish, &put(&app, &session)).await?.into()))
}
