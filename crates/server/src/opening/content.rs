//! The bytes of a version or of a kept copy, for people and for the Document Server.
//!
//! Guarantees: a whole answer is verified against its hash before its last bytes leave; a part is what was asked for.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use ledger::documents::{Content, Document};
use model::{Digest, Label};
use tokio::io::AsyncRead;
use vault::read_verified;

use super::OpenError;
use crate::app::App;
use crate::read_backs::Noting;

/// A version or checkpoint; the head if none is named.
pub async fn version(app: &App, document: &Document, label: Option<Label>) -> Result<Content, OpenError> {
    let label = label.unwrap_or(document.head);
    let content =
        app.ledger.content(&document.id, label).await?.filter(|content| content.pruned_at.is_none());
    content
        .ok_or_else(|| OpenError::NotFound { what: format!("version {label} of document `{}`", document.id) })
}

/// Opens a blob for reading: a part of it, or the whole, verified.
pub async fn read(
    app: &App,
    digest: &Digest,
    range: Option<Range<u64>>,
) -> Result<Pin<Box<dyn AsyncRead + Send>>, OpenError> {
    let is_whole = range.is_none();
    let opened = app.vault.open(digest, range).await?;
    if !is_whole {
        return Ok(opened.reader);
    }
    Ok(Box::pin(Noting {
        reader: Box::pin(read_verified(opened.reader, *digest)),
        left_bytes: opened.size_bytes,
        digest: *digest,
        at: app.now(),
        read_backs: Arc::clone(&app.read_backs),
    }))
}
