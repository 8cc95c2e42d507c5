//! Deadlines of registrations over HTTP: by when something is to be handed in.
//!
//! Guarantees: as for organisations: seen by whoever acts for the organisation, changed by those who look after the installation.
//! Does not do: say who is late (`model::scopes`).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ledger::scopes::DeadlineWish;
use model::access::Permission;
use model::scopes::{Deadline, day, label};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::{Session, scope};
use super::extract::{JsonBody, PathOf};
use super::organisations::{dated, put};
use crate::app::App;

/// A deadline.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeadlineView {
    /// What it is for.
    #[schema(example = "2026 Q1")]
    period: String,
    /// The first day on which a submission counts for it; `null` means the day after the deadline before it.
    #[schema(value_type = Option<String>, format = Date)]
    opens: Option<String>,
    /// The last day, in UTC.
    #[schema(value_type = String, format = Date)]
    due: String,
}

impl From<Deadline> for DeadlineView {
    fn from(deadline: Deadline) -> Self {
        Self {
            period: deadline.period,
            opens: deadline.opens.map(|day| day.to_string()),
            due: deadline.due.to_string(),
        }
    }
}

/// When something is due.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SaidOfDeadline {
    /// The first day on which a submission counts for it. Left out: the day after the deadline before it.
    #[schema(value_type = Option<String>, format = Date)]
    opens: Option<String>,
    /// The last day, in UTC.
    #[schema(value_type = String, format = Date)]
    due: String,
}

fn period(text: &str) -> Result<String, Problem> {
    label(text).map_err(|refused| Problem::bad_request(format!("The period: {refused}.")))
}

/// The deadlines of a registration, the earliest first.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/deadlines", tag = "organisations",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path)),
    responses((status = 200, body = [DeadlineView]), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_deadlines(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration)): PathOf<(String, String)>,
) -> Result<Json<Vec<DeadlineView>>, Problem> {
    let place = (organisation.as_str(), registration.as_str());
    let registration = session.registration(&app, place, Permission::View).await?;
    let found = app.ledger.deadlines(&registration.scope).await?;
    Ok(Json(found.into_iter().map(DeadlineView::from).collect()))
}

/// Sets or moves the deadline of a period. For those who look after the installation.
#[utoipa::path(put, path = "/api/v1/organisations/{organisation}/registrations/{registration}/deadlines/{period}",
    tag = "organisations", security(("bearer" = [])),
    params(("organisation" = String, Path), ("registration" = String, Path), ("period" = String, Path)),
    request_body = SaidOfDeadline,
    responses((status = 200, body = DeadlineView), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "SUB_023: there are too many", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn put_deadline(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, named)): PathOf<(String, String, String)>,
    JsonBody(said): JsonBody<SaidOfDeadline>,
) -> Result<Json<DeadlineView>, Problem> {
    let scope = scope(&organisation, &registration)?;
    session.allow_registering(&scope.organisation)?;
    let (period, opens) = (period(&named)?, dated("opens", said.opens.as_deref())?);
    let due = day(&said.due).map_err(|refused| Problem::bad_request(format!("`due`: {refused}.")))?;
    let wish = DeadlineWish { scope, period, opens, due };
    Ok(Json(app.ledger.write_deadline(&wish, &put(&app, &session)).await?.into()))
}

/// Takes the deadline of a period away. For those who look after the installation.
#[utoipa::path(delete, path = "/api/v1/organisations/{organisation}/registrations/{registration}/deadlines/{period}",
    tag = "organisations", security(("bearer" = [])),
    params(("organisation" = String, Path), ("registration" = String, Path), ("period" = String, Path)),
    responses((status = 204, description = "There is none any more"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn remove_deadline(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, named)): PathOf<(String, String, String)>,
) -> Result<StatusCode, Problem> {
    let scope = scope(&organisation, &registration)?;
    session.allow_registering(&scope.organisation)?;
    let is_gone = app.ledger.remove_deadline(&scope, &period(&named)?, &put(&app, &session)).await?;
    if is_gone { Ok(StatusCode::NO_CONTENT) } else { Err(Problem::not_found()) }
}
