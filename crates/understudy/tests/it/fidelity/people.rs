//! Recorded scenarios of who comes and goes.

use serde_json::json;
use understudy::server::Opening;
use understudy::tokens::{Secret, sign};

use super::{check, command};
use crate::stage::Stage;

#[tokio::test]
async fn two_users() {
    let stage = Stage::set("two-users").await;
    let u1 = stage.opens("u1").await;
    let u2 = stage.opens("u2").await;
    u1.write("mine").await.unwrap();
    stage.pass(4_000).await;
    u2.write("yours").await.unwrap();
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass(7_000).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check("two-users", &stage.callbacks());
}

#[tokio::test]
async fn the_last_editor_leaves_first() {
    let scenario = "two-users-last-editor-leaves-first";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    let u2 = stage.opens("u2").await;
    u2.write("yours").await.unwrap();
    stage.pass(4_000).await;
    u1.write("mine").await.unwrap();
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass(7_000).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn both_close_at_the_same_instant() {
    let scenario = "two-users-same-instant-close";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    let u2 = stage.opens("u2").await;
    u1.write("mine").await.unwrap();
    stage.pass(4_000).await;
    u2.hang_up().await.unwrap();
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn one_user_in_two_tabs() {
    let scenario = "same-user-two-tabs";
    let stage = Stage::set(scenario).await;
    let first = stage.opens("u1").await;
    let second = stage.opens("u1").await;
    first.write("mine").await.unwrap();
    stage.pass(4_000).await;
    first.hang_up().await.unwrap();
    stage.pass(4_000).await;
    second.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_client_that_freezes_is_noticed_by_its_pings() {
    let scenario = "ws-client-vanishes";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    u1.freeze().await.unwrap();
    stage.pass(44_000).await;
    assert_eq!(stage.statuses(), [1]);
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn viewers_cause_no_callbacks() {
    let stage = Stage::set("view-mode").await;
    let config = understudy::EditorConfig { mode: Some("view".into()), ..stage.config("u1") };
    let u1 = stage.opens_with(&config).await.unwrap();
    stage.pass(2_000).await;
    assert_eq!(u1.opened().await, Opening::Ready);
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check("view-mode", &stage.callbacks());
    assert_eq!(stage.host.downloads(), 1);
}

#[tokio::test]
async fn drop_makes_the_editor_leave_at_once() {
    let scenario = "drop-command";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    command(&stage, scenario, 0).await;
    command(&stage, scenario, 1).await;
    stage.pass(1_000).await;
    assert_eq!(stage.statuses(), [1, 1, 2], "without the save delay");
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_token_of_another_secret_is_rejected() {
    let stage = Stage::set("ws-rejected-token").await;
    let mut config = stage.config("u1").plain();
    config["token"] = json!(sign(&config, &Secret::new("another")));

    let refused = stage.server().open(&config).await;

    assert!(refused.is_err_and(|error| error.to_string().contains("4006")));
    check("ws-rejected-token", &stage.callbacks());
}

#[tokio::test]
async fn two_documents_of_one_host() {
    let scenario = "ws-two-docs-same-host";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    let second = format!("{}-second", stage.key);
    let u2 = stage.opens_with(&stage.config_for(&second, "u2")).await.unwrap();
    stage.pass(2_000).await;
    u1.write("one").await.unwrap();
    u2.write("two").await.unwrap();
    u1.hang_up().await.unwrap();
    stage.pass(200).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}
