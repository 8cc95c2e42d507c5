//! Transitions: a document's session ends, and its next one may begin. Whoever works on that says so with a lease.
//!
//! Guarantees: a lease is kept for as long as it is held here and given back when it is dropped; nobody's save waits for one. It is a hint:
//! whoever finds it elsewhere leaves the other a moment and then looks by itself, so that a dead holder delays nobody for long. Other
//! programs see it in Redis as `lock:transition:{document}`. Does not do: keep anybody from anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::DocumentId;
use signals::{LEASE_LIFE, Lease, Listener, Signal};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::app::App;

const RENEW_EVERY: Duration = LEASE_LIFE.checked_div(3).unwrap();
/// What another one who is at it usually needs.
const MOMENT: Duration = Duration::from_secs(2);

/// A transition that is worked on here; it ends when this is dropped.
pub(crate) struct Transition {
    _held: DropGuard,
}

impl Transition {
    /// Says that it is worked on, and waits for nothing.
    pub(crate) fn begin(app: &Arc<App>, document: &DocumentId) -> Self {
        let (app, document, ended) = (Arc::clone(app), document.clone(), CancellationToken::new());
        let held = ended.clone().drop_guard();
        tokio::spawn(async move {
            let holder = holder(&app);
            if app.signals.take_lease(&document, &holder).await == Lease::Ours {
                keep(&app, (&document, &holder), ended).await;
            }
        });
        Self { _held: held }
    }

    /// Says so, unless somebody else is at it and comes to an end within a moment: then there is nothing left to do.
    pub(crate) async fn begin_unless_done(app: &Arc<App>, document: &DocumentId) -> Option<Self> {
        let (mut listener, holder) = (app.signals.listen(), holder(app));
        let lease = app.signals.take_lease(document, &holder).await;
        if lease == Lease::Elsewhere && settles(listener.as_mut(), document).await {
            return None;
        }
        let ended = CancellationToken::new();
        let held = ended.clone().drop_guard();
        if lease == Lease::Ours {
            let (app, document) = (Arc::clone(app), document.clone());
            tokio::spawn(async move { keep(&app, (&document, &holder), ended).await });
        }
        Some(Self { _held: held })
    }
}

/// A name that no other piece of work has, here or elsewhere.
fn holder(app: &App) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", app.instance.id, NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn settles(listener: &mut dyn Listener, document: &DocumentId) -> bool {
    let settled = async { while listener.next().await != Some(Signal::Settled(document.clone())) {} };
    tokio::time::timeout(MOMENT, settled).await.is_ok()
}

/// Renews the lease until the end and gives it back.
async fn keep(app: &App, (document, holder): (&DocumentId, &str), ended: CancellationToken) {
    loop {
        tokio::select! {
            () = ended.cancelled() => return app.signals.release_lease(document, holder).await,
            () = tokio::time::sleep(RENEW_EVERY) => {}
        }
        if app.signals.renew_lease(document, holder).await == Lease::Elsewhere {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Workbench;

    fn document() -> DocumentId {
        DocumentId::parse("12345").unwrap()
    }

    async fn is_free(app: &App) -> bool {
        let is_free = app.signals.take_lease(&document(), "test").await == Lease::Ours;
        app.signals.release_lease(&document(), "test").await;
        is_free
    }

    /// Lets tasks that were spawned have their turn.
    async fn until(what: impl AsyncFn() -> bool) {
        while !what().await {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_kept_for_as_long_as_the_work_takes_and_given_back() {
        let app = Workbench::new().await.process();
        let transition = Transition::begin(&app, &document());
        until(async || !is_free(&app).await).await;

        tokio::time::sleep(LEASE_LIFE * 5).await;
        assert!(!is_free(&app).await, "renewed");

        drop(transition);
        until(async || is_free(&app).await).await;
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_finds_it_elsewhere_waits_a_moment_for_the_end_of_it_and_then_goes_on() {
        let app = Workbench::new().await.process();
        assert_eq!(app.signals.take_lease(&document(), "somebody who died").await, Lease::Ours);

        assert!(
            Transition::begin_unless_done(&app, &document()).await.is_some(),
            "nobody waits for the dead"
        );

        let document = document();
        let waiting = Transition::begin_unless_done(&app, &document);
        let settling = async {
            tokio::task::yield_now().await;
            app.signals.announce(Signal::Settled(document.clone())).await;
        };
        assert!(tokio::join!(waiting, settling).0.is_none(), "it was done meanwhile");
    }
}
