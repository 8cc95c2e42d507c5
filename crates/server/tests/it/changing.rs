//! Changes past the editors and downloads, over HTTP and with people inside.

use http::StatusCode;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Stage;

async fn status(stage: &Stage, method: Method, path: &str) -> StatusCode {
    stage.request(method, path).json(&json!({})).send().await.unwrap().status()
}

async fn problem(response: reqwest::Response) -> (StatusCode, String) {
    let status = response.status();
    let body: Value = response.json().await.unwrap();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

async fn replace(stage: &Stage, etag: Option<&str>, text: &str) -> reqwest::Response {
    let bytes = understudy::office::sample_docx("Report", &[text]);
    let mut request = stage.request(Method::PUT, "/api/v1/documents/12345/content").body(bytes);
    if let Some(etag) = etag {
        request = request.header("if-match", etag);
    }
    request.send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_while_somebody_edits_has_what_they_just_typed() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let download = async || {
        let path = "/api/v1/documents/12345/download";
        let response = stage.request(Method::GET, path).send().await.unwrap();
        let freshness = response.headers()["saveguard-freshness"].to_str().unwrap().to_owned();
        (freshness, understudy::office::text_of(&response.bytes().await.unwrap()))
    };
    assert_eq!(download().await.0, "newest");

    let ann = stage.edit("12345", "ann").await;
    ann.write("Typed this very moment.").await.unwrap();
    let (freshness, text) = download().await;

    assert_eq!(freshness, "saved");
    assert!(text.contains("Typed this very moment."), "{text}");
    assert_eq!(download().await.0, "unchanged");
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_deleted_only_when_nobody_edits_and_comes_back_as_it_was() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let path = "/api/v1/documents/12345";
    let ann = stage.edit("12345", "ann").await;
    ann.write("Before the end.").await.unwrap();
    let refused = stage.request(Method::DELETE, path).send().await.unwrap();
    assert_eq!(problem(refused).await, (StatusCode::CONFLICT, "DOC_001".to_owned()));
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;

    assert_eq!(status(&stage, Method::DELETE, path).await, StatusCode::NO_CONTENT);

    assert_eq!(status(&stage, Method::GET, path).await, StatusCode::NOT_FOUND);
    assert_eq!(status(&stage, Method::DELETE, path).await, StatusCode::NOT_FOUND);
    assert_eq!(stage.get("/api/v1/companies/acme/documents").await, json!([]));
    assert_eq!(stage.get("/api/v1/companies/acme/documents?deleted=true").await[0]["id"], "12345");
    let published = stage.published("acme/plans/12345/report.docx");
    stage.wait_until("the published file is withdrawn", async || !published.exists()).await;

    let back = stage.post("/api/v1/documents/12345/undelete", &json!({})).await;
    assert_eq!(back["head"], "2");
    assert!(stage.text("12345").await.contains("Before the end."));
    stage.wait_until("it is published again", async || published.exists()).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_replaces_what_its_sender_saw_and_nothing_else() {
    let stage = Stage::start().await;
    let document = stage.docx("12345").await;
    let etag = format!("\"{}\"", document["sha256"].as_str().unwrap());

    let blind = replace(&stage, None, "Blind.").await;
    assert_eq!(problem(blind).await, (StatusCode::PRECONDITION_REQUIRED, "API_009".to_owned()));
    let replaced: Value = replace(&stage, Some(&etag), "Replaced.").await.json().await.unwrap();
    assert_eq!(replaced["head"], "2");
    let stale = replace(&stage, Some(&etag), "Stale.").await;
    assert_eq!(problem(stale).await, (StatusCode::PRECONDITION_FAILED, "API_009".to_owned()));

    let ann = stage.edit("12345", "ann").await;
    ann.write("Inside.").await.unwrap();
    let newest = format!("\"{}\"", replaced["sha256"].as_str().unwrap());
    let edited = replace(&stage, Some(&newest), "Over her head.").await;
    assert_eq!(problem(edited).await, (StatusCode::CONFLICT, "DOC_001".to_owned()));
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "3").await;
    assert!(stage.text("12345").await.contains("Inside."));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_restores_an_earlier_version_and_what_was_typed_stays_in_the_history() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let ann = stage.edit("12345", "ann").await;
    ann.write("A wrong turn.").await.unwrap();
    let path = "/api/v1/documents/12345/versions/1/restore";
    let refused = stage.request(Method::POST, path).json(&json!({})).send().await.unwrap();
    assert_eq!(problem(refused).await, (StatusCode::CONFLICT, "DOC_001".to_owned()));

    let restored = stage.post(path, &json!({ "while_editing": true })).await;

    assert_eq!(restored["head"], "2");
    assert!(!stage.text("12345").await.contains("A wrong turn."));
    assert_eq!(stage.versions("12345").await, ["2", "1.1", "1"], "her words are in 1.1");
    let asked_to_leave = ann.wait_for(|message| (message["type"] == "drop").then_some(())).await;
    assert!(asked_to_leave.is_some());
    stage.stop().await;
}
