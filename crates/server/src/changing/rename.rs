//! Another name for a document. Nothing of its content changes, so it may be edited meanwhile.
//!
//! The steps: the ledger writes the name down and owes the published tree; whoever edits is told by the Document Server; the
//! tree follows. Guarantees: the type in the name stays what it was; those who edit are told after the fact and beside the
//! request, which does not wait for the server.

use std::sync::Arc;

use ledger::documents::{Author, Document};
use ledger::history::DocumentRenaming;
use model::names::FileName;
use signals::Signal;

use super::ChangeError;
use crate::app::App;
use crate::telemetry::report;

/// Renames a document.
pub async fn rename(
    app: &Arc<App>,
    document: &Document,
    name: &str,
    who: Author,
) -> Result<Document, ChangeError> {
    let name = FileName::parse_as(name, &document.name.extension())?;
    let renaming = DocumentRenaming { document: document.id.clone(), name, by: who, at: app.now() };
    let renamed = app.ledger.rename_document(&renaming).await?.ok_or(ChangeError::NotFound)?;
    if renamed.name != document.name {
        steps::reached("rename.committed");
        tracing::info!(document.id = %document.id, "document {} has another name", document.id);
        tell_editors(app, &renamed);
        app.signals.announce(Signal::Settled(document.id.clone())).await;
    }
    Ok(renamed)
}

/// Those who are not told see the new name when they open the document again.
fn tell_editors(app: &Arc<App>, document: &Document) {
    let (app, document) = (Arc::clone(app), document.clone());
    tokio::spawn(async move {
        let live = app.ledger.live_key_of(&document.id).await.ok().flatten();
        let Some(live) = live else { return };
        if let Err(cause) = app.editor.rename(&live.key, document.name.as_str()).await {
            tracing::warn!(error = %report(&cause), "editors could not be told of another name");
        }
    });
}
