//! The door of the pages: from a token to a cookie and out again; what a cookie alone may not do; who sees what.

use model::CompanyId;
use model::access::{Caller, Companies, Organisations, Role};
use reqwest::header::{CONTENT_SECURITY_POLICY, COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::json;
use understudy::Settings;

use crate::support::axe;
use crate::support::browser::Browser;
use crate::support::{Stage, admin};

const FETCH_SITE: &str = "sec-fetch-site";

fn viewer_of(company: &str) -> Caller {
    Caller {
        id: "vera".to_owned(),
        name: "Vera Viewer".to_owned(),
        role: Role::Viewer,
        companies: Companies::Only(vec![CompanyId::parse(company).unwrap()]),
        organisations: Organisations::NONE,
    }
}

/// A request without any token.
fn bare(stage: &Stage, method: Method, path: &str) -> RequestBuilder {
    stage.http.request(method, format!("{}{path}", stage.base))
}

fn form(stage: &Stage, token: &str) -> RequestBuilder {
    let body = format!("token={token}&next=%2Fdocument%2F12345");
    bare(stage, Method::POST, "/sign-in")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
}

/// The cookie out of an answer, ready to be sent back.
fn cookie_of(response: &Response) -> String {
    let cookie = response.headers()[SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Lax"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

async fn signed_in(stage: &Stage, caller: &Caller) -> String {
    let response = form(stage, &stage.token(caller)).header(FETCH_SITE, "same-origin").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    assert_eq!(response.headers()[LOCATION], "/document/12345");
    cookie_of(&response)
}

async fn status(request: RequestBuilder) -> StatusCode {
    request.send().await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_becomes_a_cookie_and_signing_out_takes_it_away() {
    let stage = Stage::start().await;
    stage.docx("12345").await;

    assert_eq!(status(bare(&stage, Method::GET, "/")).await, StatusCode::UNAUTHORIZED);
    assert_eq!(
        status(form(&stage, "rubbish").header(FETCH_SITE, "same-origin")).await,
        StatusCode::UNAUTHORIZED
    );
    let cookie = signed_in(&stage, &admin()).await;
    for page in
        ["/", "/document/12345", "/edit/12345", "/view/12345", "/operations", "/audit", "/submissions"]
    {
        let shown = status(bare(&stage, Method::GET, page).header(COOKIE, &cookie)).await;
        assert_eq!(shown, StatusCode::OK, "{page}");
    }
    let leave = || bare(&stage, Method::POST, "/sign-out").header(COOKIE, &cookie);
    assert_eq!(status(leave().header(FETCH_SITE, "cross-site")).await, StatusCode::FORBIDDEN);
    let left = leave().header(FETCH_SITE, "same-origin").send().await.unwrap();
    assert_eq!(left.status(), StatusCode::SEE_OTHER);
    assert!(left.headers()[SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_changes_nothing_for_other_sites_and_nobody_is_signed_in_by_them() {
    let hosts = [("SERVER_ALLOWED_ORIGINS", "https://app.example.org")];
    let stage = Stage::start_with(&hosts, Settings::default().with_time_scale(20.0)).await;
    stage.docx("12345").await;
    let cookie = signed_in(&stage, &admin()).await;
    let token = stage.token(&admin());

    let wish = json!({ "company": "acme", "project": "plans", "name": "Forged", "kind": "docx" });
    let forged = [
        (Method::DELETE, "/api/v1/documents/12345", json!({})),
        (Method::POST, "/api/v1/documents/12345/shares", json!({ "allows": "edit" })),
        (Method::POST, "/api/v1/documents/12345/rename", json!({ "name": "forged.docx" })),
        (Method::POST, "/api/v1/operations/drain", json!({})),
        (Method::POST, "/new-document", wish),
        (Method::POST, "/sign-out", json!({})),
    ];
    for (method, path, body) in &forged {
        let request = || bare(&stage, method.clone(), path).header(COOKIE, &cookie).json(body);
        assert_eq!(status(request()).await, StatusCode::FORBIDDEN, "{path} from nowhere");
        for site in ["cross-site", "same-site", "none"] {
            let answered = status(request().header(FETCH_SITE, site)).await;
            assert_eq!(answered, StatusCode::FORBIDDEN, "{path} from {site}");
        }
        let foreign = request().header(ORIGIN, "https://evil.example.org");
        assert_eq!(status(foreign).await, StatusCode::FORBIDDEN, "{path} from another origin");
    }
    assert_eq!(stage.document("12345").await["name"], "report.docx");

    for foreign in [form(&stage, &token), form(&stage, &token).header(ORIGIN, "https://evil.example.org")] {
        let refused = foreign.send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        assert!(refused.headers().get(SET_COOKIE).is_none());
    }
    let host = form(&stage, &token).header(ORIGIN, "https://app.example.org").send().await.unwrap();
    assert_eq!(host.status(), StatusCode::SEE_OTHER, "the host application hands people over");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_of_an_api_token_ends_with_the_token() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let wish = json!({ "name": "Console", "role": "editor", "companies": ["acme"] });
    let made = stage.post("/api/v1/tokens", &wish).await;
    let response =
        form(&stage, made["token"].as_str().unwrap()).header(FETCH_SITE, "same-origin").send().await.unwrap();
    let cookie = cookie_of(&response);
    let look = || status(bare(&stage, Method::GET, "/document/12345").header(COOKIE, &cookie));

    assert_eq!(look().await, StatusCode::OK);
    let number = made["number"].as_u64().or_else(|| made["details"]["number"].as_u64()).unwrap();
    let revoked = stage.request(Method::DELETE, &format!("/api/v1/tokens/{number}")).send().await.unwrap();
    assert!(revoked.status().is_success());
    assert_eq!(look().await, StatusCode::UNAUTHORIZED);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_carry_a_strict_policy_and_are_framed_only_where_configured() {
    let frames = [("SERVER_EMBEDDED_BY", "https://intranet.example.org")];
    let stage = Stage::start_with(&frames, Settings::default().with_time_scale(20.0)).await;

    for path in ["/", "/sign-in", "/s/nothing", "/assets/page.js", "/document/nothing"] {
        let response = bare(&stage, Method::GET, path).send().await.unwrap();
        let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self' http://"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert!(policy.ends_with("frame-ancestors 'self' https://intranet.example.org"), "{policy}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_a_page_of_another_company() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.post("/api/v1/companies", &json!({ "id": "other", "name": "The other company" })).await;
    let cookie = signed_in(&stage, &viewer_of("other")).await;
    let see = async |path: &str| {
        let response = bare(&stage, Method::GET, path).header(COOKIE, &cookie).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    };

    for path in [
        "/document/12345",
        "/document/nothing",
        "/edit/12345",
        "/view/12345",
        "/?company=acme",
        "/?company=nobody",
    ] {
        let (status, page) = see(path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(page.contains("There is no such thing here") && !page.contains("report.docx"), "{path}");
    }
    for path in ["/operations", "/audit"] {
        assert_eq!(see(path).await.0, StatusCode::FORBIDDEN, "{path}");
    }
    let (status, page) = see("/").await;
    assert_eq!(status, StatusCode::OK);
    assert!(!page.contains("Acme") && !page.contains("report.docx"), "foreign names are not told");
    let owned = signed_in(&stage, &viewer_of("acme")).await;
    let edit = bare(&stage, Method::GET, "/edit/12345").header(COOKIE, &owned);
    assert_eq!(self::status(edit).await, StatusCode::FORBIDDEN, "a viewer views");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_signs_in_by_the_form_switches_the_language_and_leaves() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let browser = Browser::start().await;

    browser.client.goto(&format!("{}/document/12345", stage.base)).await.unwrap();
    browser.read("main h1", "Sign in").await;
    axe::find_nothing(&browser, "the door").await;
    browser.fill("input[name=token]", "not a token").await;
    browser.click("main button").await;
    browser.read("[role=alert]", "does not count").await;
    browser.fill("input[name=token]", &stage.token(&admin())).await;
    browser.click("main button").await;
    browser.read("main h1", "report.docx").await;
    browser.click("a.language").await;
    browser.read("#sign-out", "Abmelden").await;
    browser.read("main h2", "Versionen").await;
    browser.click("#sign-out").await;
    browser.read("main h1", "Anmelden").await;
    browser.client.goto(&format!("{}/document/12345", stage.base)).await.unwrap();
    browser.read("main h1", "Anmelden").await;
    browser.stop().await;
    stage.stop().await;
}
