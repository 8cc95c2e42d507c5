//! Links to results: PROTOCOL 3.4 and 3.5.

use serde_json::json;
use understudy::office;
use understudy::settings::LinkBase;
use understudy::tokens::{Secret, sign};

use crate::host::Reply;
use crate::stage::{SECRET, Stage};

async fn saved() -> (Stage, String) {
    let stage = Stage::set("links").await;
    stage.edits_and_closes("u1").await;
    stage.pass(6_000).await;
    let url = stage.last().body["url"].as_str().unwrap().to_owned();
    (stage, url)
}

#[tokio::test]
async fn a_link_is_good_for_fifteen_minutes_then_gone() {
    let (stage, url) = saved().await;
    let (status, bytes) = stage.get(&url).await;
    assert_eq!(status, 200);
    assert!(office::can_open(&bytes, "docx"));

    stage.pass(895_000).await;
    assert_eq!(stage.get(&url).await.0, 200);
    stage.pass(6_000).await;

    assert_eq!(stage.get(&url).await.0, 410);
}

#[tokio::test]
async fn a_tampered_link_is_forbidden() {
    let (stage, url) = saved().await;
    let tampered = [
        url.replace("md5=", "md5=x"),
        url.replace("expires=", "expires=9"),
        url.replace("/output.docx/", "/changes.zip/"),
        url.split('?').next().unwrap().to_owned(),
    ];

    for url in tampered {
        assert_eq!(stage.get(&url).await.0, 403, "{url}");
    }
}

#[tokio::test]
async fn the_changes_are_a_zip_of_files_per_author() {
    let stage = Stage::set("zip").await;
    let u1 = stage.opens("u1").await;
    let u2 = stage.opens("u2").await;
    for session in [&u1, &u2, &u1] {
        session.write("words").await.unwrap();
    }
    u1.hang_up().await.unwrap();
    u2.hang_up().await.unwrap();
    stage.pass(7_000).await;

    let (status, bytes) = stage.get(stage.last().body["changesurl"].as_str().unwrap()).await;

    assert_eq!(status, 200);
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(&bytes[..])).unwrap();
    let names: Vec<String> =
        (0..zip.len()).map(|n| zip.by_index(n).unwrap().name().unwrap().to_string()).collect();
    assert_eq!(names, ["changes0.json", "changes1.json", "changes2.json"]);
}

#[tokio::test]
async fn the_host_part_is_how_the_last_opener_found_the_server() {
    let stage = Stage::set("host").await;
    let config = stage.config("u1").signed(&Secret::new(SECRET));
    let session = stage.server().open_from(&config, "https://office.example_x.org/ds").await.unwrap();
    stage.pass(1_000).await;
    session.write("one").await.unwrap();
    session.hang_up().await.unwrap();
    stage.pass(6_000).await;

    let url = stage.last().body["url"].as_str().unwrap().to_owned();

    assert!(url.starts_with("https://office.example%5fx.org/ds/cache/files/data/"), "{url}");
    let internal = url.replace("https://office.example%5fx.org/ds", &stage.server().url());
    assert_eq!(stage.get(&internal).await.0, 200, "the host part is not signed");
}

#[tokio::test]
async fn the_host_part_is_taken_from_the_headers_of_a_request() {
    let stage = Stage::set("headers").await;
    stage.host.always(2, Reply::Error1);
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;
    let token = sign(&json!({"c": "getForgotten", "key": stage.key}), &Secret::new(SECRET));
    let headers = [
        ("x-forwarded-proto", "https, http"),
        ("x-forwarded-host", "office.example.org, inner"),
        ("x-forwarded-prefix", "/ds"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();

    let reply = stage.raw_command(&json!({"token": token}), &headers).await;

    let url = reply["url"].as_str().unwrap();
    assert!(url.starts_with("https://office.example.org/ds/cache/files/forgotten/"), "{url}");
}

#[tokio::test]
async fn the_host_part_can_be_fixed() {
    let stage =
        Stage::set_with("fixed", |settings| settings.link_base = LinkBase::Fixed("http://ds:8080".into()))
            .await;
    stage.edits_and_closes("u1").await;
    stage.pass(6_000).await;

    assert!(stage.last().body["url"].as_str().unwrap().starts_with("http://ds:8080/cache/"));
}

#[tokio::test]
async fn health_and_information_answer_like_the_real_ones() {
    let stage = Stage::set("health").await;
    let base = stage.server().url();

    assert_eq!(stage.get(&format!("{base}/healthcheck")).await, (200, "true".into()));
    let (status, info) = stage.get(&format!("{base}/info/info.json")).await;
    let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
    assert_eq!((status, info["serverInfo"]["buildVersion"].as_str()), (200, Some("9.3.0")));
    let (_, inactive) = stage.get(&format!("{base}/internal/cluster/inactive")).await;
    assert_eq!(inactive, r#"{"shutdown":false}"#);
}
