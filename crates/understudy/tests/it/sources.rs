//! Fetching `document.url`: PROTOCOL 3.6, 4 and 14.3.

use serde_json::json;
use understudy::EditorConfig;
use understudy::office;
use understudy::server::Opening;

use crate::host::{Reply, Source};
use crate::stage::Stage;

#[tokio::test]
async fn a_failing_source_is_tried_three_times_and_the_key_stays_usable() {
    for status in [409, 404, 503] {
        let stage = Stage::set("failing").await;
        stage.host.serves(Source::Status(status));
        let session = stage.opens("u1").await;
        assert_eq!(session.opened().await, Opening::Failed(-81), "{status}");
        assert_eq!(stage.host.downloads(), 3);
        session.hang_up().await.unwrap();
        stage.pass_long().await;
        assert_eq!(stage.statuses(), [1, 4]);

        stage.host.serves(Source::Bytes(office::blank("docx")));
        let again = stage.opens("u1").await;

        assert_eq!(again.opened().await, Opening::Ready);
        assert_eq!(stage.host.downloads(), 4);
    }
}

#[tokio::test]
async fn the_attempts_are_a_second_apart() {
    let stage = Stage::set("apart").await;
    stage.host.serves(Source::Status(503));
    let _session = stage.opens_with(&stage.config("u1")).await.unwrap();

    stage.pass(999).await;
    let at_first = stage.host.downloads();
    stage.pass(1).await;
    let after_a_second = stage.host.downloads();
    stage.pass(1_000).await;

    assert_eq!((at_first, after_a_second, stage.host.downloads()), (1, 2, 3));
}

#[tokio::test]
async fn an_empty_source_opens_as_a_blank_document_without_a_word() {
    let stage = Stage::set("empty").await;
    stage.host.serves(Source::Bytes("".into()));
    let session = stage.opens("u1").await;

    assert_eq!(session.opened().await, Opening::Ready);
    assert!(!session.messages().iter().any(|message| message["type"] == "warning"));
    assert_eq!(stage.host.downloads(), 1);
    session.write("on blank paper").await.unwrap();
    session.hang_up().await.unwrap();
    stage.pass_long().await;
    let text = office::text_of(&stage.file_of(&stage.last()).await);
    assert!(text.contains("on blank paper") && !text.contains("First paragraph."));
}

#[tokio::test]
async fn a_cached_copy_is_never_renewed_while_it_lives() {
    let stage = Stage::set("stale").await;
    let session = stage.opens("u1").await;
    session.hang_up().await.unwrap();
    stage.pass_long().await;
    stage.host.serves(Source::Bytes(office::sample_docx("Newer", &["newer"])));

    stage.edits_and_closes("u2").await;
    stage.pass_long().await;

    assert_eq!(stage.host.downloads(), 1, "neither a joiner nor an idle key fetches again");
    assert!(!office::text_of(&stage.file_of(&stage.last()).await).contains("newer"));
}

#[tokio::test]
async fn an_unused_copy_expires_after_a_day_and_the_key_with_it() {
    let stage = Stage::set("expires").await;
    let session = stage.opens("u1").await;
    session.hang_up().await.unwrap();
    stage.pass(86_400_000 + 3_600_000).await;

    assert_eq!(stage.ask("info").await["error"], 1);
    let again = stage.opens("u1").await;
    assert_eq!(again.opened().await, Opening::Ready);
    assert_eq!(stage.host.downloads(), 2);
}

#[tokio::test]
async fn changes_sent_in_spite_of_a_failed_opening_are_kept_and_replayed() {
    let stage = Stage::set("in-spite").await;
    stage.host.serves(Source::Status(404));
    let session = stage.opens("u1").await;
    let id = session.write("stubborn").await.unwrap();
    session.hang_up().await.unwrap();
    stage.pass_long().await;
    assert_eq!(stage.statuses(), [1], "the row never was in order, so nothing is saved");
    stage.host.serves(Source::Bytes(office::blank("docx")));

    let again = stage.opens("u2").await;
    again.hang_up().await.unwrap();
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 1, 2]);
    assert!(office::changes_in(&stage.file_of(&stage.last()).await).contains(&id));
}

#[tokio::test]
async fn a_source_that_is_too_large_or_hangs_ends_the_opening_at_once() {
    let stage = Stage::set_with("large", |settings| settings.source_bytes_max = 100).await;
    let session = stage.opens("u1").await;

    assert_eq!(session.opened().await, Opening::Failed(-93));
    assert_eq!(stage.host.downloads(), 1);
}

#[tokio::test]
async fn every_kind_of_limited_editor_counts_as_one() {
    for right in ["comment", "review", "fillForms"] {
        let stage = Stage::set("limited").await;
        let permissions = Some(json!({"edit": false, right: true}));
        let config = EditorConfig { permissions, mode: Some("edit".into()), ..stage.config("u1") };
        let session = stage.opens_with(&config).await.unwrap();
        stage.pass(1_000).await;
        session.write("mine").await.unwrap();
        session.hang_up().await.unwrap();
        stage.pass_long().await;

        assert_eq!(stage.statuses(), [1, 2], "{right}");
    }
}

#[tokio::test]
async fn a_viewer_of_a_spent_key_gets_the_stale_copy_and_causes_nothing() {
    let stage = Stage::set("viewer").await;
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;
    let config = EditorConfig { mode: Some("view".into()), ..stage.config("u2") };

    let viewer = stage.opens_with(&config).await.unwrap();
    stage.pass(1_000).await;

    assert_eq!(viewer.opened().await, Opening::Ready);
    viewer.hang_up().await.unwrap();
    stage.pass_long().await;
    assert_eq!(stage.statuses(), [1, 2]);
    assert_eq!(stage.host.downloads(), 1);
}

#[tokio::test]
async fn spreadsheets_and_texts_are_edited_too() {
    for ext in ["xlsx", "txt", "csv", "pptx", "odt"] {
        let stage = Stage::set("formats").await;
        stage.host.serves(Source::Bytes(office::blank(ext)));
        let config = EditorConfig { file_type: ext.into(), ..stage.config("u1") };
        let session = stage.opens_with(&config).await.unwrap();
        stage.pass(1_000).await;
        assert_eq!(session.opened().await, Opening::Ready, "{ext}");
        let id = session.write("words").await.unwrap();
        session.hang_up().await.unwrap();
        stage.pass_long().await;

        let save = stage.last();
        assert_eq!(save.body["filetype"], ext);
        assert!(save.save_path().unwrap().ends_with(&format!("/output.{ext}/output.{ext}")));
        assert!(office::changes_in(&stage.file_of(&save).await).contains(&id), "{ext}");
    }
}

#[tokio::test]
async fn opening_does_not_wait_for_the_hosts_answer_to_status_1() {
    let stage = Stage::set("not-waiting").await;
    stage.answers(1, [Reply::Held]);

    let session = stage.opens("u1").await;

    assert_eq!(session.opened().await, Opening::Ready);
    assert_eq!(stage.host.held(), 1);
}
