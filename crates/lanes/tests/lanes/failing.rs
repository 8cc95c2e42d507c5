//! What goes wrong in one task, or with one caller, stays there.

use lanes::{Failed, Lanes, Refused, RunError, Settings, WaitError};

use crate::stage::{Journal, Room, lanes, settle, work};

fn panicked(message: &str) -> WaitError {
    WaitError::Failed(Failed::Panicked { message: message.to_owned() })
}

/// Stands for `shouldContinueProcessingAfterTaskFailure`.
#[tokio::test(start_paused = true)]
async fn the_next_task_runs_normally_after_one_that_failed_or_panicked() {
    let lanes = lanes();

    let mut failing = lanes.submit("doc", async { Err::<(), _>("disk full") }).unwrap();
    let mut panicking = lanes.submit("doc", async { panic!("a bug") }).unwrap();
    let mut next = lanes.submit("doc", async { "fine" }).unwrap();

    assert_eq!(failing.wait().await, Ok(Err("disk full")), "an error is a value like any other");
    assert_eq!(panicking.wait().await, Err::<(), _>(panicked("a bug")));
    assert_eq!(next.wait().await, Ok("fine"));
    assert!(lanes.is_empty());
}

#[tokio::test]
async fn a_panic_is_reported_with_its_message_whatever_was_thrown() {
    let lanes = lanes();

    let text = lanes.run("doc", async { panic!("plain text") }).await;
    let formatted = lanes.run("doc", async { panic!("number {}", 7) }).await;
    let strange = lanes.run("doc", async { std::panic::panic_any(7) }).await;

    assert_eq!(text, Err::<(), _>(RunError::Wait(panicked("plain text"))));
    assert_eq!(formatted, Err::<(), _>(RunError::Wait(panicked("number 7"))));
    assert_eq!(strange, Err::<(), _>(RunError::Wait(panicked("no message"))));
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_preparing_gives_up_the_place_in_line() {
    let lanes = lanes();

    let prepare = async {
        work(100).await;
        panic!("no network");
    };
    let mut first = lanes.submit_pipelined("doc", prepare, |()| async {}).unwrap();
    let began = tokio::time::Instant::now();
    lanes.run("doc", async {}).await.unwrap();

    assert_eq!(began.elapsed().as_millis(), 100, "the second did not wait for its patience to end");
    assert_eq!(first.wait().await, Err(panicked("no network")));
}

#[tokio::test]
async fn a_panic_in_the_closure_that_makes_the_second_part_is_caught_too() {
    let lanes = lanes();

    let finish = |()| -> std::future::Ready<()> { panic!("no second part") };
    let mut first = lanes.submit_pipelined("doc", async {}, finish).unwrap();

    assert_eq!(first.wait().await, Err(panicked("no second part")));
    assert_eq!(lanes.run("doc", async { 1 }).await, Ok(1));
}

#[tokio::test]
async fn a_panic_while_a_task_is_dropped_harms_nobody() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("bad drop");
        }
    }
    let lanes = lanes();

    let mut first = lanes.submit("doc", async { drop(Bomb) }).unwrap();
    let mut second = lanes.submit("doc", async { 2 }).unwrap();

    assert_eq!(first.wait().await, Err(panicked("bad drop")));
    assert_eq!(second.wait().await, Ok(2));
    assert!(lanes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_ticket_or_whoever_waits_never_cancels_the_task() {
    let lanes = lanes();
    let journal = Journal::new();
    let task = |name: &'static str| {
        let journal = journal.clone();
        async move {
            work(100).await;
            journal.note(name);
        }
    };

    drop(lanes.submit("doc", task("ticket dropped")).unwrap());
    let mut waiter = Box::pin(lanes.run("doc", task("waiter dropped")));
    assert!(futures_poll_once(waiter.as_mut()).await.is_none());
    drop(waiter);
    lanes.run("doc", async {}).await.unwrap();

    assert_eq!(journal.read(), ["ticket dropped", "waiter dropped"]);
}

async fn futures_poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_full_line_refuses_in_clear_words_and_takes_tasks_again_later() {
    let lanes = Lanes::new(Settings { depth_max: 2, ..Default::default() }).unwrap();
    let room = Room::default();
    let guest = room.enter();

    let mut running = lanes.submit("doc", work(100)).unwrap();
    let _waiting = lanes.submit("doc", work(100)).unwrap();
    let _preparing = lanes.submit_pipelined("doc", work(100), |()| async {}).unwrap();
    let refused = lanes.submit("doc", async move { drop(guest) }).unwrap_err();
    let refused_pipelined = lanes.submit_pipelined("doc", async {}, |()| async {}).unwrap_err();

    assert_eq!(refused, Refused::Full { key: "doc".into(), depth_max: 2 });
    assert_eq!(refused.to_string(), "the lane of `doc` is full: 2 tasks are in line already");
    assert_eq!(refused_pipelined, refused);
    assert_eq!(room.inside(), 0, "what was refused is dropped");
    assert!(lanes.submit("other", async {}).is_ok(), "another key is not concerned");
    running.wait().await.unwrap();
    settle().await;
    assert!(lanes.submit("doc", async {}).is_ok());
}

#[test]
fn a_runtime_that_shuts_down_stops_its_tasks_and_leaves_no_lane_behind() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lanes = Lanes::on(runtime.handle().clone(), Settings::default()).unwrap();
    let mut running = lanes.submit("doc", std::future::pending::<()>()).unwrap();
    let mut waiting = lanes.submit("doc", async {}).unwrap();
    let mut preparing = lanes.submit_pipelined("doc", std::future::pending::<()>(), |()| async {}).unwrap();

    drop(runtime);
    let mut too_late = lanes.submit("doc", async {}).unwrap();

    assert!(lanes.is_empty());
    let elsewhere = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    elsewhere.block_on(async {
        for ticket in [&mut running, &mut waiting, &mut preparing, &mut too_late] {
            assert_eq!(ticket.wait().await, Err(WaitError::Failed(Failed::Stopped)));
        }
    });
}

#[test]
fn lanes_cannot_be_made_without_a_runtime_or_with_impossible_limits() {
    let homeless = Lanes::<u8>::new(Settings::default()).unwrap_err();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let impossible =
        Lanes::<u8>::on(runtime.handle().clone(), Settings { depth_max: 0, ..Default::default() });

    assert_eq!(homeless.to_string(), "lanes must be made inside a tokio runtime, or be given one");
    assert!(impossible.is_err());
}
