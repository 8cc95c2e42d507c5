//! Saves, from an editor's keystroke to a version.

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
