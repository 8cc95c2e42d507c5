//! Tasks of one key: one at a time, in order of arrival.

use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};

use lanes::{Lanes, Settings};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::stage::{Journal, Room, lanes, ms, settle, work};

/// Stands for `shouldProcessMultipleTasksSequentially`.
#[test]
fn tasks_of_one_key_submitted_from_many_threads_run_in_order() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let lanes = Lanes::on(runtime.handle().clone(), Settings::default()).unwrap();
    let journal = Journal::new();
    let (first_may_end, first_waits) = oneshot::channel::<()>();
    let mut first_waits = Some(first_waits);

    let mut tickets: Vec<_> = (0..5)
        .map(|number| {
            let (lanes, journal, gate) = (lanes.clone(), journal.clone(), first_waits.take());
            let task = async move {
                if let Some(gate) = gate {
                    gate.await.unwrap();
                }
                journal.note(number);
            };
            std::thread::spawn(move || lanes.submit("doc", task).unwrap()).join().unwrap()
        })
        .collect();
    first_may_end.send(()).unwrap();
    runtime.block_on(async {
        for ticket in &mut tickets {
            ticket.wait().await.unwrap();
        }
    });

    assert_eq!(journal.read(), [0, 1, 2, 3, 4]);
}

#[test]
fn tasks_of_one_key_never_overlap_however_many_threads_there_are() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let lanes =
        Lanes::on(runtime.handle().clone(), Settings { depth_max: 1_000, ..Default::default() }).unwrap();
    let (room, journal) = (Room::default(), Journal::new());

    let tickets: Vec<_> = (0..500)
        .map(|number| {
            let (room, journal) = (room.clone(), journal.clone());
            let task = async move {
                let _inside = room.enter();
                tokio::task::yield_now().await;
                journal.note(number);
            };
            lanes.submit("doc", task).unwrap()
        })
        .collect();
    runtime.block_on(async {
        for mut ticket in tickets {
            ticket.wait().await.unwrap();
        }
    });

    assert_eq!(room.most_at_once(), 1);
    assert_eq!(journal.read(), (0..500).collect::<Vec<_>>());
}

/// Ends, well or badly, when first polled; notes how many lanes there are when it is dropped.
struct Parting {
    lanes: Lanes<&'static str>,
    seen: Journal<usize>,
    ends_well: bool,
}

impl Future for Parting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        assert!(self.ends_well, "as planned");
        Poll::Ready(())
    }
}

impl Drop for Parting {
    fn drop(&mut self) {
        self.seen.note(self.lanes.count());
    }
}

#[tokio::test]
async fn a_task_keeps_its_turn_until_everything_it_held_is_dropped() {
    let (lanes, seen) = (lanes(), Journal::new());

    for ends_well in [true, false] {
        let parting = Parting { lanes: lanes.clone(), seen: seen.clone(), ends_well };
        let outcome = lanes.run("doc", parting).await;
        assert_eq!(outcome.is_ok(), ends_well);
    }

    assert_eq!(seen.read(), [1, 1], "the lane was still there each time");
    assert!(lanes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn ten_half_second_preparations_of_one_key_take_half_a_second_and_finish_in_order() {
    let lanes = lanes();
    let (journal, began) = (Journal::new(), Instant::now());

    let tickets: Vec<_> = (0..10u64)
        .map(|number| {
            let journal = journal.clone();
            // The later it came, the sooner it is prepared.
            let prepare = async move {
                work(500 - number).await;
                number
            };
            lanes.submit_pipelined("doc", prepare, move |number| async move { journal.note(number) }).unwrap()
        })
        .collect();
    for mut ticket in tickets {
        ticket.wait().await.unwrap();
    }

    assert_eq!(began.elapsed(), ms(500));
    assert_eq!(journal.read(), (0..10).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn finishing_parts_of_one_key_never_overlap() {
    let lanes = lanes();
    let (room, began) = (Room::default(), Instant::now());

    let tickets: Vec<_> = (0..4)
        .map(|_| {
            let room = room.clone();
            let finish = move |()| async move {
                let _inside = room.enter();
                work(100).await;
            };
            lanes.submit_pipelined("doc", work(50), finish).unwrap()
        })
        .collect();
    for mut ticket in tickets {
        ticket.wait().await.unwrap();
    }

    assert_eq!(room.most_at_once(), 1);
    assert_eq!(began.elapsed(), ms(450));
}

/// A task that notes who it was and when it ran.
fn noting(
    journal: &Journal<(&'static str, u128)>,
    name: &'static str,
) -> impl Future<Output = ()> + Send + use<> {
    let (journal, began) = (journal.clone(), Instant::now());
    async move { journal.note((name, began.elapsed().as_millis())) }
}

#[tokio::test(start_paused = true)]
async fn a_ready_task_passes_one_that_still_prepares_after_five_seconds_but_never_one_that_is_ready() {
    let lanes = lanes();
    let journal = Journal::new();

    let (slow, quick) = (noting(&journal, "slow"), noting(&journal, "quick"));
    let mut slow = lanes.submit_pipelined("doc", work(8_000), move |()| slow).unwrap();
    let _quick = lanes.submit_pipelined("doc", work(1_000), move |()| quick).unwrap();
    let _plain = lanes.submit("doc", noting(&journal, "plain")).unwrap();
    slow.wait().await.unwrap();

    // The plain task has waited for five seconds; the quick one stands before it and is ready, so it goes too.
    assert_eq!(journal.read(), [("quick", 5_000), ("plain", 5_000), ("slow", 8_000)]);
}

#[tokio::test(start_paused = true)]
async fn a_predecessor_that_gets_ready_in_time_is_not_passed() {
    let lanes = lanes();
    let journal = Journal::new();

    let slow = noting(&journal, "slow");
    let _slow = lanes.submit_pipelined("doc", work(4_999), move |()| slow).unwrap();
    lanes.run("doc", noting(&journal, "plain")).await.unwrap();

    assert_eq!(journal.read(), [("slow", 4_999), ("plain", 4_999)]);
}

#[tokio::test(start_paused = true)]
async fn time_spent_behind_a_running_task_counts_as_patience() {
    let lanes = lanes();
    let journal = Journal::new();

    let slow = noting(&journal, "slow");
    let _running = lanes.submit("doc", work(7_000)).unwrap();
    let _slow = lanes.submit_pipelined("doc", work(20_000), move |()| slow).unwrap();
    lanes.run("doc", noting(&journal, "plain")).await.unwrap();

    assert_eq!(journal.read(), [("plain", 7_000)]);
}

#[tokio::test(start_paused = true)]
async fn with_no_patience_a_ready_task_passes_at_once() {
    let lanes = Lanes::new(Settings { pass_after: ms(0), ..Default::default() }).unwrap();

    let _slow = lanes.submit_pipelined("doc", work(100), |()| async {}).unwrap();
    let began = Instant::now();
    lanes.run("doc", async {}).await.unwrap();

    assert_eq!(began.elapsed(), ms(0));
}

#[tokio::test]
async fn a_task_is_not_run_by_whoever_submits_it() {
    let lanes = lanes();
    let (sender, receiver) = mpsc::channel();

    let _ticket = lanes.submit("doc", async move { sender.send(()).unwrap() }).unwrap();
    assert!(receiver.try_recv().is_err(), "nothing has run yet");
    settle().await;

    assert!(receiver.try_recv().is_ok(), "it ran by itself");
}
