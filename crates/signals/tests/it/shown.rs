//! What two instances hear of each other, and what other programs can read.

use std::time::Duration;

use model::DocumentId;
use signals::{Lease, Signal, Signals};

use crate::server::{PATIENCE, Server, instance, settled, until_heard};

#[tokio::test]
async fn what_one_instance_announces_the_other_hears_and_nobody_twice() {
    let server = Server::start().await;
    let (a, mut at_a) = instance(&server.address(), "a").await;
    let (b, mut at_b) = instance(&server.address(), "b").await;

    a.announce(settled("one")).await;
    until_heard(at_b.as_mut(), &settled("one")).await;
    b.announce(settled("two")).await;

    assert_eq!(at_b.next().await, Some(settled("two")));
    assert_eq!(at_a.next().await, Some(settled("one")));
    let heard = tokio::time::timeout(PATIENCE, at_a.next()).await.unwrap();
    assert_eq!(heard, Some(settled("two")), "not its own once more");
}

#[tokio::test]
async fn installations_that_share_a_redis_do_not_hear_each_other() {
    let server = Server::start().await;
    let (a, _) = instance(&server.address(), "a").await;
    let settings = signals::redis::Settings {
        address: server.address(),
        prefix: "test:".to_owned(),
        instance: "b".to_owned(),
        on_change: |_| {},
    };
    let b = signals::redis::RedisSignals::open(settings).unwrap();
    let mut at_b = b.listen();
    assert_eq!(at_b.next().await, None, "the way is open");

    a.announce(settled("theirs")).await;
    let channel = "test:saveguard:signals";
    server.ask::<u64>(&["PUBLISH", channel, "c\nsettled\nours"]).await;

    assert_eq!(at_b.next().await, Some(settled("ours")));
}

#[tokio::test]
async fn a_lease_and_a_count_are_the_same_on_every_instance() {
    let server = Server::start().await;
    let (a, _) = instance(&server.address(), "a").await;
    let (b, _) = instance(&server.address(), "b").await;
    let document = DocumentId::parse("report").unwrap();

    assert_eq!(a.take_lease(&document, "a").await, Lease::Ours);
    assert_eq!(b.take_lease(&document, "b").await, Lease::Elsewhere);
    a.count("guess", Duration::from_secs(60)).await;
    assert_eq!(b.count("guess", Duration::from_secs(60)).await, 2);
    b.uncount("guess").await;
    assert_eq!(a.count("guess", Duration::from_secs(60)).await, 2);

    let left: i64 = server.ask(&["PTTL", "lock:transition:report"]).await;
    assert!((1..=120_000).contains(&left), "{left}");
    let left: i64 = server.ask(&["PTTL", "rate:guess"]).await;
    assert!((1..=60_000).contains(&left), "{left}");
}

#[tokio::test]
async fn other_programs_can_read_who_is_inside_and_when_a_save_settled() {
    let server = Server::start().await;
    let (a, _) = instance(&server.address(), "a").await;
    let (_b, mut at_b) = instance(&server.address(), "b").await;
    let document = DocumentId::parse("report").unwrap();

    a.show_users(&document, &["anna".to_owned(), "ben".to_owned()]).await;
    a.announce(Signal::Presence(document.clone())).await;
    a.announce(settled("report")).await;
    a.announce(settled("after")).await;
    until_heard(at_b.as_mut(), &settled("after")).await;

    let mut users: Vec<String> = server.ask(&["SMEMBERS", "session:report:users"]).await;
    users.sort();
    assert_eq!(users, ["anna", "ben"]);
    for key in ["session:report:users", "session:report:last_activity", "save_done:report"] {
        assert!(server.ask::<i64>(&["PTTL", key]).await > 0, "{key} ends by itself");
    }
    let now: Vec<u64> = server.ask(&["TIME"]).await;
    for key in ["session:report:last_activity", "save_done:report"] {
        let at: u64 = server.ask(&["GET", key]).await;
        assert!((now[0] * 1000).abs_diff(at) < 60_000, "{key} is a moment in milliseconds: {at}");
    }

    a.show_users(&document, &[]).await;
    a.announce(settled("last")).await;
    until_heard(at_b.as_mut(), &settled("last")).await;
    assert_eq!(server.ask::<u64>(&["EXISTS", "session:report:users"]).await, 0);
}
