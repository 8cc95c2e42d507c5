//! Tokens that do not count, and tokens of one kind at the door of another. Who may call what is in `matrix`.

use std::time::Duration;

use reqwest::Method;
use saveguard::clock::{Clock as _, SystemClock};
use saveguard::http::{openapi, sign_api_token};
use serde_json::json;

use crate::support::{Stage, admin};

/// Every route of the API, with ids that exist, that needs a token. Routes of guests have theirs in the path.
fn routes() -> Vec<(Method, String)> {
    let open = [
        "/healthz",
        "/readyz",
        "/callback/{document}",
        "/stream/{document}",
        "/stream/{document}/changes",
        // An outside uploader's: its signature is the credential.
        "/api/v1/upload-notices",
        "/api/v1/uploads/{sha256}",
    ];
    let mut routes = Vec::new();
    for (path, item) in openapi().paths.paths {
        if open.contains(&path.as_str()) || path.contains("{token}") {
            continue;
        }
        let concrete = path
            .replace("{company}", "acme")
            .replace("{project}", "plans")
            .replace("{document}", "12345")
            .replace("{number}", "1")
            .replace("{version}", "1");
        for (method, operation) in [
            (Method::GET, item.get),
            (Method::POST, item.post),
            (Method::DELETE, item.delete),
            (Method::PUT, item.put),
            (Method::PATCH, item.patch),
        ] {
            if operation.is_some() {
                routes.push((method, concrete.clone()));
            }
        }
    }
    assert!(routes.len() >= 14, "{routes:?}");
    routes
}

async fn status(stage: &Stage, method: &Method, path: &str, token: Option<&str>) -> u16 {
    let mut request = stage.http.request(method.clone(), format!("{}{path}", stage.base));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if *method == Method::POST {
        let body = if path.ends_with("editor-config") {
            json!({ "mode": "edit" })
        } else if path.ends_with("restore") {
            json!({})
        } else {
            json!({ "id": "x", "name": "x" })
        };
        request = request.json(&body);
        if path.ends_with("documents") {
            request = request.query(&[("name", "x.txt"), ("id", "x")]);
        }
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_needs_a_valid_token() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let config = &stage.app().config;
    let expired = sign_api_token(
        config,
        &admin(),
        SystemClock.now() - Duration::from_secs(1000),
        Duration::from_secs(100),
    );
    let mut foreign = config.clone();
    foreign.api.secrets = foreign.document_server.secrets.clone();
    let forged = sign_api_token(&foreign, &admin(), SystemClock.now(), Duration::from_secs(100));
    for (method, path) in routes() {
        for token in [None, Some(""), Some("a.b.c"), Some(expired.as_str()), Some(forged.as_str())] {
            assert_eq!(status(&stage, &method, &path, token).await, 401, "{method} {path} {token:?}");
        }
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_one_kind_open_no_other_door() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let view = stage.configure("12345", "ann", "edit").await;
    let source = view["config"]["document"]["url"].as_str().unwrap();
    let stream_token = source.split("token=").nth(1).unwrap();
    let config_token = view["config"]["token"].as_str().unwrap();
    let api_token = stage.token(&admin());

    let made = stage.post("/api/v1/documents/12345/shares", &json!({ "allows": "edit" })).await;
    let link = made["token"].as_str().unwrap();
    let guest = stage.post(&format!("/api/v1/shares/{link}/open"), &json!({})).await;
    let ticket = guest["ticket"].as_str().unwrap();

    for token in [stream_token, config_token, link, ticket] {
        assert_eq!(status(&stage, &Method::GET, "/api/v1/documents/12345", Some(token)).await, 401);
    }
    for token in [stream_token, config_token, ticket, &api_token] {
        assert_eq!(status(&stage, &Method::GET, &format!("/api/v1/shares/{token}"), None).await, 404);
    }
    for ticket in [stream_token, config_token, link, &api_token] {
        let path = format!("/api/v1/shares/{link}/download?ticket={ticket}");
        assert_eq!(status(&stage, &Method::GET, &path, None).await, 403);
    }
    for token in [config_token, link, ticket, &api_token] {
        let response =
            stage.http.get(format!("{}/stream/12345?token={token}", stage.base)).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 403);
        assert_eq!(response.json::<serde_json::Value>().await.unwrap()["code"], "DOC_006");
    }
    for token in [stream_token, link, ticket, &api_token] {
        let response = stage
            .http
            .post(format!("{}/callback/12345", stage.base))
            .json(&json!({ "token": token }))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status().as_u16(), 403);
    }
    let other =
        stage.http.get(format!("{}/stream/67890?token={stream_token}", stage.base)).send().await.unwrap();
    assert_eq!(other.status().as_u16(), 403, "a token is for its own document");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_cookie_changes_nothing_from_foreign_pages() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let signed_in = stage
        .http
        .get(format!("{}/sign-in?token={}&next=/edit/12345", stage.base, stage.token(&admin())))
        .send()
        .await
        .unwrap();
    assert_eq!(
        (signed_in.status().as_u16(), &signed_in.headers()["location"]),
        (303, &"/edit/12345".parse().unwrap())
    );
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let post = async |origin: Option<(&str, &str)>| {
        let url = format!("{}/api/v1/documents/12345/editor-config", stage.base);
        let mut request = stage.http.post(url).header("cookie", &cookie).json(&json!({ "mode": "edit" }));
        if let Some((name, value)) = origin {
            request = request.header(name, value);
        }
        request.send().await.unwrap().status().as_u16()
    };

    assert_eq!(post(None).await, 403);
    assert_eq!(post(Some(("origin", "https://evil.example"))).await, 403);
    assert_eq!(post(Some(("sec-fetch-site", "cross-site"))).await, 403);
    assert_eq!(post(Some(("sec-fetch-site", "same-origin"))).await, 200);
    assert_eq!(post(Some(("origin", stage.base.as_str()))).await, 200);
    let page = stage.http.get(format!("{}/", stage.base)).header("cookie", &cookie).send().await.unwrap();
    assert_eq!(page.status().as_u16(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(stage.http.get(format!("{}/", stage.base)).send().await.unwrap().status().as_u16(), 401);
    stage.stop().await;
}
