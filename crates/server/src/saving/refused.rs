//! Before a final save is answered 0: what the same key sent and we had to refuse is collected.
//!
//! The server repeats an older final save side by side with a newer one. If the newer one did not arrive whole, we refused
//! it and it lies in the server's forgotten files, from where it may yet come whole. A 0 to the older one would delete it
//! there.
//!
//! Guarantees: bounded time; a key of which nothing was refused waits for nothing. Does not do: collect. `recovering` does.

use std::time::Duration;

use ledger::documents::{Keeping, KeptPage, Whose};
use model::{DocumentId, EditorKey};

use crate::app::App;

/// Waits double from the first to the last, some six seconds in all: broken transfers are seldom broken for longer.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LOOKS: u32 = 7;

/// A key has few copies in quarantine, and they are the newest ones while it is in use.
const KEPT_LOOKED_AT: u32 = 100;

/// Lets the forgotten file of a key be collected, if something of the key was refused. `false` if it still lies there.
pub(super) async fn is_collected(app: &App, document: &DocumentId, key: &EditorKey) -> bool {
    if !app.guards.collector || !was_refused(app, document, key).await {
        return true;
    }
    for look in 0..LOOKS {
        if matches!(app.editor.forgotten_link(key).await, Ok(None)) {
            return true;
        }
        app.recovery_wanted.notify_one();
        tokio::time::sleep(FIRST_WAIT * 2_u32.pow(look)).await;
    }
    false
}

/// Whether a copy of the key is in quarantine. When nobody can say, it is.
async fn was_refused(app: &App, document: &DocumentId, key: &EditorKey) -> bool {
    let page = KeptPage { of: Whose::Document(document.clone()), before: None, limit: KEPT_LOOKED_AT };
    let is_it = |keeping: &Keeping, of: Option<&EditorKey>| {
        of == Some(key) && matches!(keeping, Keeping::Quarantine(_))
    };
    match app.ledger.kept_copies(&page).await {
        Ok(kept) => kept.iter().any(|copy| is_it(&copy.keeping, copy.key.as_ref())),
        Err(_) => true,
    }
}
