//! What guests of a share link see over HTTP: what the link is, an editor, and a download if the link allows one.
//!
//! Guarantees: the token in the path is all that counts, and bearer tokens and cookies count for nothing; tokens that open nothing
//! look alike, whether they never existed, were revoked or expired; nothing of the company is told, and of a link with a
//! password not even the name of the file. Nothing here deletes or administers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use ledger::documents::Author;
use ledger::shares::Guest;
use model::sharing::{DownloadSwitch, guest_rights};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::address::ClientAddress;
use super::answer::{Problem, ProblemDocument};
use super::changes::send_download;
use super::documents::{EditorView, shown_editor};
use super::extract::{JsonBody, PathOf, QueryOf};
use super::guest_tickets::GuestTickets;
use super::shares::AllowsWord;
use crate::app::App;
use crate::opening::configure;
use crate::sharing::{Visited, admit, may_take_away, returning, seat, visit};

/// What a share link is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LinkView {
    /// What it allows.
    allows: AllowsWord,
    /// Whether it asks for a password.
    needs_password: bool,
    /// Whether its guests may download and print.
    may_download: bool,
    /// Until when it counts; for ever if `null`.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// The name of the file; `null` as long as a password is to be given.
    #[schema(example = "report.docx")]
    name: Option<String>,
}

/// What a share link is.
#[utoipa::path(get, path = "/api/v1/shares/{token}", tag = "guests", params(("token" = String, Path)),
    responses((status = 200, body = LinkView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "Unknown, revoked or expired", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "API_011: too many that do not exist", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn show_link(
    State(app): State<Arc<App>>,
    address: ClientAddress,
    PathOf(token): PathOf<String>,
) -> Result<Response, Problem> {
    let Visited { share, document } = visit(&app, &token, &address.0).await?;
    let needs_password = share.password.is_some();
    let view = LinkView {
        allows: share.allows.into(),
        needs_password,
        may_download: share.download == DownloadSwitch::On,
        expires_at: share.expires_at,
        name: (!needs_password).then(|| document.name.to_string()),
    };
    Ok(not_stored(Json(view)))
}

/// How a guest comes.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GuestWish {
    /// What they want to be called.
    #[serde(default)]
    name: Option<String>,
    /// The link's password, if it has one.
    #[serde(default)]
    password: Option<String>,
    /// The ticket they got when they came first: they stay the same guest, and need no password.
    #[serde(default)]
    ticket: Option<String>,
}

/// What a guest's page needs to open an editor.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GuestEditorView {
    /// The editor.
    #[serde(flatten)]
    editor: EditorView,
    /// What the guest is called.
    guest_name: String,
    /// For coming back and for downloads; good for 12 hours, as long as the link counts.
    ticket: String,
}

/// A signed editor configuration for a guest.
#[utoipa::path(post, path = "/api/v1/shares/{token}/open", tag = "guests", params(("token" = String, Path)), request_body = GuestWish,
    responses((status = 200, body = GuestEditorView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, description = "API_012: the password is missing or wrong", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "Unknown, revoked or expired", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "DOC_001: being saved, try again", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "API_011", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn open_link(
    State(app): State<Arc<App>>,
    address: ClientAddress,
    PathOf(token): PathOf<String>,
    JsonBody(wish): JsonBody<GuestWish>,
) -> Result<Response, Problem> {
    let visited = visit(&app, &token, &address.0).await?;
    let known = ticket_of(&app, &visited, wish.ticket.as_deref());
    let guest = match returning(&app, &visited, known).await? {
        Some(guest) => guest,
        None => admit(&app, &visited, (wish.name, wish.password.as_deref()), &address.0).await?,
    };
    let rights = guest_rights(visited.share.allows, visited.share.download)
        .map_err(|refused| Problem::operation(refused, visited.share.allows.operation()))?;
    let configured = configure(&app, &visited.document, &author(&guest, &address), rights).await?;
    // The last step: nobody whose link was revoked meanwhile gets the configuration.
    seat(&app, &guest, &configured.key).await?;
    let ticket = GuestTickets::new(&app.config).issue(&guest, app.now());
    let editor = shown_editor(&app, configured);
    Ok(not_stored(Json(GuestEditorView { editor, guest_name: guest.name, ticket })))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TicketQuery {
    /// The ticket from opening the link.
    #[serde(default)]
    ticket: String,
}

/// The head, after what people are typing was saved, if the link allows downloads.
#[utoipa::path(get, path = "/api/v1/shares/{token}/download", tag = "guests", params(("token" = String, Path), TicketQuery),
    responses((status = 200, description = "The bytes; ETag is the SHA-256", content_type = "application/octet-stream"),
        (status = 206, description = "The part that was asked for"), (status = 304, description = "Known already"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, description = "The link allows no downloads, or there is no ticket", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "Unknown, revoked or expired", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "API_011", body = ProblemDocument, content_type = "application/problem+json")))]
#[allow(clippy::too_many_arguments, reason = "each is an extractor")]
pub(super) async fn download_link(
    State(app): State<Arc<App>>,
    address: ClientAddress,
    PathOf(token): PathOf<String>,
    QueryOf(query): QueryOf<TicketQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let visited = visit(&app, &token, &address.0).await?;
    may_take_away(&visited.share)?;
    let known = ticket_of(&app, &visited, Some(&query.ticket));
    let guest = returning(&app, &visited, known).await?.ok_or_else(Problem::ticket_needed)?;
    send_download(&app, &visited.document, &author(&guest, &address), &headers).await
}

fn ticket_of(app: &App, visited: &Visited, ticket: Option<&str>) -> Option<u64> {
    GuestTickets::new(&app.config).verify(ticket?, visited.share.number, app.now())
}

fn author(guest: &Guest, address: &ClientAddress) -> Author {
    Author::new(guest.id(), guest.name.clone()).calling_from(address.0.clone())
}

fn not_stored(answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
