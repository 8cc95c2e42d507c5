//! Every route on one screen.

use std::any::Any;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use http::{HeaderValue, StatusCode, header};
use metrics_exporter_prometheus::PrometheusHandle;
use model::problems::Code;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument as _;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::Problem;
use super::description::complete;
use super::{
    audit, callbacks, changes, companies, comparisons, compression, cross_origin, deadlines, documents,
    drains, erasures, events, examinations, guests, health, history, kept, log_contents, log_events, notices,
    operations, organisations, people, pulse, receipts, record_exports, records, registrations, sessions,
    shares, standings, stream, submissions, summary_logs, templates, tokens, webhooks, workbooks,
};
use crate::app::App;
use crate::console;
use crate::traces;

/// JSON bodies of the API are small.
pub(super) const JSON_BYTES_MAX: usize = 256 * 1024;

/// Everything that can be called, ready to serve.
pub fn router(app: Arc<App>, metrics: PrometheusHandle) -> Router {
    let (api, description) = api().split_for_parts();
    let description = Arc::new(complete(description));
    let across = tower::util::option_layer(cross_origin::layer(&app.config));
    Router::new()
        .merge(api)
        .merge(console::with_policy(console::pages(), &app))
        .route("/api/openapi.json", get(move || async move { Json((*description).clone()) }))
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(DefaultBodyLimit::max(JSON_BYTES_MAX))
        .layer(Extension(metrics))
        .layer(from_fn_with_state(Arc::clone(&app), turn_newcomers_away))
        .layer(from_fn(compression::compress))
        .layer(from_fn(keep_private))
        .layer(from_fn(trace))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(across)
        .with_state(app)
}

fn api() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        // The Document Server's: tokens of their own.
        .routes(routes!(callbacks::receive))
        .routes(routes!(stream::stream))
        .routes(routes!(stream::stream_changes))
        // Everybody else's: a bearer token.
        .routes(routes!(companies::list_companies, companies::create_company))
        .routes(routes!(companies::find_company, companies::rename_company))
        .routes(routes!(companies::set_quota))
        .routes(routes!(companies::list_projects, companies::create_project))
        .routes(routes!(companies::rename_project))
        .routes(routes!(tokens::list_tokens, tokens::create_token))
        .routes(routes!(tokens::revoke_token))
        .routes(routes!(documents::create_document))
        .routes(routes!(documents::list_documents))
        .routes(routes!(documents::find_document, changes::delete_document))
        .routes(routes!(changes::undelete_document))
        .routes(routes!(changes::download_document))
        .routes(routes!(changes::restore_version))
        .routes(routes!(changes::use_kept_copy))
        .routes(routes!(changes::dismiss_kept_copy))
        .routes(routes!(documents::list_versions))
        .routes(routes!(history::show_history))
        .routes(routes!(history::show_history_data))
        .routes(routes!(changes::rename_document))
        .routes(routes!(changes::save_document_as))
        .routes(routes!(people::list_users))
        .routes(routes!(people::mention_people))
        .routes(routes!(documents::read_content, changes::replace_content))
        .routes(routes!(documents::configure_editor))
        .routes(routes!(sessions::list_document_sessions))
        .routes(routes!(events::follow_document))
        .routes(routes!(comparisons::compare_contents))
        .routes(routes!(audit::list_document_acts))
        .routes(routes!(audit::list_company_acts))
        .routes(routes!(audit::list_organisation_acts))
        .routes(routes!(audit::show_receipt))
        .routes(routes!(shares::list_shares, shares::create_share))
        .routes(routes!(shares::revoke_share))
        .merge(submissions_api())
        .routes(routes!(kept::list_kept))
        .routes(routes!(kept::read_kept))
        .routes(routes!(kept::list_orphans))
        .routes(routes!(kept::read_orphan))
        .routes(routes!(kept::dismiss_orphan))
        .routes(routes!(operations::prune_now))
        .routes(routes!(operations::list_lanes))
        .routes(routes!(sessions::list_sessions))
        .routes(routes!(operations::status))
        .routes(routes!(drains::show_drain, drains::begin_drain))
        .routes(routes!(operations::list_instances))
        .routes(routes!(examinations::show_examination, examinations::begin_examination))
        .routes(routes!(pulse::show_pulse))
        .routes(routes!(webhooks::list_webhooks))
        .routes(routes!(webhooks::retry_webhook))
        .routes(routes!(submissions::list_on_their_way))
        .routes(routes!(submissions::retry_submission))
        .routes(routes!(submissions::release_submission))
        .routes(routes!(operations::metrics))
        // Those of whoever has a share link: its token is in the path.
        .routes(routes!(guests::show_link))
        .routes(routes!(guests::open_link))
        .routes(routes!(guests::download_link))
        // An outside uploader's: its signature is the credential.
        .routes(routes!(notices::put_upload))
        .routes(routes!(notices::receive_notice))
        // Nobody's: they say nothing about anybody's data.
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
}

