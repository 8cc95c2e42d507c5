//! A workbook comes in: by upload, as a content of a document, or as the undoing of an earlier submission.
//!
//! Guarantees: the bytes are durable before a row names them; a caller who hangs up stops nothing; the same upload again finds the log
//! of the first one. Does not do: look into the workbook.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use ledger::documents::{Author, BlobFacts};
use ledger::logs::{CreatedLog, LogSource, LogsPage, NewLog, SummaryLog};
use ledger::records::AsOf;
use model::submissions::{LogState, OnUpload, rule_on_upload};
use model::{AccreditationId, DocumentId, Label, Scope, SummaryLogId};
use vault::{Sidecar, Spooled};

use super::{Grounds, SubmissionError, grounds, work_soon};
use crate::app::App;
use crate::incoming::{self, spool_upload, unchecked_facts};

/// A workbook on its way in.
#[derive(Debug, Clone)]
pub struct Upload {
    /// The id of the log.
    pub id: SummaryLogId,
    /// Whose.
    pub scope: Scope,
    /// Under which licence.
    pub accreditation: Option<AccreditationId>,
    /// What the file is called.
    pub name: String,
    /// The id an outside uploader gave it.
    pub upload: Option<String>,
    /// Who.
    pub who: Author,
}

/// Bytes that are in the vault already.
#[derive(Debug, Clone)]
pub struct Bringing {
    /// Them.
    pub blob: BlobFacts,
    /// The content of a document they are.
    pub document: Option<(DocumentId, Label)>,
}

/// Takes a workbook in.
pub async fn upload<E>(
    app: &Arc<App>,
    new: Upload,
    body: impl Stream<Item = Result<Bytes, E>>,
) -> Result<SummaryLog, SubmissionError> {
    let grounds = grounds::of_scope(app, &new.scope).await?;
    refuse_early(app, &new.scope, &grounds).await?;
    let spooled = spool_upload(app, body).await?;
    // From here on the work goes on although the caller may hang up.
    let storing = tokio::spawn(store(Arc::clone(app), new, grounds, spooled));
    storing.await.map_err(|_| SubmissionError::Interrupted)?
}

/// Whoever has to wait is told before they send megabytes. The ledger decides again, under the lock of the scope.
async fn refuse_early(app: &App, scope: &Scope, grounds: &Grounds) -> Result<(), SubmissionError> {
    let page = LogsPage {
        scope: Some(scope.clone()),
        states: vec![LogState::Submitting],
        limit: 1,
        ..LogsPage::default()
    };
    let submitting = app.ledger.logs(&page).await?;
    match rule_on_upload(grounds.template.policy, submitting.first().map(|log| &log.id)) {
        OnUpload::RefuseWhileSubmitting => Err(SubmissionError::InProgress),
        OnUpload::Create { .. } => Ok(()),
    }
}

async fn store(
    app: Arc<App>,
    new: Upload,
    grounds: Grounds,
    spooled: Spooled,
) -> Result<SummaryLog, SubmissionError> {
    let sidecar = Sidecar::Uploaded { to_become: document_like(&new.id)? };
    let life = incoming::store(&app, &spooled, &sidecar).await?;
    steps::reached("log.stored");
    app.arrived.keep(&spooled);
    let blob = unchecked_facts(&spooled, "xlsx", life);
    let source = LogSource::Workbook { name: new.name.clone(), blob, document: None };
    create(&app, (new, grounds), source).await
}

/// Takes bytes in that are in the vault already: a content of a document.
pub async fn upload_content(
    app: &Arc<App>,
    new: Upload,
    bringing: Bringing,
) -> Result<SummaryLog, SubmissionError> {
    let grounds = grounds::of_scope(app, &new.scope).await?;
    let source =
        LogSource::Workbook { name: new.name.clone(), blob: bringing.blob, document: bringing.document };
    create(app, (new, grounds), source).await
}

/// Makes a log that undoes an earlier commit of the scope. It is previewed and confirmed like any other.
pub async fn undo(app: &Arc<App>, new: Upload, sequence: u64) -> Result<SummaryLog, SubmissionError> {
    let commit = app.ledger.commit_at(&new.scope, &AsOf::Commit(sequence)).await?;
    if commit != Some(sequence) || sequence == 0 {
        return Err(SubmissionError::NotFound);
    }
    let grounds = grounds::of_scope(app, &new.scope).await?;
    create(app, (new, grounds), LogSource::Undo(sequence)).await
}

async fn create(
    app: &Arc<App>,
    (new, grounds): (Upload, Grounds),
    source: LogSource,
) -> Result<SummaryLog, SubmissionError> {
    let Upload { id, scope, accreditation, name: _, upload, who } = new;
    let new = NewLog {
        id,
        scope,
        accreditation,
        template: grounds.template.id.clone(),
        template_version: grounds.template.version.to_string(),
        policy: grounds.template.policy,
        upload,
        source,
        who,
        at: app.now(),
    };
    let created = app.ledger.create_log(&new).await?;
    steps::reached("log.created");
    let log = match created {
        CreatedLog::Created { log, superseded } => {
            tracing::info!(log.id = %log.id, scope = %log.scope, superseded = superseded.len(), "a summary log came in");
            log
        }
        CreatedLog::Known(log) => log,
        CreatedLog::Busy(_) => return Err(SubmissionError::InProgress),
    };
    app.logs_moved.notify_waiters();
    work_soon(app, log.id.clone());
    Ok(*log)
}

/// The sidecar of a blob names what it was to become.
fn document_like(id: &SummaryLogId) -> Result<DocumentId, SubmissionError> {
    DocumentId::parse(id.as_str()).map_err(|_| SubmissionError::NotFound)
}
