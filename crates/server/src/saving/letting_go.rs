//! Before a final save is answered: nothing else of its key may need what the server lets go of.
//!
//! With a 0 the server deletes every change of the key and its forgotten file; with a refusal it deletes every change and
//! puts the file of that very save in the place of the forgotten one. But it repeats an older final save side by
//! side with a newer one. If the newer one is still on its way to us, the changes are needed in case it does not arrive
//! whole; if it did not, it lies in the server's forgotten files, from where it may yet come whole.
//!
//! Guarantees: bounded time; a key with one final save waits for nothing. Does not do: collect. `recovering` does.

use std::time::{Duration, Instant};

use model::callbacks::Answer;
use model::{EditorKey, InboxNumber};

use crate::app::App;

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

/// Waits until the server may let go of the key of a final save, if it can be expected to.
pub(super) async fn may_let_go(
    app: &App,
    (key, number): (&EditorKey, InboxNumber),
    (answer, received): (Answer, Instant),
) -> LettingGo {
    // Only a 0 takes the forgotten file away.
    let is_collected_first = answer == Answer::Saved && app.guards.collector;
    let asked = tokio::time::Instant::now();
    let others = app.config.saving.answer_within.saturating_sub(received.elapsed());
    let (mut wait, mut granted) = (FIRST_WAIT, LettingGo::AtOnce);
    loop {
        let patience = match app.ledger.still_needed(number, app.now()).await {
            Ok(needed) if needed.another_is_being_stored => others,
            Ok(needed) if needed.one_was_refused && is_collected_first => {
                granted = LettingGo::AfterWaiting;
                if matches!(app.editor.forgotten_link(key).await, Ok(None)) {
                    return granted;
                }
                app.recovery_wanted.notify_one();
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
