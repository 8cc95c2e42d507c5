//! `GET /stream/{document}` and `…/changes`: where the Document Server fetches a source, and the record of a version's changes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use ledger::documents::BlobFacts;
use model::DocumentId;
use serde::Deserialize;

use super::answer::{Problem, ProblemDocument};
use super::bytes::send;
use super::extract::{PathOf, QueryOf};
use crate::app::App;
use crate::opening::{Readers, StreamRefused, changes, source};

/// The token comes in the query: the Document Server sends our links as they are.
#[derive(Debug, Deserialize)]
pub(super) struct StreamQuery {
    #[serde(default)]
    token: String,
}

/// The content a key was issued on.
#[utoipa::path(
    get, path = "/stream/{document}", tag = "document server",
    params(("document" = String, Path), ("token" = String, Query, description = "The stream token of an editor configuration")),
    responses(
        (status = 200, description = "The bytes", content_type = "application/octet-stream"),
        (status = 403, description = "DOC_006", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "DOC_008: the key is spent", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub(super) async fn stream(
    State(app): State<Arc<App>>,
    PathOf(document): PathOf<String>,
    QueryOf(query): QueryOf<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let document = DocumentId::parse(&document).map_err(|_| StreamRefused::Token)?;
    let signed = bearer(&headers, &app.config.document_server.jwt_header);
    let asking = Readers::asking(&app, signed, &query.token);
    let content = source(&app, &document, &query.token, asking).await?;
    send(&app, &headers, &content.blob, document.as_str()).await
}

fn bearer<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.strip_prefix("Bearer ").unwrap_or(value).trim())
}

/// The record of the changes of a version, as the Document Server sent it.
#[utoipa::path(
    get, path = "/stream/{document}/changes", tag = "document server",
    params(("document" = String, Path), ("token" = String, Query, description = "The token of the history data of a version")),
    responses(
        (status = 200, description = "The bytes"), (status = 206, description = "The part that was asked for"),
        (status = 403, description = "DOC_006", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub(super) async fn stream_changes(
    State(app): State<Arc<App>>,
    PathOf(document): PathOf<String>,
    QueryOf(query): QueryOf<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let document = DocumentId::parse(&document).map_err(|_| StreamRefused::Token)?;
    let (digest, size_bytes) = changes(&app, &document, &query.token).await?;
    let blob = BlobFacts::plain(digest, size_bytes, "zip");
    let mut response = send(&app, &headers, &blob, "changes.zip").await?;
    // Older Document Servers let the browser fetch it, from their own pages.
    let origin = app.config.document_server.public_url.origin().ascii_serialization();
    if let Ok(origin) = HeaderValue::from_str(&origin) {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    Ok(response)
}
