//! Across organisations, for regulators: how every registration stands, and who has not submitted by their deadline.
//!
//! Guarantees: a caller sees the organisations they act for, and no others.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use model::access::{Organisations, may_look_across, may_operate};
use model::scopes::{Overdue, day, day_of};
use model::{OrganisationId, RegistrationId, Scope};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::QueryOf;
use crate::app::App;
use crate::recording::{Standing, Whose, overdue, standings};

/// Most entries of a page.
const PAGE_MAX: u32 = 500;
/// Entries of a page if nobody says.
const PAGE: u32 = 100;

/// Allows looking across organisations, or not.
pub(super) fn across(session: &Session) -> Result<(), Problem> {
    if may_look_across(&session.0) { Ok(()) } else { Err(Problem::forbidden()) }
}

/// The organisations a caller sees.
pub(super) fn whose(session: &Session) -> Whose {
    match &session.0.organisations {
        _ if may_operate(&session.0) => Whose::All,
        Organisations::All => Whose::All,
        Organisations::Only(organisations) => Whose::Only(organisations.iter().cloned().collect()),
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct StandingsQuery {
    /// After this one: the organisation in `next` of the page before.
    #[param(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    after_organisation: Option<String>,
    /// After this one: the registration in `next` of the page before.
    #[param(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    after_registration: Option<String>,
    /// How many at most; never more than 500.
    limit: Option<u32>,
}

/// How registrations stand, in order of organisation and registration.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StandingsView {
    /// Them.
    standings: Vec<StandingView>,
    /// For `after_organisation` and `after_registration` of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<ScopeView>,
}

/// A registration of an organisation.
#[derive(Debug, Serialize, ToSchema)]
struct ScopeView {
    /// The organisation.
    organisation: String,
    /// The registration.
    registration: String,
}

impl From<&Scope> for ScopeView {
    fn from(scope: &Scope) -> Self {
        Self { organisation: scope.organisation.to_string(), registration: scope.registration.to_string() }
    }
}

/// How a registration stands.
#[derive(Debug, Serialize, ToSchema)]
struct StandingView {
    /// Who hands in.
    organisation: String,
    /// For what.
    registration: String,
    /// The number of the registration.
    number: String,
    /// What people call it.
    title: String,
    /// The template its workbooks are read by.
    template: Option<String>,
    /// The number of its last submission; 0 if there is none.
    head: u64,
    /// When that was.
    #[schema(value_type = Option<String>, format = DateTime)]
    submitted_at: Option<Timestamp>,
    /// Summary logs that are on their way.
    active: Vec<String>,
}

impl From<Standing> for StandingView {
    fn from(standing: Standing) -> Self {
        let registration = standing.registration;
        Self {
            organisation: registration.scope.organisation.to_string(),
            registration: registration.scope.registration.to_string(),
            number: registration.number,
            title: registration.title,
            template: registration.template.map(|id| id.to_string()),
            head: standing.head,
            submitted_at: standing.submitted_at,
            active: standing.active.iter().map(ToString::to_string).collect(),
        }
    }
}

/// How every registration stands: its last submission, and what is on its way.
#[utoipa::path(get, path = "/api/v1/records/standings", tag = "records", security(("bearer" = [])), params(StandingsQuery),
    responses((status = 200, body = StandingsView), (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_standings(
    State(app): State<Arc<App>>,
    session: Session,
    QueryOf(query): QueryOf<StandingsQuery>,
) -> Result<Json<StandingsView>, Problem> {
    across(&session)?;
    let after = match (query.after_organisation.as_deref(), query.after_registration.as_deref()) {
        (Some(organisation), Some(registration)) => Some(Scope {
            organisation: OrganisationId::parse(organisation).map_err(|refused| Problem::id(&refused))?,
            registration: RegistrationId::parse(registration).map_err(|refused| Problem::id(&refused))?,
        }),
        (None, None) => None,
        _ => {
            return Err(Problem::bad_request("`after_organisation` and `after_registration` go together."));
        }
    };
    let limit = query.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let found = standings(&app, &whose(&session), (after.as_ref(), limit)).await?;
    let is_full = found.len() == limit as usize;
    let next = found.last().filter(|_| is_full).map(|last| ScopeView::from(&last.registration.scope));
    Ok(Json(StandingsView { standings: found.into_iter().map(StandingView::from).collect(), next }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct OverdueQuery {
    /// As it was at the end of this day; today if none is named.
    #[param(value_type = Option<String>, format = Date)]
    on: Option<String>,
}

/// Who has not submitted by their deadline.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OverduesView {
    /// The day they were looked at.
    #[schema(value_type = String, format = Date)]
    on: String,
    /// The longest overdue first.
    overdue: Vec<OverdueView>,
}

/// A deadline that was missed, with nothing handed in since.
#[derive(Debug, Serialize, ToSchema)]
struct OverdueView {
    /// Who.
    organisation: String,
    /// For what registration.
    registration: String,
    /// For what period.
    period: String,
    /// By when.
    #[schema(value_type = String, format = Date)]
    due: String,
    /// How many days ago.
    days: i32,
}

impl From<Overdue> for OverdueView {
    fn from(overdue: Overdue) -> Self {
        Self {
            organisation: overdue.scope.organisation.to_string(),
            registration: overdue.scope.registration.to_string(),
            period: overdue.period,
            due: overdue.due.to_string(),
            days: overdue.days,
        }
    }
}

/// Who has not submitted by their deadline, the longest overdue first.
#[utoipa::path(get, path = "/api/v1/records/overdue", tag = "records", security(("bearer" = [])), params(OverdueQuery),
    responses((status = 200, body = OverduesView), (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_overdue(
    State(app): State<Arc<App>>,
    session: Session,
    QueryOf(query): QueryOf<OverdueQuery>,
) -> Result<Json<OverduesView>, Problem> {
    across(&session)?;
    let on = query
        .on
        .as_deref()
        .map(|text| day(text).map_err(|refused| Problem::bad_request(format!("{refused}."))));
    let on = on.transpose()?.unwrap_or_else(|| day_of(app.now()));
    let found = overdue(&app, &whose(&session), on).await?;
    Ok(Json(OverduesView { on: on.to_string(), overdue: found.into_iter().map(OverdueView::from).collect() }))
}
