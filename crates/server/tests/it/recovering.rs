//! What a restart, a deaf host or a crashed Document Server leaves behind, and how it comes right by itself.

use understudy::server::{FaultKind, Opening};

use crate::support::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_away_collects_what_the_server_forgot() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let session = stage.edit("12345", "ann").await;
    session.write("Nobody listened.").await.unwrap();

    // Longer away than the server repeats.
    let (paused, left) = stage.pause().await;
    assert_eq!(left, 0);
    session.close().await.unwrap();
    paused.editor.quiet().await;
    let forgotten = paused
        .editor
        .journal()
        .entries()
        .iter()
        .any(|entry| format!("{:?}", entry.note).starts_with("ForgottenPut"));
    assert!(forgotten, "the server gave up and kept the file");
    let stage = paused.resume().await;

    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Nobody listened."));
    let versions = stage.get("/api/v1/documents/12345/versions").await;
    assert_eq!(versions[0]["origin"], "recovered");
    stage
        .wait_until("nothing forgotten is left", async || {
            stage.app().editor.forgotten_keys().await.unwrap().is_empty()
        })
        .await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_answered_with_trouble_is_finished_and_not_saved_twice() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    // The file can only be served later than the server is willing to repeat.
    stage.editor.faults().arm(FaultKind::BodyStatus { status: 503 }.times(20));

    let session = stage.edit("12345", "ann").await;
    session.write("At last.").await.unwrap();
    session.close().await.unwrap();

    stage.wait_for_head("12345", "2").await;
    stage
        .wait_until("nothing forgotten is left", async || {
            stage.app().editor.forgotten_keys().await.unwrap().is_empty()
        })
        .await;
    stage
        .wait_until("nothing is open", async || stage.app().ledger.totals().await.unwrap().open_saves == 0)
        .await;
    assert_eq!(stage.versions("12345").await, ["2", "1"]);
    assert!(stage.text("12345").await.contains("At last."));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_stranded_by_a_crash_of_the_server_come_back_under_the_same_key() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let ann = stage.configure("12345", "ann", "edit").await;
    let session = stage.editor.open(&ann["config"]).await.unwrap();
    session.opened().await;
    session.write("Saved as checkpoint.").await.unwrap();
    session.press_save().await.unwrap();
    stage.wait_for_head("12345", "1.1").await;
    session.write("Stranded.").await.unwrap();

    let stage = stage.with_crashed_editor().await;
    let ben = stage.configure("12345", "ben", "edit").await;
    assert_eq!(ben["key"], ann["key"]);
    let session = stage.editor.open(&ben["config"]).await.unwrap();
    assert!(matches!(session.opened().await, Opening::Ready));
    session.close().await.unwrap();

    stage.wait_for_head("12345", "2").await;
    let text = stage.text("12345").await;
    assert!(text.contains("Saved as checkpoint.") && text.contains("Stranded."));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_result_goes_to_quarantine_once_and_stays_with_the_server_too() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.editor.faults().arm(FaultKind::ResultDamaged.times(1));

    let session = stage.edit("12345", "ann").await;
    session.write("Torn.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_until("it is kept", async || !stage.kept("12345").await.is_empty()).await;
    stage
        .wait_until("the server keeps it", async || {
            stage.app().editor.forgotten_keys().await.unwrap().len() == 1
        })
        .await;
    saveguard::recovering::round(stage.app()).await;

    assert_eq!(stage.app().editor.forgotten_keys().await.unwrap().len(), 1, "it may be whole there");
    let kept = stage.kept("12345").await;
    assert_eq!((kept.len(), kept[0]["kind"].as_str()), (1, Some("quarantine")));
    assert_eq!(stage.versions("12345").await, ["1"]);
    assert_eq!(stage.configure("12345", "ben", "edit").await["base"], "1", "the document opens again");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_finishes_what_runs_and_a_restart_changes_nothing() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.editor.faults().arm(FaultKind::BodySlow { over_ms: 500 }.always());
    let session = stage.edit("12345", "ann").await;
    session.write("Just in time.").await.unwrap();
    session.close().await.unwrap();
    stage
        .wait_until("the save is received", async || {
            stage.app().ledger.totals().await.unwrap().open_saves > 0
        })
        .await;

    let (paused, left) = stage.pause().await;
    assert_eq!(left, 0, "the running save was finished");
    paused.editor.quiet().await;
    let stage = paused.resume().await;

    assert_eq!(stage.versions("12345").await, ["2", "1"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_tree_is_owed_is_shown_before_the_service_ends() {
    let settings = [("RECOVERING_INTERVAL_SECONDS", "3600")];
    let stage = Stage::start_with(&settings, understudy::Settings::default()).await;
    stage.docx("12345").await;
    stage.wait_until("the upload is shown", async || stage.is_published().await).await;
    let app = std::sync::Arc::clone(stage.app());
    // As after a commit whose announcement nobody has read yet.
    app.ledger.owe_publication(&model::DocumentId::parse("12345").unwrap(), app.now()).await.unwrap();

    let (paused, _) = stage.pause().await;

    assert_eq!(app.ledger.totals().await.unwrap().owed_publications, 0);
    paused.editor.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_that_was_stopped_when_time_was_up_is_finished_by_the_next_start() {
    let settings = understudy::Settings::default().with_time_scale(20.0);
    let stage = Stage::start_with(&[("STOPPING_DRAIN_SECONDS", "0")], settings).await;
    stage.docx("12345").await;
    stage.editor.faults().arm(FaultKind::BodyStuck.times(1));
    let session = stage.edit("12345", "ann").await;
    session.write("Cut short.").await.unwrap();
    session.close().await.unwrap();
    stage
        .wait_until("the save is fetched", async || {
            let saves: usize = stage.apps().map(|app| app.saves.count()).sum();
            // The upload before it is shown by then, however slow the store is.
            saves == 1 && stage.apps().all(|app| app.arrivals.is_empty()) && stage.is_published().await
        })
        .await;

    let (paused, left) = stage.pause().await;
    assert_eq!(left, 1, "it was stopped and counted");
    let stage = paused.resume().await;

    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Cut short."));
    // This service does not wait for anything when it stops.
    stage.wait_until("it is published", async || stage.is_published().await).await;
    stage.stop().await;
}
