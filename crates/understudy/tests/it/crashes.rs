//! What survives the death of the server: PROTOCOL 14.5 (5.7, 5.8), in memory and in a folder.

use serde_json::json;
use understudy::EditorConfig;
use understudy::server::Opening;
use understudy::settings::Storage;

use crate::host::Reply;
use crate::stage::Stage;

#[tokio::test]
async fn unsaved_changes_wait_in_silence_for_the_same_key() {
    for how in ["inside", "left", "force-saved"] {
        let mut stage = Stage::set("silence").await;
        let session = stage.opens("u1").await;
        session.write("one").await.unwrap();
        if how == "left" {
            session.hang_up().await.unwrap();
            stage.pass(1_000).await;
        }
        if how == "force-saved" {
            session.press_save().await.unwrap();
            stage.pass(1_000).await;
        }
        let before = stage.callbacks().len();
        stage.crash().await;
        stage.restart().await;
        stage.pass(130_000).await;
        assert_eq!(stage.callbacks().len(), before, "{how}");
        assert_eq!(stage.ask("info").await["users"], json!([]));
        assert_eq!(stage.last().body["status"], 1);
        assert_eq!(stage.ask("forcesave").await["error"], 4);
        let told = stage.callbacks().len();
        let viewer = EditorConfig { mode: Some("view".into()), ..stage.config("u3") };
        let viewer = stage.opens_with(&viewer).await.unwrap();
        stage.pass(1_000).await;
        viewer.hang_up().await.unwrap();
        stage.pass(10_000).await;
        assert_eq!(stage.callbacks().len(), told, "a viewer changes nothing");

        let rescuer = stage.opens("u2").await;
        stage.pass(7).await;
        rescuer.hang_up().await.unwrap();
        stage.pass_long().await;

        let save = stage.last();
        assert_eq!(
            (save.status(), &save.body["notmodified"], &save.body["users"]),
            (2, &json!(null), &json!(["u1"]))
        );
        assert!(save.path.ends_with("u=u1"));
        assert_eq!(stage.host.downloads(), 1);
    }
}

#[tokio::test]
async fn an_editor_may_come_back_to_a_restarted_server_by_its_session() {
    let mut stage = Stage::set("session").await;
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    stage.crash().await;
    stage.restart().await;

    let back = stage.server().resume(&session).await.unwrap();
    assert_eq!(back.opened().await, Opening::Ready);
    back.write("two").await.unwrap();
    stage.pass(1_000).await;
    back.hang_up().await.unwrap();
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 1, 2]);
    assert_eq!(understudy::office::changes_in(&stage.file_of(&stage.last()).await).len(), 2);
}

/// A save in flight or between retries is delivered again: same path, but the time of now.
async fn check_redelivery(reply: Reply, wait_ms: u64) {
    let mut stage = Stage::set("redelivery").await;
    stage.answers(2, [reply]);
    stage.edits_and_closes("u1").await;
    stage.pass(wait_ms).await;
    let first = stage.last();
    stage.crash().await;
    stage.restart().await;
    stage.pass(1_003).await;
    let second = stage.last();

    assert_eq!((first.status(), second.status()), (2, 2));
    assert_eq!(first.save_path(), second.save_path());
    assert_ne!(first.body["lastsave"], second.body["lastsave"]);
    assert!(!second.body["lastsave"].as_str().unwrap().ends_with(".000Z"));
    assert_eq!((&first.body["notmodified"], &second.body["notmodified"]), (&json!(false), &json!(null)));
    stage.pass_long().await;
    assert_eq!(stage.changes_left().await, 0);
    assert_eq!(stage.statuses(), [1, 2, 2]);
}

#[tokio::test]
async fn a_final_save_in_flight_is_delivered_again() {
    check_redelivery(Reply::Held, 6_000).await;
}

#[tokio::test]
async fn a_final_save_between_retries_is_delivered_again() {
    check_redelivery(Reply::Http(503), 5_800).await;
}

#[tokio::test]
async fn the_redelivery_may_come_before_the_file_can_be_served() {
    let mut stage = Stage::set_with("early", |settings| settings.serve_files_after_ms = 3_000).await;
    stage.pass(4_000).await;
    stage.answers(2, [Reply::Held]);
    stage.edits_and_closes("u1").await;
    stage.pass(6_000).await;
    stage.crash().await;
    stage.answers(2, [Reply::Held]);
    stage.restart().await;
    stage.pass(10).await;
    let url = stage.last().body["url"].as_str().unwrap().to_owned();
    assert_eq!(stage.statuses(), [1, 2, 2]);

    assert_eq!(stage.get(&url).await.0, 404);
    stage.pass(3_000).await;
    assert_eq!(stage.get(&url).await.0, 200);
}

#[tokio::test]
async fn a_folder_brings_everything_back_in_another_process_life() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::set_with("folder", |settings| {
        settings.storage = Storage::Folder(folder.path().join("state"));
        settings.journal = Some(folder.path().join("journal.jsonl"));
    })
    .await;
    let settings = stage.server().settings().clone();
    stage.answers(2, [Reply::Error1]);
    let forgotten = stage.edits_and_closes("u1").await;
    stage.pass_long().await;
    let unsaved_key = "folder-unsaved";
    let session = stage.opens_with(&stage.config_for(unsaved_key, "u2")).await.unwrap();
    stage.pass(1_000).await;
    let unsaved = session.write("unsaved").await.unwrap();
    stage.server.take().unwrap().stop().await;

    stage.server = Some(understudy::start(settings).await.unwrap());

    assert_eq!(stage.ask("getForgottenList").await["keys"], json!([stage.key]));
    let journal = stage.server().journal().clone();
    assert!(journal.change(&forgotten).unwrap().forgotten_under.contains(&stage.key));
    assert!(journal.change(&unsaved).unwrap().in_log);
    stage.key = unsaved_key.into();
    let rescuer = stage.opens("u3").await;
    rescuer.hang_up().await.unwrap();
    stage.pass_long().await;
    assert!(understudy::office::changes_in(&stage.file_of(&stage.last()).await).contains(&unsaved));
    assert!(!journal.change(&unsaved).unwrap().acknowledged_by.is_empty());
}
