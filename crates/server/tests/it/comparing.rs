//! What changed between two versions, over HTTP, with files as the understudy writes them.

use model::CompanyId;
use model::access::{Caller, Companies, Role};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Stage, admin};

async fn written(stage: &Stage, id: &str, text: &str, head: &str) {
    let session = stage.edit(id, "ann").await;
    session.write(text).await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head(id, head).await;
}

async fn status(stage: &Stage, path: &str) -> (u16, Value) {
    let response = stage.request(Method::GET, path).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_versions_of_a_document_are_compared() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    written(&stage, "12345", "Second thoughts.", "2").await;
    written(&stage, "12345", "Third thoughts.", "3").await;

    let newest = stage.get("/api/v1/documents/12345/diff").await;
    assert_eq!(
        (&newest["from"], &newest["to"], &newest["subject"]),
        (&json!("2"), &json!("3"), &json!("document"))
    );
    assert_eq!(
        (&newest["added"], &newest["removed"], &newest["is_cut"]),
        (&json!(1), &json!(0), &json!(false))
    );
    let change = &newest["changes"][0];
    assert_eq!((&change["kind"], &change["part"]), (&json!("added"), &json!("body")));
    assert!(change["new"].as_str().unwrap().contains("Third thoughts."), "{change}");

    let both = stage.get("/api/v1/documents/12345/diff?from=1&to=3").await;
    assert_eq!(both["added"], 2);
    let back = stage.get("/api/v1/documents/12345/diff?from=3&to=1").await;
    assert_eq!((&back["added"], &back["removed"]), (&json!(0), &json!(2)));
    let same = stage.get("/api/v1/documents/12345/diff?from=2&to=2").await;
    assert_eq!(same["changes"], json!([]));
    for (query, expected) in [("from=9", 404), ("to=kept:1", 404), ("from=x", 400), ("to=kept:x", 400)] {
        let (found, _) = status(&stage, &format!("/api/v1/documents/12345/diff?{query}")).await;
        assert_eq!(found, expected, "{query}");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_copy_is_compared_with_a_version_of_its_own_document_only() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.docx("67890").await;
    let copy = understudy::office::sample_docx("Report", &["It begins otherwise."]);
    let kept = keep(&stage, "12345", &copy).await;

    let compared = stage.get(&format!("/api/v1/documents/12345/diff?from=kept:{kept}&to=1")).await;
    let change = &compared["changes"][0];
    assert_eq!((&change["old"], &change["new"]), (&json!("It begins otherwise."), &json!("It begins.")));
    let foreign = status(&stage, &format!("/api/v1/documents/67890/diff?from=kept:{kept}")).await;
    assert_eq!(foreign.0, 404);
    let stranger = Caller {
        role: Role::Admin,
        companies: Companies::Only(vec![CompanyId::parse("other").unwrap()]),
        ..admin()
    };
    let request = stage.http.get(format!("{}/api/v1/documents/12345/diff", stage.base));
    let response = request.bearer_auth(stage.token(&stranger)).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 404);
    stage.stop().await;
}

/// Leaves a blob that no row names; the recovery keeps it as a conflict copy of its document.
async fn keep(stage: &Stage, id: &str, bytes: &[u8]) -> u64 {
    use vault::{Sidecar, Spool};
    let app = stage.app();
    let document = model::DocumentId::parse(id).unwrap();
    let spooled = Spool::hold(bytes.to_vec().into());
    app.vault.put(&spooled, &Sidecar::Brought { document: document.clone() }).await.unwrap();
    let blob = ledger::documents::BlobFacts::plain(spooled.digest, spooled.size_bytes, "docx");
    let found = ledger::documents::UnnamedBlob {
        blob,
        document: Some(document),
        key: None,
        is_record_of_changes: false,
        at: app.now(),
    };
    app.ledger.keep_unnamed(&found).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_compared_is_told_so() {
    let stage = Stage::start().await;
    let pdf = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\nstartxref\n9\n%%EOF\n";
    assert_eq!(stage.upload("1", "a.pdf", pdf).await.status().as_u16(), 201);

    let (found, problem) = status(&stage, "/api/v1/documents/1/diff").await;

    assert_eq!((found, &problem["code"]), (422, &json!("API_004")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("no text"), "{problem}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_of_two_workbooks_are_compared() {
    let stage = Stage::start().await;
    let rows =
        |value: &'static str| understudy::office::sample_xlsx(&[&["Item", "Count"], &["Bolts", value]]);
    assert_eq!(stage.upload("1", "plan.xlsx", &rows("4")).await.status().as_u16(), 201);
    let kept = keep(&stage, "1", &rows("5")).await;

    let compared = stage.get(&format!("/api/v1/documents/1/diff?to=kept:{kept}")).await;

    assert_eq!((&compared["subject"], &compared["changed"]), (&json!("workbook"), &json!(1)), "{compared}");
    let change = &compared["changes"][0];
    assert_eq!(
        ["sheet", "address", "old", "new"].map(|field| change[field].as_str().unwrap()),
        ["Sheet1", "B2", "4", "5"]
    );
    stage.stop().await;
}
