//! Recorded scenarios of keys opened again.

use understudy::server::Opening;

use super::{check, check_commands, commands, reply_as_recorded, scenarios};
use crate::host::Reply;
use crate::stage::Stage;

#[tokio::test]
async fn coming_back_after_the_save_began_means_refresh() {
    let scenario = "reopen-within-5s";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    let u2 = stage.opens("u2").await;
    u1.write("one").await.unwrap();
    stage.pass(4_000).await;
    u2.hang_up().await.unwrap();
    stage.pass(50).await;
    u1.hang_up().await.unwrap();
    stage.pass(6_000).await;
    let u3 = stage.opens("u3").await;
    assert_eq!(u3.opened().await, Opening::Refresh);
    u3.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_spent_key_means_refresh() {
    let scenario = "reopen-same-key-after-save";
    let stage = Stage::set(scenario).await;
    stage.edits_and_closes("u1").await;
    stage.pass(16_000).await;
    let again = stage.opens("u1").await;
    assert_eq!(again.opened().await, Opening::Refresh);
    again.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_key_whose_save_awaits_its_answer_means_refresh() {
    let scenario = "reopen-while-save-callback-pending";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    stage.edits_and_closes("u1").await;
    stage.pass(10_000).await;
    let u2 = stage.opens("u2").await;
    assert_eq!(u2.opened().await, Opening::Refresh);
    stage.host.release(Reply::Ok);
    stage.pass(5_000).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

/// Refused and forgotten, opened again under the same key, closed.
async fn check_forgotten(scenario: &str) {
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    stage.edits_and_closes("u1").await;
    stage.pass(15_000).await;
    let downloads = stage.host.downloads();
    let u2 = stage.opens("u2").await;
    assert_eq!(u2.opened().await, Opening::Ready);
    assert_eq!(stage.host.downloads(), downloads, "the forgotten copy comes first");
    let warning = u2.messages().into_iter().find(|message| message["type"] == "warning").unwrap();
    assert_eq!(warning["code"], -201);
    // A whole second would not show that it is the present moment.
    stage.pass(3).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    let asked_at_the_end = commands(scenario).iter().filter(|(_, reply)| reply["error"] == 1).count();
    let asked = commands(scenario).len();
    check_commands(&stage, scenario, asked - asked_at_the_end).await;
}

scenarios! { check_forgotten:
    a_forgotten_copy_is_saved_without_edits = "forgotten-then-reopen-same-key",
    a_forgotten_copy_is_saved_although_typing_was_blocked = "forgotten-then-reopen-and-edit",
}

#[tokio::test]
async fn somebody_else_comes_within_the_save_delay() {
    let scenario = "ws-reopen-within-5s";
    let stage = Stage::set(scenario).await;
    stage.edits_and_closes("u1").await;
    stage.pass(2_000).await;
    let u2 = stage.opens("u2").await;
    stage.pass(9_000).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    assert_eq!(stage.host.downloads(), 1);
}

#[tokio::test]
async fn the_same_user_comes_back_within_the_save_delay() {
    let scenario = "ws-same-user-back-within-5s";
    let stage = Stage::set(scenario).await;
    stage.edits_and_closes("u1").await;
    stage.pass(2_000).await;
    let again = stage.opens("u1").await;
    again.write("more").await.unwrap();
    stage.pass(4_000).await;
    again.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn somebody_comes_between_two_retries() {
    let scenario = "ws-reopen-during-retry-window";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    stage.edits_and_closes("u1").await;
    stage.pass(7_400).await;
    let u2 = stage.opens("u2").await;
    assert_eq!(u2.opened().await, Opening::Ready);
    stage.pass(12_000).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
}
