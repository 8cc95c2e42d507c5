//! What happens to a document, as server-sent events, for open pages.
//!
//! Guarantees: whoever may view the document may listen; a stream begins with how things stand, so nothing is missed between
//! two of them; it ends when the service stops and after ten minutes, and a page comes again (browsers do so by themselves,
//! with `Last-Event-ID`). The number of streams is bounded.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use http::HeaderMap;
use jiff::Timestamp;
use model::access::Permission;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{PathOf, QueryOf};
use super::sessions::SessionView;
use crate::app::App;
use crate::watching::{Event, HeadNews, KeptNews, Place, Until, watch};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// Only how things stand; then the stream ends.
    #[serde(default)]
    once: bool,
    /// Where to go on: the `id` of the last event that was heard. The header `Last-Event-ID` does the same.
    after: Option<String>,
}

/// An event of the stream; the stream is a row of them.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `written` writes")]
struct EventView {
    /// Where to go on.
    id: String,
    /// What happened.
    #[schema(pattern = "^(version|conflict|quarantined|sessions|renamed|deleted)$")]
    event: String,
    /// What there is to tell of it, as JSON.
    data: String,
}

/// The data of `version`.
#[derive(Serialize)]
struct VersionData {
    version: String,
    is_checkpoint: bool,
    sha256: String,
    size_bytes: u64,
    author_id: String,
    author_name: String,
    changed_at: Timestamp,
}

/// What happens to a document, as server-sent events.
///
/// `version`: the head is another one. `conflict`, `quarantined`: a save was kept aside. `sessions`: people came or left.
/// `renamed`. `deleted`: nothing follows. A stream begins with `version` and `sessions` as they stand. The data of each is
/// JSON; its `id` says where to go on.
#[utoipa::path(get, path = "/api/v1/documents/{document}/events", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path), EventsQuery, ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that was heard")),
    responses((status = 200, description = "Server-sent events", body = EventView, content_type = "text/event-stream"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, description = "API_007: too many streams", body = ProblemDocument, content_type = "application/problem+json")))]
#[allow(clippy::too_many_arguments, reason = "each is an extractor")]
pub(super) async fn follow_document(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    QueryOf(query): QueryOf<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let document = session.document(&app, &document, Permission::View).await?;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    // A place we do not understand is one from before: the stream begins with how things stand.
    let since = last.or(query.after.as_deref()).and_then(Place::parse);
    let until = if query.once { Until::Told } else { Until::Later };
    let events = watch(&app, document.id, (since, until))
        .ok_or_else(|| Problem::unavailable("Too many pages are listening right now."))?;
    let stream = events.map(|(place, event)| Ok::<_, Infallible>(written(place, event)));
    let mut response = Sse::new(stream).keep_alive(KeepAlive::default()).into_response();
    // Proxies that collect an answer before they pass it on would keep every event back.
    response.headers_mut().insert("x-accel-buffering", http::HeaderValue::from_static("no"));
    Ok(response)
}

fn written(place: Place, event: Event) -> sse::Event {
    let (name, data) = match event {
        Event::Version(news) => ("version", version(news)),
        Event::Conflict(news) => ("conflict", kept(&news)),
        Event::Quarantined(news) => ("quarantined", kept(&news)),
        Event::Sessions(sessions) => {
            let sessions: Vec<SessionView> = sessions.into_iter().map(SessionView::from).collect();
            ("sessions", json!({ "sessions": sessions }))
        }
        Event::Renamed(name) => ("renamed", json!({ "name": name })),
        Event::Deleted => ("deleted", json!({})),
    };
    sse::Event::default().id(place.to_string()).event(name).data(data.to_string())
}

fn version(news: HeadNews) -> Value {
    let data = VersionData {
        version: news.label.to_string(),
        is_checkpoint: !news.label.is_version(),
        sha256: news.digest.to_string(),
        size_bytes: news.size_bytes,
        author_id: news.author.id,
        author_name: news.author.name,
        changed_at: news.moved_at,
    };
    serde_json::to_value(data).unwrap_or_default()
}

fn kept(news: &KeptNews) -> Value {
    json!({
        "number": news.number, "reason": news.reason,
        "author_id": news.author.id, "author_name": news.author.name,
    })
}
