//! Waiting is bounded; giving up waiting is not giving up the task.

use lanes::{Lanes, RunError, Settings, WaitError};
use tokio::time::Instant;

use crate::stage::{Journal, lanes, ms, work};

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_short_says_not_yet_and_can_be_repeated() {
    let lanes = lanes();
    let mut ticket = lanes
        .submit("doc", async {
            work(3_000).await;
            "saved"
        })
        .unwrap();

    let began = Instant::now();
    assert_eq!(ticket.wait_for(ms(1_000)).await, Err(WaitError::NotYet));
    assert_eq!(began.elapsed(), ms(1_000));
    assert_eq!(ticket.wait_until(began + ms(2_000)).await, Err(WaitError::NotYet));
    assert_eq!(began.elapsed(), ms(2_000));
    assert_eq!(ticket.wait().await, Ok("saved"));
    assert_eq!(began.elapsed(), ms(3_000));
}

#[tokio::test(start_paused = true)]
async fn the_default_wait_is_sixty_seconds_and_the_task_goes_on_after_it() {
    let lanes = lanes();
    let (journal, began) = (Journal::new(), Instant::now());
    let late = journal.clone();

    let outcome = lanes
        .run("doc", async move {
            work(90_000).await;
            late.note("done all the same");
        })
        .await;

    assert_eq!(outcome, Err(RunError::Wait(WaitError::NotYet)));
    assert_eq!(began.elapsed(), ms(60_000));
    work(30_001).await;
    assert_eq!(journal.read(), ["done all the same"]);
}

#[tokio::test(start_paused = true)]
async fn time_in_line_counts_for_the_wait_too() {
    let lanes = Lanes::new(Settings { wait: ms(1_000), ..Default::default() }).unwrap();
    let _before = lanes.submit("doc", work(5_000)).unwrap();

    let began = Instant::now();
    let outcome = lanes.run("doc", async {}).await;

    assert_eq!(outcome, Err(RunError::Wait(WaitError::NotYet)));
    assert_eq!(began.elapsed(), ms(1_000));
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_there_is_handed_out_even_after_the_deadline() {
    let lanes = lanes();
    let began = Instant::now();
    let mut ticket = lanes.submit("doc", async { "here" }).unwrap();
    work(1_000).await;

    assert_eq!(ticket.wait_until(began).await, Ok("here"));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_handed_out_once() {
    let lanes = lanes();
    let mut ticket = lanes.submit("doc", async { 1 }).unwrap();

    assert_eq!(ticket.wait().await, Ok(1));
    assert_eq!(ticket.wait().await, Err(WaitError::Taken));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_dropped_leaves_the_ticket_usable() {
    let lanes = lanes();
    let mut ticket = lanes.submit("doc", work(2_000)).unwrap();

    let given_up = tokio::time::timeout(ms(500), ticket.wait()).await;

    assert!(given_up.is_err());
    assert_eq!(ticket.wait().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn waiting_longer_than_the_clock_can_express_is_waiting_long() {
    let lanes = lanes();
    let mut ticket = lanes.submit("doc", work(1_000_000)).unwrap();

    assert_eq!(ticket.wait_for(std::time::Duration::MAX).await, Ok(()));
}
