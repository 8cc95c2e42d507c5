//! Documents in a real browser, as people use them: bring in, make, find, rename, share, delete, compare, restore, decide.

use std::path::Path;

use ledger::documents::{BlobFacts, UnnamedBlob};
use model::DocumentId;
use serde_json::json;
use understudy::Settings;
use understudy::office::sample_docx;

use crate::support::axe;
use crate::support::browser::{Browser, patiently};
use crate::support::{Stage, admin};

/// Opens a page as somebody who is signed in.
async fn enter(stage: &Stage, browser: &Browser, page: &str) {
    let token = stage.token(&admin());
    browser.client.goto(&format!("{}/sign-in?token={token}&next={page}", stage.base)).await.unwrap();
}

async fn choose_file(browser: &Browser, file: &Path) {
    let input = browser.client.find(fantoccini::Locator::Css("#files")).await.unwrap();
    input.send_keys(file.to_str().unwrap()).await.unwrap();
}

/// A content that no row names, kept as a conflict copy.
async fn keep_aside(stage: &Stage, document: &str, bytes: &[u8]) -> u64 {
    let app = stage.app();
    let mut writer = app.spool.begin();
    writer.write(bytes).await.unwrap();
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
    app.ledger.keep_unnamed(&found).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_brought_in_made_found_renamed_deleted_and_brought_back() {
    let stage = Stage::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Quarterly plan.docx");
    std::fs::write(&file, sample_docx("Plan", &["It begins."])).unwrap();
    let broken = folder.path().join("broken.docx");
    std::fs::write(&broken, b"PK this is no document").unwrap();
    let browser = Browser::start().await;

    enter(&stage, &browser, "/").await;
    browser.read("main", "There are no documents yet").await;
    axe::find_nothing(&browser, "an empty list").await;
    choose_file(&browser, &file).await;
    browser.read("#uploads li.done", "Stored.").await;
    browser.read("tr[data-document] td.name", "Quarterly plan.docx").await;
    choose_file(&browser, &broken).await;
    browser.read("#uploads li.failed", "not whole").await;

    for (kind, name) in [("docx", "Minutes"), ("xlsx", "Budget"), ("pptx", "Talk")] {
        browser.click("#new").await;
        browser.click(&format!("dialog input[value={kind}]")).await;
        browser.fill("dialog input[name=name]", name).await;
        axe::find_nothing(&browser, "the dialog of a new document").await;
        browser.click("dialog form button.button:not(.plain)").await;
        browser.see(&format!("tr[data-name='{name}.{kind}']")).await;
    }
    browser.picture("console-documents").await;
    let made = stage.get("/api/v1/companies/acme/documents").await;
    let flagged =
        made.as_array().unwrap().iter().filter(|each| each["name"] != "Quarterly plan.docx").count();
    assert_eq!(flagged, 3, "each is a whole file of its kind");

    browser.client.goto(&format!("{}/?sort=name&words=PLAN+quarter", stage.base)).await.unwrap();
    browser.read("tbody tr:only-child td.name", "Quarterly plan.docx").await;
    browser.press("[data-act=rename]").await;
    browser.fill("dialog input[name=name]", "Yearly plan").await;
    browser.click("dialog form button.button:not(.plain)").await;
    browser.client.goto(&format!("{}/?sort=name", stage.base)).await.unwrap();
    browser.see("tr:last-child[data-name='Yearly plan.docx']").await;
    browser.press("tr[data-name='Yearly plan.docx'] [data-act=delete]").await;
    browser.click("dialog .danger-button").await;
    browser.miss("tr[data-name='Yearly plan.docx']").await;
    browser.client.goto(&format!("{}/?bin=yes", stage.base)).await.unwrap();
    browser.click("tr[data-name='Yearly plan.docx'] [data-act=undelete]").await;
    browser.miss("tr[data-name='Yearly plan.docx']").await;
    browser.client.goto(&format!("{}/", stage.base)).await.unwrap();
    browser.see("tr[data-name='Yearly plan.docx']").await;
    browser.stop().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_made_copied_used_by_a_guest_and_revoked() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let browser = Browser::start().await;

    enter(&stage, &browser, "/document/12345").await;
    browser.click("[data-act=share]").await;
    browser.click("dialog select[name=allows] option[value=edit]").await;
    browser.fill("dialog input[name=label]", "For Gus").await;
    browser.fill("dialog input[name=password]", "open sesame").await;
    browser.click("dialog form button").await;
    let link = browser.see("#share-link").await.prop("value").await.unwrap().unwrap();
    browser.read("dialog .share-list", "For Gus").await;
    axe::find_nothing(&browser, "the share dialog").await;
    browser.picture("console-share").await;
    let home = browser.client.window().await.unwrap();
    let guest = browser.client.new_window(false).await.unwrap().handle;
    browser.client.switch_to_window(guest).await.unwrap();
    browser.client.goto(&link).await.unwrap();
    browser.fill("#guest-name", "Gus").await;
    browser.fill("#password", "open sesame").await;
    axe::find_nothing(&browser, "the door of a guest").await;
    browser.click("#enter").await;
    browser.enter_editor().await;
    browser.read("#us-main", "It begins.").await;
    browser.leave_editor().await;
    browser.client.close_window().await.unwrap();
    browser.client.switch_to_window(home).await.unwrap();
    browser.click("dialog .share-list button.danger").await;
    browser.read("dialog .share-list", "revoked").await;
    let shares = stage.get("/api/v1/documents/12345/shares").await;
    assert!(shares[0]["revoked_at"].is_string() && shares[0]["has_password"] == true);
    browser.stop().await;
    stage.editor.quiet().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_compared_restored_and_proven_and_a_conflict_is_settled() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let ann = stage.edit("12345", "ann").await;
    ann.write("Regretted later.").await.unwrap();
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    keep_aside(&stage, "12345", &sample_docx("Report", &["The other half."])).await;
    let browser = Browser::start().await;

    enter(&stage, &browser, "/document/12345").await;
    browser.click("#versions input[value='1']").await;
    browser.click("#versions input[value='2']").await;
    browser.click("#compare").await;
    browser.read("#comparison ins", "Regretted later.").await;
    browser.picture("console-document").await;
    axe::find_nothing(&browser, "a document").await;
    browser.press("tr[data-version='2'] [data-act=receipt]").await;
    browser.read("dialog .receipt", "12345").await;
    axe::find_nothing(&browser, "a receipt").await;
    browser.click("dialog .close").await;
    browser.click("#audit summary").await;
    browser.read("#audit-body", "document-uploaded").await;

    browser.press("tr[data-version='1'] [data-act=restore]").await;
    browser.click("dialog form button.button:not(.plain)").await;
    stage.wait_for_head("12345", "3").await;
    browser.client.refresh().await.unwrap();
    browser.read("tr[data-version='3']", "restored").await;
    browser.click("[data-act=use-kept]").await;
    browser.click("dialog form button.button:not(.plain)").await;
    stage.wait_for_head("12345", "4").await;
    assert!(stage.text("12345").await.contains("The other half."));
    browser.read("#kept", "used").await;
    browser.stop().await;
    stage.editor.quiet().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editors_line_tells_the_truth() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let browser = Browser::start().await;

    enter(&stage, &browser, "/edit/12345").await;
    browser.enter_editor().await;
    browser.leave_editor().await;
    browser.read("#status[data-state=saved]", "Saved to the vault").await;
    browser.read("#status", "version 1").await;
    browser.read("#people", "Root").await;
    axe::find_nothing(&browser, "the editor").await;
    browser.see("#frame iframe").await.enter_frame().await.unwrap();
    let paragraph = browser.see("[data-p]:last-of-type").await;
    paragraph.click().await.unwrap();
    paragraph.send_keys(" More.").await.unwrap();
    browser.leave_editor().await;
    patiently("it says that this is not in the vault", async || {
        let state = browser.see("#status").await.attr("data-state").await.unwrap().unwrap();
        state == "unsaved" || state == "held"
    })
    .await;
    browser.see("#frame iframe").await.enter_frame().await.unwrap();
    browser.click("#us-save").await;
    browser.leave_editor().await;
    browser.read("#status[data-state=saved]", "version 1.1").await;
    browser.picture("console-editor").await;
    browser.client.goto(&format!("{}/", stage.base)).await.unwrap();
    stage.wait_for_head("12345", "2").await;
    browser.stop().await;
    stage.editor.quiet().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_document_server_the_page_says_so_and_offers_what_there_is() {
    // Nobody listens there: it is the port of discarded things.
    let away = [("DOCUMENT_SERVER_PUBLIC_URL", "http://127.0.0.1:9")];
    let stage = Stage::start_with(&away, Settings::default().with_time_scale(20.0)).await;
    stage.docx("12345").await;
    let browser = Browser::start().await;

    enter(&stage, &browser, "/view/12345").await;
    browser.read(".away h2", "cannot be opened right now").await;
    browser.read("#status", "The editor is not there").await;
    browser.see(".away a[href='/api/v1/documents/12345/content']").await;
    axe::find_nothing(&browser, "the editor without its server").await;
    browser.picture("console-away").await;
    browser.click(".away button").await;
    browser.read(".away h2", "cannot be opened right now").await;
    browser.stop().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_many_documents_comes_in_pages() {
    let stage = Stage::start().await;
    stage.post("/api/v1/companies/acme/projects", &json!({ "id": "other", "name": "Other" })).await;
    let bytes = sample_docx("Report", &["It begins."]);
    for number in 0..60 {
        let response =
            stage.upload(&format!("d{number:03}"), &format!("Report {number:03}.docx"), &bytes).await;
        assert!(response.status().is_success());
    }
    let browser = Browser::start().await;

    enter(&stage, &browser, "/?sort=name").await;
    browser.read(".pages", "1–50 / 60").await;
    browser.read("tbody tr:first-child", "Report 000").await;
    browser.click(".pages a[rel=next]").await;
    browser.read(".pages", "51–60 / 60").await;
    browser.read("tbody tr:first-child", "Report 050").await;
    browser.click("th[aria-sort=ascending] a").await;
    browser.read("th[aria-sort=descending]", "Name").await;
    browser.read("tbody tr:first-child", "Report 059").await;
    browser.click("select[name=project] option[value=other]").await;
    browser.read("main", "Nothing was found").await;
    browser.stop().await;
    stage.stop().await;
}
