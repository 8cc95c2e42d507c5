//! Callbacks in the orders that really happen, each ending with every byte findable.
//!
//! "Findable" is checked from outside: whatever the understudy's journal says was typed must stand in a version, a checkpoint or a
//! kept copy that the interface serves with its hash, and so must every file whose delivery was answered 0.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::json;
use understudy::journal::Note;
use understudy::server::{FaultKind, Opening};

use crate::support::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn one_four_one_two() {
    let stage = Stage::start().await;
    stage.docx("12345").await;

    let first = stage.configure("12345", "ann", "edit").await;
    let session = stage.editor.open(&first["config"]).await.unwrap();
    assert!(matches!(session.opened().await, Opening::Ready));
    session.close().await.unwrap();
    stage.editor.quiet().await;
    let second = stage.configure("12345", "ann", "edit").await;
    let session = stage.editor.open(&second["config"]).await.unwrap();
    assert!(matches!(session.opened().await, Opening::Ready));
    session.write("After coming back.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;

    assert_eq!(second["key"], first["key"], "status 4 retires nothing");
    assert_eq!(stage.statuses(), [1, 4, 1, 2]);
    assert_eq!(stage.versions("12345").await, ["2", "1"]);
    stage.expect_every_byte_findable("12345").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_is_retried_after_a_lost_reply() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.editor.faults().arm(FaultKind::AnswerLost.times(1).for_status(2));

    let session = stage.edit("12345", "ann").await;
    session.write("Told twice.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    stage.editor.quiet().await;

    assert_eq!(stage.statuses(), [1, 2, 2]);
    assert_eq!(stage.versions("12345").await, ["2", "1"], "one save, however often it is told");
    assert!(stage.kept("12345").await.is_empty());
    stage.expect_every_byte_findable("12345").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn six_comes_after_two() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.editor.faults().arm(FaultKind::CallbackAfterNext { at_most_ms: 600_000 }.times(1).for_status(6));

    let session = stage.edit("12345", "ann").await;
    session.write("In the checkpoint.").await.unwrap();
    session.press_save().await.unwrap();
    let built =
        |entry: &understudy::journal::Entry| matches!(entry.note, Note::ContentProduced { .. }).then_some(());
    stage.editor.journal().wait_for(built).await;
    session.write("Only in the final save.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    stage.wait_until("the late one is there", async || stage.versions("12345").await.len() == 3).await;

    let text = stage.text("12345").await;
    assert!(text.contains("In the checkpoint.") && text.contains("Only in the final save."), "{text}");
    assert_eq!(stage.document("12345").await["head"], "2", "an older save does not become the head");
    let versions = stage.get("/api/v1/documents/12345/versions").await;
    let late = versions.as_array().unwrap().iter().find(|each| each["is_checkpoint"] == true).unwrap();
    assert_eq!(late["is_filed_beside"], true, "it came after the final save");
    stage.expect_every_byte_findable("12345").await;
}

/// Ann sits in a session that was ended under her and does not hear that she should leave.
async fn left_behind(stage: &Stage) -> understudy::Session {
    let ann = stage.edit("12345", "ann").await;
    ann.ignore_drop();
    ann.write("Ann's, before.").await.unwrap();
    let restored =
        stage.post("/api/v1/documents/12345/versions/1/restore", &json!({ "while_editing": true })).await;
    assert!(restored["head"].is_string());
    ann.write("Ann's, after.").await.unwrap();
    ann
}

#[tokio::test(flavor = "multi_thread")]
async fn two_keys_of_one_document() {
    let stage = Stage::start().await;
    stage.docx("12345").await;

    let ann = left_behind(&stage).await;
    let ben = stage.edit("12345", "ben").await;
    ben.write("Ben's.").await.unwrap();
    let mut states = BTreeSet::new();
    stage
        .wait_until("Ben is inside", async || {
            let sessions = stage.get("/api/v1/documents/12345/sessions").await;
            let sessions = sessions.as_array().unwrap().iter();
            states = sessions.map(|session| session["state"].as_str().unwrap().to_owned()).collect();
            states.contains("editing")
        })
        .await;
    assert_eq!(states, BTreeSet::from(["editing".to_owned(), "left-behind".to_owned()]));
    ann.close().await.unwrap();
    stage.wait_until("Ann's is kept", async || !stage.kept("12345").await.is_empty()).await;
    ben.close().await.unwrap();
    stage.wait_until("Ben's is the head", async || stage.text("12345").await.contains("Ben's.")).await;

    let saved: BTreeSet<String> = stage
        .editor
        .journal()
        .callbacks()
        .into_iter()
        .filter(|(_, body)| body.status == 2)
        .map(|(_, body)| body.key)
        .collect();
    assert_eq!(saved.len(), 2, "two keys saved");
    assert!(!stage.text("12345").await.contains("Ann's, after."), "the session that was over does not win");
    assert_eq!(stage.kept("12345").await[0]["kind"], "conflict");
    stage.expect_every_byte_findable("12345").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_after_delete() {
    let stage = Stage::start().await;
    stage.docx("12345").await;

    let ann = left_behind(&stage).await;
    let deleted = stage.request(Method::DELETE, "/api/v1/documents/12345").send().await.unwrap();
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT, "{}", deleted.text().await.unwrap());
    ann.close().await.unwrap();
    stage.editor.quiet().await;
    assert_eq!(stage.statuses().last(), Some(&2), "the save came after the deletion");
    let gone = stage.request(Method::GET, "/api/v1/documents/12345").send().await.unwrap();
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    stage.post("/api/v1/documents/12345/undelete", &json!({})).await;

    stage.expect_every_byte_findable("12345").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_crashes_and_the_same_key_is_opened_again() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let first = stage.configure("12345", "ann", "edit").await;
    let ann = stage.editor.open(&first["config"]).await.unwrap();
    assert!(matches!(ann.opened().await, Opening::Ready));
    ann.write("Saved by force.").await.unwrap();
    ann.press_save().await.unwrap();
    stage.wait_for_head("12345", "1.1").await;
    ann.write("Stranded.").await.unwrap();

    let stage = stage.with_crashed_editor().await;
    let again = stage.configure("12345", "ben", "edit").await;
    assert_eq!(again["key"], first["key"], "only this key brings them back");
    let ben = stage.editor.open(&again["config"]).await.unwrap();
    assert!(matches!(ben.opened().await, Opening::Ready));
    ben.write("After the crash.").await.unwrap();
    ben.close().await.unwrap();

    stage.wait_for_head("12345", "2").await;
    let text = stage.text("12345").await;
    for words in ["Saved by force.", "Stranded.", "After the crash."] {
        assert_eq!(text.matches(words).count(), 1, "{words} in {text}");
    }
    stage.expect_every_byte_findable("12345").await;
}
