//! Retention with the whole server: what goes, what stays, what an operator sees of it.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use ledger::changes::ChangeRequest;
use ledger::documents::Author;
use model::DocumentId;
use reqwest::Method;
use saveguard::verifying::{Progress, ReadData, verify};
use serde_json::{Value, json};
use understudy::Settings;

use crate::cli::saveguard;
use crate::support::Stage;

const LITTLE: [(&str, &str); 2] = [("RETENTION_VERSIONS_NEWEST", "2"), ("RETENTION_BYTES_DAYS", "0")];

struct Quietly;

impl Progress for Quietly {
    fn begin(&self, _part: &'static str, _count: u64) {}
    fn advance(&self) {}
}

async fn expect_clean(stage: &Stage) {
    let settled = async || stage.app().ledger.totals().await.unwrap().owed_publications == 0;
    stage.wait_until("all is published", settled).await;
    let report = verify(stage.app(), ReadData::Yes, &Quietly).await.unwrap();
    assert_eq!(report.findings, []);
}

async fn replace(stage: &Stage, text: &str) {
    let etag = stage.document("12345").await["sha256"].as_str().unwrap().to_owned();
    let bytes = understudy::office::sample_docx("Report", &[text]);
    let request =
        stage.request(Method::PUT, "/api/v1/documents/12345/content").header("if-match", etag).body(bytes);
    assert_eq!(request.send().await.unwrap().status(), StatusCode::OK);
}

async fn status(stage: &Stage, path: &str) -> StatusCode {
    stage.request(Method::GET, path).send().await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_beyond_the_limit_go_and_the_rest_stays_whole() {
    // Only what an operator asks for: rounds are far apart.
    let changes = [LITTLE[0], LITTLE[1], ("RECOVERING_INTERVAL_SECONDS", "3600")];
    let stage = Stage::start_with(&changes, Settings::default().with_time_scale(20.0)).await;
    stage.docx("12345").await;
    for text in ["Two.", "Three.", "Four."] {
        replace(&stage, text).await;
    }
    // What the tree shows stays.
    let settled = async || stage.app().ledger.totals().await.unwrap().owed_publications == 0;
    stage.wait_until("the head is published", settled).await;
    let said = stage.post("/api/v1/operations/prune", &json!({ "dry_run": true })).await;
    assert_eq!((&said["dry_run"], &said["contents"]), (&json!(true), &json!(2)));
    assert_eq!(
        status(&stage, "/api/v1/documents/12345/content?version=1").await,
        StatusCode::OK,
        "said, and not done"
    );

    let config = stage.app().config.clone();
    let output = tokio::task::spawn_blocking(move || saveguard(&config, &["prune", "--json"])).await.unwrap();

    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let done: Value = crate::cli::json(&output);
    assert_eq!(
        (&done["contents"], &done["failed"]),
        (&json!(2), &json!(0)),
        "the running service did it: {done}"
    );
    for (version, expected) in [("1", 404), ("2", 404), ("3", 200), ("4", 200)] {
        let path = format!("/api/v1/documents/12345/content?version={version}");
        assert_eq!(status(&stage, &path).await.as_u16(), expected, "{version}");
    }
    let versions = stage.get("/api/v1/documents/12345/versions").await;
    assert_eq!(versions.as_array().unwrap().len(), 4, "rows stay");
    assert!(versions[3]["pruned_at"].is_string() && versions[0].get("pruned_at").is_none());
    let history = stage.get("/api/v1/documents/12345/history").await;
    assert_eq!(history["history"].as_array().unwrap().len(), 2);
    assert_eq!(status(&stage, "/api/v1/documents/12345/history/1").await, StatusCode::NOT_FOUND);
    assert_eq!(status(&stage, "/api/v1/documents/12345/diff?from=1").await, StatusCode::NOT_FOUND);
    let acts = stage.get("/api/v1/documents/12345/audit?action=contents-pruned").await;
    assert!(acts.to_string().contains("beyond-limit"), "{acts}");
    expect_clean(&stage).await;

    // The very bytes of the first version come again.
    let bytes = understudy::office::sample_docx("Report", &["It begins."]);
    assert_eq!(stage.upload("again", "report.docx", &bytes).await.status(), StatusCode::CREATED);
    let again = stage.post("/api/v1/operations/prune", &json!({})).await;
    assert_eq!(again["failed"], 0);
    assert!(stage.text("again").await.contains("It begins."));
    expect_clean(&stage).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_document_is_purged_in_a_round_and_its_place_in_the_quota_is_free() {
    let changes = [("RETENTION_DELETED_DAYS", "1"), ("RETENTION_BYTES_DAYS", "0")];
    let stage = Stage::start_with(&changes, Settings::default().with_time_scale(20.0)).await;
    let quota = stage.request(Method::PUT, "/api/v1/companies/acme/quota").json(&json!({ "documents": 1 }));
    assert!(quota.send().await.unwrap().status().is_success());
    stage.docx("12345").await;
    let folder = stage.published("acme/plans/12345");
    stage.wait_until("it is published", async || folder.join("report.docx").exists()).await;
    let two_days_ago = Timestamp::now() - SignedDuration::from_hours(48);
    let request = ChangeRequest {
        document: DocumentId::parse("12345").unwrap(),
        who: Author::new("ann", "Ann"),
        knowledge: None,
        quiet_after: SignedDuration::from_secs(10),
        at: two_days_ago,
    };
    stage.app().ledger.delete_document(&request).await.unwrap();
    let bytes = understudy::office::sample_docx("Report", &["Another."]);

    stage.wait_until("it is purged", async || !folder.exists()).await;

    assert_eq!(status(&stage, "/api/v1/documents/12345").await, StatusCode::NOT_FOUND);
    let undelete = stage.request(Method::POST, "/api/v1/documents/12345/undelete").send().await.unwrap();
    assert_eq!(undelete.status(), StatusCode::NOT_FOUND);
    assert_eq!(stage.get("/api/v1/companies/acme/documents?deleted=true").await, json!([]));
    assert_eq!(
        stage.upload("new", "new.docx", &bytes).await.status(),
        StatusCode::CREATED,
        "its place is free"
    );
    assert_eq!(
        stage.upload("12345", "new.docx", &bytes).await.status(),
        StatusCode::CONFLICT,
        "its id is not"
    );
    let acts = stage.get("/api/v1/companies/acme/audit?action=document-purged").await;
    assert!(acts.to_string().contains("document-purged"), "{acts}");
    expect_clean(&stage).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphan_is_dismissed_and_that_is_in_the_audit_trail() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let app = stage.app();
    let spooled = vault::Spool::hold("nobody's".into());
    let sidecar = vault::Sidecar::Uploaded { to_become: DocumentId::parse("x").unwrap() };
    app.vault.put(&spooled, &sidecar).await.unwrap();
    let found = ledger::documents::UnnamedBlob {
        blob: ledger::documents::BlobFacts::plain(spooled.digest, spooled.size_bytes, "txt"),
        document: None,
        key: None,
        is_record_of_changes: false,
        at: app.now(),
    };
    let number = app.ledger.keep_unnamed(&found).await.unwrap().unwrap();
    let path = format!("/api/v1/operations/orphans/{number}/dismiss");

    let dismissed = stage.request(Method::POST, &path).send().await.unwrap();

    assert_eq!(dismissed.status(), StatusCode::NO_CONTENT);
    let orphans = stage.get("/api/v1/operations/orphans?limit=10").await;
    assert_eq!(orphans[0]["settled_as"], "dismissed");
    let acts = app.ledger.audit("saveguard:installation", 0, 100).await.unwrap();
    assert!(acts.iter().any(|(entry, _)| entry.action == "kept-copy-settled"), "{acts:?}");
    let missing = stage.request(Method::POST, "/api/v1/operations/orphans/999/dismiss").send().await.unwrap();
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_counts_forgotten_files_that_wait() {
    let stage = Stage::start().await;
    let status = stage.get("/api/v1/operations/status").await;
    assert_eq!((&status["forgotten_files"], &status["forgotten_files_staying"]), (&json!(0), &json!(0)));
    let metrics = stage.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("saveguard_forgotten_waiting"), "{metrics}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_works_without_a_running_service_too() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    expect_clean(&stage).await;
    let (paused, left) = stage.pause().await;
    assert_eq!(left, 0);
    let run = |arguments: &'static [&'static str]| {
        let config = paused.config().clone();
        tokio::task::spawn_blocking(move || saveguard(&config, arguments))
    };

    let pruned = run(&["prune", "--dry-run", "--json"]).await.unwrap();
    let verified = run(&["verify", "--json"]).await.unwrap();

    assert!(pruned.status.success(), "{}", String::from_utf8_lossy(&pruned.stderr));
    let said = crate::cli::json(&pruned);
    assert_eq!(
        (&said["documents"], &said["contents"], &said["failed"]),
        (&json!(1), &json!(0), &json!(0)),
        "{said}"
    );
    assert!(verified.status.success());
    paused.editor.stop().await;
}
