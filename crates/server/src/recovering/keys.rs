//! Keys whose session is over but of which nobody heard our answer: ask the server, and retire those it is done with.

use std::sync::Arc;

use jiff::SignedDuration;
use ledger::keys::{KeyRecord, Retirement};
use model::EditorKey;
use model::opening::may_collect_forgotten;
use model::saves::KeyStanding;
use signals::Signal;

use super::{RecoveryError, forgotten};
use crate::app::App;

/// The server repeats for seven seconds; before that there is nothing to ask.
const QUIET: SignedDuration = SignedDuration::from_secs(30);

/// Looks after every live key whose final save or forgotten file is committed.
pub(super) async fn settle(app: &Arc<App>) -> Result<(), RecoveryError> {
    let now = app.now();
    for record in app.ledger.live_keys().await? {
        let is_quiet = record.last_seen_at.is_none_or(|seen| now.duration_since(seen) > QUIET);
        if (record.has_final_save || record.is_spent) && is_quiet {
            finish(app, &record.key).await?;
        }
    }
    Ok(())
}

/// Collects what a finished key left behind and retires it, unless the server still holds something.
pub(super) async fn finish(app: &Arc<App>, key: &EditorKey) -> Result<(), RecoveryError> {
    let Some(record) = app.ledger.key(key).await? else { return Ok(()) };
    if record.standing == KeyStanding::Live && may_collect_forgotten(app.editor.knowledge_of(key).await) {
        forgotten::collect(app, key, &record.document).await?;
        retire_if_empty(app, &record).await?;
    }
    app.signals.announce(Signal::Settled(record.document)).await;
    Ok(())
}

/// Somebody may have entered from the forgotten file while it was collected. Now that it is gone nobody new can, so what
/// the server says now stays true.
async fn retire_if_empty(app: &App, record: &KeyRecord) -> Result<(), RecoveryError> {
    if !may_collect_forgotten(app.editor.knowledge_of(&record.key).await) {
        return Ok(());
    }
    let retirement = Retirement {
        key: record.key.clone(),
        saves_received: record.saves_received,
        why: "the server holds nothing",
        at: app.now(),
    };
    if app.ledger.retire_key(&retirement).await? {
        tracing::info!(document.id = %record.document, "a finished key of document {} was retired", record.document);
    }
    Ok(())
}
