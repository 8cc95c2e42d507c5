//! The routes of the pages, and what every page is sent with.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderValue, header};

use super::{
    assets, document, documents, editor, guest, new_document, operations, provider, registrations, sign_in,
    submissions,
};
use crate::app::App;

/// Routes of the pages.
pub(crate) fn pages() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(documents::list))
        .route("/new-document", post(new_document::create))
        .route("/document/{document}", get(document::show))
        .route("/edit/{document}", get(editor::edit))
        .route("/view/{document}", get(editor::view))
        .route("/comment/{document}", get(editor::comment))
        .route("/submissions", get(registrations::list))
        .route("/submissions/{organisation}/{registration}", get(submissions::registration))
        .route("/submissions/{organisation}/{registration}/logs/{log}", get(submissions::log))
        .route("/submissions/{organisation}/{registration}/records", get(submissions::records))
        .route("/submissions/{organisation}/{registration}/records/{kind}/{key}", get(submissions::record))
        .route("/operations", get(operations::overview))
        .route("/audit", get(operations::audit))
        .route("/s/{token}", get(guest::page))
        .route("/sign-in", get(sign_in::sign_in).post(sign_in::enter))
        .route("/sign-in/begin", get(provider::begin))
        .route("/sign-in/return", get(provider::come_back))
        .route("/sign-out", post(sign_in::leave))
        .route("/language/{code}", get(sign_in::language))
        .route("/assets/{name}", get(assets::asset))
        .route("/client/{name}", get(assets::client))
}

/// Adds what every page is sent with.
pub(crate) fn with_policy(router: Router<Arc<App>>, app: &Arc<App>) -> Router<Arc<App>> {
    router.layer(from_fn_with_state(Arc::clone(app), policy))
}

async fn policy(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let editor = app.config.document_server.public_url.origin().ascii_serialization();
    let embedders: String = app.config.server.embedded_by.iter().map(|origin| format!(" {origin}")).collect();
    let policy = format!(
        "default-src 'none'; script-src 'self' {editor}; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         frame-src {editor}; form-action 'self'; base-uri 'none'; frame-ancestors 'self'{embedders}"
    );
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.entry(name).or_insert(value);
        }
    }
    response
}
