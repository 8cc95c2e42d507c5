//! The history for an editor: what `onRequestHistory` and `onRequestHistoryData` ask for.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use model::Label;
use model::access::Permission;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::PathOf;
use crate::app::App;
use crate::opening::{HistoryEntry, history, history_data};

/// The object for `refreshHistory`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HistoryView {
    /// The version that is open now.
    #[serde(rename = "currentVersion")]
    #[schema(example = "14")]
    current_version: String,
    /// The versions, oldest first, at most 500.
    history: Vec<HistoryEntryView>,
}

/// A version in the history. Names are those that the editor expects.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HistoryEntryView {
    /// When it was committed, in UTC.
    #[schema(example = "2026-11-15 19:20:43")]
    created: String,
    /// The key its content is opened under.
    key: String,
    /// Its number: `14`, or `14.2` if the head is a checkpoint.
    #[schema(example = "14")]
    version: String,
    /// Who made the last change in it.
    user: UserView,
    /// Who changed something, run by run, as the Document Server told it; absent if it told nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    changes: Option<serde_json::Value>,
    /// The version of the Document Server that told it.
    #[serde(rename = "serverVersion", skip_serializing_if = "Option::is_none")]
    server_version: Option<String>,
    /// How it came: upload, save, force-save, recovered, restore, external.
    kind: &'static str,
    /// Its length.
    size_bytes: u64,
}

/// Somebody.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UserView {
    /// The id the host application knows.
    id: String,
    /// The name shown to people.
    name: String,
}

impl From<HistoryEntry> for HistoryEntryView {
    fn from(entry: HistoryEntry) -> Self {
        Self {
            created: created(entry.committed_at),
            key: entry.key.to_string(),
            version: entry.label.to_string(),
            user: UserView { id: entry.author.id, name: entry.author.name },
            changes: entry.changes,
            server_version: entry.server_version,
            kind: entry.origin.as_str(),
            size_bytes: entry.size_bytes,
        }
    }
}

/// As the Document Server writes times in its own list of changes.
fn created(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The history of a document, for `refreshHistory` of an editor.
#[utoipa::path(get, path = "/api/v1/documents/{document}/history", tag = "history", security(("bearer" = [])),
    params(("document" = String, Path)),
    responses((status = 200, body = HistoryView), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn show_history(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
) -> Result<Json<HistoryView>, Problem> {
    let document = session.document(&app, &document, Permission::View).await?;
    let history = history(&app, &document).await?;
    Ok(Json(HistoryView {
        current_version: history.current.to_string(),
        history: history.entries.into_iter().map(Into::into).collect(),
    }))
}

/// The object for `setHistoryData`. Names are those that the editor expects.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is signed and sent as it is")]
pub(super) struct HistoryDataView {
    /// The type of the file.
    #[schema(rename = "fileType", example = "docx")]
    file_type: String,
    /// The key the version is opened under.
    key: String,
    /// Where the Document Server fetches it.
    url: String,
    /// Its number.
    version: String,
    /// The version before it in the history, if there is one.
    previous: Option<PreviousView>,
    /// Where the Document Server fetches the record of its changes, if one is kept that fits to the version before.
    #[schema(rename = "changesUrl")]
    changes_url: Option<String>,
    /// All of this, signed.
    token: String,
}

/// The version before.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes what is signed and sent as it is")]
pub(super) struct PreviousView {
    /// The type of the file.
    #[schema(rename = "fileType", example = "docx")]
    file_type: String,
    /// The key it is opened under.
    key: String,
    /// Where the Document Server fetches it.
    url: String,
}

/// What an editor needs to show a version, for its `setHistoryData`.
#[utoipa::path(get, path = "/api/v1/documents/{document}/history/{version}", tag = "history", security(("bearer" = [])),
    params(("document" = String, Path), ("version" = String, Path)),
    responses((status = 200, body = HistoryDataView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn show_history_data(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((document, version)): PathOf<(String, String)>,
) -> Result<Json<serde_json::Value>, Problem> {
    let document = session.document(&app, &document, Permission::View).await?;
    let label = Label::parse(&version)
        .ok_or_else(|| Problem::bad_request("A version is a number like 14 or 14.2."))?;
    Ok(Json(history_data(&app, &document, label).await?))
}
