//! Turns between instances: one at a time, gone with their holder, and not kept by one that fell silent.

use std::time::Duration;

use ledger::contract::environment;
use ledger::postgres::throwaway::{Database, Server};
use ledger::postgres::{Options, PostgresTurns};
use ledger::turns::{Turn, Turns as _};

async fn database() -> Database {
    Server::shared().await.unwrap().database().await.unwrap()
}

fn instance(database: &Database) -> PostgresTurns {
    PostgresTurns::open(&Options::new(environment(), database.url())).unwrap()
}

/// Asks until it is given.
async fn until_given(turns: &PostgresTurns, work: &str) -> Turn {
    let asking = async {
        loop {
            if let Ok(Some(turn)) = turns.take(work).await {
                return turn;
            }
            // waits on purpose: another one has to let go
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asking).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_instance_at_a_time_has_a_turn_and_gives_it_back() {
    let database = database().await;
    let (one, two) = (instance(&database), instance(&database));

    let turn = one.take("publish 1").await.unwrap();
    assert!(turn.is_some());
    assert!(one.take("publish 1").await.unwrap().is_none(), "not even the same instance again");
    assert!(two.take("publish 1").await.unwrap().is_none());
    assert!(two.take("publish 2").await.unwrap().is_some(), "other work");

    drop(turn);
    let _given = until_given(&two, "publish 1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_with_the_connection_of_its_holder() {
    let database = database().await;
    let (one, two) = (instance(&database), instance(&database));
    let _kept = one.take("save 7").await.unwrap().unwrap();
    assert!(two.take("save 7").await.unwrap().is_none());

    database.cut().await.unwrap();

    let _given = until_given(&two, "save 7").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_holder_loses_its_turn_and_one_that_is_heard_keeps_it() {
    let database = database().await;
    let (silent, heard, other) = (instance(&database), instance(&database), instance(&database));
    let _kept = silent.take("save 7").await.unwrap().unwrap();
    let _held = heard.take("save 8").await.unwrap().unwrap();

    silent.fall_silent();
    let _given = until_given(&other, "save 7").await;

    assert!(other.take("save 8").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_nobody_waited_for_is_given_back() {
    let database = database().await;
    let (one, two) = (instance(&database), instance(&database));
    // From then on the question is sent when it is first asked.
    drop(until_given(&one, "save 6").await);

    for round in 0..20 {
        let work = format!("save {}", 7 + round);
        let hung_up = tokio::time::timeout(Duration::ZERO, one.take(&work)).await;
        drop(hung_up);

        drop(until_given(&two, &work).await);
        drop(until_given(&one, &work).await);
    }
}
