//! Operations in a real browser: what is on its way, who types, whether a restart is safe, and who did what.

use ledger::documents::{Author, BlobFacts, UnnamedBlob};
use serde_json::json;

use crate::support::axe;
use crate::support::browser::Browser;
use crate::support::{Stage, admin};

async fn enter(stage: &Stage, browser: &Browser, page: &str) {
    let token = stage.token(&admin());
    browser.client.goto(&format!("{}/sign-in?token={token}&next={page}", stage.base)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_unsaved_work_has_it_saved_and_may_restart() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let ann = stage.edit("12345", "ann").await;
    ann.write("Not saved by anybody yet.").await.unwrap();
    let browser = Browser::start().await;

    enter(&stage, &browser, "/operations").await;
    browser.read("#sessions", "User ann").await;
    browser.read("#verdict[data-state=no]", "may have unsaved work").await;
    browser.read("[data-tile=documents]", "1").await;
    browser.see("#saves-chart svg").await;
    browser.picture("console-operations").await;
    axe::find_nothing(&browser, "operations").await;
    browser.click("#drain").await;
    browser.click("dialog form button.button:not(.plain)").await;
    browser.read("#drained", "Everything was saved").await;
    assert!(stage.text("12345").await.contains("Not saved by anybody yet."));
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    browser.read("#verdict[data-state=yes]", "Nothing is on its way").await;

    browser.client.goto(&format!("{}/audit", stage.base)).await.unwrap();
    browser.read("#entries tbody", "document-uploaded").await;
    axe::find_nothing(&browser, "the audit trail").await;
    browser.fill("#filters [name=action]", "save-committed").await;
    browser.click("#filters button").await;
    browser.read("#entries tbody tr:first-child", "save-committed").await;
    browser.read("#entries tbody tr:first-child a", "12345").await;
    browser.stop().await;
    stage.editor.quiet().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_comes_later_sees_the_past_and_the_doctor_says_whether_saves_arrive() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let ann = stage.edit("12345", "ann").await;
    ann.write("Saved before anybody looked.").await.unwrap();
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    let browser = Browser::start().await;

    let pulse = stage.get("/api/v1/operations/pulse").await;
    let saves: u64 = pulse["saves"].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).sum();
    assert!(saves >= 1, "{pulse}");
    enter(&stage, &browser, "/operations").await;
    browser.see("#saves-chart svg path.line").await;
    browser.see("#latency-chart svg path.line").await;
    browser.read("#engines tbody tr:first-child", "answers").await;
    browser.read("#engines tbody tr:nth-child(3)", "Document Server").await;
    browser.click("#examine").await;
    browser.read("#examination[data-state=yes]", "Nothing is broken").await;
    browser.read("#hops", "Session: the final save is stored").await;
    browser.picture("console-examination").await;
    axe::find_nothing(&browser, "an examination").await;
    let told = stage.get("/api/v1/operations/examination").await;
    assert!(told["is_healthy"] == true && told["hops"].as_array().unwrap().len() > 8, "{told}");
    browser.stop().await;
    stage.editor.quiet().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_somebody_is_not_hidden_by_what_is_settled() {
    let stage = Stage::start().await;
    let app = stage.app();
    let keep = async |number: u32| {
        let found = UnnamedBlob {
            blob: BlobFacts::plain(model::Digest::of(&number.to_be_bytes()), 7, "docx"),
            document: None,
            key: None,
            is_record_of_changes: false,
            at: app.now(),
        };
        app.ledger.keep_unnamed(&found).await.unwrap().unwrap()
    };
    let oldest = keep(0).await;
    for number in 1..=120 {
        let kept = keep(number).await;
        app.ledger.dismiss_kept(kept, &Author::new("ops", "Ops"), app.now()).await.unwrap();
    }

    let page = stage.request(reqwest::Method::GET, "/operations").send().await.unwrap().text().await.unwrap();

    assert!(page.contains(&format!("data-dismiss-orphan=\"{oldest}\"")), "the one that waits is shown");
    let status = stage.get("/api/v1/operations/status").await;
    assert_eq!((&status["waiting_orphans"], &status["orphans"]), (&json!(1), &json!(121)));
    stage.stop().await;
}
