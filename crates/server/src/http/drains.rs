//! Drains: everything that is being typed is saved, for a restart without anything at risk.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::JsonBody;
use crate::app::App;
use crate::draining::{self, DrainView};
use crate::instances;

const SECONDS_DEFAULT: u64 = 60;
const SECONDS_MAX: u64 = 3600;

/// A wish to drain.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DrainRequest {
    /// When to give up, in seconds (1 to 3600; 60 if not given).
    #[schema(minimum = 1, maximum = 3600)]
    seconds: Option<u64>,
}

/// How far the drain is: the one under way, or the last one.
#[utoipa::path(get, path = "/api/v1/operations/drain", tag = "operations", security(("bearer" = [])),
    responses((status = 200, body = DrainView), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn show_drain(
    State(app): State<Arc<App>>,
    session: Session,
) -> Result<Json<DrainView>, Problem> {
    session.allow_operating()?;
    Ok(Json(instances::newest(&app).await))
}

/// Has everything that is being typed saved. Nobody is dropped and nothing is closed.
///
/// The work goes on in the background; ask for it again until `is_running` is false. A drain that is under way is joined.
#[utoipa::path(post, path = "/api/v1/operations/drain", tag = "operations", security(("bearer" = [])), request_body = DrainRequest,
    responses((status = 202, body = DrainView), (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn begin_drain(
    State(app): State<Arc<App>>,
    session: Session,
    JsonBody(request): JsonBody<DrainRequest>,
) -> Result<(StatusCode, Json<DrainView>), Problem> {
    session.allow_operating()?;
    let seconds = request.seconds.unwrap_or(SECONDS_DEFAULT);
    if !(1..=SECONDS_MAX).contains(&seconds) {
        return Err(Problem::bad_request("`seconds` must be 1 to 3600."));
    }
    let view = draining::begin(&app, &session.author(), Duration::from_secs(seconds)).await?;
    Ok((StatusCode::ACCEPTED, Json(view)))
}
