//! The history as an editor shows it: a list of versions, and what it needs to open one of them.
//!
//! The list has the versions, oldest first, and the head if that is a checkpoint; earlier checkpoints are steps on the way to a
//! version. An editor looks for highlights by applying the record of changes of a version to the one before it *in this
//! list*, so a record is only offered where its session began with that very content.
//!
//! Guarantees: a key of the history is a view key: made of version and hash, one per content, and never an edit key. A link
//! counts for one content, for a while, and the content stays for as long.
//! Does not do: restore (`changing` does), compare (`comparing` does).

use jiff::Timestamp;
use ledger::documents::{Author, Content, Document};
use ledger::history::ContentsPage;
use ledger::keys::ViewKey;
use model::versions::Origin;
use model::{DocumentId, EditorKey, Label};
use serde_json::{Value, json};

use super::OpenError;
use super::configure::{file_type_of, internal_url};
use super::source::{Readers, StreamTokens, Streamed};
use crate::app::App;

/// Editors show the whole list at once. Who wants older ones pages through the versions.
const VERSIONS_MAX: u32 = 500;

/// The history of a document.
#[derive(Debug, Clone)]
pub struct History {
    /// The head.
    pub current: Label,
    /// Its versions, oldest first.
    pub entries: Vec<HistoryEntry>,
}

/// A version in the history.
#[derive(Debug, Clone)]
pub struct HistoryEntry {
    /// Its number.
    pub label: Label,
    /// The key its content is opened under.
    pub key: EditorKey,
    /// Who made the last change in it.
    pub author: Author,
    /// When it was committed.
    pub committed_at: Timestamp,
    /// How it came.
    pub origin: Origin,
    /// Its length.
    pub size_bytes: u64,
    /// The Document Server's list of who changed what, as it was sent.
    pub changes: Option<Value>,
    /// The version of the server that made that list.
    pub server_version: Option<String>,
}

/// The history of a document, as far as an editor shows it.
pub async fn history(app: &App, document: &Document) -> Result<History, OpenError> {
    let contents = shown_contents(app, document).await?;
    let entries = contents.into_iter().map(|content| entry(app, &document.id, content)).collect();
    Ok(History { current: document.head, entries })
}

/// Versions that can be opened, oldest first, and the head.
async fn shown_contents(app: &App, document: &Document) -> Result<Vec<Content>, OpenError> {
    let page = ContentsPage {
        document: document.id.clone(),
        versions_only: true,
        before: None,
        limit: VERSIONS_MAX,
    };
    let mut contents = app.ledger.contents_page(&page).await?;
    contents.retain(|content| content.pruned_at.is_none());
    contents.reverse();
    if !document.head.is_version() {
        contents.extend(app.ledger.content(&document.id, document.head).await?);
    }
    Ok(contents)
}

fn entry(app: &App, document: &DocumentId, content: Content) -> HistoryEntry {
    HistoryEntry {
        label: content.label,
        key: key_of(app, document, &content),
        changes: content.history.as_deref().and_then(|text| serde_json::from_str(text).ok()),
        author: content.author,
        committed_at: content.committed_at,
        origin: content.origin,
        size_bytes: content.blob.size_bytes,
        server_version: content.server_version,
    }
}

fn key_of(app: &App, document: &DocumentId, content: &Content) -> EditorKey {
    EditorKey::for_viewing(
        &app.config.server.environment,
        document,
        content.label.version,
        &content.blob.digest,
    )
}

/// What an editor needs to show a version: the object for `setHistoryData`, signed.
pub async fn history_data(app: &App, document: &Document, label: Label) -> Result<Value, OpenError> {
    let missing = || OpenError::NotFound { what: format!("version {label} of document `{}`", document.id) };
    let contents = shown_contents(app, document).await?;
    let place = contents.iter().position(|content| content.label == label).ok_or_else(missing)?;
    let (content, before) = (&contents[place], place.checked_sub(1).map(|before| &contents[before]));
    let mut data = opened(app, document, content).await?;
    data["version"] = json!(label.to_string());
    if let Some(before) = before {
        data["previous"] = opened(app, document, before).await?;
        if is_record_on(app, content, before).await? {
            data["changesUrl"] = json!(changes_url(app, &document.id, content)?);
        }
    }
    let seconds = i64::try_from(app.config.opening.config_token.as_secs()).unwrap_or(300);
    data["token"] = json!(app.tokens.sign(&data, app.now(), seconds));
    Ok(data)
}

/// Type, key and link of a content. That they were handed out is written down first.
async fn opened(app: &App, document: &Document, content: &Content) -> Result<Value, OpenError> {
    let (key, at) = (key_of(app, &document.id, content), app.now());
    let view = ViewKey {
        key: key.clone(),
        document: document.id.clone(),
        base: content.label,
        base_digest: content.blob.digest,
        at,
    };
    app.ledger.note_view_key(&view).await?;
    let streamed = Streamed {
        document: document.id.clone(),
        key: key.clone(),
        label: content.label,
        readers: Readers::Anybody,
    };
    let token = StreamTokens::new(&app.config).issue(&streamed, at, app.config.opening.stream_token);
    let url = internal_url(app, &format!("stream/{}", document.id), Some(&token))?;
    Ok(json!({
        "fileType": file_type_of(document, &content.blob.file_type),
        "key": key.as_str(),
        "url": url.as_str(),
    }))
}

/// Whether the record of a content's changes tells how it came from the one before it.
async fn is_record_on(app: &App, content: &Content, before: &Content) -> Result<bool, OpenError> {
    let Some(key) = content.key.as_ref().filter(|_| content.changes.is_some()) else { return Ok(false) };
    let base = app.ledger.key(key).await?.and_then(|record| record.base);
    Ok(base.is_some_and(|(_, digest)| digest == before.blob.digest))
}

fn changes_url(app: &App, document: &DocumentId, content: &Content) -> Result<String, OpenError> {
    let key = key_of(app, document, content);
    let streamed =
        Streamed { document: document.clone(), key, label: content.label, readers: Readers::Anybody };
    let life = app.config.opening.stream_token;
    let token = StreamTokens::for_changes(&app.config).issue(&streamed, app.now(), life);
    Ok(internal_url(app, &format!("stream/{document}/changes"), Some(&token))?.to_string())
}