/// Who hands in what, and what becomes of it: a bearer token.
fn submissions_api() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(organisations::list_organisations))
        .routes(routes!(organisations::find_organisation, organisations::put_organisation))
        .routes(routes!(registrations::list_registrations))
        .routes(routes!(registrations::find_registration, registrations::put_registration))
        .routes(routes!(registrations::list_accreditations))
        .routes(routes!(registrations::put_accreditation))
        .routes(routes!(deadlines::list_deadlines))
        .routes(routes!(deadlines::put_deadline, deadlines::remove_deadline))
        .routes(routes!(templates::list_templates, templates::add_template))
        .routes(routes!(templates::read_template))
        .routes(routes!(templates::retire_template))
        .routes(routes!(summary_logs::list_summary_logs, summary_logs::upload_summary_log))
        .routes(routes!(summary_logs::find_summary_log))
        .routes(routes!(log_events::follow_summary_log))
        .routes(routes!(summary_logs::submit_summary_log))
        .routes(routes!(summary_logs::read_summary_log))
        .routes(routes!(log_contents::list_problems))
        .routes(routes!(log_contents::list_changes))
        .routes(routes!(summary_logs::undo_submission))
        .routes(routes!(receipts::show_submission_receipt))
        .routes(routes!(receipts::verify_receipt))
        .routes(routes!(workbooks::read_marked_workbook))
        .routes(routes!(workbooks::submit_document))
        .routes(routes!(workbooks::list_logs_of_document))
        .routes(routes!(workbooks::open_log_as_document))
        .routes(routes!(records::list_records))
        .routes(routes!(records::show_record))
        .routes(routes!(records::list_submissions))
        .routes(routes!(record_exports::export_records))
        .routes(routes!(record_exports::export_across))
        .routes(routes!(standings::list_standings))
        .routes(routes!(standings::list_overdue))
        .routes(routes!(erasures::erase_values))
}

/// The contract, generated from the handlers.
pub fn openapi() -> OpenApi {
    complete(api().split_for_parts().1)
}

/// At the end newcomers come back later; what runs is finished.
async fn turn_newcomers_away(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    // Whoever waits for the drain looks at the lanes and sessions.
    let is_always_answered = matches!(
        request.uri().path(),
        "/healthz" | "/readyz" | "/metrics" | "/api/v1/operations/lanes" | "/api/v1/operations/sessions"
    );
    if app.takes_newcomers() || is_always_answered {
        next.run(request).await
    } else {
        Problem::unavailable("The service is stopping.").into_response()
    }
}

/// What is told to somebody who is signed in is kept by no cache, unless its handler says otherwise.
async fn keep_private(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A request is a span of a trace; it continues the caller's, if there is one.
async fn trace(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str);
    let caller =
        request.headers().get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let span = tracing::debug_span!(
        target: traces::TARGET,
        "request",
        otel.name = format!("{} {path}", request.method()),
        otel.kind = "server",
        traceparent = caller,
        http.route = path,
        http.response.status_code = tracing::field::Empty,
    );
    let response = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", response.status().as_u16());
    response
}

fn panicked(_panic: Box<dyn Any + Send>) -> Response {
    tracing::error!("a handler panicked");
    let detail = "Something failed on our side; it was logged.";
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        Code::Internal,
        detail,
        "Try again; if it stays, report it.",
    )
    .into_response()
}
