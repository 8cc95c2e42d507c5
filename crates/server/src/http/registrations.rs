//! Registrations of organisations over HTTP, and the accreditations under them.
//!
//! Guarantees: as for organisations: seen by whoever acts for the organisation, changed by those who look after the installation.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use ledger::scopes::{Accreditation, AccreditationWish, Registration, RegistrationWish};
use model::access::Permission;
use model::{AccreditationId, RegistrationId, TemplateId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::{Session, scope};
use super::extract::{JsonBody, PathOf, QueryOf};
use super::organisations::{ByIdQuery, dated, labelled, named, put};
use crate::app::App;

/// A registration.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RegistrationView {
    /// The organisation it belongs to.
    organisation: String,
    /// Its id, unique in the organisation.
    id: String,
    /// Its number, unique in the organisation.
    #[schema(example = "R25SR500010912GL")]
    number: String,
    /// What people call it.
    title: String,
    /// The material it is for.
    material: Option<String>,
    /// The template its workbooks are read by; `null` as long as nothing can be handed in.
    template: Option<String>,
    /// The first day it is active.
    #[schema(value_type = Option<String>, format = Date)]
    from: Option<String>,
    /// The last day it is active.
    #[schema(value_type = Option<String>, format = Date)]
    until: Option<String>,
    /// When it was added.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<Registration> for RegistrationView {
    fn from(registration: Registration) -> Self {
        Self {
            organisation: registration.scope.organisation.to_string(),
            id: registration.scope.registration.to_string(),
            number: registration.number,
            title: registration.title,
            material: registration.material,
            template: registration.template.map(|template| template.to_string()),
            from: registration.active.from().map(|day| day.to_string()),
            until: registration.active.until().map(|day| day.to_string()),
            created_at: registration.created_at,
        }
    }
}

/// All that is said of a registration.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SaidOfRegistration {
    /// Its number, unique in the organisation: 1 to 100 characters, no control characters. Left out: its id.
    #[schema(
        min_length = 1,
        max_length = 100,
        pattern = r"^[^\x00-\x1F\x7F-\x9F]*[^\s\x00-\x1F\x7F-\x9F][^\x00-\x1F\x7F-\x9F]*$"
    )]
    number: Option<String>,
    /// What people call it: 1 to 200 characters, no control characters. Left out: its id.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1F\x7F-\x9F]*[^\s\x00-\x1F\x7F-\x9F][^\x00-\x1F\x7F-\x9F]*$"
    )]
    title: Option<String>,
    /// The material it is for: 1 to 100 characters, no control characters.
    #[schema(
        min_length = 1,
        max_length = 100,
        pattern = r"^[^\x00-\x1F\x7F-\x9F]*[^\s\x00-\x1F\x7F-\x9F][^\x00-\x1F\x7F-\x9F]*$"
    )]
    material: Option<String>,
    /// The template its workbooks are read by.
    #[schema(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    template: Option<String>,
    /// The first day it is active.
    #[schema(value_type = Option<String>, format = Date)]
    from: Option<String>,
    /// The last day it is active.
    #[schema(value_type = Option<String>, format = Date)]
    until: Option<String>,
}

/// An accreditation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AccreditationView {
    /// Its id, unique under the registration.
    id: String,
    /// Its number, unique under the registration.
    number: String,
    /// The first day it counts.
    #[schema(value_type = Option<String>, format = Date)]
    from: Option<String>,
    /// The last day it counts.
    #[schema(value_type = Option<String>, format = Date)]
    until: Option<String>,
    /// When it was added.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<Accreditation> for AccreditationView {
    fn from(accreditation: Accreditation) -> Self {
        Self {
            id: accreditation.id.to_string(),
            number: accreditation.number,
            from: accreditation.valid.from().map(|day| day.to_string()),
            until: accreditation.valid.until().map(|day| day.to_string()),
            created_at: accreditation.created_at,
        }
    }
}

/// All that is said of an accreditation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SaidOfAccreditation {
    /// Its number, unique under the registration: 1 to 100 characters, no control characters. Left out: its id.
    #[schema(
        min_length = 1,
        max_length = 100,
        pattern = r"^[^\x00-\x1F\x7F-\x9F]*[^\s\x00-\x1F\x7F-\x9F][^\x00-\x1F\x7F-\x9F]*$"
    )]
    number: Option<String>,
    /// The first day it counts.
    #[schema(value_type = Option<String>, format = Date)]
    from: Option<String>,
    /// The last day it counts.
    #[schema(value_type = Option<String>, format = Date)]
    until: Option<String>,
}

