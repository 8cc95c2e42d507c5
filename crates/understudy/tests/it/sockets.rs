//! The same conversations over real sockets, with the client this crate offers.

use std::time::Duration;

use serde_json::json;
use understudy::EditorConfig;
use understudy::client::{Client, ClientError, Options};
use understudy::server::Opening;
use understudy::tokens::{Secret, sign};

use crate::host::Reply;
use crate::stage::{SECRET, Stage};

async fn connect(stage: &Stage, user: &str) -> Client {
    connect_with(stage, &stage.config(user), Options::default()).await.unwrap()
}

async fn connect_with(stage: &Stage, config: &EditorConfig, options: Options) -> Result<Client, ClientError> {
    let config = config.signed(&Secret::new(SECRET));
    Client::open(&stage.server().url(), &config, options).await
}

/// Waits for the opening while the clock moves.
async fn opening(stage: &Stage, client: &Client) -> Opening {
    let (opening, ()) = tokio::join!(client.opened(), async {
        while !client.messages().iter().any(|message| message["type"] == "auth" || message["type"] == "error")
        {
            tokio::task::yield_now().await;
        }
        stage.pass(5_000).await;
    });
    opening.unwrap()
}

/// Waits until the server has noticed that nobody edits.
async fn alone(stage: &Stage) {
    while !stage.server().key(&stage.key).await.unwrap().editors.is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_opens_edits_force_saves_and_closes() {
    let stage = Stage::set("whole").await;
    let client = connect(&stage, "u1").await;
    assert_eq!(opening(&stage, &client).await, Opening::Ready);
    let first = client.write("over the wire").await.unwrap();
    assert_eq!(client.force_save().await.unwrap().code, 0);
    stage.pass(1_000).await;
    assert!(client.force_saved().await.unwrap());
    let second = client.write("and more").await.unwrap();
    client.close().await.unwrap();
    stage.pass(1_000).await;

    assert_eq!(stage.statuses(), [1, 6, 2], "an explicit close skips the save delay");
    let held = understudy::office::changes_in(&stage.file_of(&stage.last()).await);
    assert!(held.contains(&first) && held.contains(&second));
}

#[tokio::test]
async fn two_clients_see_each_others_changes_and_presence() {
    let stage = Stage::set("two").await;
    let u1 = connect(&stage, "u1").await;
    opening(&stage, &u1).await;
    let u2 = connect(&stage, "u2").await;
    opening(&stage, &u2).await;
    let id = u1.write("look").await.unwrap();
    u2.write("seen").await.unwrap();

    let heard = u2.messages().into_iter().find(|message| message["type"] == "saveChanges").unwrap();
    assert!(heard["changes"][0]["change"].as_str().unwrap().contains(&id));
    assert_eq!(heard["changes"][0]["useridoriginal"], "u1");
    let state = u1.messages().into_iter().find(|message| message["type"] == "connectState").unwrap();
    assert_eq!(state["participants"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_cut_connection_is_a_lost_editor() {
    let stage = Stage::set("cut").await;
    let client = connect(&stage, "u1").await;
    opening(&stage, &client).await;
    client.write("one").await.unwrap();
    client.hang_up().await;
    alone(&stage).await;
    stage.pass(4_000).await;
    assert_eq!(stage.statuses(), [1]);
    stage.pass(3_000).await;

    assert_eq!(stage.statuses(), [1, 2]);
}

#[tokio::test]
async fn a_frozen_client_is_lost_when_its_ping_goes_unanswered() {
    let stage = Stage::set("frozen").await;
    let client = connect(&stage, "u1").await;
    opening(&stage, &client).await;
    client.write("one").await.unwrap();
    client.freeze().await.unwrap();
    stage.pass(24_000).await;
    assert_eq!(stage.server().key(&stage.key).await.unwrap().editors.len(), 1);
    while !stage.server().key(&stage.key).await.unwrap().editors.is_empty() {
        stage.pass(1_000).await;
    }
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 2]);
}

#[tokio::test]
async fn a_bad_token_is_refused_at_the_door() {
    let stage = Stage::set("door").await;
    let mut config = stage.config("u1").plain();
    config["token"] = json!(sign(&config, &Secret::new("another")));

    let refused = Client::open(&stage.server().url(), &config, Options::default()).await;

    assert!(matches!(refused, Err(ClientError::Refused { code: 4006, .. })));
}

#[tokio::test]
async fn altered_permissions_are_refused_after_the_door() {
    let stage = Stage::set("altered").await;
    let permissions = Some(json!({"edit": false}));
    let mut config = EditorConfig { permissions, ..stage.config("u1") }.signed(&Secret::new(SECRET));
    config["document"]["permissions"] = json!({"edit": true});

    let client = Client::open(&stage.server().url(), &config, Options::default()).await.unwrap();

    assert_eq!(client.opened().await.unwrap(), Opening::Disconnected(Some(4004)));
}

#[tokio::test]
async fn a_client_comes_back_with_its_session() {
    let stage = Stage::set("back").await;
    let client = connect(&stage, "u1").await;
    opening(&stage, &client).await;
    client.write("one").await.unwrap();
    let config = stage.config("u1").plain();
    let back = client.reconnect(&stage.server().url(), &config).await.unwrap();
    client.hang_up().await;
    assert_eq!(back.opened().await.unwrap(), Opening::Ready);
    back.write("two").await.unwrap();
    stage.pass(2_000).await;
    back.close().await.unwrap();
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 1, 2]);
    assert_eq!(understudy::office::changes_in(&stage.file_of(&stage.last()).await).len(), 2);
}

#[tokio::test]
async fn a_spent_key_and_a_dropped_client_are_told() {
    let stage = Stage::set("told").await;
    let client = connect(&stage, "u1").await;
    opening(&stage, &client).await;
    client.write("one").await.unwrap();
    stage.ask("drop").await;
    alone(&stage).await;
    stage.pass(1_000).await;
    assert_eq!(stage.statuses(), [1, 2]);
    let late = connect(&stage, "u2").await;

    assert_eq!(opening(&stage, &late).await, Opening::Refresh);
}

#[tokio::test]
async fn a_versioned_address_and_raw_changes_work_too() {
    let stage = Stage::set("versioned").await;
    let options =
        Options { prefix: "/9.3.0-1".into(), patience: Duration::from_secs(10), ..Options::default() };
    let client = connect_with(&stage, &stage.config("u1"), options).await.unwrap();
    opening(&stage, &client).await;
    client.change_raw(&["78;AgAAADEA".to_owned()]).await.unwrap();
    client.close().await.unwrap();
    stage.pass(1_000).await;

    assert_eq!(stage.last().status(), 2);
    assert!(understudy::office::text_of(&stage.file_of(&stage.last()).await).contains("change of 13 bytes"));
}

#[tokio::test]
async fn a_crash_cuts_every_socket_and_the_callback_in_flight() {
    let mut stage = Stage::set("crash").await;
    stage.answers(1, [Reply::Held]);
    let client = connect(&stage, "u1").await;
    opening(&stage, &client).await;
    client.write("one").await.unwrap();
    assert_eq!(stage.host.held(), 1);

    stage.crash().await;

    while client.write("gone").await.is_ok() {}
    while stage.host.held() > 0 {
        tokio::task::yield_now().await;
    }
    stage.restart().await;
    assert_eq!(stage.changes_left().await, 1);
}
