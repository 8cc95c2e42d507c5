//! Saves, from an editor's keystroke to a version.

use understudy::server::{FaultKind, Opening};
use understudy::{Settings, Timings};

use crate::support::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn somebody_edits_and_closes_and_version_two_appears() {
    let stage = Stage::start().await;
    stage.docx("12345").await;

    let session = stage.edit("12345", "ann").await;
    session.write("Words of Ann.").await.unwrap();
    session.close().await.unwrap();

    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Words of Ann."));
    let versions = stage.get("/api/v1/documents/12345/versions").await;
    assert_eq!(versions[0]["author_name"], "User ann");
    assert_eq!(versions[0]["origin"], "save");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn force_saves_are_checkpoints_and_the_final_save_is_the_version() {
    let stage = Stage::start().await;
    stage.docx("12345").await;

    let session = stage.edit("12345", "ann").await;
    for (words, head) in [("One.", "1.1"), ("Two.", "1.2")] {
        session.write(words).await.unwrap();
        session.press_save().await.unwrap();
        stage.wait_for_head("12345", head).await;
    }
    session.close().await.unwrap();

    stage.wait_for_head("12345", "2").await;
    assert_eq!(stage.versions("12345").await, ["2", "1.2", "1.1", "1"]);
    let text = stage.text("12345").await;
    assert!(text.contains("One.") && text.contains("Two."));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_share_a_session_and_presence_follows_them() {
    let stage = Stage::start().await;
    stage.docx("12345").await;

    let ann = stage.edit("12345", "ann").await;
    let ben = stage.edit("12345", "ben").await;
    stage
        .wait_until("both inside", async || {
            stage.document("12345").await["editors"] == serde_json::json!(["ann", "ben"])
        })
        .await;
    ann.write("Ann was here.").await.unwrap();
    ben.write("Ben too.").await.unwrap();
    ann.close().await.unwrap();
    stage
        .wait_until("ben alone", async || {
            stage.document("12345").await["editors"] == serde_json::json!(["ben"])
        })
        .await;
    ben.close().await.unwrap();

    stage.wait_for_head("12345", "2").await;
    let text = stage.text("12345").await;
    assert!(text.contains("Ann was here.") && text.contains("Ben too."));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_and_closing_without_a_change_keeps_version_and_key() {
    let stage = Stage::start().await;
    stage.docx("12345").await;

    let first = stage.configure("12345", "ann", "edit").await["key"].clone();
    let session = stage.edit("12345", "ann").await;
    session.close().await.unwrap();
    stage.editor.quiet().await;

    assert_eq!(stage.versions("12345").await, ["1"]);
    assert_eq!(stage.configure("12345", "ben", "edit").await["key"], first);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_causes_no_save_and_sees_the_newest_content() {
    let stage = Stage::start().await;
    stage.docx("12345").await;

    let view = stage.configure("12345", "vera", "view").await;
    let session = stage.editor.open(&view["config"]).await.unwrap();
    assert!(matches!(session.opened().await, Opening::Ready));
    session.close().await.unwrap();
    stage.editor.quiet().await;

    assert_eq!(stage.versions("12345").await, ["1"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_and_repeats_leave_one_version() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.editor.faults().arm(FaultKind::AnswerLost.times(2).for_status(2));
    stage.editor.faults().arm(FaultKind::CallbackTwice.always().for_status(6));

    let session = stage.edit("12345", "ann").await;
    session.write("Once.").await.unwrap();
    session.press_save().await.unwrap();
    session.write("Twice.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    stage.editor.quiet().await;

    assert_eq!(stage.versions("12345").await.iter().filter(|label| !label.contains('.')).count(), 2);
    assert_eq!(stage.kept("12345").await.len(), 0);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_downloads_are_tried_again_within_the_same_callback() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.editor.faults().arm(FaultKind::BodyCut { percent: 50 }.times(1));
    stage.editor.faults().arm(FaultKind::BodyStatus { status: 502 }.times(1));

    let session = stage.edit("12345", "ann").await;
    session.write("Through.").await.unwrap();
    session.close().await.unwrap();

    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Through."));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_opens_while_the_save_runs_gets_the_new_version() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.editor.faults().arm(FaultKind::BodySlow { over_ms: 700 }.always());

    let ann = stage.edit("12345", "ann").await;
    ann.write("Before Ben.").await.unwrap();
    ann.close().await.unwrap();
    stage
        .wait_until("the save is received", async || {
            stage.app().ledger.totals().await.unwrap().open_saves > 0
        })
        .await;
    let ben = stage.configure("12345", "ben", "edit").await;

    assert_eq!(ben["base"], "2");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_key_opens_nothing_and_leads_to_the_newest_version() {
    let timings = Timings { spent_window_ms: 50, minute_ms: 10, ..Timings::scaled(20.0) };
    let stage = Stage::start_with(&[], Settings { timings, ..Settings::default() }).await;
    stage.docx("12345").await;
    let stale = stage.configure("12345", "ann", "edit").await;
    let session = stage.editor.open(&stale["config"]).await.unwrap();
    session.opened().await;
    session.write("Ann's words.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;

    stage
        .wait_until("the window is over", async || {
            let again = stage.editor.open(&stale["config"]).await.unwrap();
            let opening = again.opened().await;
            again.close().await.unwrap();
            assert!(!matches!(opening, Opening::Ready), "old content must never be edited again");
            // -81: the source was refused with 409.
            matches!(opening, Opening::Failed(_))
        })
        .await;

    assert_eq!(stage.configure("12345", "ben", "edit").await["base"], "2");
    stage.editor.quiet().await;
    assert_eq!(stage.versions("12345").await, ["2", "1"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_conversion_loses_nothing_and_the_same_key_brings_it_back() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.editor.faults().arm(FaultKind::ConversionFails.times(1));

    let ann = stage.configure("12345", "ann", "edit").await;
    let session = stage.editor.open(&ann["config"]).await.unwrap();
    session.opened().await;
    session.write("Hard to convert.").await.unwrap();
    session.close().await.unwrap();
    stage.editor.quiet().await;
    assert_eq!(stage.versions("12345").await, ["1"]);

    let ben = stage.configure("12345", "ben", "edit").await;
    assert_eq!(ben["key"], ann["key"]);
    let session = stage.editor.open(&ben["config"]).await.unwrap();
    session.opened().await;
    session.close().await.unwrap();

    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Hard to convert."));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spreadsheet_is_saved_like_any_document() {
    let stage = Stage::start().await;
    let bytes = understudy::office::sample_xlsx(&[&["Item", "Spent"], &["Travel", "830"]]);
    stage.upload("67890", "budget.xlsx", &bytes).await;

    let session = stage.edit("67890", "ann").await;
    session.write("Training").await.unwrap();
    session.close().await.unwrap();

    stage.wait_for_head("67890", "2").await;
    assert_eq!(stage.document("67890").await["file_type"], "xlsx");
    assert!(stage.text("67890").await.contains("Training"));
    stage.stop().await;
}
