//! The end: nothing new, then everything finished, then the rest stopped and named.

use std::sync::mpsc;

use lanes::{Failed, Lanes, Refused, RunError, Settings, WaitError};
use tokio::time::Instant;

use crate::stage::{Journal, Room, lanes, ms, settle, work};

const STOPPED: WaitError = WaitError::Failed(Failed::Stopped);

/// Stands for `shouldCompletePendingTasksBeforeShutdown`.
#[tokio::test(start_paused = true)]
async fn running_and_pending_tasks_are_completed_before_the_end() {
    let lanes = lanes();
    let (journal, began) = (Journal::new(), Instant::now());
    let task = |name: &'static str| {
        let journal = journal.clone();
        async move {
            work(2_000).await;
            journal.note(name);
        }
    };

    let _running = lanes.submit("doc", task("running")).unwrap();
    let _waiting = lanes.submit("doc", task("waiting")).unwrap();
    let finish = task("prepared");
    let _preparing = lanes.submit_pipelined("doc", work(100), move |()| finish).unwrap();
    settle().await;
    let drained = lanes.drain().await;

    assert_eq!(journal.read(), ["running", "waiting", "prepared"]);
    assert_eq!(began.elapsed(), ms(6_000));
    assert!(drained.is_clean());
    assert!(lanes.is_drained());
}

#[tokio::test(start_paused = true)]
async fn new_work_is_refused_in_clear_words_while_draining_and_ever_after() {
    let lanes = lanes();
    let _running = lanes.submit("doc", work(1_000)).unwrap();
    assert!(!lanes.is_drained());

    let (drained, during) = tokio::join!(lanes.drain(), async {
        settle().await;
        lanes.run("doc", async {}).await
    });
    let after = lanes.submit_pipelined("other", async {}, |()| async {}).unwrap_err();

    assert_eq!(during, Err(RunError::Refused(Refused::Draining { key: "doc".into() })));
    assert_eq!(after.to_string(), "the lane of `other` takes no more tasks: the lanes are being drained");
    assert!(drained.is_clean());
}

#[tokio::test(start_paused = true)]
async fn what_is_left_when_time_is_up_is_stopped_and_named() {
    let lanes = lanes();
    let mut running = lanes.submit("doc", std::future::pending::<()>()).unwrap();
    let mut waiting = lanes.submit("doc", async {}).unwrap();
    work(1_000).await;
    let mut preparing = lanes.submit_pipelined("doc", std::future::pending::<()>(), |()| async {}).unwrap();
    let mut done = lanes.submit("other", work(500)).unwrap();

    let began = Instant::now();
    let drained = lanes.drain().await;

    assert_eq!(began.elapsed(), ms(30_000));
    assert_eq!(drained.stopped(), 3);
    let [lane] = drained.left.as_slice() else { panic!("one lane was left: {drained:?}") };
    assert_eq!((lane.key, lane.waiting, lane.preparing, lane.finishing), ("doc", 1, 1, 1));
    assert_eq!(lane.oldest_age_ms, 31_000);
    assert_eq!(running.wait().await, Err(STOPPED));
    assert_eq!(waiting.wait().await, Err(STOPPED));
    assert_eq!(preparing.wait().await, Err(STOPPED));
    assert_eq!(done.wait().await, Ok(()));
    assert!(lanes.is_drained());
}

#[tokio::test(start_paused = true)]
async fn a_stopped_task_is_dropped_before_the_drain_ends_and_runs_no_further() {
    let lanes = lanes();
    let (room, journal) = (Room::default(), Journal::new());
    let (inside, late) = (room.enter(), journal.clone());

    let _ticket = lanes.submit("doc", async move {
        let _inside = inside;
        work(2_000).await;
        late.note("must not happen");
    });
    let drained = lanes.drain_within(ms(1_000)).await;

    assert_eq!(room.inside(), 0);
    assert_eq!(drained.stopped(), 1);
    work(5_000).await;
    assert!(journal.read().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_prepared_and_waited_is_stopped_like_any_other() {
    let lanes = lanes();
    let _before = lanes.submit("doc", work(500)).unwrap();
    let mut ticket = lanes.submit_pipelined("doc", work(100), |()| std::future::pending::<()>()).unwrap();

    let began = Instant::now();
    let drained = lanes.drain_within(ms(1_000)).await;

    assert_eq!(drained.stopped(), 1);
    assert_eq!(began.elapsed(), ms(1_000), "it ended as soon as it was told");
    assert_eq!(ticket.wait().await, Err(STOPPED));
}

#[tokio::test(start_paused = true)]
async fn with_no_time_at_all_everything_is_stopped_at_once_even_what_never_began() {
    let lanes = lanes();
    let journal = Journal::new();
    let late = journal.clone();
    let mut ticket = lanes.submit("doc", async move { late.note("must not happen") }).unwrap();

    let began = Instant::now();
    let drained = lanes.drain_within(ms(0)).await;

    assert_eq!(began.elapsed(), ms(0));
    assert_eq!(drained.stopped(), 1);
    assert_eq!(ticket.wait().await, Err(STOPPED));
    assert!(journal.read().is_empty());
}

#[tokio::test(start_paused = true)]
async fn draining_idle_lanes_ends_at_once_however_often() {
    let lanes = lanes();
    let began = Instant::now();

    assert!(lanes.drain().await.is_clean());
    assert!(lanes.drain().await.is_clean());

    assert_eq!(began.elapsed(), ms(0));
}

#[tokio::test(start_paused = true)]
async fn two_drains_at_once_both_hear_of_the_end() {
    let lanes = lanes();
    let _running = lanes.submit("doc", work(1_000)).unwrap();
    let _other = lanes.submit("other", work(2_000)).unwrap();
    let began = Instant::now();

    let second = tokio::spawn({
        let lanes = lanes.clone();
        async move { lanes.drain().await }
    });
    let (first, second) = tokio::join!(lanes.drain(), second);

    assert!(first.is_clean() && second.unwrap().is_clean());
    assert_eq!(began.elapsed(), ms(2_000));
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_was_given_up_still_refuses_and_can_be_begun_again() {
    let lanes = lanes();
    let mut running = lanes.submit("doc", work(5_000)).unwrap();

    let given_up = tokio::time::timeout(ms(1_000), lanes.drain()).await;

    assert!(given_up.is_err());
    assert!(lanes.submit("doc", async {}).is_err());
    assert!(lanes.drain().await.is_clean());
    assert_eq!(running.wait().await, Ok(()), "giving up the drain stopped nothing");
}

#[test]
fn lanes_are_not_drained_while_a_task_blocks_its_thread() {
    // The tasks run elsewhere, in real time; here time is paused, so the drain is over at once.
    let elsewhere =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let here = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let lanes = Lanes::on(elsewhere.handle().clone(), Settings::default()).unwrap();
    let (release, blocked) = mpsc::channel::<()>();
    let (began, has_begun) = mpsc::channel();
    let task = async move {
        began.send(()).unwrap();
        blocked.recv().unwrap();
    };
    let mut ticket = lanes.submit("doc", task).unwrap();
    has_begun.recv().unwrap();

    let drained = here.block_on(lanes.drain());
    assert_eq!(drained.stopped(), 1);
    assert!(!lanes.is_drained(), "it cannot be stopped, and this says so");

    release.send(()).unwrap();
    assert_eq!(elsewhere.block_on(ticket.wait()), Ok(()), "it came to its end after all");
    assert!(lanes.is_drained());
}
