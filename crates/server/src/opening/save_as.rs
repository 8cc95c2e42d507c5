//! "Save as": what the editor made of a document, in whatever type, becomes a document of its own.
//!
//! Guarantees: fetched from the Document Server only, from where its results lie, by the same guarded way as saves; checked like
//! every upload. The document it was made of does not change.

use std::sync::Arc;

use ledger::documents::{Author, Document};
use model::DocumentId;
use model::names::FileName;

use super::OpenError;
use super::upload::{Upload, store};
use crate::app::App;
use crate::editors::Wanted;

/// A wish of an editor (`onRequestSaveAs`).
#[derive(Debug, Clone)]
pub struct SaveAs {
    /// Where the Document Server put the file.
    pub url: String,
    /// The name of the new document.
    pub name: FileName,
    /// Its id.
    pub id: DocumentId,
    /// Who wants it.
    pub author: Author,
}

/// Fetches the file and makes a document of it, beside the one it was made of.
pub async fn save_as(app: &Arc<App>, from: &Document, wish: SaveAs) -> Result<Document, OpenError> {
    let wanted = Wanted { link: &wish.url, bytes_max: app.config.server.upload_bytes_max };
    let permit = Arc::clone(&app.fetching).acquire_owned().await.map_err(|_| OpenError::BrokenOff)?;
    let fetching = tokio::time::timeout(
        app.config.saving.fetch_within,
        app.editor.fetch_for_browser(&wanted, &app.spool),
    );
    let fetched = fetching.await.map_err(|_| OpenError::BrokenOff)?;
    drop(permit);
    let spooled = fetched.map_err(OpenError::Fetch)?;
    let upload = Upload {
        id: wish.id,
        company: from.company.clone(),
        project: from.project.clone(),
        name: wish.name,
        author: wish.author,
    };
    // From here on the work goes on although the caller may hang up.
    let storing = tokio::spawn(store(Arc::clone(app), upload, spooled));
    storing.await.map_err(|_| OpenError::BrokenOff)?
}
