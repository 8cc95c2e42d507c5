//! How the pages look: every one of them, and every dialog, in light and dark, on a desk and on a phone. axe finds nothing, nothing
//! sticks out, and a picture of each is kept as a build result.

use fantoccini::Locator;
use ledger::documents::{BlobFacts, UnnamedBlob};
use model::DocumentId;
use model::access::{Caller, Organisations};
use serde_json::json;
use understudy::office::{sample_docx, sample_xlsx};

use crate::support::axe;
use crate::support::browser::Browser;
use crate::support::submissions::{load, scope};
use crate::support::{Stage, admin};

const DESK: (u32, u32) = (1280, 900);
const PHONE: (u32, u32) = (390, 844);

/// Pages with the name of their picture, what must be there, and what they must say.
const PAGES: [(&str, &str, &str, &str); 17] = [
    ("documents", "/", "tr[data-document] td.name", "."),
    ("documents-found", "/?words=budget&sort=size", "tr[data-document] td.name", "Budget"),
    ("nothing-found", "/?words=nothing", "main", "Nothing was found"),
    ("bin", "/?bin=yes", "tr[data-document]", "Old offer"),
    ("document", "/document/12345", "#versions tbody", "2"),
    ("submissions", "/submissions", "#registrations", "r1-number"),
    ("registration", "/submissions/o1/r1", "#submissions tbody", "No. 1"),
    ("preview", "/submissions/o1/r1/logs/second", "#changes tbody", "Plain Bins"),
    ("outcome", "/submissions/o1/r1/logs/first", "#outcome", "Submitted as no. 1"),
    ("records", "/submissions/o1/r1/records", "#records tbody", "1000"),
    ("record", "/submissions/o1/r1/records/load-in/1000", "#history tbody", "No. 1"),
    ("operations", "/operations", "#engines tbody", "Ledger"),
    ("audit", "/audit", "#entries tbody", "document-uploaded"),
    ("comment", "/comment/12345", "#status", "vault"),
    ("sign-in", "/sign-in", "main h1", "Sign in"),
    ("link-gone", "/s/nothing", "main h1", "This link does not work"),
    ("trouble", "/document/nothing", "main h1", "There is no such thing here"),
];

/// Dialogs: the page, what is pressed there, and the name of the picture.
const DIALOGS: [(&str, &str, &str); 7] = [
    ("/", "#new", "dialog-new"),
    ("/document/12345", "[data-act=share]", "dialog-share"),
    ("/document/12345", "[data-act=rename]", "dialog-rename"),
    ("/document/12345", "[data-act=delete]", "dialog-delete"),
    ("/document/12345", "tr[data-version='1'] [data-act=receipt]", "dialog-receipt"),
    ("/submissions/o1/r1", "[data-undo='1']", "dialog-undo"),
    ("/operations", "#drain", "dialog-drain"),
];

/// An installation in which something has happened.
async fn stage() -> Stage {
    let stage = Stage::start().await;
    for (id, name) in
        [("12345", "Annual report.docx"), ("d2", "Minutes of the board.docx"), ("d4", "Old offer.docx")]
    {
        let response = stage.upload(id, name, &sample_docx(name, &["It begins."])).await;
        assert!(response.status().is_success(), "{name}");
    }
    let budget = sample_xlsx(&[&["Item", "Sum"], &["Paper", "12"]]);
    assert!(stage.upload("d3", "Budget 2027.xlsx", &budget).await.status().is_success());
    let removed = stage.request(reqwest::Method::DELETE, "/api/v1/documents/d4").send().await.unwrap();
    assert!(removed.status().is_success());
    let ann = stage.edit("12345", "ann").await;
    ann.write("It was a good year.").await.unwrap();
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    keep_aside(&stage, "12345").await;
    stage.register("o1", "r1").await;
    stage.put_json("/api/v1/organisations/o1", json!({ "name": "Northern Recycling" })).await;
    let loads = [load("1000", 7, &[("SUPPLIER", "Northern Bins")]), load("1001", 8, &[])];
    stage.submit(&scope("o1", "r1"), "first", &loads).await;
    let loads = [load("1000", 7, &[("SUPPLIER", "Plain Bins")]), load("1001", 8, &[]), load("1002", 3, &[])];
    stage.preview(&scope("o1", "r1"), "second", &loads).await;
    stage
}

async fn keep_aside(stage: &Stage, document: &str) {
    let app = stage.app();
    let mut writer = app.spool.begin();
    writer.write(&sample_docx("Annual report", &["The other half."])).await.unwrap();
    let spooled = writer.finish().await.unwrap();
    let document = DocumentId::parse(document).unwrap();
    app.vault.put(&spooled, &vault::Sidecar::Uploaded { to_become: document.clone() }).await.unwrap();
    let found = UnnamedBlob {
        blob: BlobFacts::plain(spooled.digest, spooled.size_bytes, "docx"),
        document: Some(document),
        key: None,
        is_record_of_changes: false,
        at: app.now(),
    };
    app.ledger.keep_unnamed(&found).await.unwrap().unwrap();
}

/// Nothing sticks out of the page: it scrolls down and not sideways.
async fn fits(browser: &Browser, page: &str) {
    let wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    let beyond = browser.client.execute(wide, Vec::new()).await.unwrap();
    assert!(beyond.as_f64().unwrap() <= 0.0, "{page}: {beyond} pixels stick out");
}

async fn every_page_in(theme: &str) {
    let stage = stage().await;
    let browser = Browser::start().await;
    let who = Caller { name: "Olga Operator".to_owned(), organisations: Organisations::All, ..admin() };
    let token = stage.token(&who);
    browser.client.goto(&format!("{}/sign-in?token={token}", stage.base)).await.unwrap();

    for (width, size) in [("desk", DESK), ("phone", PHONE)] {
        browser.look_like(theme, size).await;
        for (name, page, selector, words) in PAGES {
            browser.client.goto(&format!("{}{page}", stage.base)).await.unwrap();
            browser.read(selector, words).await;
            let seen = format!("{name} ({theme}, {width})");
            axe::find_nothing(&browser, &seen).await;
            fits(&browser, &seen).await;
            browser.picture(&format!("look-{name}-{theme}-{width}")).await;
        }
        for (page, pressed, name) in DIALOGS {
            browser.client.goto(&format!("{}{page}", stage.base)).await.unwrap();
            // The words of a page come with its script: only then do its buttons do something.
            browser.see("time[title], main").await;
            open_dialog(&browser, pressed).await;
            let seen = format!("{name} ({theme}, {width})");
            axe::find_nothing(&browser, &seen).await;
            browser.picture(&format!("look-{name}-{theme}-{width}")).await;
        }
    }
    browser.stop().await;
    stage.editor.quiet().await;
    stage.stop().await;
}

/// Presses until the dialog is there: the script may not have been, the first time.
async fn open_dialog(browser: &Browser, pressed: &str) {
    crate::support::browser::patiently(pressed, async || {
        if browser.client.find(Locator::Css("dialog[open]")).await.is_ok() {
            return true;
        }
        browser.press(pressed).await;
        false
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_and_dialog_is_accessible_and_fits_in_the_light() {
    every_page_in("light").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_and_dialog_is_accessible_and_fits_in_the_dark() {
    every_page_in("dark").await;
}
