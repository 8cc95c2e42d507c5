//! Bytes that an outside uploader brings before it tells whose they are.
//!
//! Guarantees: bytes are kept only if they have the hash that was announced; a notice names bytes that are here. Does not do: trust
//! anybody. The edge has checked the signature.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use ledger::documents::BlobFacts;
use ledger::logs::SummaryLog;
use model::{Digest, DocumentId};
use vault::Sidecar;

use super::SubmissionError;
use super::uploading::{Bringing, Upload, upload_content};
use crate::app::App;
use crate::incoming::{self, spool_upload};

/// Digits of a hash that fit into an id.
const HASH_DIGITS: usize = 32;

/// Keeps bytes under the hash they have.
pub async fn put_bytes<E>(
    app: &Arc<App>,
    announced: Digest,
    body: impl Stream<Item = Result<Bytes, E>>,
) -> Result<(), SubmissionError> {
    let spooled = spool_upload(app, body).await?;
    if spooled.digest != announced {
        return Err(SubmissionError::OtherBytes);
    }
    let name = format!("upload-{}", announced.short(HASH_DIGITS));
    let to_become = DocumentId::parse(&name).map_err(|_| SubmissionError::NotFound)?;
    let app = Arc::clone(app);
    // From here on the work goes on although the caller may hang up.
    let storing =
        tokio::spawn(async move { incoming::store(&app, &spooled, &Sidecar::Uploaded { to_become }).await });
    storing.await.map_err(|_| SubmissionError::Interrupted)??;
    Ok(())
}

/// A file that should be here.
#[derive(Debug, Clone, Copy)]
pub struct Stored {
    /// The hash of its bytes.
    pub digest: Digest,
    /// How many they should be, if that was said.
    pub size_bytes: Option<u64>,
}

/// Makes a log of bytes that were put here before.
pub async fn upload_stored(
    app: &Arc<App>,
    new: Upload,
    stored: Stored,
) -> Result<SummaryLog, SubmissionError> {
    // Asked first, so that a removal meanwhile is noticed.
    let removals = app.ledger.removals_of(&stored.digest).await?;
    let size_bytes = app.vault.size_of(&stored.digest).await?.ok_or(SubmissionError::OtherBytes)?;
    if stored.size_bytes.is_some_and(|announced| announced != size_bytes) {
        return Err(SubmissionError::OtherBytes);
    }
    let blob = BlobFacts { removals, ..BlobFacts::plain(stored.digest, size_bytes, "xlsx") };
    upload_content(app, new, Bringing { blob, document: None }).await
}
