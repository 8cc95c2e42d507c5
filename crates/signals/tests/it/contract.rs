//! What every engine of signals does.

use std::time::Duration;

use model::DocumentId;
use signals::local::LocalSignals;
use signals::{Lease, Signal, Signals};

use crate::server::{PATIENCE, Server, instance, settled};

const WINDOW: Duration = Duration::from_secs(60);

#[tokio::test]
async fn signals_of_one_process_do_what_signals_do() {
    whole(&LocalSignals::default()).await;
}

#[tokio::test]
async fn signals_through_redis_do_what_signals_do() {
    let server = Server::start().await;
    let (signals, _) = instance(&server.address(), "a").await;

    whole(&signals).await;
}

#[tokio::test]
async fn signals_through_a_redis_that_is_not_there_are_heard_where_they_are_announced() {
    let signals = crate::server::open("redis://127.0.0.1:1", "a");

    own_signals_are_heard_once_and_in_order(&signals).await;
    counts_grow(&signals).await;
}

async fn whole(signals: &dyn Signals) {
    own_signals_are_heard_once_and_in_order(signals).await;
    counts_grow(signals).await;
    a_lease_has_one_holder(signals).await;
}

async fn own_signals_are_heard_once_and_in_order(signals: &dyn Signals) {
    signals.announce(settled("before")).await;
    let (mut listener, mut here) = (signals.listen(), signals.listen_here());
    let nonce = "nonce".to_owned();
    let announced =
        [settled("one"), Signal::GuestsLeave, Signal::Answered { nonce, status: 1 }, settled("two")];

    for signal in &announced {
        signals.announce(signal.clone()).await;
    }

    for signal in announced {
        for listener in [&mut listener, &mut here] {
            let heard = tokio::time::timeout(PATIENCE, listener.next()).await.unwrap();
            assert_eq!(heard, Some(signal.clone()));
        }
    }
}

async fn counts_grow(signals: &dyn Signals) {
    assert_eq!(signals.count("guess", WINDOW).await, 1);
    assert_eq!(signals.count("guess", WINDOW).await, 2);
    assert_eq!(signals.count("other", WINDOW).await, 1);
    signals.uncount("guess").await;
    assert_eq!(signals.count("guess", WINDOW).await, 2);
    for _ in 0..3 {
        signals.uncount("other").await;
    }
    signals.uncount("never counted").await;
    assert_eq!(signals.count("other", WINDOW).await, 1, "never less than none");
    assert_eq!(signals.count("never counted", WINDOW).await, 1);
}

async fn a_lease_has_one_holder(signals: &dyn Signals) {
    let document = DocumentId::parse("report").unwrap();
    assert_eq!(signals.renew_lease(&document, "a").await, Lease::Elsewhere);

    assert_eq!(signals.take_lease(&document, "a").await, Lease::Ours);
    assert_eq!(signals.take_lease(&document, "b").await, Lease::Elsewhere);
    assert_eq!(signals.renew_lease(&document, "a").await, Lease::Ours);
    assert_eq!(signals.renew_lease(&document, "b").await, Lease::Elsewhere);

    signals.release_lease(&document, "b").await;
    assert_eq!(signals.take_lease(&document, "b").await, Lease::Elsewhere);
    signals.release_lease(&document, "a").await;
    assert_eq!(signals.take_lease(&document, "b").await, Lease::Ours);
}
