//! Operations in a real browser: what is on its way, who types, whether a restart is safe, and who did what.

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
