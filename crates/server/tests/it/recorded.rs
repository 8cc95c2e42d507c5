//! Every callback recorded from a real Document Server, signed again and with its key known, gets the answer that keeps
//! the user's work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use understudy::office::sample_docx;

use crate::support::Stage;

const RECORDED: &str = include_str!("../../../understudy/fixtures/real-callbacks.jsonl");

/// A Document Server that serves a file for every path: the same path, the same bytes.
async fn serve_files() -> String {
    let files: Arc<Mutex<HashMap<String, bytes::Bytes>>> = Arc::default();
    async fn file(
        State(files): State<Arc<Mutex<HashMap<String, bytes::Bytes>>>>,
        request: Request,
    ) -> Response {
        if request.uri().path().ends_with("/command") {
            return axum::Json(json!({ "error": 0, "keys": [] })).into_response();
        }
        let path = request.uri().path().to_owned();
        let file = files
            .lock()
            .unwrap()
            .entry(path.clone())
            .or_insert_with(|| sample_docx("Recorded", &[&path]))
            .clone();
        file.into_response()
    }
    let router = axum::Router::new().fallback(file).with_state(files);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

/// What must be answered: nothing of value may be acknowledged unless it is stored.
fn expected(body: &Value) -> i64 {
    match body["status"].as_i64().unwrap() {
        3 | 7 => 1,
        _ => 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_callback_is_answered_so_that_the_work_is_kept() {
    let files = serve_files().await;
    let stage =
        Stage::start_with(&[("DOCUMENT_SERVER_INTERNAL_URL", &files)], understudy::Settings::default()).await;
    let mut keys: HashMap<String, (String, String)> = HashMap::new();
    let mut seen = 0;
    for line in RECORDED.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let recorded_key = record["body"]["key"].as_str().unwrap().to_owned();
        if !keys.contains_key(&recorded_key) {
            let id = format!("doc-{}", keys.len());
            stage.docx(&id).await;
            let key = stage.configure(&id, "u1", "edit").await["key"].as_str().unwrap().to_owned();
            keys.insert(recorded_key.clone(), (id, key));
        }
        let (_, key) = &keys[&recorded_key];
        let mut body: Value =
            serde_json::from_str(&record["body"].to_string().replace(&recorded_key, key)).unwrap();
        body.as_object_mut().unwrap().remove("token");

        let response = stage.deliver(&body).await;

        assert_eq!(response.status().as_u16(), 200, "{record}");
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["error"], expected(&body), "{} {}", record["scenario"], record["seq"]);
        seen += 1;
    }
    assert_eq!(seen, 167);
    check_scenarios(&stage, &keys).await;
    stage.stop().await;
}

/// A few scenarios whose end is known.
async fn check_scenarios(stage: &Stage, keys: &HashMap<String, (String, String)>) {
    for (recorded, labels) in [
        ("single-edit-close-a1", vec!["2", "1"]),
        ("open-close-nochange-a1", vec!["1"]),
        ("save-http500-always-a1", vec!["2", "1"]),
        ("ws-many-forcesaves-w1", vec!["2", "1.5", "1.4", "1.3", "1.2", "1.1", "1"]),
        ("ws-convert-fails-host-error1-w3", vec!["2", "1"]),
    ] {
        let (id, _) = &keys[recorded];
        assert_eq!(stage.versions(id).await, labels, "{recorded}");
        assert_eq!(stage.kept(id).await.len(), 0, "{recorded}");
    }
    // Saved twice with the same history: no newer change can be in the second, so what differs is kept beside the head.
    let (id, _) = &keys["ws-reopen-during-retry-window-w1"];
    assert_eq!(stage.versions(id).await, ["2", "1"]);
    assert_eq!(stage.kept(id).await[0]["reason"], "older-session");
    let (id, _) = &keys["convert-corrupted-on-save-b1"];
    assert_eq!(stage.kept(id).await[0]["kind"], "quarantine");
}
