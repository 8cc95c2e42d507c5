//! Keys and long values: PROTOCOL 14.1 and 14.10.

use serde_json::json;

use crate::host::Reply;
use crate::stage::Stage;

async fn check_key(key: &str) {
    let mut stage = Stage::set("keys").await;
    stage.key = key.to_owned();
    stage.host.always(2, Reply::Error1);
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    assert_eq!(stage.ask("info").await, json!({"key": key, "error": 0, "users": ["u1"]}));
    assert_eq!(stage.ask("forcesave").await, json!({"key": key, "error": 0}));
    stage.pass(1_000).await;
    session.hang_up().await.unwrap();
    stage.pass_long().await;

    for callback in stage.callbacks() {
        assert_eq!(callback.body["key"], key);
        if let Some(path) = callback.save_path() {
            assert!(path.starts_with(&format!("/cache/files/data/{key}_")), "{path}");
        }
    }
    assert_eq!(stage.statuses(), [1, 1, 6, 2]);
    assert_eq!(stage.ask("getForgottenList").await["keys"], json!([key]));
    let url = stage.ask("getForgotten").await["url"].as_str().unwrap().to_owned();
    let sent = stage.file_of(&stage.last()).await;
    assert_eq!(stage.get(&url).await.1, sent);
    assert_eq!(stage.ask("deleteForgotten").await["error"], 0);
}

#[tokio::test]
async fn keys_of_every_permitted_shape_come_back_byte_for_byte() {
    check_key("prod_12345_edit_42.k7q2mz4hxw3t5678").await;
    check_key(&format!("prod_12345_edit_42.{}", "x".repeat(109))).await;
    check_key(&format!("a=b-c{}", "=".repeat(124))).await;
}

#[tokio::test]
async fn a_key_outside_the_alphabet_is_refused() {
    let mut stage = Stage::set("keys").await;
    stage.key = "no/slash".into();

    let refused = stage.opens_with(&stage.config("u1")).await;

    assert!(refused.is_err_and(|error| error.to_string().contains("4004")));
}

#[tokio::test]
async fn commands_on_an_absent_key_answer_1() {
    let stage = Stage::set("keys").await;
    for command in ["info", "forcesave", "getForgotten", "deleteForgotten"] {
        assert_eq!(stage.ask(command).await, json!({"key": stage.key, "error": 1}), "{command}");
    }
    assert_eq!(stage.ask("drop").await["error"], 0);
}

#[tokio::test]
async fn long_addresses_and_userdata_arrive_intact() {
    let stage = Stage::set("long").await;
    let query = |length: usize| format!("u=u1&x={}", "%C3%A9%20a%2Fb&y=".repeat(length / 17));
    for (length, userdata) in [(2173, "quotes \" backslash \\ é".repeat(9)), (7000, "x".repeat(5000))] {
        let mut config = stage.config_for(&format!("long-{length}"), "u1");
        config.callback_url = stage.host.url(&format!("/cb/long?{}", query(length)));
        let from = stage.callbacks().len();
        let session = stage.opens_with(&config).await.unwrap();
        stage.pass(1_000).await;
        session.write("one").await.unwrap();
        stage.command(&json!({"c": "forcesave", "key": config.key, "userdata": userdata})).await;
        stage.pass(1_000).await;
        session.hang_up().await.unwrap();
        stage.pass_long().await;

        let callbacks = stage.callbacks().split_off(from);
        assert_eq!(callbacks.len(), 3);
        for callback in &callbacks {
            assert_eq!(stage.host.url(&callback.path), config.callback_url);
        }
        assert_eq!(callbacks[1].body["userdata"], userdata);
    }
}
