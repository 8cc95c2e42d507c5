//! What the server does with the host's answer to a save: PROTOCOL 2.2, 14.7 and 14.9.

use serde_json::json;
use understudy::server::{FaultKind, Opening};

use crate::host::{Callback, Reply};
use crate::stage::Stage;

/// What becomes of a final save.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Done,
    Forgotten,
}

async fn check(replies: &[Reply], deliveries: usize, end: End) {
    let stage = Stage::set("answers").await;
    stage.answers(2, replies.iter().cloned());
    stage.host.always(2, replies.last().unwrap().clone());

    let id = stage.edits_and_closes("u1").await;
    stage.pass_long().await;

    let saves: Vec<Callback> =
        stage.callbacks().into_iter().filter(|callback| callback.status() == 2).collect();
    assert_eq!(saves.len(), deliveries, "{replies:?}");
    let found = if stage.has_forgotten().await { End::Forgotten } else { End::Done };
    assert_eq!(found, end, "{replies:?}");
    assert_eq!(stage.changes_left().await, 0, "{replies:?}");
    let change = stage.server().journal().change(&id).unwrap();
    assert_eq!(change.acknowledged_by.is_empty(), end == End::Forgotten);
    assert!(!change.is_lost());
    let paths: std::collections::BTreeSet<_> = saves.iter().map(Callback::save_path).collect();
    let queries: std::collections::BTreeSet<_> =
        saves.iter().map(|save| save.body["url"].to_string()).collect();
    let times: std::collections::BTreeSet<_> =
        saves.iter().map(|save| save.body["lastsave"].to_string()).collect();
    assert_eq!(
        (paths.len(), times.len(), queries.len()),
        (1, 1, deliveries),
        "one path and time, new queries"
    );
}

