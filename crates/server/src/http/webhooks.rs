//! Webhooks, for operators: how the targets stand, what was given up, and another try.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use ledger::outbox::{Delivery, WebhookStanding};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{PathOf, QueryOf};
use crate::app::App;

const PAGE: u32 = 100;

/// The targets, and what was given up.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WebhooksView {
    /// The configured targets.
    targets: Vec<TargetView>,
    /// Deliveries that were given up, the newest first; at most 100.
    dead: Vec<DeadView>,
}

/// A target.
#[derive(Debug, Serialize, ToSchema)]
struct TargetView {
    /// Its name in the configuration.
    name: String,
    /// What it is told of.
    events: Vec<String>,
    /// Deliveries that wait.
    waiting: u64,
    /// When the oldest of them happened.
    #[schema(value_type = Option<String>)]
    oldest_at: Option<Timestamp>,
    /// Deliveries that were given up.
    dead: u64,
    /// Deliveries of the last day that arrived.
    delivered: u64,
}

/// A delivery that was given up.
#[derive(Debug, Serialize, ToSchema)]
struct DeadView {
    /// Its number here.
    number: u64,
    /// Its id, as the target would see it.
    id: String,
    /// The target.
    target: String,
    /// The document.
    document: String,
    /// What happened.
    event: String,
    /// When it happened.
    #[schema(value_type = String)]
    created_at: Timestamp,
    /// How often it was tried.
    attempts: u32,
    /// What was the matter last time.
    last_error: Option<String>,
}

/// Where to go on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Before {
    /// Deliveries before this number.
    before: Option<u64>,
}

/// How the webhooks stand.
#[utoipa::path(get, path = "/api/v1/operations/webhooks", tag = "operations", security(("bearer" = [])), params(Before),
    responses((status = 200, body = WebhooksView), (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_webhooks(
    State(app): State<Arc<App>>,
    session: Session,
    QueryOf(page): QueryOf<Before>,
) -> Result<Json<WebhooksView>, Problem> {
    session.allow_operating()?;
    let targets = app.ledger.webhooks().await?.into_iter().map(TargetView::from).collect();
    let dead = app.ledger.dead_deliveries(page.before, PAGE).await?.into_iter().map(DeadView::from).collect();
    Ok(Json(WebhooksView { targets, dead }))
}

/// Tries a delivery again that was given up. It comes after what was delivered meanwhile.
#[utoipa::path(post, path = "/api/v1/operations/webhooks/{number}/retry", tag = "operations", security(("bearer" = [])),
    params(("number" = u64, Path, description = "Of a delivery that was given up")),
    responses((status = 204, description = "It is tried again"), (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn retry_webhook(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(number): PathOf<u64>,
) -> Result<http::StatusCode, Problem> {
    session.allow_operating()?;
    if app.ledger.retry_delivery(number, &session.author(), app.now()).await? {
        Ok(http::StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found())
    }
}

impl From<WebhookStanding> for TargetView {
    fn from(standing: WebhookStanding) -> Self {
        let WebhookStanding { target: name, events, waiting, oldest_at, dead, delivered } = standing;
        Self { name, events, waiting, oldest_at, dead, delivered }
    }
}

impl From<Delivery> for DeadView {
    fn from(delivery: Delivery) -> Self {
        Self {
            number: delivery.number,
            id: delivery.id,
            target: delivery.target,
            document: delivery.document,
            event: delivery.event,
            created_at: delivery.created_at,
            attempts: delivery.attempts,
            last_error: delivery.last_error,
        }
    }
}
