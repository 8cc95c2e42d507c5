//! Tasks of different keys: nobody waits for anybody.

use std::sync::mpsc;

use lanes::{Lanes, Settings};
use tokio::time::Instant;

use crate::stage::{Room, lanes, ms, work};

/// Stands for `shouldProcessDifferentFileKeysInParallel`.
#[tokio::test(start_paused = true)]
async fn tasks_of_different_keys_run_in_parallel() {
    let lanes = lanes();
    let began = Instant::now();

    let tickets = ["doc1", "doc2", "doc3"].map(|key| lanes.submit(key, work(500)).unwrap());
    for mut ticket in tickets {
        ticket.wait().await.unwrap();
    }

    assert_eq!(began.elapsed(), ms(500));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_keys_take_as_long_as_one() {
    let lanes = Lanes::new(Settings::default()).unwrap();
    let (room, began) = (Room::default(), Instant::now());

    let tickets: Vec<_> = (0..1_000)
        .map(|key| {
            let room = room.clone();
            let task = async move {
                let _inside = room.enter();
                work(500).await;
            };
            lanes.submit(key, task).unwrap()
        })
        .collect();
    for mut ticket in tickets {
        ticket.wait().await.unwrap();
    }

    assert_eq!(began.elapsed(), ms(500));
    assert_eq!(room.most_at_once(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_task_never_ends_does_not_hold_up_another() {
    let lanes = lanes();
    let _stuck = lanes.submit("stuck", std::future::pending::<()>()).unwrap();
    let _behind_it = lanes.submit("stuck", async {}).unwrap();

    let answer = lanes.run("free", async { 42 }).await;

    assert_eq!(answer, Ok(42));
    assert_eq!(lanes.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_blocks_its_thread_holds_up_only_its_own_key() {
    let lanes = lanes();
    let (release, blocked) = mpsc::channel::<()>();

    let mut blocking = lanes.submit("blocking", async move { blocked.recv().is_ok() }).unwrap();
    lanes.run("free", async move { release.send(()).unwrap() }).await.unwrap();

    assert_eq!(blocking.wait().await, Ok(true));
}
