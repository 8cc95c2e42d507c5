//! The `info` command: PROTOCOL 14.5.

use serde_json::{Value, json};
use understudy::EditorConfig;
use understudy::server::Opening;

use crate::host::{Reply, Source};
use crate::stage::Stage;

/// Asks, and checks what comes back and what the host is told.
async fn check(stage: &Stage, reply: Value, callback: Option<Value>) {
    let before = stage.callbacks().len();
    let mut expected = reply;
    expected["key"] = json!(stage.key);
    assert_eq!(stage.ask("info").await, expected);
    let told: Vec<Value> =
        stage.callbacks().split_off(before).into_iter().map(|callback| callback.body).collect();
    let strip = |mut body: Value| {
        let fields = body.as_object_mut().unwrap();
        fields.remove("token");
        fields.remove("key");
        body
    };
    assert_eq!(told.into_iter().map(strip).collect::<Vec<_>>(), callback.into_iter().collect::<Vec<_>>());
}

fn users(users: &[&str]) -> Value {
    json!({"error": 0, "users": users})
}

fn editing(users: &[&str]) -> Option<Value> {
    Some(json!({"status": 1, "users": users}))
}

fn closed() -> Option<Value> {
    Some(json!({"status": 4}))
}

#[tokio::test]
async fn a_key_never_opened_is_unknown() {
    let stage = Stage::set("never").await;

    check(&stage, json!({"error": 1}), None).await;
}

#[tokio::test]
async fn an_open_key_names_its_editors_with_or_without_changes() {
    let stage = Stage::set("open").await;
    let session = stage.opens("u1").await;
    check(&stage, users(&["u1"]), editing(&["u1"])).await;

    session.write("one").await.unwrap();

    check(&stage, users(&["u1"]), editing(&["u1"])).await;
}

#[tokio::test]
async fn a_save_that_is_not_through_is_status_1_without_users() {
    let stage = Stage::set("not-through").await;
    stage.answers(2, [Reply::Http(503), Reply::Held]);
    stage.edits_and_closes("u1").await;
    stage.pass(1_000).await;
    check(&stage, users(&[]), editing(&[])).await;
    stage.pass(4_800).await;
    assert_eq!(stage.last().status(), 2);
    check(&stage, users(&[]), editing(&[])).await;
    stage.pass(1_000).await;
    assert_eq!(stage.host.held(), 1);
    check(&stage, users(&[]), editing(&[])).await;

    stage.host.release(Reply::Ok);
    stage.pass(1_000).await;

    check(&stage, users(&[]), closed()).await;
    let waiting = stage.opens("u2").await;
    assert_eq!(waiting.opened().await, Opening::Refresh);
    check(&stage, users(&[]), closed()).await;
}

#[tokio::test]
async fn an_idle_key_is_status_4() {
    let stage = Stage::set("idle").await;
    let session = stage.opens("u1").await;
    session.hang_up().await.unwrap();
    stage.pass_long().await;

    check(&stage, users(&[]), closed()).await;
}

#[tokio::test]
async fn a_key_whose_opening_failed_is_status_4() {
    let stage = Stage::set("failed").await;
    stage.host.serves(Source::Status(404));
    let session = stage.opens("u1").await;
    session.hang_up().await.unwrap();
    stage.pass_long().await;

    check(&stage, users(&[]), closed()).await;
}

#[tokio::test]
async fn a_forgotten_key_is_unknown_until_somebody_opens_it() {
    let stage = Stage::set("forgotten").await;
    stage.host.always(2, Reply::Error1);
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;
    check(&stage, json!({"error": 1}), None).await;

    let viewer = EditorConfig { mode: Some("view".into()), ..stage.config("u3") };
    let viewer = stage.opens_with(&viewer).await.unwrap();
    stage.pass(1_000).await;
    check(&stage, users(&[]), closed()).await;
    viewer.hang_up().await.unwrap();
    check(&stage, users(&[]), closed()).await;
    let downloads = stage.host.downloads();
    let editor = stage.opens("u2").await;
    check(&stage, users(&["u2"]), editing(&["u2"])).await;

    assert_eq!(editor.opened().await, Opening::Ready);
    assert_eq!(stage.host.downloads(), downloads);
    assert_eq!(stage.ask("getForgottenList").await["keys"], json!([stage.key]));
}

#[tokio::test]
async fn a_spent_key_is_unknown_after_the_cache_expired() {
    let stage = Stage::set("expired").await;
    stage.edits_and_closes("u1").await;
    stage.pass(86_400_000 + 3_700_000).await;

    check(&stage, json!({"error": 1}), None).await;
}

#[tokio::test]
async fn userdata_comes_back_and_an_own_callback_is_used_once() {
    let stage = Stage::set("own").await;
    let _session = stage.opens("u1").await;
    let userdata = "n".repeat(206);
    let callback = stage.host.url("/cb/own?u=info");

    stage.command(&json!({"c": "info", "key": stage.key, "userdata": userdata, "callback": callback})).await;

    assert_eq!(stage.last().path, "/cb/own?u=info");
    assert_eq!(stage.last().body["userdata"], userdata);
    let _other = stage.opens("u2").await;
    assert_eq!(stage.last().path, "/cb/own?u=u2");
    stage.ask("info").await;
    assert_eq!(stage.last().path, "/cb/own?u=u2", "the last registered address");
}

#[tokio::test]
async fn it_waits_for_the_hosts_answer_whatever_it_is() {
    let stage = Stage::set("waits").await;
    let _session = stage.opens("u1").await;
    stage.answers(1, [Reply::Held]);
    let (reply, ()) = tokio::join!(stage.ask("info"), async {
        stage.host.wait_for(2).await;
        stage.pass(6_000).await;
        stage.host.release(Reply::Http(500));
    });

    assert_eq!(reply, json!({"key": stage.key, "error": 0, "users": ["u1"]}));
}

#[tokio::test]
async fn numbers_come_first_among_user_ids_as_in_the_real_server() {
    let stage = Stage::set("order").await;
    let mut sessions = Vec::new();
    for user in ["zoe", "10", "2", "amy"] {
        sessions.push(stage.opens(user).await);
    }

    assert_eq!(stage.ask("info").await["users"], json!(["2", "10", "zoe", "amy"]));
}
