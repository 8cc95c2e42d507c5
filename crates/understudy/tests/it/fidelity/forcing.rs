//! Recorded scenarios of force saves.

use super::{check, command, reply_as_recorded};
use crate::host::Reply;
use crate::stage::Stage;

#[tokio::test]
async fn force_save_by_command() {
    let scenario = "forcesave-command";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    command(&stage, scenario, 0).await;
    u1.write("one").await.unwrap();
    command(&stage, scenario, 1).await;
    stage.pass(4_000).await;
    command(&stage, scenario, 2).await;
    u1.write("two").await.unwrap();
    command(&stage, scenario, 3).await;
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn force_save_then_more_edits() {
    let scenario = "forcesave-command-then-edit-close";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    command(&stage, scenario, 0).await;
    stage.pass(4_000).await;
    u1.write("two").await.unwrap();
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn force_save_by_button() {
    let scenario = "forcesave-button";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    assert_eq!(u1.press_save().await.unwrap().code, 0);
    stage.pass(4_000).await;
    assert_eq!(u1.press_save().await.unwrap().code, 4);
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_force_save_met_with_500_is_sent_again_when_asked_for_again() {
    let scenario = "forcesave-http500";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    command(&stage, scenario, 0).await;
    stage.pass(12_000).await;
    command(&stage, scenario, 1).await;
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_refused_force_save_warns_whoever_pressed() {
    let scenario = "forcesave-error1";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    u1.press_save().await.unwrap();
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    let outcome = u1.messages().into_iter().find(|message| message["type"] == "forceSave").unwrap();
    assert_eq!(outcome["messages"]["success"], false);
}

#[tokio::test]
async fn a_force_save_that_times_out_is_not_repeated() {
    let scenario = "forcesave-timeout";
    let stage = Stage::set_with(scenario, |settings| settings.timings.callback_timeout_ms = 8_000).await;
    reply_as_recorded(&stage, scenario);
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    command(&stage, scenario, 0).await;
    stage.pass(12_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn force_save_by_timer() {
    let scenario = "forcesave-timer";
    let stage = Stage::set_with(scenario, |settings| {
        settings.autosave = true;
        settings.timings.autosave_interval_ms = 20_000;
        settings.timings.autosave_step_ms = 5_000;
    })
    .await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    stage.pass(45_000).await;
    u1.write("two").await.unwrap();
    stage.pass(45_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn many_force_saves_some_within_one_second() {
    let scenario = "ws-many-forcesaves";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    for pause_ms in [1_000, 1_000, 1_000, 420, 5_000] {
        u1.write("words").await.unwrap();
        assert_eq!(u1.press_save().await.unwrap().code, 0);
        stage.pass(pause_ms).await;
    }
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_slow_host_sees_two_force_saves_and_the_final_save_overlap() {
    let scenario = "ws-slow-reply-to-6-then-close";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    u1.press_save().await.unwrap();
    stage.pass(1_500).await;
    u1.write("two").await.unwrap();
    u1.press_save().await.unwrap();
    stage.pass(1_000).await;
    assert_eq!(stage.host.held(), 2);
    u1.hang_up().await.unwrap();
    stage.pass(7_000).await;
    stage.host.release(Reply::Ok);
    stage.host.release(Reply::Ok);
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}
