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
use vault::{Sidecar, Spooled};

use crate::app::App;
use crate::editors::{FetchError, Wanted};
use crate::incoming::{store, unchecked_facts};
use crate::telemetry::{self, report};

/// Records are small: text of changes, zipped. Without one a version has no highlights, that is all.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How much longer than for the content anybody waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// A record on its way.
pub(super) struct Record(Option<JoinHandle<Result<Spooled, FetchError>>>);

impl Record {
    /// Begins to fetch it, if there is one worth having: a checkpoint has those of its whole session, as its final save will.
    pub(super) fn begin(app: &Arc<App>, save: &OpenSave, plan: Plan) -> Self {
        let link = save.callback.changes_url.clone().filter(|_| plan == Plan::Store(SaveKind::Final));
        let fetching = link.map(|link| {
            let app = Arc::clone(app);
            tokio::spawn(async move {
                let wanted = Wanted { link: &link, bytes_max: BYTES_MAX };
                app.editor.fetch_at_most(&wanted, &app.spool).await
            })
        });
        Self(fetching)
    }

    /// Stores it if it is here.
    pub(super) async fn store(mut self, app: &App, save: &OpenSave) -> Option<BlobFacts> {
        let fetched = tokio::time::timeout(PATIENCE, self.0.as_mut()?).await;
        let result = match fetched {
            Ok(Ok(Ok(spooled))) => {
                let sidecar = Sidecar::Changes { key: save.callback.key.clone() };
                let stored = store(app, &spooled, &sidecar).await;
                stored.map(|life| unchecked_facts(&spooled, "zip", life)).map_err(|cause| report(&cause))
            }
            Ok(Ok(Err(cause))) => Err(report(&cause)),
            Ok(Err(_)) => Err("it was interrupted".to_owned()),
            Err(_) => Err("it took too long".to_owned()),
        };
        telemetry::record_ended(if result.is_ok() { "kept" } else { "lost" });
        if let Err(cause) = &result {
            tracing::warn!(
                inbox = save.number.0,
                error = cause,
                "the record of the changes of a save could not be kept"
            );
        }
        result.ok()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(fetching) = &self.0 {
            fetching.abort();
        }
    }
}