#[tokio::test]
async fn an_acknowledged_save_is_done() {
    check(&[Reply::Ok], 1, End::Done).await;
    check(&[Reply::Raw("text/plain", r#"{"error":false}"#)], 1, End::Done).await;
    check(&[Reply::Raw("application/json", r#"{"error":0,"more":[]}"#)], 1, End::Done).await;
}

#[tokio::test]
async fn a_refusal_of_any_kind_goes_straight_to_forgotten() {
    for reply in [
        Reply::Error1,
        Reply::Raw("application/json", r#"{"error":null}"#),
        Reply::Raw("application/json", "{}"),
        Reply::Raw("text/html", "<html>"),
        Reply::Raw("application/json", ""),
        Reply::Status(204, ""),
        Reply::Status(201, r#"{"error":0}"#),
        Reply::Status(202, r#"{"error":0}"#),
        Reply::Http(404),
        Reply::Http(304),
    ] {
        check(&[reply], 1, End::Forgotten).await;
    }
}

#[tokio::test]
async fn trouble_that_may_pass_is_repeated_after_one_two_and_four_seconds() {
    check(&[Reply::Http(503), Reply::Http(503), Reply::Ok], 3, End::Done).await;
    check(&[Reply::Close, Reply::Close, Reply::Ok], 3, End::Done).await;
    check(&[Reply::Http(429), Reply::Http(500), Reply::Http(599), Reply::Ok], 4, End::Done).await;
    check(&[Reply::Http(503), Reply::Error1], 2, End::Forgotten).await;
    check(&[Reply::Http(502)], 4, End::Forgotten).await;
    check(&[Reply::Close], 4, End::Forgotten).await;
}

#[tokio::test]
async fn the_pauses_are_one_two_and_four_seconds_after_the_answer() {
    let stage = Stage::set("pauses").await;
    stage.host.always(2, Reply::Http(503));
    stage.edits_and_closes("u1").await;

    let mut came = Vec::new();
    for _ in 0..140 {
        stage.pass(100).await;
        came.push(stage.statuses().iter().filter(|status| **status == 2).count());
    }

    let at = |count: usize| came.iter().position(|seen| *seen >= count).unwrap();
    assert_eq!(at(1), 53, "five seconds and the conversion");
    assert_eq!((at(2) - at(1), at(3) - at(2), at(4) - at(3)), (10, 20, 40));
}

#[tokio::test]
async fn a_connection_closed_after_three_seconds_is_worth_a_retry() {
    let stage = Stage::set("closed-late").await;
    stage.answers(2, [Reply::Held, Reply::Held, Reply::Ok]);
    stage.edits_and_closes("u1").await;
    for _ in 0..2 {
        stage.pass(6_000).await;
        stage.pass(3_000).await;
        stage.host.release(Reply::Close);
    }
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 2, 2, 2]);
    assert!(!stage.has_forgotten().await);
}

#[tokio::test]
async fn after_four_failures_the_forgotten_copy_is_the_file_that_was_sent() {
    let stage = Stage::set("same-file").await;
    stage.host.always(2, Reply::Http(503));
    stage.edits_and_closes("u1").await;
    stage.pass(6_000).await;
    let sent = stage.file_of(&stage.last()).await;
    stage.pass_long().await;

    let url = stage.ask("getForgotten").await["url"].as_str().unwrap().to_owned();
    assert_eq!(stage.get(&url).await, (200, sent));
    assert_eq!(stage.ask("info").await["error"], 1, "the server's own state of the key is gone");
}

#[tokio::test]
async fn a_deleted_forgotten_copy_leaves_a_key_like_new() {
    let stage = Stage::set("deleted").await;
    stage.answers(2, [Reply::Error1]);
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;
    assert_eq!(stage.ask("deleteForgotten").await["error"], 0);
    assert_eq!(stage.ask("deleteForgotten").await["error"], 1);

    let session = stage.opens("u2").await;

    assert_eq!(session.opened().await, Opening::Ready);
    assert_eq!(stage.host.downloads(), 2, "the source is fetched again");
    assert!(!session.messages().iter().any(|message| message["type"] == "authChanges"));
    session.write("new").await.unwrap();
    session.hang_up().await.unwrap();
    stage.pass_long().await;
    assert_eq!(stage.statuses(), [1, 2, 1, 2]);
}

#[tokio::test]
async fn deleting_the_forgotten_copy_under_an_editor_is_harmless() {
    let stage = Stage::set("under").await;
    stage.answers(2, [Reply::Error1]);
    let first = stage.edits_and_closes("u1").await;
    stage.pass_long().await;
    let session = stage.opens("u2").await;
    let second = session.write("more").await.unwrap();

    assert_eq!(stage.ask("deleteForgotten").await["error"], 0);
    session.hang_up().await.unwrap();
    stage.pass_long().await;

    let held = understudy::office::changes_in(&stage.file_of(&stage.last()).await);
    assert!(held.contains(&first) && held.contains(&second), "{held:?}");
}

#[tokio::test]
async fn a_second_failed_save_replaces_the_forgotten_copy() {
    let stage = Stage::set("replaced").await;
    stage.host.always(2, Reply::Error1);
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;
    let first = stage.server().forgotten(&stage.key).await.unwrap().unwrap();
    stage.edits_and_closes("u2").await;
    stage.pass_long().await;

    let second = stage.server().forgotten(&stage.key).await.unwrap().unwrap();

    assert_ne!(first, second);
    assert_eq!(stage.ask("getForgottenList").await["keys"], json!([stage.key]));
    assert_eq!(understudy::office::changes_in(&second).len(), 2, "it grew out of the first");
}

#[tokio::test]
async fn a_newcomer_in_the_last_pause_stops_the_retries() {
    let stage = Stage::set("newcomer").await;
    stage.answers(2, [Reply::Http(503), Reply::Http(503), Reply::Http(503)]);
    let first = stage.edits_and_closes("u1").await;
    stage.pass(5_400 + 3_500).await;
    assert_eq!(stage.statuses(), [1, 2, 2, 2]);

    let newcomer = stage.opens("u2").await;
    let second = newcomer.write("more").await.unwrap();
    stage.pass(10_000).await;
    newcomer.hang_up().await.unwrap();
    stage.pass_long().await;

    let saves: Vec<Callback> =
        stage.callbacks().into_iter().filter(|callback| callback.status() == 2).collect();
    assert_eq!(stage.statuses(), [1, 2, 2, 2, 1, 2]);
    assert_ne!(saves[0].save_path(), saves[3].save_path());
    let held = understudy::office::changes_in(&stage.file_of(&saves[3]).await);
    assert!(held.contains(&first) && held.contains(&second));
    assert_eq!(stage.host.downloads(), 1);
}

#[tokio::test]
async fn a_3_takes_the_same_way_as_a_2_but_leaves_nothing_to_forget() {
    let stage = Stage::set("three").await;
    stage.server().faults().arm(FaultKind::ConversionFails.always());
    stage.host.always(3, Reply::Http(500));
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 3, 3, 3, 3]);
    assert!(!stage.has_forgotten().await);
    assert_eq!(stage.changes_left().await, 1);
}

#[tokio::test]
async fn a_damaged_file_refused_goes_to_forgotten() {
    let stage = Stage::set("damaged").await;
    stage.server().faults().arm(FaultKind::ConversionCorrupts.always());
    stage.host.always(3, Reply::Error1);
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 3]);
    assert!(stage.has_forgotten().await);
}

#[tokio::test]
async fn nothing_but_saves_is_ever_repeated() {
    let stage = Stage::set("no-repeat").await;
    for status in [1, 4, 6, 7] {
        stage.host.always(status, Reply::Http(500));
    }
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    session.press_save().await.unwrap();
    stage.pass(30_000).await;
    assert_eq!(stage.statuses(), [1, 6]);
    session.hang_up().await.unwrap();
    stage.pass_long().await;
    let idle = stage.opens("u2").await;
    drop(idle);
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 6, 2]);
}

#[tokio::test]
async fn in_a_shutdown_nothing_is_repeated() {
    let stage = Stage::set("shutdown").await;
    stage.host.always(2, Reply::Http(503));
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    let (done, ()) = tokio::join!(stage.server().shut_down(), async {
        while !stage.server().is_shutting_down().await {
            tokio::task::yield_now().await;
        }
        stage.pass(40_000).await;
    });

    assert_eq!(done, Ok(true));
    assert_eq!(stage.statuses(), [1, 2]);
    assert!(stage.has_forgotten().await);
    assert_eq!(stage.ask("forcesave").await["error"], 0, "accepted, and nothing is done");
}

#[tokio::test]
async fn a_veto_by_the_saved_command_counts_as_a_refusal() {
    let stage = Stage::set("veto").await;
    stage.answers(2, [Reply::Held]);
    stage.edits_and_closes("u1").await;
    stage.pass(6_000).await;
    let vetoed = stage.command(&json!({"c": "saved", "key": stage.key, "status": "0"})).await;
    stage.host.release(Reply::Ok);
    stage.pass_long().await;

    assert_eq!(vetoed["error"], 0);
    assert!(stage.has_forgotten().await);
}

#[tokio::test]
async fn without_a_callback_address_changes_are_deleted() {
    let stage = Stage::set("no-address").await;
    let mut config = stage.config("u1").plain();
    config["editorConfig"].as_object_mut().unwrap().remove("callbackUrl");
    config["token"] =
        json!(understudy::tokens::sign(&config, &understudy::tokens::Secret::new(crate::stage::SECRET)));
    let session = stage.server().open(&config).await.unwrap();
    stage.pass(1_000).await;
    let id = session.write("lost").await.unwrap();
    assert_eq!(stage.ask("forcesave").await["error"], 4);
    assert_eq!(stage.ask("info").await["error"], 2);
    session.hang_up().await.unwrap();
    stage.pass_long().await;

    assert_eq!(stage.statuses(), Vec::<u64>::new());
    assert!(stage.server().journal().change(&id).unwrap().is_lost());
}
