//! Every code of the seed, provoked over HTTP: its status, its name, and the page it points to.

use std::path::Path;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::support::Stage;

/// A problem document with this code, whose page exists and has a meaning, causes and a remedy.
async fn expect(response: Response, status: u16, code: &str, name: &str) -> Value {
    assert_eq!(response.status().as_u16(), status, "{code}");
    assert_eq!(response.headers()["content-type"], "application/problem+json", "{code}");
    let problem: Value = response.json().await.unwrap();
    assert_eq!((&problem["code"], &problem["name"]), (&json!(code), &json!(name)), "{problem}");
    assert!(problem["next"].as_str().is_some_and(|next| !next.is_empty()), "{problem}");
    let page = problem["type"].as_str().unwrap().rsplit_once("/docs/").unwrap().1.to_owned();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(&page).unwrap();
    for part in [name, "## Causes", "## What to do", "## What happened to the data"] {
        assert!(text.contains(part), "{} lacks {part}", page.display());
    }
    problem
}

#[tokio::test(flavor = "multi_thread")]
async fn every_code_of_the_seed_can_be_provoked_and_has_its_page() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let view = stage.configure("12345", "ann", "edit").await;
    let (key, source) =
        (view["config"]["document"]["key"].clone(), view["config"]["document"]["url"].clone());
    let session = stage.editor.open(&view["config"]).await.unwrap();
    session.opened().await;
    session.write("Being edited.").await.unwrap();

    let deleted = stage.request(Method::DELETE, "/api/v1/documents/12345").send().await.unwrap();
    expect(deleted, 409, "DOC_001", "EDIT_LOCK_ACTIVE").await;

    let damaged = stage.upload("2", "report.docx", b"no docx at all").await;
    expect(damaged, 422, "DOC_002", "SAVE_VALIDATION_FAILED").await;

    let nowhere =
        json!({ "key": key, "status": 6, "url": format!("{}/cache/files/gone", stage.editor.url()) });
    let stored = stage.deliver(&nowhere).await;
    assert!(stored.headers().contains_key("retry-after"));
    expect(stored, 503, "DOC_003", "SFTP_WRITE_FAILED").await;

    let forged =
        stage.http.post(format!("{}/callback/12345", stage.base)).json(&json!({ "key": key, "status": 2 }));
    expect(forged.send().await.unwrap(), 403, "DOC_004", "CALLBACK_INVALID").await;

    let strange = stage.deliver(&json!({ "key": "elsewhere_12345_edit_1.abc", "status": 7 })).await;
    expect(strange, 503, "DOC_005", "KEY_PARSE_FAILED").await;

    let stream = stage.http.get(format!("{}/stream/12345", stage.base)).send().await.unwrap();
    expect(stream, 403, "DOC_006", "STREAM_UNAUTHORIZED").await;

    let leaving = stage.upload("3", "../../etc/passwd.docx", b"x").await;
    expect(leaving, 400, "DOC_007", "PATH_TRAVERSAL").await;

    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    let spent = async || stage.http.get(source.as_str().unwrap()).send().await.unwrap();
    stage.wait_until("the key is spent", async || spent().await.status().as_u16() == 409).await;
    expect(spent().await, 409, "DOC_008", "SESSION_CONFLICT").await;
    stage.wait_until("nothing is open", async || stage.apps().all(|app| app.jobs.count() == 0)).await;
    stage.stop().await;
}
