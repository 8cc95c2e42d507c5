//! Recorded scenarios of converters, hosts and servers in trouble.

use understudy::server::{FaultKind, Opening};

use super::{check, check_commands, command, reply_as_recorded};
use crate::host::Source;
use crate::stage::Stage;

#[tokio::test]
async fn a_failing_converter_gives_7_and_3_without_files() {
    let scenario = "convert-fails-on-save";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    stage.server().faults().arm(FaultKind::ConversionFails.always());
    command(&stage, scenario, 0).await;
    stage.pass(6_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 1).await;
}

#[tokio::test]
async fn a_converter_that_leaves_a_damaged_file_gives_3_with_it() {
    let scenario = "convert-corrupted-on-save";
    let stage = Stage::set(scenario).await;
    stage.server().faults().arm(FaultKind::ConversionCorrupts.always());
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
}

#[tokio::test]
async fn changes_survive_a_3_that_was_refused() {
    let scenario = "ws-convert-fails-host-error1";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    stage.server().faults().arm(FaultKind::ConversionFails.times(1));
    stage.edits_and_closes("u1").await;
    stage.pass(9_000).await;
    let u2 = stage.opens("u2").await;
    assert!(u2.messages().iter().any(|message| message["type"] == "authChanges"));
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
}

#[tokio::test]
async fn changes_do_not_survive_a_3_that_was_acknowledged() {
    let scenario = "ws-convert-fails-host-ok-then-reopen";
    let stage = Stage::set(scenario).await;
    stage.server().faults().arm(FaultKind::ConversionFails.times(1));
    let id = stage.edits_and_closes("u1").await;
    stage.pass(9_000).await;
    let u2 = stage.opens("u2").await;
    assert_eq!(u2.opened().await, Opening::Refresh);
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
    assert!(stage.server().journal().change(&id).unwrap().is_lost());
}

#[tokio::test]
async fn a_document_that_cannot_be_opened() {
    let scenario = "open-fails";
    let stage = Stage::set(scenario).await;
    stage.host.serves(Source::Bytes("this is no document".into()));
    let u1 = stage.opens("u1").await;
    assert!(matches!(u1.opened().await, Opening::Failed(_)));
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    assert_eq!(stage.host.downloads(), 1);
}

#[tokio::test]
async fn a_host_that_is_down_for_ten_seconds_gets_the_fourth_delivery() {
    let scenario = "save-refused";
    let stage = Stage::set(scenario).await;
    stage.edits_and_closes("u1").await;
    stage.host.go_down().await;
    stage.pass(10_600).await;
    stage.host.come_back().await;
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_host_that_is_down_for_long_finds_the_file_forgotten() {
    let scenario = "save-refused-for-long";
    let stage = Stage::set(scenario).await;
    stage.edits_and_closes("u1").await;
    stage.host.go_down().await;
    stage.pass(27_000).await;
    stage.host.come_back().await;
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
}

#[tokio::test]
async fn a_graceful_shutdown_saves_at_once() {
    let scenario = "graceful-shutdown";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    let url = format!("{}/internal/cluster/inactive", stage.server().url());
    let put = tokio::spawn(reqwest::Client::new().put(&url).send());
    stage.host.wait_for(1).await;
    while !stage.server().is_shutting_down().await {
        tokio::task::yield_now().await;
    }
    stage.pass(1_000).await;
    assert_eq!(stage.statuses(), [1, 2], "without the save delay");
    stage.pass(40_000).await;
    assert_eq!(put.await.unwrap().unwrap().text().await.unwrap(), "true");
    assert_eq!(u1.opened().await, Opening::Ready);
    assert!(u1.is_disconnected());
    let refused = stage.opens("u2").await;
    assert_eq!(refused.opened().await, Opening::Disconnected(Some(4001)));

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_killed_server_says_nothing_until_the_same_key_is_opened() {
    let scenario = "server-crash-restart";
    let mut stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    stage.crash().await;
    stage.restart().await;
    stage.pass(150_000).await;
    command(&stage, scenario, 0).await;
    command(&stage, scenario, 1).await;
    let u2 = stage.opens("u2").await;
    assert!(u2.messages().iter().any(|message| message["type"] == "authChanges"));
    stage.pass(7).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    assert_eq!(stage.host.downloads(), 1);
}
