//! Bytes out: whole, in parts, by version, and never another content glued to this one.

use reqwest::{Method, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::support::Stage;

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn content_has_a_length_an_etag_and_parts() {
    let stage = Stage::start().await;
    let bytes = understudy::office::sample_docx("Parts", &["one", "two"]);
    stage.upload("12345", "Résumé 2026.docx", &bytes).await;
    let path = "/api/v1/documents/12345/content";

    let whole = stage.request(Method::GET, path).send().await.unwrap();
    let etag = whole.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(etag, format!("\"{}\"", hex(&bytes)));
    assert_eq!(whole.headers()["content-length"], bytes.len().to_string().as_str());
    assert_eq!(whole.headers()["saveguard-version"], "1");
    assert_eq!(whole.headers()["x-content-type-options"], "nosniff");
    assert!(
        whole.headers()["content-disposition"]
            .to_str()
            .unwrap()
            .starts_with("attachment; filename*=UTF-8''R%C3%A9sum")
    );
    assert_eq!(whole.bytes().await.unwrap(), bytes);

    let part = stage.request(Method::GET, path).header("range", "bytes=10-19").send().await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.headers()["content-range"], format!("bytes 10-19/{}", bytes.len()).as_str());
    assert_eq!(part.bytes().await.unwrap(), bytes.slice(10..20));
    let beyond = stage.request(Method::GET, path).header("range", "bytes=999999-").send().await.unwrap();
    assert_eq!(beyond.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    let known = stage.request(Method::GET, path).header("if-none-match", &etag).send().await.unwrap();
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    let other = stage
        .request(Method::GET, path)
        .header("range", "bytes=0-9")
        .header("if-range", "\"other\"")
        .send()
        .await
        .unwrap();
    assert_eq!(other.status(), StatusCode::OK, "a part of another content must not be glued to this one");
    let head = stage.request(Method::HEAD, path).send().await.unwrap();
    assert_eq!(head.headers()["content-length"], bytes.len().to_string().as_str());
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_stays_readable() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let session = stage.edit("12345", "ann").await;
    session.write("More.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;

    for version in stage.get("/api/v1/documents/12345/versions").await.as_array().unwrap() {
        let path =
            format!("/api/v1/documents/12345/content?version={}", version["version"].as_str().unwrap());
        let bytes = stage.request(Method::GET, &path).send().await.unwrap().bytes().await.unwrap();
        assert_eq!(hex(&bytes), version["sha256"].as_str().unwrap());
    }
    for missing in ["3", "1.1"] {
        let path = format!("/api/v1/documents/12345/content?version={missing}");
        assert_eq!(stage.request(Method::GET, &path).send().await.unwrap().status(), StatusCode::NOT_FOUND);
    }
    for strange in ["x", "0", "1.0", "-1"] {
        let path = format!("/api/v1/documents/12345/content?version={strange}");
        assert_eq!(stage.request(Method::GET, &path).send().await.unwrap().status(), StatusCode::BAD_REQUEST);
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_damaged_on_disk_never_leaves_whole() {
    let stage = Stage::start().await;
    let created = stage.docx("12345").await;
    let digest = created["sha256"].as_str().unwrap();
    let file = stage.blob(digest);
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &bytes).unwrap();

    let answered = stage.request(Method::GET, "/api/v1/documents/12345/content").send().await;

    let read = match answered.and_then(reqwest::Response::error_for_status) {
        Ok(response) => response.bytes().await,
        Err(broken) => Err(broken),
    };
    assert!(read.is_err(), "a broken transfer or, behind a balancer, a 502; not a whole wrong file");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_tree_shows_the_head_under_a_readable_name() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let folder = stage.published("acme/plans/12345");
    stage.wait_until("it is published", async || folder.join("report.docx").exists()).await;
    let session = stage.edit("12345", "ann").await;
    session.write("Published.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;

    stage
        .wait_until("the new one is published", async || {
            let shown = std::fs::read(folder.join("report.docx")).expect("the name never vanishes");
            understudy::office::text_of(&shown).contains("Published.")
        })
        .await;
    let backups: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with("-v1.bak"))
        .collect();
    assert_eq!(backups.len(), 1);
    stage.stop().await;
}
