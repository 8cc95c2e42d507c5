//! Who may call what: no token, a wrong one, too small a role, another company.

use std::time::Duration;

use model::CompanyId;
use model::access::{Caller, Companies, Role};
use reqwest::Method;
use saveguard::clock::{Clock as _, SystemClock};
use saveguard::http::{openapi, sign_api_token};
use serde_json::json;

use crate::support::{Stage, admin};

/// Every route of the API, with ids that exist, that needs a token.
fn routes() -> Vec<(Method, String)> {
    let open = ["/healthz", "/readyz", "/callback/{document}", "/stream/{document}"];
    let mut routes = Vec::new();
    for (path, item) in openapi().paths.paths {
        if open.contains(&path.as_str()) {
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
async fn another_companys_things_look_exactly_like_missing_ones() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let stranger = Caller {
        role: Role::Admin,
        companies: Companies::Only(vec![CompanyId::parse("other").unwrap()]),
        ..admin()
    };
    let token = stage.token(&stranger);
    for (method, path) in routes() {
        let found = status(&stage, &method, &path, Some(&token)).await;
        let is_list = path == "/api/v1/companies" && method == Method::GET;
        let needs_operator = path.contains("operations") || path == "/metrics" || path == "/api/v1/companies";
        let expected = if is_list {
            200
        } else if needs_operator {
            403
        } else {
            404
        };
        assert_eq!(found, expected, "{method} {path}");
    }
    let body = async |path: &str| {
        let response =
            stage.http.get(format!("{}{path}", stage.base)).bearer_auth(&token).send().await.unwrap();
        response.json::<serde_json::Value>().await.unwrap()
    };
    let problem = async |path: &str| {
        let mut problem = body(path).await;
        // The one thing that is new in every answer.
        assert!(problem.as_object_mut().unwrap().remove("instance").is_some());
        problem
    };
    assert_eq!(problem("/api/v1/documents/12345").await, problem("/api/v1/documents/nothing-here").await);
    assert_eq!(body("/api/v1/companies").await, json!([]));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_reads_and_does_not_edit() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let viewer = Caller {
        role: Role::Viewer,
        companies: Companies::Only(vec![CompanyId::parse("acme").unwrap()]),
        ..admin()
    };
    let token = stage.token(&viewer);
    let expected = |method: &Method, path: &str| match (method, path) {
        (&Method::GET, "/metrics") => 403,
        (&Method::GET, path) if path.contains("operations") => 403,
        (&Method::GET, path) if path.contains("kept/1") => 404,
        (&Method::GET, path) if path.ends_with("/audit") => 403,
        (&Method::GET, _) => 200,
        _ => 403,
    };
    for (method, path) in routes() {
        assert_eq!(
            status(&stage, &method, &path, Some(&token)).await,
            expected(&method, &path),
            "{method} {path}"
        );
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

    for token in [stream_token, config_token] {
        assert_eq!(status(&stage, &Method::GET, "/api/v1/documents/12345", Some(token)).await, 401);
    }
    for token in [config_token, &api_token] {
        let response =
            stage.http.get(format!("{}/stream/12345?token={token}", stage.base)).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 403);
        assert_eq!(response.json::<serde_json::Value>().await.unwrap()["code"], "DOC_006");
    }
    for token in [stream_token, &api_token] {
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
