//! A download while people edit: what they typed is saved first, if that can be done in time.
//!
//! The Document Server is asked for a force save with a word of our own; the callback it causes carries that word, and once its
//! save is committed the head holds what was typed before the request. Nothing is held while the server is asked: its
//! callback needs the lane and the ledger.
//!
//! Guarantees: bounded time; the answer says how fresh it is, and so does the audit trail. Does not do: promise more than
//! the server does: it may accept a force save and send none.

use std::sync::Arc;

use ledger::changes::Download;
use ledger::documents::{Author, Content, Document};
use ledger::keys::KeyRecord;
use model::{DocumentId, InboxNumber};
use tokio::time::Instant;

use super::ChangeError;
use crate::app::App;
use crate::editors::ForceSave;
use crate::patience::settled;
use crate::telemetry::report;

/// How fresh a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Nobody is editing: the head is all there is.
    Newest,
    /// People are editing, and what they had typed was saved for this download.
    Saved,
    /// People are editing, and the server has nothing that is not saved.
    Unchanged,
    /// People are editing, and their work did not come in time: the head may lack the newest of it.
    NotSavedInTime,
    /// The server does not answer: the head may lack what people are typing.
    ServerAway,
}

impl Freshness {
    /// The word in the header and the audit trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Saved => "saved",
            Self::Unchanged => "unchanged",
            Self::NotSavedInTime => "not-saved-in-time",
            Self::ServerAway => "server-away",
        }
    }
}

/// A content to be sent, and how fresh it is.
#[derive(Debug, Clone)]
pub struct Downloaded {
    /// The content.
    pub content: Content,
    /// How fresh it is.
    pub freshness: Freshness,
}

/// Finds the head of a document, after what people are typing was saved.
pub async fn download(app: &Arc<App>, document: &Document, who: &Author) -> Result<Downloaded, ChangeError> {
    let freshness = freshen(app, &document.id).await?;
    let document = app.ledger.document(&document.id).await?.ok_or(ChangeError::NotFound)?;
    let content = app.ledger.content(&document.id, document.head).await?.ok_or(ChangeError::NotFound)?;
    let noted = Download {
        document: document.id.clone(),
        label: content.label,
        who: who.clone(),
        freshness: freshness.as_str(),
        at: app.now(),
    };
    // Somebody who needs their work now gets it; that it could not be written down is told to the operator.
    if let Err(cause) = app.ledger.note_download(&noted).await {
        tracing::warn!(document.id = %document.id, error = %report(&cause), "a download could not be written down");
    }
    Ok(Downloaded { content, freshness })
}

pub(super) async fn freshen(app: &Arc<App>, document: &DocumentId) -> Result<Freshness, ChangeError> {
    let deadline = Instant::now() + app.config.saving.download_within;
    let newest = app.ledger.newest_save(document).await?;
    let Some(live) = app.ledger.live_key_of(document).await? else {
        return wait_for_open_saves(app, document, (deadline, Freshness::Newest)).await;
    };
    let word = format!("saveguard-download-{:016x}", app.random.bits());
    match ask(app, &live, &word).await {
        None => Ok(Freshness::ServerAway),
        Some(ForceSave::Begun) => wait_for_save(app, (document, newest), (&word, deadline)).await,
        // It may also mean that one is under way.
        Some(ForceSave::NothingNew) => {
            wait_for_open_saves(app, document, (deadline, Freshness::Unchanged)).await
        }
        Some(ForceSave::NobodyThere) => {
            wait_for_open_saves(app, document, (deadline, Freshness::Newest)).await
        }
    }
}

async fn ask(app: &App, live: &KeyRecord, word: &str) -> Option<ForceSave> {
    match app.editor.force_save(&live.key, word).await {
        Ok(begun) => Some(begun),
        Err(cause) => {
            tracing::warn!(error = %report(&cause), "the Document Server could not be asked for a force save");
            None
        }
    }
}

/// Until the save that carries our word, or any final one, is finished.
async fn wait_for_save(
    app: &App,
    (document, newest): (&DocumentId, InboxNumber),
    (word, deadline): (&str, Instant),
) -> Result<Freshness, ChangeError> {
    loop {
        let mut listener = app.signals.listen();
        let news = app.ledger.saves_after(document, newest).await?;
        let is_ours = |save: &ledger::changes::SaveNews| {
            save.is_finished && (save.status == 2 || save.user_data.as_deref() == Some(word))
        };
        if news.iter().any(is_ours) {
            return Ok(Freshness::Saved);
        }
        if !settled(listener.as_mut(), document, deadline).await {
            return Ok(Freshness::NotSavedInTime);
        }
    }
}

/// Until no save of the document is on its way.
async fn wait_for_open_saves(
    app: &App,
    document: &DocumentId,
    (deadline, freshness): (Instant, Freshness),
) -> Result<Freshness, ChangeError> {
    loop {
        let mut listener = app.signals.listen();
        let open = app.ledger.open_saves().await?;
        if !open.iter().any(|save| save.document.as_ref() == Some(document)) {
            return Ok(freshness);
        }
        if !settled(listener.as_mut(), document, deadline).await {
            return Ok(Freshness::NotSavedInTime);
        }
    }
}
