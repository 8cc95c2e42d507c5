//! Keys whose session is over but of which nobody heard our answer: ask the server, and retire those it is done with.

use std::sync::Arc;

use ledger::keys::{KeyRecord, Retirement};
use model::EditorKey;
use model::opening::{Quiet, may_retire};
use model::saves::KeyStanding;
use signals::Signal;

use super::{RecoveryError, forgotten};
use crate::app::App;
use crate::transitions::Transition;

/// Looks after every live key whose final save or forgotten file is committed.
pub(super) async fn settle(app: &Arc<App>) -> Result<(), RecoveryError> {
    for record in app.ledger.live_keys().await? {
        if (record.has_final_save || record.is_spent) && is_quiet(app, &record) == Quiet::Yes {
            finish(app, &record.key).await?;
        }
    }
    Ok(())
}

/// The server repeats a save for seven seconds; half the time between two rounds (30 s) is well beyond that.
pub(super) fn is_quiet(app: &App, record: &KeyRecord) -> Quiet {
    let patience = app.config.recovering.interval / 2;
    let heard_of = record.last_seen_at.unwrap_or(record.issued_at);
    let is_recent = app.now().duration_since(heard_of).unsigned_abs() < patience;
    if is_recent { Quiet::No } else { Quiet::Yes }
}

/// People may wait for it at several instances; one of them does it.
pub(super) async fn finish_in_turn(app: &Arc<App>, key: &EditorKey) -> Result<(), RecoveryError> {
    let Some(parts) = key.parts() else { return Ok(()) };
    let Some(_transition) = Transition::begin_unless_done(app, &parts.document).await else { return Ok(()) };
    match app.turns.take(&format!("finish {key}")).await? {
        Some(_turn) => finish(app, key).await,
        None => Ok(()),
    }
}

/// Collects what a finished key left behind and retires it, unless the server still holds something.
pub(super) async fn finish(app: &Arc<App>, key: &EditorKey) -> Result<(), RecoveryError> {
    let Some(record) = app.ledger.key(key).await? else { return Ok(()) };
    forgotten::collect(app, key, &record.document).await?;
    if record.standing == KeyStanding::Live {
        retire_if_empty(app, &record).await?;
    }
    app.signals.announce(Signal::Settled(record.document)).await;
    Ok(())
}

/// Somebody may have entered from the forgotten file while it was collected. Now that it is gone nobody new can, so what
/// the server says now stays true.
async fn retire_if_empty(app: &App, record: &KeyRecord) -> Result<(), RecoveryError> {
    if !may_retire(app.editor.knowledge_of(&record.key).await) {
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
