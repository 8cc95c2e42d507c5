//! Changes past the editors: replace by upload, restore, use a kept copy, delete and take that back.
//!
//! The steps, each safe to repeat: spool and check the bytes (or find them in the history), store them, then ask the ledger in a
//! loop until it says done: it may want to know what the Document Server holds, or that a save on its way is waited for.
//! Rule and change are one transaction there, so that a change and an opening cannot cross.
//!
//! Guarantees: nothing is lost: what stood before stays in the history, and what people save later is kept. Does not do:
//! downloads that wait for what people just typed ([`download`] does), names ([`rename`]).

mod download;
mod rename;

#[cfg(test)]
mod tests;

pub use download::{Downloaded, Freshness, download};
pub use rename::rename;

use download::freshen;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use ledger::LedgerError;
use ledger::changes::{ChangeOutcome, ChangeRequest, ChangeSource, EditorsInside, HeadChange};
use ledger::documents::{Author, BlobFacts, Document, Keeping};
use ledger::keys::{KeyRecord, Knowledge};
use model::checking::Source;
use model::{Digest, DocumentId, Label};
use office_check::Hint;
use signals::Signal;
use tokio::time::Instant;
use vault::{Sidecar, Spooled};

use crate::app::App;
use crate::editors::ask_to_leave;
use crate::incoming::{self, CheckError, StoreError, UploadError, check, spool_upload};
use crate::patience::{quiet_after, settled};

