//! Two people and a guest in three tabs of a real browser: the whole story of a document, in one test.

use http::StatusCode;
use model::access::Caller;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::{Stage, admin};

const DOCUMENT: &str = "/api/v1/documents/12345";
/// The key, as the WebDriver standard writes it.
const END: char = '\u{E010}';

/// Opens the editor in the tab that is in front.
async fn edit_as(stage: &Stage, browser: &Browser, id: &str, name: &str) {
    let caller = Caller { id: id.to_owned(), name: name.to_owned(), ..admin() };
    let token = stage.token(&caller);
    browser.client.goto(&format!("{}/sign-in?token={token}&next=/edit/12345", stage.base)).await.unwrap();
    browser.enter_editor().await;
}

async fn another_tab(browser: &Browser) {
    let tab = browser.client.new_window(true).await.unwrap().handle;
    browser.client.switch_to_window(tab).await.unwrap();
}

/// Writes at the end of the document, once what the others wrote is there.
async fn write_after(browser: &Browser, others: &str, words: &str) {
    browser.read("#us-main", others).await;
    let paragraph = browser.see("[data-p]:last-of-type").await;
    paragraph.click().await.unwrap();
    // A click leaves the caret where it fell.
    paragraph.send_keys(&format!("{END}{words}")).await.unwrap();
}

async fn wait_for_people(stage: &Stage, wanted: &[&str]) {
    let path = format!("{DOCUMENT}/sessions");
    stage
        .wait_until("everybody is known to be inside", async || {
            let sessions = stage.get(&path).await;
            let people = sessions[0]["people"].as_array().cloned().unwrap_or_default();
            let mut names: Vec<String> =
                people.iter().filter_map(|person| person["name"].as_str()).map(str::to_owned).collect();
            names.sort();
            names == wanted
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_and_a_guest_work_on_one_document() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let share = stage.post(&format!("{DOCUMENT}/shares"), &json!({ "allows": "edit" })).await;
    let browser = Browser::start().await;
    let ann = browser.client.window().await.unwrap();

    edit_as(&stage, &browser, "ann", "Ann").await;
    write_after(&browser, "It begins.", " Ann was here.").await;
    another_tab(&browser).await;
    edit_as(&stage, &browser, "ben", "Ben").await;
    write_after(&browser, "Ann was here.", " So was Ben.").await;
    let ben = browser.client.window().await.unwrap();
    another_tab(&browser).await;
    let token = share["token"].as_str().unwrap();
    browser.client.goto(&format!("{}/s/{token}", stage.base)).await.unwrap();
    browser.see("#guest-name").await.send_keys("Gus").await.unwrap();
    browser.click("#enter").await;
    browser.enter_editor().await;
    write_after(&browser, "So was Ben.", " And Gus.").await;
    let gus = browser.client.window().await.unwrap();
    wait_for_people(&stage, &["Ann", "Ben", "Gus (guest)"]).await;

    browser.client.switch_to_window(ben.clone()).await.unwrap();
    browser.see("#frame iframe").await.enter_frame().await.unwrap();
    browser.read("#us-main", "And Gus.").await;
    browser.click("#us-save").await;
    stage.wait_for_head("12345", "1.1").await;
    write_after(&browser, "And Gus.", " The newest words.").await;
    the_download_has(&stage, "The newest words.").await;
    let refused = stage.request(Method::DELETE, DOCUMENT).send().await.unwrap();
    let (status, problem): (_, Value) = (refused.status(), refused.json().await.unwrap());
    assert_eq!((status, problem["code"].as_str().unwrap()), (StatusCode::CONFLICT, "DOC_001"));
    browser.picture("three-people-in-the-editor").await;

    let number = share["details"]["number"].as_u64().unwrap();
    let revoked = stage.request(Method::DELETE, &format!("{DOCUMENT}/shares/{number}")).send().await.unwrap();
    assert_eq!(revoked.status(), StatusCode::NO_CONTENT);
    browser.client.switch_to_window(gus).await.unwrap();
    browser.see("#frame iframe").await.enter_frame().await.unwrap();
    browser.see("body[data-state=read-only]").await;
    wait_for_people(&stage, &["Ann", "Ben"]).await;

    for tab in [ben, ann] {
        browser.client.switch_to_window(tab).await.unwrap();
        browser.client.goto("about:blank").await.unwrap();
    }
    stage.wait_for_head("12345", "2").await;
    let text = stage.text("12345").await;
    for words in ["Ann was here.", "So was Ben.", "And Gus.", "The newest words."] {
        assert!(text.contains(words), "{words} is missing in: {text}");
    }
    the_history_names_everybody_and_brings_the_first_version_back(&stage, &browser).await;
    browser.stop().await;
    stage.editor.quiet().await;
    stage.stop().await;
}

/// Typed a moment ago, in a browser: the download may be asked for before the words have left it.
async fn the_download_has(stage: &Stage, words: &str) {
    stage
        .wait_until("the download has the newest words", async || {
            let response = stage.request(Method::GET, &format!("{DOCUMENT}/download")).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            understudy::office::text_of(&response.bytes().await.unwrap()).contains(words)
        })
        .await;
}

async fn the_history_names_everybody_and_brings_the_first_version_back(stage: &Stage, browser: &Browser) {
    let history = stage.get(&format!("{DOCUMENT}/history")).await;
    let newest = history["history"].as_array().unwrap().last().unwrap().clone();
    let changes = newest["changes"].as_array().unwrap();
    let mut authors: Vec<&str> = changes.iter().map(|each| each["user"]["name"].as_str().unwrap()).collect();
    authors.sort_unstable();
    authors.dedup();
    assert_eq!(authors, ["Ann", "Ben", "Gus (guest)"]);

    edit_as(stage, browser, "ann", "Ann").await;
    browser.read("#us-main", "And Gus.").await;
    browser.click("#us-history").await;
    browser.read("#us-versions", "Ann").await;
    browser.picture("history-of-three-people").await;
    browser.click("[data-restore='1']").await;
    stage.wait_for_head("12345", "3").await;
    assert!(!stage.text("12345").await.contains("Ann was here."));
}
