//! Tokens of configurations, sessions and commands: PROTOCOL 3.3 and 14.2.

use serde_json::json;
use understudy::EditorConfig;
use understudy::server::Opening;
use understudy::settings::Jwt;
use understudy::tokens::{Secret, sign};

use crate::host::Reply;
use crate::stage::{SECRET, Stage};

fn short_lived(stage: &Stage, life_s: u64) -> EditorConfig {
    let expires_s = Some(stage.server().clock().now_s() + life_s);
    EditorConfig { expires_s, ..stage.config("u1") }
}

#[tokio::test]
async fn a_configuration_opens_until_sixty_seconds_after_its_end() {
    let stage = Stage::set("short").await;
    let config = short_lived(&stage, 5);
    stage.pass(52_000).await;
    let session = stage.opens_with(&config).await.unwrap();
    stage.pass(1_000).await;
    assert_eq!(session.opened().await, Opening::Ready);
    session.hang_up().await.unwrap();

    stage.pass(18_000).await;
    let refused = stage.opens_with(&config).await;

    assert!(refused.is_err_and(|error| error.to_string().contains("4005: token:jwt expired")));
    assert_eq!(stage.statuses(), [1, 4]);
    assert_eq!(stage.host.downloads(), 1);
}

#[tokio::test]
async fn a_session_outlives_its_token_and_reconnects_with_its_own() {
    let stage = Stage::set("outlives").await;
    let config = short_lived(&stage, 5);
    let session = stage.opens_with(&config).await.unwrap();
    stage.pass(100_000).await;
    session.write("still here").await.unwrap();
    session.hang_up().await.unwrap();
    stage.pass(2_000).await;

    let back = session.reconnect().await.unwrap();
    assert_eq!(back.opened().await, Opening::Ready);
    back.write("and back").await.unwrap();
    stage.pass(1_000).await;

    assert_eq!(stage.statuses(), [1, 1]);
    assert_eq!(stage.last().body["actions"], json!([{"type": 1, "userid": "u1"}]));
    assert!(stage.opens_with(&config).await.is_err(), "the opening token alone does not do");
    back.hang_up().await.unwrap();
    stage.pass_long().await;
    assert_eq!(stage.statuses(), [1, 1, 2]);
    assert_eq!(understudy::office::changes_in(&stage.file_of(&stage.last()).await).len(), 2);
}

#[tokio::test]
async fn a_session_does_not_come_back_after_its_final_save() {
    let stage = Stage::set("too-late").await;
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    session.hang_up().await.unwrap();
    stage.pass(8_000).await;

    let back = session.reconnect().await.unwrap();

    assert_eq!(back.opened().await, Opening::Lost(Some(4008)));
    back.write("not taken").await.unwrap();
    stage.pass_long().await;
    assert!(back.is_disconnected(), "a viewer that sends changes is thrown out");
    assert_eq!(stage.changes_left().await, 0);
    assert_eq!(stage.statuses(), [1, 2]);
}

#[tokio::test]
async fn a_session_whose_key_is_unknown_does_not_come_back() {
    let stage = Stage::set("unknown").await;
    stage.host.always(2, Reply::Error1);
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    session.hang_up().await.unwrap();
    stage.pass_long().await;

    let back = session.reconnect().await.unwrap();

    assert_eq!(back.opened().await, Opening::Lost(Some(4009)));
}

#[tokio::test]
async fn a_session_that_missed_a_change_of_another_does_not_go_on() {
    let stage = Stage::set("missed").await;
    let first = stage.opens("u1").await;
    let second = stage.opens("u2").await;
    first.hang_up().await.unwrap();
    stage.pass(2_000).await;
    second.write("behind your back").await.unwrap();

    let back = first.reconnect().await.unwrap();

    assert_eq!(back.opened().await, Opening::Lost(Some(4010)));
}

#[tokio::test]
async fn commands_need_a_good_token_and_only_its_claims_count() {
    let stage = Stage::set("commands").await;
    let none = std::collections::BTreeMap::new();
    let header = |token: &str| {
        std::collections::BTreeMap::from([("authorization".to_owned(), format!("Bearer {token}"))])
    };
    let secret = Secret::new(SECRET);
    let version = json!({"c": "version"});
    let past = stage.server().clock().now_s() - 61;

    let missing = stage.raw_command(&version, &none).await;
    let foreign = stage.raw_command(&json!({"token": sign(&version, &Secret::new("x"))}), &none).await;
    let expired = stage
        .raw_command(&json!({"token": sign(&json!({"c": "version", "exp": past}), &secret)}), &none)
        .await;
    let in_header =
        stage.raw_command(&json!({}), &header(&sign(&json!({"payload": version}), &secret))).await;
    let plain =
        stage.raw_command(&json!({"c": "drop", "key": "k", "token": sign(&version, &secret)}), &none).await;
    let no_key = stage.command(&json!({"c": "info"})).await;
    let unknown = stage.ask("dance").await;

    assert_eq!((&missing["error"], &foreign["error"], &expired["error"]), (&json!(6), &json!(6), &json!(7)));
    assert_eq!(in_header["version"], "9.3.0.1");
    assert_eq!(plain["version"], "9.3.0.1", "the token's command, not the plain one");
    assert_eq!((&no_key["error"], &unknown["error"]), (&json!(1), &json!(5)));
    assert!(stage.command(&json!({"c": "license"})).await["license"].is_object());
}

#[tokio::test]
async fn with_tokens_off_nothing_is_asked_for_and_nothing_is_sent() {
    let stage = Stage::set_with("off", |settings| settings.jwt = Jwt::off()).await;
    let session = stage.server().open(&stage.config("u1").plain()).await.unwrap();
    stage.pass(1_000).await;
    session.write("one").await.unwrap();
    session.hang_up().await.unwrap();
    stage.pass_long().await;

    let last = stage.last();
    assert_eq!(last.status(), 2);
    assert!(last.body.get("token").is_none() && !last.headers.contains_key("authorization"));
    assert!(!stage.host.last_download().1.contains_key("authorization"));
    let none = std::collections::BTreeMap::new();
    assert_eq!(stage.raw_command(&json!({"c": "version"}), &none).await["error"], 0);
}

#[tokio::test]
async fn the_header_can_have_another_name() {
    let stage = Stage::set_with("header", |settings| settings.jwt.header = "AuthorizationJwt".into()).await;
    let session = stage.opens("u1").await;
    stage.pass(1_000).await;
    drop(session);

    assert!(stage.last().headers.contains_key("authorizationjwt"));
    assert!(stage.host.last_download().1.contains_key("authorizationjwt"));
}

#[tokio::test]
async fn a_long_history_leaves_the_plain_body_but_not_the_body_token() {
    let stage = Stage::set("long-history").await;
    let sessions = [stage.opens("u1").await, stage.opens("u2").await];
    for turn in 0..40 {
        sessions[turn % 2].write("turn").await.unwrap();
    }
    for session in &sessions {
        session.hang_up().await.unwrap();
    }
    stage.pass_long().await;

    let save = stage.last();
    let token = save.body["token"].as_str().unwrap();
    let claims = understudy::tokens::verify(token, &Secret::new(SECRET), 0).unwrap();
    assert_eq!((save.status(), &save.body["history"]), (2, &json!({})));
    assert!(save.body.get("changesurl").is_none());
    assert_eq!(claims["history"]["changes"].as_array().unwrap().len(), 40);
    assert!(claims["changesurl"].is_string());
}