/// Why a document was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// Somebody is editing.
    #[error("the document is being edited")]
    Edited {
        /// Who, as far as known.
        users: Vec<String>,
    },
    /// A save did not finish in time.
    #[error("the document is being saved")]
    BeingSaved,
    /// The Document Server does not say whether somebody is editing.
    #[error("the Document Server is away")]
    ServerAway,
    /// The head is another one than the caller saw.
    #[error("the head is another one")]
    HeadMoved {
        /// The head.
        head: Digest,
    },
    /// The name is not allowed.
    #[error("the name is not allowed: {0}")]
    Name(#[from] model::names::NameRefused),
    /// No such content.
    #[error("there is no such content")]
    NotFound,
    /// The bytes are damaged.
    #[error("the file is not whole: {reason}")]
    NotWhole {
        /// Why.
        reason: String,
    },
    /// More bytes than allowed.
    #[error("the upload is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The upload broke off.
    #[error("the upload broke off")]
    BrokenOff,
    /// There is too little room on the disk.
    #[error("there is too little room on the disk")]
    NoRoom,
    /// The bytes could not be checked.
    #[error("could not check the file")]
    Check(#[from] CheckError),
    /// The bytes could not be stored or read.
    #[error("could not store the file")]
    Store(#[from] vault::VaultError),
    /// The ledger could not do it.
    #[error("could not write it down")]
    Ledger(#[from] LedgerError),
}

/// Somebody who changes a document.
#[derive(Debug, Clone)]
pub struct Changer {
    /// Who.
    pub who: Author,
    /// The head they saw; anything else refuses the change.
    pub expected_head: Option<Digest>,
    /// What happens to people who are editing.
    pub editors: EditorsInside,
}

/// Replaces the content of a document by an upload.
pub async fn replace<E>(
    app: &Arc<App>,
    document: &Document,
    changer: Changer,
    body: impl Stream<Item = Result<Bytes, E>>,
) -> Result<Label, ChangeError> {
    let spooled = spool_upload(app, body).await?;
    // From here on the work goes on although the caller may hang up.
    let storing = tokio::spawn(store(Arc::clone(app), document.clone(), changer, spooled));
    storing.await.map_err(|_| ChangeError::BrokenOff)?
}

async fn store(
    app: Arc<App>,
    document: Document,
    changer: Changer,
    spooled: Spooled,
) -> Result<Label, ChangeError> {
    let hint = Hint::from_extension(&document.name.extension());
    let mut checked = check(&app, &spooled, (hint, Source::Other)).await?;
    if let Some(reason) = checked.refusal.take() {
        return Err(ChangeError::NotWhole { reason });
    }
    let life = incoming::store(&app, &spooled, &Sidecar::Brought { document: document.id.clone() }).await?;
    steps::reached("change.stored");
    put(&app, &document.id, changer, (checked.facts(&spooled, life), ChangeSource::Upload)).await
}

/// Makes an earlier content the head again, as a new version.
pub async fn restore(
    app: &Arc<App>,
    document: &DocumentId,
    label: Label,
    changer: Changer,
) -> Result<Label, ChangeError> {
    let content = app.ledger.content(document, label).await?.filter(|content| content.pruned_at.is_none());
    let content = content.ok_or(ChangeError::NotFound)?;
    let inside = match changer.editors {
        EditorsInside::Refuse => None,
        EditorsInside::RetireTheirKey => {
            // What is typed until now belongs into the history before the head moves away from it.
            freshen(app, document).await?;
            app.ledger.live_key_of(document).await?
        }
    };
    let label = put(app, document, changer, (content.blob, ChangeSource::Content(label))).await?;
    if let Some(left) = inside {
        // Whoever stays sits in a retired key, and what they save becomes a conflict copy.
        ask_to_leave(&app.editor, left.key, left.users);
    }
    Ok(label)
}

/// Makes a kept copy the head, as a new version: "use mine". Damaged ones stay where they are.
pub async fn use_kept(
    app: &Arc<App>,
    document: &DocumentId,
    number: u64,
    changer: Changer,
) -> Result<Label, ChangeError> {
    let copy = app.ledger.kept_copy(number).await?;
    let copy = copy.filter(|copy| copy.document.as_ref() == Some(document) && copy.pruned_at.is_none());
    let copy = copy.ok_or(ChangeError::NotFound)?;
    if matches!(copy.keeping, Keeping::Quarantine(_)) {
        let reason = format!("it is in quarantine: {}", copy.keeping.reason());
        return Err(ChangeError::NotWhole { reason });
    }
    put(app, document, changer, (copy.blob, ChangeSource::Kept(number))).await
}

async fn put(
    app: &Arc<App>,
    document: &DocumentId,
    changer: Changer,
    (blob, from): (BlobFacts, ChangeSource),
) -> Result<Label, ChangeError> {
    let Changer { who, expected_head, editors } = changer;
    let wish = Wish::Put { blob: Box::new(blob), from, expected_head, editors };
    let label = when_nobody_edits(app, (document, &who), &wish).await?;
    tracing::info!(document.id = %document, "content {label} of document {document} was put by {}", who.id);
    Ok(label)
}

/// Deletes a document. It can be taken back; nothing of it goes away.
pub async fn delete(app: &Arc<App>, document: &DocumentId, who: &Author) -> Result<Label, ChangeError> {
    let head = when_nobody_edits(app, (document, who), &Wish::Delete).await?;
    tracing::info!(document.id = %document, "document {document} was deleted by {}", who.id);
    Ok(head)
}

/// Takes a deletion back. `false` if the document is not deleted.
pub async fn undelete(app: &Arc<App>, document: &DocumentId, who: &Author) -> Result<bool, ChangeError> {
    let is_back = app.ledger.undelete_document(document, who, app.now()).await?;
    app.signals.announce(Signal::Settled(document.clone())).await;
    Ok(is_back)
}

/// What somebody wants to happen past the editors.
enum Wish {
    Put { blob: Box<BlobFacts>, from: ChangeSource, expected_head: Option<Digest>, editors: EditorsInside },
    Delete,
}

impl Wish {
    async fn ask(&self, app: &App, request: ChangeRequest) -> Result<ChangeOutcome, LedgerError> {
        match self {
            Self::Put { blob, from, expected_head, editors } => {
                let (blob, from) = (BlobFacts::clone(blob), *from);
                let (expected_head, editors) = (*expected_head, *editors);
                app.ledger.put_version(&HeadChange { request, blob, from, expected_head, editors }).await
            }
            Self::Delete => app.ledger.delete_document(&request).await,
        }
    }
}

/// Asks, does what is asked first, and asks again, until it is done or the time is up.
async fn when_nobody_edits(
    app: &Arc<App>,
    (document, who): (&DocumentId, &Author),
    wish: &Wish,
) -> Result<Label, ChangeError> {
    let deadline = Instant::now() + app.config.opening.wait;
    let mut knowledge = None;
    loop {
        // Before the question, so that a save that settles in between is heard.
        let mut listener = app.signals.listen();
        let request = ChangeRequest {
            document: document.clone(),
            who: who.clone(),
            knowledge: knowledge.take(),
            quiet_after: quiet_after(app),
            at: app.now(),
        };
        match wish.ask(app, request).await? {
            ChangeOutcome::Done(label) => {
                app.signals.announce(Signal::Settled(document.clone())).await;
                return Ok(label);
            }
            ChangeOutcome::Edited(users) => return Err(ChangeError::Edited { users }),
            ChangeOutcome::ServerAway => return Err(ChangeError::ServerAway),
            ChangeOutcome::HeadMoved(head) => return Err(ChangeError::HeadMoved { head }),
            ChangeOutcome::AskServer(record) => knowledge = Some(knowledge_of(app, *record).await),
            ChangeOutcome::Finish(record) => app.signals.announce(Signal::FinishWanted(record.key)).await,
            ChangeOutcome::Wait => {}
        }
        if knowledge.is_none() && !settled(listener.as_mut(), document, deadline).await {
            return Err(ChangeError::BeingSaved);
        }
    }
}

async fn knowledge_of(app: &App, record: KeyRecord) -> Knowledge {
    let asked_at = app.now();
    let server = app.editor.knowledge_of(&record.key).await;
    Knowledge { key: record.key, saves_received: record.saves_received, server, asked_at }
}

impl From<UploadError> for ChangeError {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::TooLarge { limit_bytes } => Self::TooLarge { limit_bytes },
            UploadError::BrokenOff => Self::BrokenOff,
            UploadError::NoRoom => Self::NoRoom,
            UploadError::Spool(cause) => Self::Store(cause),
        }
    }
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Ledger(cause) => Self::Ledger(cause),
            StoreError::Vault(cause) => Self::Store(cause),
        }
    }
}
