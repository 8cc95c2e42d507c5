//! Before a final save is answered: nothing else of its key may need what the server lets go of.
//!
//! With a 0 the server deletes every change of the key and its forgotten file; with a refusal it deletes every change and
//! puts the file of that very save in the place of the forgotten one. But it repeats an older final save side by
//! side with a newer one. If the newer one is still on its way to us, the changes are needed in case it does not arrive
//! whole; if it did not, it lies in the server's forgotten files, from where it may yet come whole.
//!
//! Guarantees: bounded time; a key with one final save waits for nothing. Does not do: collect; `recovering` does, unless the
//! session was opened on the forgotten file itself. Then its bytes are only kept here, for the collector leaves a file alone
//! that somebody works on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::saves::ForgottenFile;
use model::callbacks::Answer;
use model::checking::Source;
use model::{EditorKey, InboxNumber};
use vault::Sidecar;

use super::SaveError;
use crate::app::App;
use crate::incoming::{check, hint_of, store};
use crate::telemetry::report;

/// Waits double from the first on.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LAST_WAIT: Duration = Duration::from_secs(1);

/// A forgotten file that cannot be fetched whole for so long is damaged where it is.
const COLLECTING: Duration = Duration::from_secs(6);

/// Whether the server may hear an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LettingGo {
    /// Nothing stood against it.
    AtOnce,
    /// Something did, and is over.
    AfterWaiting,
    NotNow,
}

/// A final save that is about to be answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving<'a> {
    pub(super) key: &'a EditorKey,
    pub(super) number: InboxNumber,
    /// Without one, its session was opened on the key's forgotten file.
    pub(super) has_history: bool,
}

/// Waits until the server may let go of the key of a final save, if it can be expected to.
pub(super) async fn may_let_go(
    app: &App,
    leaving: &Leaving<'_>,
    (answer, received): (Answer, Instant),
) -> LettingGo {
    // Only a 0 takes the forgotten file away.
    let is_collected_first = answer == Answer::Saved && app.guards.collector;
    let asked = tokio::time::Instant::now();
    let others = app.config.saving.answer_within.saturating_sub(received.elapsed());
    let (mut wait, mut granted) = (FIRST_WAIT, LettingGo::AtOnce);
    loop {
        let patience = match app.ledger.still_needed(leaving.number, app.now()).await {
            Ok(needed) if needed.another_is_being_stored => others,
            Ok(needed) if needed.one_was_refused && is_collected_first => {
                granted = LettingGo::AfterWaiting;
                match app.editor.forgotten_link(leaving.key).await {
                    Ok(None) => return granted,
                    Ok(Some(link)) if !leaving.has_history && keep_bytes(app, leaving.key, &link).await => {
                        return granted;
                    }
                    _ => app.recovery_wanted.notify_one(),
                }
                COLLECTING.min(others)
            }
            Ok(_) => return granted,
            Err(_) => Duration::ZERO,
        };
        if asked.elapsed() >= patience {
            return LettingGo::NotNow;
        }
        granted = LettingGo::AfterWaiting;
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LAST_WAIT);
    }
}

/// Keeps the bytes of a forgotten file, whatever they are worth. Whether they are safe now.
async fn keep_bytes(app: &App, key: &EditorKey, link: &str) -> bool {
    match try_to_keep(app, key, link).await {
        Ok(is_kept) => is_kept,
        Err(cause) => {
            tracing::warn!(error = %report(&cause), "a forgotten file could not be kept");
            false
        }
    }
}

async fn try_to_keep(app: &App, key: &EditorKey, link: &str) -> Result<bool, SaveError> {
    let Some(parts) = key.parts() else { return Ok(false) };
    let spooled = app.editor.fetch(link, &app.spool).await.map_err(SaveError::Fetch)?;
    let checked = check(app, &spooled, (hint_of(link), Source::DocumentServer)).await?;
    if checked.is_refused() {
        return Ok(false);
    }
    let sidecar = Sidecar::Saved { key: key.clone(), status: 0 };
    let life = store(app, &spooled, &sidecar).await.map_err(SaveError::Store)?;
    let file = ForgottenFile {
        key: key.clone(),
        document: parts.document,
        blob: checked.facts(&spooled, life),
        damaged: None,
        saves_received: 0,
        keeps_source: true,
        policy: Arc::clone(&app.config.checking),
        at: app.now(),
    };
    app.ledger.keep_forgotten(&file).await?;
    Ok(true)
}
