//! A new document comes in: spool, check, store, then the row.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use ledger::documents::{Author, Document, NewDocument};
use model::checking::Source;
use model::names::FileName;
use model::{CompanyId, DocumentId, ProjectId};
use office_check::Hint;
use signals::Signal;
use vault::{Sidecar, Spooled};

use super::OpenError;
use crate::app::App;
use crate::incoming::{self, check, spool_upload};

/// A document to be brought in.
#[derive(Debug, Clone)]
pub struct Upload {
    /// Its id.
    pub id: DocumentId,
    /// Its place.
    pub company: CompanyId,
    /// Its place in the company.
    pub project: ProjectId,
    /// Its file name.
    pub name: FileName,
    /// Who brings it.
    pub author: Author,
}

/// Takes a document in. Nothing is left behind but a blob if the row cannot be written.
pub async fn upload<E>(
    app: &Arc<App>,
    upload: Upload,
    body: impl Stream<Item = Result<Bytes, E>>,
) -> Result<Document, OpenError> {
    let spooled = spool_upload(app, body).await?;
    // From here on the work goes on although the caller may hang up.
    let storing = tokio::spawn(store(Arc::clone(app), upload, spooled));
    storing.await.map_err(|_| OpenError::BrokenOff)?
}

/// Checks, stores and commits spooled bytes as a new document.
pub(super) async fn store(app: Arc<App>, upload: Upload, spooled: Spooled) -> Result<Document, OpenError> {
    let hint = Hint::from_extension(&upload.name.extension());
    let mut checked = check(&app, &spooled, (hint, Source::Other)).await?;
    if let Some(reason) = checked.refusal.take() {
        return Err(OpenError::NotWhole { reason });
    }
    refuse_over_quota(&app, &upload, &spooled).await?;
    let life = incoming::store(&app, &spooled, &Sidecar::Uploaded { to_become: upload.id.clone() }).await?;
    steps::reached("upload.stored");
    let new = NewDocument {
        id: upload.id,
        company: upload.company,
        project: upload.project,
        name: upload.name,
        blob: checked.facts(&spooled, life),
        author: upload.author,
        at: app.now(),
    };
    let document = app.ledger.create_document(&new).await?;
    steps::reached("upload.committed");
    tracing::info!(document.id = %document.id, "document {} was brought in", document.id);
    app.signals.announce(Signal::Settled(document.id.clone())).await;
    Ok(document)
}

/// What will be refused is not stored first: refused uploads must not fill the vault. The ledger looks again, in the very
/// step that adds the document.
async fn refuse_over_quota(app: &App, upload: &Upload, spooled: &Spooled) -> Result<(), OpenError> {
    let Some(company) = app.ledger.company(&upload.company).await? else { return Ok(()) };
    company.quota.rule_on_new_document(company.usage, spooled.size_bytes).map_err(OpenError::OverQuota)
}
