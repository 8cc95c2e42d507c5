//! What waits in the depot is delivered to the far vault as soon as that is back, and people are told.
//!
//! Guarantees: whoever looks at the metrics, at `/readyz` or at the log sees that something waits, how much, and since when.
//! Does not do: store or deliver (`vault::depot` does).

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use vault::depot::{Depot, Fill, Room};

use crate::app::App;
use crate::telemetry::{self, report};

/// How often somebody looks.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// What waits; nothing if there is no far vault.
pub(crate) async fn fill(app: &App) -> Fill {
    match &app.depot {
        // A depot that cannot be counted fails louder elsewhere.
        Some(depot) => depot.fill().await.unwrap_or_default(),
        None => Fill::default(),
    }
}

/// Delivers whenever there is something, until the end.
pub(crate) async fn follow(app: Arc<App>, stop: CancellationToken) {
    let Some(depot) = app.depot.clone() else { return };
    let mut before = Fill::default();
    loop {
        let now = fill(&app).await;
        tell(&depot, before, now);
        // Looked at on the disk: a command beside the service may have left something there too.
        deliver(&depot).await;
        before = now;
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}

async fn deliver(depot: &Depot) {
    match depot.deliver().await {
        Ok(delivered) => {
            if delivered.damaged > 0 {
                telemetry::alert("depot-damaged");
                tracing::error!(
                    blobs = delivered.damaged,
                    "blobs are damaged in the depot and are not delivered; see `saveguard verify`"
                );
            }
            if delivered.blobs > 0 {
                tracing::info!(blobs = delivered.blobs, "what waited in the depot was delivered");
            }
        }
        Err(cause) => tracing::debug!(cause = report(&cause), "the far vault takes nothing yet"),
    }
}

fn tell(depot: &Depot, before: Fill, now: Fill) {
    if before.blobs == 0 && now.blobs > 0 {
        telemetry::alert("depot-used");
        tracing::warn!(
            blobs = now.blobs,
            "the far vault is away: saves are kept in the depot until it is back"
        );
    }
    let Room::Bytes(bytes_max) = depot.room() else { return };
    let is_nearly_full = |fill: Fill| fill.bytes > bytes_max / 10 * 9;
    if is_nearly_full(now) && !is_nearly_full(before) {
        telemetry::alert("depot-full");
        tracing::error!(bytes = now.bytes, bytes_max, "the depot is nearly full; then saves are refused");
    }
}
