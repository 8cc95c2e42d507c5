//! The `drop` command: PROTOCOL 14.6. And `meta`.

use serde_json::json;
use understudy::server::Opening;

use crate::stage::Stage;

#[tokio::test]
async fn one_of_two_goes_and_its_changes_stay() {
    let stage = Stage::set("one").await;
    let u1 = stage.opens("u1").await;
    let u2 = stage.opens("u2").await;
    let id = u1.write("before").await.unwrap();

    stage.command(&json!({"c": "drop", "key": stage.key, "users": ["u1"]})).await;
    stage.pass(1_000).await;

    assert_eq!(stage.last().body["users"], json!(["u2"]));
    assert_eq!(stage.last().body["actions"], json!([{"type": 0, "userid": "u1"}]));
    u2.hang_up().await.unwrap();
    stage.pass_long().await;
    assert_eq!(stage.statuses(), [1, 1, 1, 2]);
    assert!(understudy::office::changes_in(&stage.file_of(&stage.last()).await).contains(&id));
}

#[tokio::test]
async fn all_go_without_the_save_delay() {
    let stage = Stage::set("all").await;
    let u1 = stage.opens("u1").await;
    let _u2 = stage.opens("u2").await;
    u1.write("one").await.unwrap();

    stage.ask("drop").await;
    stage.pass(500).await;

    assert_eq!(stage.last().status(), 2);
    u1.write("too late").await.unwrap();
    stage.pass_long().await;
    assert!(u1.is_disconnected());
    assert_eq!(stage.changes_left().await, 0);
}

#[tokio::test]
async fn without_changes_all_going_is_a_4() {
    let stage = Stage::set("empty").await;
    let _u1 = stage.opens("u1").await;
    stage.command(&json!({"c": "drop", "key": stage.key, "users": "[\"u1\"]"})).await;
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 4]);
}

#[tokio::test]
async fn whoever_ignores_it_stays_and_everything_is_taken() {
    let stage = Stage::set("ignores").await;
    let u1 = stage.opens("u1").await;
    u1.ignore_drop();
    stage.ask("drop").await;
    stage.pass(10_000).await;
    assert_eq!(stage.ask("info").await["users"], json!(["u1"]));

    u1.write("still writing").await.unwrap();
    assert_eq!(u1.press_save().await.unwrap().code, 0);
    stage.pass(1_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 1, 6, 2]);
}

#[tokio::test]
async fn whoever_was_dropped_may_come_again() {
    let stage = Stage::set("again").await;
    let u1 = stage.opens("u1").await;
    let _u2 = stage.opens("u2").await;
    stage.command(&json!({"c": "drop", "key": stage.key, "users": ["u1"]})).await;
    stage.pass(1_000).await;
    u1.hang_up().await.unwrap();

    let again = stage.opens("u1").await;

    assert_eq!(again.opened().await, Opening::Ready);
    assert_eq!(stage.last().body["users"], json!(["u2", "u1"]));
}

#[tokio::test]
async fn meta_reaches_everybody_in_the_document() {
    let stage = Stage::set("meta").await;
    let u1 = stage.opens("u1").await;
    let missing = stage.ask("meta").await;
    let sent =
        stage.command(&json!({"c": "meta", "key": stage.key, "meta": {"title": "New name.docx"}})).await;

    let title = u1.wait_for(|message| {
        (message["type"] == "meta").then(|| message["messages"]["title"].as_str().unwrap().to_owned())
    });

    assert_eq!((&missing["error"], &sent["error"]), (&json!(5), &json!(0)));
    assert_eq!(title.await.unwrap(), "New name.docx");
}
