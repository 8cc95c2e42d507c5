//! Redis killed, restarted, flushed, slow: everything goes on, and it comes back by itself.

use std::time::Duration;

use model::DocumentId;
use signals::redis::Standing;
use signals::{Lease, Signals};
use tokio::time::Instant;

use crate::server::{Server, instance, settled, until_asked, until_heard, until_missed};

/// Announcing waits for nobody; a loaded machine may still take a moment.
const AT_ONCE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_redis_that_was_killed_is_found_again_and_listeners_look_for_themselves() {
    let mut server = Server::start().await;
    let (a, _) = instance(&server.address(), "a").await;
    let (b, mut at_b) = instance(&server.address(), "b").await;

    server.kill().await;
    let began = Instant::now();
    for number in 0..10_000 {
        a.announce(settled(&number.to_string())).await;
    }
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(a.take_lease(&DocumentId::parse("report").unwrap(), "a").await, Lease::Unknown);
    assert_eq!(a.count("guess", Duration::from_secs(60)).await, 1);
    let mut at_a = a.listen();
    a.announce(settled("here")).await;
    assert_eq!(at_a.next().await, Some(settled("here")));

    server.restart().await;
    until_missed(at_a.as_mut()).await;
    until_missed(at_b.as_mut()).await;
    until_asked(&a).await;
    a.announce(settled("again")).await;
    until_heard(at_b.as_mut(), &settled("again")).await;
    until_asked(&b).await;
    b.announce(settled("back")).await;
    until_heard(at_a.as_mut(), &settled("back")).await;
    assert_eq!((a.standing(), b.standing()), (Standing::Heard, Standing::Heard));
}

#[tokio::test]
async fn a_flushed_redis_forgets_hints_and_nothing_else() {
    let server = Server::start().await;
    let (a, _) = instance(&server.address(), "a").await;
    let (_b, mut at_b) = instance(&server.address(), "b").await;
    let document = DocumentId::parse("report").unwrap();
    let window = Duration::from_secs(60);
    assert_eq!(a.take_lease(&document, "a").await, Lease::Ours);
    a.count("guess", window).await;

    server.ask::<String>(&["FLUSHALL"]).await;
    server.ask::<String>(&["SCRIPT", "FLUSH"]).await;

    assert_eq!(a.renew_lease(&document, "a").await, Lease::Elsewhere);
    assert_eq!(a.count("guess", window).await, 2, "what is known here stays known");
    a.announce(settled("one")).await;
    until_heard(at_b.as_mut(), &settled("one")).await;
}

#[tokio::test]
async fn a_slow_redis_holds_nobody_up() {
    let server = Server::start().await;
    let (a, mut at_a) = instance(&server.address(), "a").await;
    let (_b, mut at_b) = instance(&server.address(), "b").await;

    server.ask::<String>(&["CLIENT", "PAUSE", "3000", "ALL"]).await;
    let began = Instant::now();
    a.announce(settled("one")).await;
    assert_eq!(at_a.next().await, Some(settled("one")));
    assert_eq!(a.take_lease(&DocumentId::parse("report").unwrap(), "a").await, Lease::Unknown);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());

    until_heard(at_b.as_mut(), &settled("one")).await;
}

#[tokio::test]
async fn a_redis_that_stands_still_is_noticed_and_found_again() {
    let server = Server::start().await;
    let (a, mut at_a) = instance(&server.address(), "a").await;
    let (_b, mut at_b) = instance(&server.address(), "b").await;

    server.send("-STOP").await;
    while a.standing() == Standing::Heard {
        // waits on purpose: silence is noticed by waiting
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.send("-CONT").await;

    until_missed(at_a.as_mut()).await;
    a.announce(settled("again")).await;
    // One of both ways: heard, or told to look.
    let heard = at_b.next().await;
    assert!(heard.is_none() || heard == Some(settled("again")), "{heard:?}");
}

#[tokio::test]
async fn a_full_redis_still_carries_signals() {
    let server = Server::start().await;
    let (a, _) = instance(&server.address(), "a").await;
    let (_b, mut at_b) = instance(&server.address(), "b").await;

    server.ask::<String>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    assert_eq!(a.take_lease(&DocumentId::parse("report").unwrap(), "a").await, Lease::Unknown);
    for number in 0..100 {
        a.announce(settled(&number.to_string())).await;
    }

    for number in 0..100 {
        assert_eq!(at_b.next().await, Some(settled(&number.to_string())));
    }
}
