//! What must hold for every page and every form, whatever is added later: nobody else's caches, frames, sites or companies get anything.

use model::CompanyId;
use model::access::{Caller, Companies, Organisations, Role};
use reqwest::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Method, RequestBuilder, StatusCode};
use saveguard::http::openapi;
use serde_json::json;
use understudy::Settings;

use crate::support::submissions::{load, scope};
use crate::support::{Stage, admin};

const FETCH_SITE: &str = "sec-fetch-site";

/// Every page there is, with something behind each address.
const PAGES: [&str; 15] = [
    "/",
    "/?bin=yes",
    "/document/12345",
    "/edit/12345",
    "/view/12345",
    "/comment/12345",
    "/submissions",
    "/submissions/o1/r1",
    "/submissions/o1/r1/logs/first",
    "/submissions/o1/r1/records",
    "/submissions/o1/r1/records/load-in/1000",
    "/operations",
    "/audit",
    "/sign-in",
    "/s/nothing",
];

async fn stage(changes: &[(&str, &str)]) -> Stage {
    let stage = Stage::start_with(changes, Settings::default().with_time_scale(20.0)).await;
    stage.docx("12345").await;
    stage.register("o1", "r1").await;
    stage.submit(&scope("o1", "r1"), "first", &[load("1000", 7, &[])]).await;
    stage
}

fn bare(stage: &Stage, method: Method, path: &str) -> RequestBuilder {
    stage.http.request(method, format!("{}{path}", stage.base))
}

fn everybody() -> Caller {
    Caller { organisations: Organisations::All, ..admin() }
}

