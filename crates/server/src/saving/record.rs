//! The server's record of who changed what, fetched beside a final save: editors highlight changes with it.
//!
//! Guarantees: it never fails a save and hardly delays one: it is fetched while the content is, within a limit of its own, and
//! whoever has the content waits for it a moment only. Its link dies like the content's, so there is no second chance.
//! Does not do: look inside it. It is served to the Document Server as it came.

use std::sync::Arc;
use std::time::Duration;

use ledger::documents::BlobFacts;
use ledger::saves::OpenSave;
use model::callbacks::Plan;
use model::saves::SaveKind;
use tokio::task::JoinHandle;
use vault::Sidecar;

use crate::app::App;
use crate::editors::{FetchError, Wanted};
use crate::incoming::{StoreError, store, unchecked_facts};
use crate::telemetry::{self, report};

/// Records are small: text of changes, zipped. Without one a version has no highlights, that is all.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How much longer than for the content anybody waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// A record on its way.
pub(super) struct Record(Option<JoinHandle<Result<BlobFacts, RecordError>>>);

/// Why there is no record.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error("it could not be fetched")]
    Fetch(#[from] FetchError),
    #[error("it could not be stored")]
    Store(#[from] StoreError),
    #[error("it took too long")]
    Late,
    #[error("it was interrupted")]
    Interrupted,
}

impl Record {
    /// Begins to fetch it, if there is one worth having: a checkpoint has those of its whole session, as its final save will.
    pub(super) fn begin(app: &Arc<App>, save: &OpenSave, plan: Plan) -> Self {
        let link = save.callback.changes_url.clone().filter(|_| plan == Plan::Store(SaveKind::Final));
        let sidecar = Sidecar::Changes { key: save.callback.key.clone() };
        Self(link.map(|link| tokio::spawn(fetch_and_store(Arc::clone(app), link, sidecar))))
    }

    /// The record, if it is here.
    pub(super) async fn here(mut self, save: &OpenSave) -> Option<BlobFacts> {
        let fetched = tokio::time::timeout(PATIENCE, self.0.as_mut()?).await;
        let record = fetched
            .map_err(|_| RecordError::Late)
            .and_then(|ended| ended.unwrap_or(Err(RecordError::Interrupted)));
        telemetry::record_ended(if record.is_ok() { "kept" } else { "lost" });
        if let Err(cause) = &record {
            tracing::warn!(inbox = save.number.0, error = %report(cause), "the record of the changes of a save could not be kept");
        }
        record.ok()
    }
}

async fn fetch_and_store(app: Arc<App>, link: String, sidecar: Sidecar) -> Result<BlobFacts, RecordError> {
    let wanted = Wanted { link: &link, bytes_max: BYTES_MAX };
    let spooled = app.editor.fetch_at_most(&wanted, &app.spool).await?;
    let life = store(&app, &spooled, &sidecar).await?;
    Ok(unchecked_facts(&spooled, "zip", life))
}

/// Nobody waits for it any more. Should it be stored at this very moment, the next start finds it and lets it go.
impl Drop for Record {
    fn drop(&mut self) {
        if let Some(fetching) = &self.0 {
            fetching.abort();
        }
    }
}
