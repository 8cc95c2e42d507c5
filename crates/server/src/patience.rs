//! How long a flow waits for the other side, in one place.
//!
//! Guarantees: every wait has an end. Does not do: decide what to do then.

use std::time::Duration;

use jiff::SignedDuration;
use model::DocumentId;
use signals::{Listener, Signal};
use tokio::time::Instant;

use crate::app::App;

/// Looked for by itself at least this often, should a signal be lost.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The server repeats a save for seven seconds. After that neither a repeat nor our answer to one can be on its way.
pub(crate) fn quiet_after(app: &App) -> SignedDuration {
    let patience = Duration::from_secs(10).min(app.config.recovering.interval / 2);
    SignedDuration::try_from(patience).unwrap_or(SignedDuration::from_secs(10))
}

/// Waits until something settled about the document, or for a moment. `false` if the time is up.
pub(crate) async fn settled(listener: &mut dyn Listener, document: &DocumentId, deadline: Instant) -> bool {
    if Instant::now() >= deadline {
        return false;
    }
    let until = deadline.min(Instant::now() + LOOK_AGAIN);
    let _ = tokio::time::timeout_at(until, async {
        loop {
            match listener.next().await {
                Some(Signal::Settled(settled)) if settled == *document => return,
                None => return,
                _ => {}
            }
        }
    })
    .await;
    true
}
