//! Sessions over HTTP: who is editing a document, and everybody on the whole installation.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use ledger::sessions::{Person, SessionPage, SessionRecord};
use model::EditorKey;
use model::access::Permission;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{PathOf, QueryOf};
use crate::app::App;

const PAGE_DEFAULT: u32 = 100;
const PAGE_MAX: u32 = 1000;

/// A session: a live editor key and who is on it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SessionView {
    /// Its key.
    #[schema(example = "prod_12345_edit_42.k7q2mz4hxw3t")]
    pub(crate) key: String,
    /// Its document.
    pub(crate) document: String,
    /// The version or checkpoint it was opened on; absent for a key we did not issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "14")]
    pub(crate) base: Option<String>,
    /// `waiting` (nobody came yet), `editing`, `idle` (everybody left), `saving` (the final save is being stored), `stranded`
    /// (the Document Server holds changes and nobody is inside: opening the document brings them back), `left-behind`
    /// (somebody is inside although the session is over).
    pub(crate) state: String,
    /// Whether changes are not in the vault yet, as far as known: `yes`, `no` or `possible`.
    pub(crate) unsaved: String,
    /// Who is inside, as the Document Server last said.
    pub(crate) people: Vec<PersonView>,
    /// When the key was handed out first.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) issued_at: Timestamp,
    /// When somebody last came or left, or a save came in; absent if none of it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) last_activity_at: Option<Timestamp>,
    /// When the Document Server was last asked about it without our having heard of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) looked_at: Option<Timestamp>,
}

/// Somebody in a session.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PersonView {
    /// The id your application gave.
    pub(crate) id: String,
    /// Their name.
    pub(crate) name: String,
    /// When they came in.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) since: Timestamp,
    /// When the Document Server last named them.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) last_seen_at: Timestamp,
}

impl From<SessionRecord> for SessionView {
    fn from(session: SessionRecord) -> Self {
        Self {
            state: session.state().as_str().to_owned(),
            unsaved: session.unsaved().as_str().to_owned(),
            key: session.key.to_string(),
            document: session.document.to_string(),
            base: session.base.map(|base| base.to_string()),
            people: session.people.into_iter().map(PersonView::from).collect(),
            issued_at: session.issued_at,
            last_activity_at: session.last_seen_at,
            looked_at: session.looked_at,
        }
    }
}

impl From<Person> for PersonView {
    fn from(person: Person) -> Self {
        let Person { id, name, since, last_seen_at } = person;
        Self { id, name, since, last_seen_at }
    }
}

/// The sessions of a document: its live key, and others that somebody is still in.
#[utoipa::path(get, path = "/api/v1/documents/{document}/sessions", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path)),
    responses((status = 200, body = [SessionView]), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_document_sessions(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
) -> Result<Json<Vec<SessionView>>, Problem> {
    let document = session.document(&app, &document, Permission::View).await?;
    let page = SessionPage { document: Some(document.id), after: None, limit: PAGE_MAX };
    Ok(Json(app.ledger.sessions(&page).await?.into_iter().map(SessionView::from).collect()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SessionsQuery {
    /// Also those that nobody is in and that hold nothing.
    #[serde(default)]
    idle: bool,
    /// After this key: `next` of the page before.
    #[param(pattern = "^[0-9a-zA-Z._=-]{1,128}$")]
    after: Option<String>,
    /// Look at so many keys at most: 1 to 1000, else 100.
    limit: Option<u32>,
}

/// A page of the sessions of the installation.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SessionsView {
    /// The sessions, by key.
    pub(crate) sessions: Vec<SessionView>,
    /// Where the next page begins; absent on the last one. A page may be empty and not the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// The sessions of the whole installation, page by page.
#[utoipa::path(get, path = "/api/v1/operations/sessions", tag = "operations", security(("bearer" = [])),
    params(SessionsQuery),
    responses((status = 200, body = SessionsView), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_sessions(
    State(app): State<Arc<App>>,
    session: Session,
    QueryOf(query): QueryOf<SessionsQuery>,
) -> Result<Json<SessionsView>, Problem> {
    session.allow_operating()?;
    let after = query.after.map(|text| {
        EditorKey::parse(&text)
            .ok_or_else(|| Problem::bad_request("`after` is a key: `next` of the page before."))
    });
    let limit = query.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let page = SessionPage { document: None, after: after.transpose()?, limit };
    let found = app.ledger.sessions(&page).await?;
    let is_full = u32::try_from(found.len()).is_ok_and(|count| count == limit);
    let next = found.last().filter(|_| is_full).map(|session| session.key.to_string());
    let wanted = found.into_iter().filter(|session| query.idle || session.state().is_open());
    Ok(Json(SessionsView { sessions: wanted.map(SessionView::from).collect(), next }))
}
