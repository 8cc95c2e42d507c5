//! What waits in the depot is delivered to the far vault as soon as that is back, and people are told.
//!
//! Guarantees: whoever looks at the metrics, at `/readyz` or at the log sees that something waits, how much, and since when.
//! Does not do: store or deliver (`vault::depot` does).

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use vault::depot::{Delivered, Depot, Fill, Room};

use crate::app::App;
use crate::telemetry::{self, report};

/// How often somebody looks.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// How often it is said that something stays.
const SAY_AGAIN: Duration = Duration::from_secs(300);

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
    let (mut before, mut complaints) = (Fill::default(), Complaints::default());
    loop {
        let now = fill(&app).await;
        tell(&depot, before, now);
        // Looked at on the disk: a command beside the service may have left something there too.
        deliver(&depot, &mut complaints).await;
        before = now;
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}

async fn deliver(depot: &Depot, complaints: &mut Complaints) {
    match depot.deliver().await {
        Ok(delivered) => {
            if delivered.blobs > 0 {
                tracing::info!(blobs = delivered.blobs, "what waited in the depot was delivered");
            }
            complaints.hear(depot, delivered);
        }
        Err(cause) => tracing::warn!(cause = report(&cause), "the depot cannot be read"),
    }
}

/// What stays in the depot, said at once and then now and then.
#[derive(Default)]
struct Complaints {
    refused_since: Option<Instant>,
    told_at: Option<Instant>,
}

impl Complaints {
    fn hear(&mut self, depot: &Depot, delivered: Delivered) {
        if delivered.refused == 0 {
            self.refused_since = None;
        } else if delivered.blobs == 0 {
            self.refused_since.get_or_insert_with(Instant::now);
        }
        // A far side that is away is told of elsewhere; one that takes some and not others, or nothing for long, is not just away.
        let is_picky = delivered.refused > 0 && delivered.blobs > 0;
        let is_long = self.refused_since.is_some_and(|since| since.elapsed() >= SAY_AGAIN);
        if !(is_picky || is_long || delivered.damaged > 0)
            || self.told_at.is_some_and(|at| at.elapsed() < SAY_AGAIN)
        {
            return;
        }
        self.told_at = Some(Instant::now());
        if delivered.damaged > 0 {
            telemetry::alert("depot-damaged");
            tracing::error!(
                blobs = delivered.damaged,
                "blobs cannot be read in the depot and are not delivered; see `saveguard verify`"
            );
        }
        if is_picky || is_long {
            let cause = depot.last_refusal().unwrap_or_default();
            tracing::warn!(
                blobs = delivered.refused,
                cause,
                "the far vault does not take what waits in the depot"
            );
        }
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
