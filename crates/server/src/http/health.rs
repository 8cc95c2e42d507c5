//! `/healthz`: the process lives. `/readyz`: it takes work, so a balancer may send some.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use model::disk::Space;

use super::answer::{Problem, ProblemDocument};
use crate::app::App;
use crate::delivering::fill;
use crate::room::space;

/// The process lives.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, description = "The process lives", body = String, content_type = "text/plain")))]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// The service takes work: it is not stopping, and its ledger and vault answer.
#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = 200, description = "The service takes work", body = String, content_type = "text/plain"),
    (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Response {
    if !app.is_ready() {
        return Problem::unavailable("The service is stopping.").into_response();
    }
    if let Err(cause) = app.ledger.ping().await {
        return Problem::store(&cause).into_response();
    }
    let space = space(&app);
    if !space.takes_saves() {
        return Problem::no_room().into_response();
    }
    let depot = fill(&app).await;
    match app.vault.probe().await {
        Ok(()) if depot.blobs > 0 => {
            format!("ready, but {} contents wait in the depot for the far vault\n", depot.blobs)
                .into_response()
        }
        Ok(()) if space == Space::Plenty => "ready\n".into_response(),
        Ok(()) => format!("ready, but room on the disk is {}\n", space.as_str()).into_response(),
        Err(cause) => Problem::store(&cause).into_response(),
    }
}
