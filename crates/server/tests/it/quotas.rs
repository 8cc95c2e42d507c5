//! How much a company may keep: uploads are refused, saves are not.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Stage;

async fn limit(stage: &Stage, quota: &Value) -> Value {
    let request = stage.request(Method::PUT, "/api/v1/companies/acme/quota").json(quota);
    let response = request.send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    response.json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_beyond_the_quota_is_refused_and_leaves_nothing() {
    let stage = Stage::start().await;
    assert_eq!(stage.upload("a", "a.txt", b"12345").await.status().as_u16(), 201);
    let company = limit(&stage, &json!({ "documents": 2, "bytes": 10 })).await;
    assert_eq!(company["quota"], json!({ "documents": 2, "bytes": 10 }));
    assert_eq!(company["usage"], json!({ "documents": 1, "bytes": 5 }));

    let large = stage.upload("b", "b.txt", b"123456").await;
    assert_eq!(large.status().as_u16(), 409);
    let problem: Value = large.json().await.unwrap();
    assert_eq!((&problem["code"], &problem["name"]), (&json!("API_010"), &json!("QUOTA_EXCEEDED")));
    assert!(problem["detail"].as_str().unwrap().contains("10 bytes"), "{problem}");
    let digest = understudy::office::sha256_hex(b"123456");
    let blob = stage.blob(&digest);
    assert!(!blob.exists(), "a refused upload does not fill the vault");
    assert_eq!(stage.upload("b", "b.txt", b"67890").await.status().as_u16(), 201);
    let third: Value = stage.upload("c", "c.txt", b"").await.json().await.unwrap();
    assert!(third["detail"].as_str().unwrap().contains("2 documents"), "{third}");

    limit(&stage, &json!({})).await;
    assert_eq!(stage.upload("c", "c.txt", b"any").await.status().as_u16(), 201);
    let absurd =
        stage.request(Method::PUT, "/api/v1/companies/acme/quota").json(&json!({ "bytes": u64::MAX }));
    assert_eq!(absurd.send().await.unwrap().status().as_u16(), 400);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_beyond_the_quota_is_taken_and_told() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    limit(&stage, &json!({ "documents": 1, "bytes": 1 })).await;

    let session = stage.edit("12345", "ann").await;
    session.write("More than allowed.").await.unwrap();
    session.close().await.unwrap();

    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("More than allowed."));
    let metrics = stage.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let alert = metrics.lines().find(|line| line.contains("alerts_total") && line.contains("over-quota"));
    assert!(alert.is_some(), "{metrics}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn companies_and_projects_are_renamed() {
    let stage = Stage::start().await;
    let patch = async |path: &str, name: &str| {
        let request = stage.request(Method::PATCH, path).json(&json!({ "name": name }));
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap()["name"].clone())
    };

    assert_eq!(patch("/api/v1/companies/acme", " Acme & Sons ").await, (200, json!("Acme & Sons")));
    assert_eq!(patch("/api/v1/companies/acme/projects/plans", "Old").await, (200, json!("Old")));
    for (path, name, expected) in [
        ("/api/v1/companies/missing", "x", 404),
        ("/api/v1/companies/acme/projects/missing", "x", 404),
        ("/api/v1/companies/acme", " ", 400),
        ("/api/v1/companies/acme/projects/plans", "a\nb", 400),
    ] {
        assert_eq!(patch(path, name).await.0, expected, "{path} {name:?}");
    }
    assert_eq!(stage.get("/api/v1/companies/acme").await["name"], "Acme & Sons");
    assert_eq!(stage.get("/api/v1/companies/acme/projects").await[0]["name"], "Old");
    let missing = stage.request(Method::GET, "/api/v1/companies/missing/projects").send().await.unwrap();
    assert_eq!(missing.status().as_u16(), 404);
    stage.stop().await;
}
