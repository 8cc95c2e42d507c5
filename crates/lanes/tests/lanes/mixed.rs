//! Several keys, several kinds of tasks, all at once.

use lanes::{Lanes, Settings};
use tokio::time::Instant;

use crate::stage::{Journal, lanes, ms, work};

/// Stands for `shouldHandleMixedDocuments`.
#[tokio::test(start_paused = true)]
async fn each_of_two_documents_keeps_its_order_while_they_interleave() {
    let lanes = lanes();
    let (journal, began) = (Journal::new(), Instant::now());

    let tickets: Vec<_> = [("doc0", 0), ("doc0", 1), ("doc1", 0), ("doc1", 1)]
        .map(|(key, number)| {
            let journal = journal.clone();
            let task = async move {
                work(500).await;
                journal.note((key, number));
            };
            lanes.submit(key, task).unwrap()
        })
        .into();
    for mut ticket in tickets {
        ticket.wait().await.unwrap();
    }

    let of = |key| journal.read().into_iter().filter(|entry| entry.0 == key).collect::<Vec<_>>();
    assert_eq!(of("doc0"), [("doc0", 0), ("doc0", 1)]);
    assert_eq!(of("doc1"), [("doc1", 0), ("doc1", 1)]);
    assert_eq!(began.elapsed(), ms(1_000), "they interleave: one after the other would take 2 s");
}

/// The first row of the document's table: 7.5 s one after the other, 2.5 s by key.
#[tokio::test(start_paused = true)]
async fn three_documents_of_five_half_second_tasks_take_two_and_a_half_seconds() {
    let lanes = lanes();
    let began = Instant::now();

    let tickets: Vec<_> = (0..15).map(|n| lanes.submit(["a", "b", "c"][n % 3], work(500)).unwrap()).collect();
    for mut ticket in tickets {
        ticket.wait().await.unwrap();
    }

    assert_eq!(began.elapsed(), ms(2_500));
}

/// The second row of the document's table: two documents and one more, two half-second tasks each.
#[tokio::test(start_paused = true)]
async fn two_documents_and_one_more_of_two_half_second_tasks_take_one_second() {
    let lanes = lanes();
    let began = Instant::now();

    let tickets: Vec<_> =
        ["a", "b", "a", "b", "c", "c"].map(|key| lanes.submit(key, work(500)).unwrap()).into();
    for mut ticket in tickets {
        ticket.wait().await.unwrap();
    }

    assert_eq!(began.elapsed(), ms(1_000));
}

#[tokio::test(start_paused = true)]
async fn plain_and_pipelined_tasks_share_a_lane_in_order_of_arrival() {
    let lanes = lanes();
    let journal = Journal::new();
    let note = |name: &'static str| {
        let journal = journal.clone();
        async move { journal.note(name) }
    };

    let (in_second, in_fourth) = (note("pipelined 2"), note("pipelined 4"));
    let _first = lanes.submit("doc", note("plain 1")).unwrap();
    let _second = lanes.submit_pipelined("doc", work(300), move |()| in_second).unwrap();
    let _third = lanes.submit("doc", note("plain 3")).unwrap();
    let _fourth = lanes.submit_pipelined("doc", work(100), move |()| in_fourth).unwrap();
    lanes.run("doc", note("plain 5")).await.unwrap();

    assert_eq!(journal.read(), ["plain 1", "pipelined 2", "plain 3", "pipelined 4", "plain 5"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_may_submit_to_its_own_key_and_to_others() {
    let lanes = lanes();
    let (inner, journal) = (lanes.clone(), Journal::new());
    let seen = journal.clone();

    let mut own = lanes
        .run("doc", async move {
            let later = seen.clone();
            let own = inner.submit("doc", async move { later.note("own") }).unwrap();
            inner.run("other", async move { seen.note("other") }).await.unwrap();
            own
        })
        .await
        .unwrap();
    own.wait().await.unwrap();

    assert_eq!(journal.read(), ["other", "own"]);
}

#[tokio::test]
async fn clones_are_handles_to_the_same_lanes_and_dropping_them_stops_nothing() {
    let lanes = Lanes::new(Settings::default()).unwrap();
    let clone = lanes.clone();

    let mut ticket = clone.submit(7, async { "done" }).unwrap();
    assert_eq!(lanes.count(), 1);
    drop((lanes, clone));

    assert_eq!(ticket.wait().await, Ok("done"));
}