/// The cookie of somebody who came through a link.
async fn cookie_of(stage: &Stage, caller: &Caller) -> String {
    let link = format!("/sign-in?token={}", stage.token(caller));
    let response = bare(stage, Method::GET, &link).send().await.unwrap();
    assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    response.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_cache_keeps_a_page_or_an_answer_and_no_frame_shows_one() {
    let stage = stage(&[]).await;
    let cookie = cookie_of(&stage, &everybody()).await;
    let answers = [
        "/api/v1/documents/12345",
        "/api/v1/companies",
        "/api/v1/operations/status",
        "/metrics",
        "/api/v1/nothing",
    ];

    for path in PAGES.iter().chain(&answers) {
        let response = bare(&stage, Method::GET, path).header(COOKIE, &cookie).send().await.unwrap();
        let kept = response.headers()[CACHE_CONTROL].to_str().unwrap();
        assert!(kept.contains("no-store"), "{path}: {kept}");
        if PAGES.contains(path) {
            let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(policy.ends_with("frame-ancestors 'self'"), "{path}: {policy}");
            assert!(policy.starts_with("default-src 'none'; script-src 'self' http://"), "{path}: {policy}");
            assert!(!policy.contains("unsafe") && !policy.contains('*'), "{path}: {policy}");
        }
        let page = response.text().await.unwrap();
        assert!(
            !page.contains("<script>") && !page.contains(" onclick=") && !page.contains(" style="),
            "{path}"
        );
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_change_that_the_interface_has_is_made_by_another_site() {
    let stage = stage(&[]).await;
    let cookie = cookie_of(&stage, &everybody()).await;
    let mut tried = 0;

    for (path, item) in &openapi().paths.paths {
        let changes = [
            (Method::POST, &item.post),
            (Method::PUT, &item.put),
            (Method::PATCH, &item.patch),
            (Method::DELETE, &item.delete),
        ];
        for (method, operation) in changes {
            // Others are called by somebody outside with a credential of their own, where no cookie counts.
            if operation.as_ref().is_none_or(|operation| operation.security.is_none()) {
                continue;
            }
            let path = path.replace("{document}", "12345").replace(['{', '}'], "");
            let request = || bare(&stage, method.clone(), &path).header(COOKIE, &cookie).json(&json!({}));
            for (header, from) in [
                (FETCH_SITE, "cross-site"),
                (FETCH_SITE, "same-site"),
                (FETCH_SITE, "none"),
                ("origin", "https://evil.example.org"),
                ("x-nothing", "at all"),
            ] {
                let status = request().header(header, from).send().await.unwrap().status();
                assert_eq!(status, StatusCode::FORBIDDEN, "{method} {path} with {header}: {from}");
            }
            tried += 1;
        }
    }
    assert!(tried > 30, "only {tried} changes were tried");
    for path in ["/new-document", "/sign-out"] {
        let forged =
            bare(&stage, Method::POST, path).header(COOKIE, &cookie).header(FETCH_SITE, "cross-site");
        assert_eq!(forged.json(&json!({})).send().await.unwrap().status(), StatusCode::FORBIDDEN, "{path}");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_https_a_cookie_is_this_hosts_alone() {
    let stage = stage(&[("SERVER_PUBLIC_URL", "https://saveguard.example.org")]).await;
    let link = format!("/sign-in?token={}", stage.token(&admin()));
    let entered = bare(&stage, Method::GET, &link).send().await.unwrap();
    let set = entered.headers()[SET_COOKIE].to_str().unwrap().to_owned();

    assert!(set.starts_with("__Host-saveguard_session="), "{set}");
    for part in ["; Path=/;", "; HttpOnly", "; SameSite=Lax", "; Secure"] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Domain"), "{set}");
    let value = set.split(['=', ';']).nth(1).unwrap();
    let look = async |cookie: String| {
        bare(&stage, Method::GET, "/document/12345").header(COOKIE, cookie).send().await.unwrap().status()
    };
    assert_eq!(look(format!("__Host-saveguard_session={value}")).await, StatusCode::OK);
    // What a neighbouring host could set counts for nothing.
    assert_eq!(look(format!("saveguard_session={value}")).await, StatusCode::UNAUTHORIZED);
    let again = bare(&stage, Method::GET, &link).send().await.unwrap();
    assert!(again.headers()[SET_COOKIE].to_str().unwrap().contains("__Host-"));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_signs_in_stays_here() {
    let stage = stage(&[]).await;
    let token = stage.token(&admin());
    let leads_to = async |path: String| {
        let response = bare(&stage, Method::GET, &path).send().await.unwrap();
        response.headers()[LOCATION].to_str().unwrap().to_owned()
    };

    for foreign in [
        "https://evil.example.org",
        "//evil.example.org",
        "/\\evil.example.org",
        "\\\\evil",
        "javascript:alert(1)",
        "/\t/evil",
        "evil",
    ] {
        let next: String = url::form_urlencoded::byte_serialize(foreign.as_bytes()).collect();
        assert_eq!(leads_to(format!("/sign-in?token={token}&next={next}")).await, "/", "{foreign}");
        assert_eq!(leads_to(format!("/language/de?next={next}")).await, "/", "{foreign}");
    }
    assert_eq!(
        leads_to(format!("/sign-in?token={token}&next=%2F%3Fwords%3Da%26page%3D2")).await,
        "/?words=a&page=2"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_without_a_cookie_and_nobody_of_elsewhere_sees_a_page() {
    let stage = stage(&[]).await;
    stage.post("/api/v1/companies", &json!({ "id": "other", "name": "The other company" })).await;
    let stranger = Caller {
        id: "sam".to_owned(),
        name: "Sam Stranger".to_owned(),
        role: Role::Admin,
        companies: Companies::Only(vec![CompanyId::parse("other").unwrap()]),
        organisations: Organisations::NONE,
    };
    let cookie = cookie_of(&stage, &stranger).await;
    let own = ["/", "/?bin=yes", "/submissions", "/audit", "/sign-in", "/s/nothing"];

    for path in PAGES {
        let bare_look = bare(&stage, Method::GET, path).send().await.unwrap();
        if path != "/sign-in" && path != "/s/nothing" {
            assert_eq!(bare_look.status(), StatusCode::UNAUTHORIZED, "{path} of nobody");
        }
        let page = bare_look.text().await.unwrap();
        assert!(!page.contains("report.docx") && !page.contains("Acme"), "{path} of nobody");
        let seen = bare(&stage, Method::GET, path).header(COOKIE, &cookie).send().await.unwrap();
        if !own.contains(&path) {
            let expected = if path == "/operations" { StatusCode::FORBIDDEN } else { StatusCode::NOT_FOUND };
            assert_eq!(seen.status(), expected, "{path} of a stranger");
        }
        let page = seen.text().await.unwrap();
        assert!(
            !page.contains("report.docx") && !page.contains("Acme") && !page.contains("r1-number"),
            "{path}"
        );
    }
    let wish = json!({ "company": "acme", "project": "plans", "name": "Mine", "kind": "docx" });
    let made =
        bare(&stage, Method::POST, "/new-document").header(COOKIE, &cookie).header(FETCH_SITE, "same-origin");
    assert_eq!(made.json(&wish).send().await.unwrap().status(), StatusCode::NOT_FOUND);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_leave_compressed_for_whoever_can_read_that() {
    let stage = stage(&[]).await;
    let cookie = cookie_of(&stage, &everybody()).await;
    let get = |path: &str| bare(&stage, Method::GET, path).header(COOKIE, &cookie);

    let plain = get("/").send().await.unwrap();
    assert!(plain.headers().get("content-encoding").is_none());
    assert!(plain.headers().get_all("vary").iter().any(|vary| vary == "accept-encoding"));
    let plain = plain.bytes().await.unwrap();
    let small = get("/").header("accept-encoding", "gzip, br").send().await.unwrap();
    assert_eq!(small.headers()["content-encoding"], "gzip");
    let small = small.bytes().await.unwrap();
    assert!(small.len() * 2 < plain.len(), "{} of {}", small.len(), plain.len());
    assert_eq!(&small[..2], [0x1f, 0x8b]);
    let script = get("/assets/page.js").header("accept-encoding", "gzip").send().await.unwrap();
    let tag = script.headers()["etag"].to_str().unwrap().to_owned();
    assert!(tag.starts_with("W/\""), "{tag}");
    let known = get("/assets/page.js").header("if-none-match", tag).send().await.unwrap();
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    let content =
        get("/api/v1/documents/12345/content").header("accept-encoding", "gzip").send().await.unwrap();
    assert!(content.headers().get("content-encoding").is_none(), "documents are as they are");
    stage.stop().await;
}
