//! Names and values as attackers write them: on every page they are text and nothing else.

use fantoccini::Locator;
use model::access::{Caller, Organisations};
use serde_json::json;
use understudy::office::sample_docx;
use understudy::server::Session;

use crate::support::axe;
use crate::support::browser::Browser;
use crate::support::submissions::load;
use crate::support::{Stage, admin};

const HOSTILE: &str = r#"<img src=x onerror="window.stranger=1"><script>window.stranger=2</script>'"&amp;"#;

/// As a file name: without what names may not have.
const FILE: &str = r#"<img src=x onerror=window.stranger=1> '&amp;.docx"#;

async fn is_harmless(browser: &Browser, page: &str) {
    let stranger = browser.client.execute("return window.stranger ?? null", Vec::new()).await.unwrap();
    assert!(stranger.is_null(), "{page}: a script of a stranger ran");
    let pictures = browser.client.find_all(Locator::Css("img[src='x']")).await.unwrap();
    assert!(pictures.is_empty(), "{page}: a picture of a stranger is there");
}

/// Somebody edits under their own name.
async fn open_as(stage: &Stage, who: &Caller) -> Session {
    let request = stage.http.post(format!("{}/api/v1/documents/12345/editor-config", stage.base));
    let request = request.bearer_auth(stage.token(who)).json(&json!({ "mode": "edit" }));
    let view: serde_json::Value = request.send().await.unwrap().json().await.unwrap();
    let session = stage.editor.open(&view["config"]).await.unwrap();
    session.opened().await;
    session
}

/// An organisation, a registration, a submitter and a value, all with hostile words.
async fn hand_in(stage: &Stage) {
    let place = stage.register("o1", "r1").await;
    stage.put_json("/api/v1/organisations/o1", json!({ "name": HOSTILE })).await;
    let titled = json!({ "number": "r1-number", "title": HOSTILE, "template": "waste-records" });
    stage.put_json("/api/v1/organisations/o1/registrations/r1", titled).await;
    stage.submit_as((&place, HOSTILE), "first", &[load("1000", 7, &[("SUPPLIER", HOSTILE)])]).await;
    stage.preview(&place, "second", &[load("1000", 7, &[("SUPPLIER", "Plain")])]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_values_are_shown_as_text_on_every_page() {
    let stage = Stage::start().await;
    let rename = stage.request(reqwest::Method::PATCH, "/api/v1/companies/acme");
    assert!(rename.json(&json!({ "name": HOSTILE })).send().await.unwrap().status().is_success());
    let name = if stage.upload("12345", FILE, &sample_docx(HOSTILE, &[HOSTILE])).await.status().is_success() {
        FILE
    } else {
        let response = stage.upload("12345", "'&amp; {{7*7}}.docx", &sample_docx(HOSTILE, &[HOSTILE])).await;
        assert!(response.status().is_success());
        "'&amp; {{7*7}}.docx"
    };
    let ann = stage.edit("12345", "ann").await;
    ann.write(HOSTILE).await.unwrap();
    let who = Caller { name: HOSTILE.to_owned(), organisations: Organisations::All, ..admin() };
    let eve = open_as(&stage, &Caller { id: "eve".to_owned(), ..who.clone() }).await;
    let project = stage.request(reqwest::Method::PATCH, "/api/v1/companies/acme/projects/plans");
    assert!(project.json(&json!({ "name": HOSTILE })).send().await.unwrap().status().is_success());
    let link =
        stage.post("/api/v1/documents/12345/shares", &json!({ "allows": "view", "label": HOSTILE })).await;
    hand_in(&stage).await;
    let browser = Browser::start().await;
    let token = stage.token(&who);
    browser.client.goto(&format!("{}/sign-in?token={token}", stage.base)).await.unwrap();

    let pages = [
        ("/", "tr[data-document] td.name", name),
        ("/", "select[name=project]", HOSTILE),
        ("/", "[data-field=editors]", HOSTILE),
        ("/document/12345", "main h1", name),
        ("/submissions", "#registrations h2", HOSTILE),
        ("/submissions", "#registrations td a", HOSTILE),
        ("/submissions/o1/r1", ".path", HOSTILE),
        ("/submissions/o1/r1", "main h1", HOSTILE),
        ("/submissions/o1/r1", "#submissions tbody", HOSTILE),
        ("/submissions/o1/r1/logs/second", "#changes del", HOSTILE),
        ("/submissions/o1/r1/records", "#records tbody", HOSTILE),
        ("/submissions/o1/r1/records/load-in/1000", "#history tbody", HOSTILE),
        ("/operations", "#sessions", HOSTILE),
        ("/audit", "#filters select", HOSTILE),
        ("/view/12345", "#title", name),
        ("/comment/12345", "#people", HOSTILE),
    ];
    for (page, selector, words) in pages {
        browser.client.goto(&format!("{}{page}", stage.base)).await.unwrap();
        browser.read(selector, words).await;
        is_harmless(&browser, page).await;
        if !["/view/12345", "/comment/12345"].contains(&page) {
            browser.read(".person", HOSTILE).await;
        }
        axe::find_nothing(&browser, page).await;
    }
    browser.client.goto(&format!("{}/document/12345", stage.base)).await.unwrap();
    browser.read("#versions", "1").await;
    browser.click("[data-act=share]").await;
    browser.read("dialog .share-list", HOSTILE).await;
    is_harmless(&browser, "the share dialog").await;
    browser.client.goto(link["url"].as_str().unwrap()).await.unwrap();
    browser.read("main", name).await;
    is_harmless(&browser, "the page of a guest").await;
    eve.close().await.unwrap();
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    browser.client.goto(&format!("{}/document/12345", stage.base)).await.unwrap();
    browser.click("#versions input[value='1']").await;
    browser.click("#versions input[value='2']").await;
    browser.click("#compare").await;
    browser.read("#comparison ins", HOSTILE).await;
    is_harmless(&browser, "a comparison").await;
    browser.stop().await;
    stage.editor.quiet().await;
    stage.stop().await;
}