/// The registrations of an organisation, by id, page by page.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations", tag = "organisations", security(("bearer" = [])),
    params(("organisation" = String, Path), ByIdQuery),
    responses((status = 200, body = [RegistrationView]), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_registrations(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(organisation): PathOf<String>,
    QueryOf(query): QueryOf<ByIdQuery>,
) -> Result<Json<Vec<RegistrationView>>, Problem> {
    let organisation = session.organisation(&app, &organisation, Permission::View).await?;
    let after = query.after.as_deref().map(RegistrationId::parse).transpose();
    let after = after.map_err(|refused| Problem::id(&refused))?;
    let found = app.ledger.registrations(&organisation.id, after.as_ref(), query.limit()).await?;
    Ok(Json(found.into_iter().map(RegistrationView::from).collect()))
}

/// One registration.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}", tag = "organisations",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path)),
    responses((status = 200, body = RegistrationView), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn find_registration(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration)): PathOf<(String, String)>,
) -> Result<Json<RegistrationView>, Problem> {
    let place = (organisation.as_str(), registration.as_str());
    Ok(Json(session.registration(&app, place, Permission::View).await?.into()))
}

/// Says all there is of a registration; adds it if it is not there. For those who look after the installation.
#[utoipa::path(put, path = "/api/v1/organisations/{organisation}/registrations/{registration}", tag = "organisations",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path)), request_body = SaidOfRegistration,
    responses((status = 200, body = RegistrationView), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "API_006: another registration of the organisation has the number", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "SUB_022: the template does not exist or is retired", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn put_registration(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration)): PathOf<(String, String)>,
    JsonBody(said): JsonBody<SaidOfRegistration>,
) -> Result<Json<RegistrationView>, Problem> {
    let scope = scope(&organisation, &registration)?;
    session.allow_registering(&scope.organisation)?;
    let template = said.template.as_deref().map(TemplateId::parse).transpose();
    let wish = RegistrationWish {
        scope,
        number: labelled("number", said.number.as_deref())?,
        title: named(said.title.as_deref())?,
        material: labelled("material", said.material.as_deref())?,
        template: template.map_err(|refused| Problem::id(&refused))?,
        from: dated("from", said.from.as_deref())?,
        until: dated("until", said.until.as_deref())?,
    };
    Ok(Json(app.ledger.write_registration(&wish, &put(&app, &session)).await?.into()))
}

/// The accreditations under a registration, by their first day.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/accreditations", tag = "organisations",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path)),
    responses((status = 200, body = [AccreditationView]), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_accreditations(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration)): PathOf<(String, String)>,
) -> Result<Json<Vec<AccreditationView>>, Problem> {
    let place = (organisation.as_str(), registration.as_str());
    let registration = session.registration(&app, place, Permission::View).await?;
    let found = app.ledger.accreditations(&registration.scope).await?;
    Ok(Json(found.into_iter().map(AccreditationView::from).collect()))
}

/// Says all there is of an accreditation; adds it if it is not there. For those who look after the installation.
#[utoipa::path(put, path = "/api/v1/organisations/{organisation}/registrations/{registration}/accreditations/{accreditation}",
    tag = "organisations", security(("bearer" = [])),
    params(("organisation" = String, Path), ("registration" = String, Path), ("accreditation" = String, Path)),
    request_body = SaidOfAccreditation,
    responses((status = 200, body = AccreditationView), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "API_006: another accreditation has the number; SUB_023: there are too many", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn put_accreditation(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, accreditation)): PathOf<(String, String, String)>,
    JsonBody(said): JsonBody<SaidOfAccreditation>,
) -> Result<Json<AccreditationView>, Problem> {
    let scope = scope(&organisation, &registration)?;
    session.allow_registering(&scope.organisation)?;
    let wish = AccreditationWish {
        scope,
        id: AccreditationId::parse(&accreditation).map_err(|refused| Problem::id(&refused))?,
        number: labelled("number", said.number.as_deref())?,
        from: dated("from", said.from.as_deref())?,
        until: dated("until", said.until.as_deref())?,
    };
    Ok(Json(app.ledger.write_accreditation(&wish, &put(&app, &session)).await?.into()))
}
