//! Announcing: other programs are told what happened, signed, in order per document, until they have heard it.
//!
//! What is told stands in the ledger's outbox since the transaction that it tells of. Each target has a worker of its own, so
//! that one that is slow or away keeps no other waiting: it takes what is due, a bounded number side by side and never two of
//! one document, sends each, and writes down what came of it. A failed one is tried again after growing pauses for a day;
//! then it is given up, listed, and can be tried again by a person.
//!
//! Guarantees: at least once, with an id that stays the same; a later event of a document is not sent before the earlier one
//! arrived or was given up; a restart changes nothing. Only the configured addresses are called, and no redirect is followed.
//! Does not do: exactly once. Who receives compares the id.

mod sending;

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::SignedDuration;
use ledger::LedgerError;
use ledger::outbox::{Delivery, DeliveryEnd, Subscription};
use model::webhooks::{Retry, rule_on_failed_delivery};
use signals::Listener;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::config::Webhook;
use crate::telemetry::{self, report};

use sending::{Sender, Sent};

/// Deliveries to one target at once.
const PARALLEL_MAX: usize = 8;
/// Deliveries that are in memory for one target.
const PAGE: u32 = 32;
/// Looked for by itself at least this often, should a signal be lost.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// While another instance tells a target, it may not look for what we have just committed any more: then it is asked again.
const TURN_PAUSE: Duration = Duration::from_millis(250);
/// Between two attempts to reach a ledger that fails.
const LEDGER_PAUSE: Duration = Duration::from_secs(1);
/// How often deliveries that ended are forgotten, and after what time.
const FORGET_EVERY: Duration = Duration::from_secs(3600);
const DELIVERED_KEPT: SignedDuration = SignedDuration::from_hours(24);
const DEAD_KEPT: SignedDuration = SignedDuration::from_hours(24 * 30);

/// From now on the configured targets are told. Before anything else happens, so that nothing is missed.
pub async fn register(app: &App) -> Result<(), LedgerError> {
    let wanted = app.config.webhooks.iter();
    let wanted = wanted.map(|hook| Subscription { target: hook.name.clone(), events: hook.events.clone() });
    app.ledger.set_webhooks(&wanted.collect::<Vec<_>>(), app.now()).await
}

/// Tells until told to stop.
pub async fn run(app: Arc<App>, stop: CancellationToken) {
    let workers = app.config.webhooks.iter().map(|hook| work(&app, hook, &stop));
    let workers = futures_util::future::join_all(workers);
    tokio::join!(workers, forget(&app, &stop));
}

async fn work(app: &App, hook: &Webhook, stop: &CancellationToken) {
    let sender = match Sender::new(hook) {
        Ok(sender) => sender,
        Err(cause) => {
            return tracing::error!(target_name = hook.name, error = %report(&cause), "a webhook cannot be called");
        }
    };
    while !stop.is_cancelled() {
        // Before the question, so that what settles in between is heard.
        let mut listener = app.signals.listen_here();
        let pause = match deliver_in_turn(app, &sender, stop).await {
            Ok(Told::ByAnother) => {
                pause_for(TURN_PAUSE, stop).await;
                continue;
            }
            Ok(Told::All) => until_next(app, hook).await,
            Err(cause) => {
                tracing::warn!(error = %report(&cause), "the outbox could not be read or written");
                LEDGER_PAUSE
            }
        };
        tokio::select! {
            () = something_settled(listener.as_mut()) => {}
            () = pause_for(pause, stop) => {}
        }
    }
}

async fn pause_for(time: Duration, stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(time) => {}
    }
}

async fn something_settled(listener: &mut dyn Listener) {
    loop {
        match listener.next().await {
            Some(signals::Signal::Settled(_)) | None => return,
            _ => {}
        }
    }
}

async fn until_next(app: &App, hook: &Webhook) -> Duration {
    let next = app.ledger.next_delivery_at(&hook.name).await.ok().flatten();
    let wait = next.map(|next| next.duration_since(app.now()).max(SignedDuration::ZERO).unsigned_abs());
    wait.unwrap_or(LOOK_AGAIN).clamp(Duration::from_millis(10), LOOK_AGAIN)
}

/// Who told a target what was due.
enum Told {
    /// We did, and nothing is due any more.
    All,
    /// It is another instance's turn.
    ByAnother,
}

/// One instance at a time tells a target, so that the order within a document holds.
async fn deliver_in_turn(app: &App, sender: &Sender, stop: &CancellationToken) -> Result<Told, LedgerError> {
    let Some(_turn) = app.turns.take(&format!("webhook {}", sender.name())).await? else {
        return Ok(Told::ByAnother);
    };
    while deliver_due(app, sender).await? > 0 && !stop.is_cancelled() {}
    Ok(Told::All)
}

/// Sends what is due. Returns how many there were.
async fn deliver_due(app: &App, sender: &Sender) -> Result<usize, LedgerError> {
    let due = app.ledger.due_deliveries(sender.name(), app.now(), PAGE).await?;
    let count = due.len();
    let ends =
        stream::iter(due).map(|delivery| deliver(app, sender, delivery)).buffer_unordered(PARALLEL_MAX);
    let ends: Vec<Result<(), LedgerError>> = ends.collect().await;
    ends.into_iter().collect::<Result<(), LedgerError>>()?;
    Ok(count)
}

async fn deliver(app: &App, sender: &Sender, delivery: Delivery) -> Result<(), LedgerError> {
    let sent = sender.send(&delivery, app.now()).await;
    let now = app.now();
    let end = match sent {
        Sent::Heard => DeliveryEnd::Delivered,
        Sent::Unwanted(why) => DeliveryEnd::GivenUp { why },
        Sent::Failed(why) => {
            match rule_on_failed_delivery(delivery.attempts + 1, delivery.waiting_since, now) {
                Retry::At(next_at) => DeliveryEnd::Failed { next_at, why },
                Retry::GiveUp => DeliveryEnd::GivenUp { why },
            }
        }
    };
    tell(sender.name(), &delivery, &end);
    app.ledger.delivery_ended(delivery.number, &end, now).await
}

fn tell(target: &str, delivery: &Delivery, end: &DeliveryEnd) {
    match end {
        DeliveryEnd::Delivered => telemetry::webhook_ended("delivered"),
        DeliveryEnd::Failed { why, .. } => {
            telemetry::webhook_ended("failed");
            tracing::warn!(
                webhook = target,
                id = delivery.id,
                why,
                "a webhook was not heard and is tried again"
            );
        }
        DeliveryEnd::GivenUp { why } => {
            telemetry::webhook_ended("given-up");
            telemetry::alert("webhook-given-up");
            tracing::error!(
                webhook = target,
                id = delivery.id,
                why,
                "a webhook was given up; it can be tried again"
            );
        }
    }
}

async fn forget(app: &App, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        let before = |kept| app.now().checked_sub(kept).unwrap_or(jiff::Timestamp::MIN);
        if let Err(cause) = app.ledger.forget_deliveries(before(DELIVERED_KEPT), before(DEAD_KEPT)).await {
            tracing::warn!(error = %report(&cause), "old deliveries could not be forgotten");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(FORGET_EVERY) => {}
        }
    }
}
