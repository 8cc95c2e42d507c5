//! The demo's story in a real browser, with real clicks.

use crate::support::browser::{Browser, Demo, patiently};

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_opens_types_saves_closes_and_sees_version_two() {
    let folder = tempfile::tempdir().unwrap();
    let demo = Demo::start(folder.path());
    let browser = Browser::start().await;

    browser.client.goto(&demo.link).await.unwrap();
    browser.read("main h1", "Documents").await;
    browser.picture("documents").await;
    let home = browser.open_tab("tr[data-document=welcome] a[href='/edit/welcome']").await;
    browser.enter_editor().await;
    let paragraph = browser.see("[data-p]:last-of-type").await;
    paragraph.click().await.unwrap();
    paragraph.send_keys(" Typed by a newcomer.").await.unwrap();
    browser.see("#us-save").await.click().await.unwrap();
    browser.picture("editor").await;
    browser.client.enter_parent_frame().await.unwrap();
    browser.read("#status", "In the vault: version 1.1").await;
    let editor = browser.client.window().await.unwrap();
    browser.client.switch_to_window(home.clone()).await.unwrap();
    browser.read("tr[data-document=welcome] [data-field=head]", "1.1").await;
    browser.read("tr[data-document=welcome] [data-field=editors]", "ann").await;
    browser.client.switch_to_window(editor).await.unwrap();
    browser.client.close_window().await.unwrap();
    browser.client.switch_to_window(home).await.unwrap();

    browser.read("tr[data-document=welcome] [data-field=head]", "2").await;
    browser.see("tr[data-document=welcome] a[href='/document/welcome']").await.click().await.unwrap();
    browser.read("#versions tbody tr:first-child", "Ann Author").await;
    browser.read("#versions tbody tr:first-child .version", "2").await;
    browser.read("#versions tbody tr:first-child time", "").await;
    browser.picture("history").await;
    browser.stop().await;
    demo.end();

    let again = Demo::start(folder.path());
    let browser = Browser::start().await;
    browser.client.goto(&again.link).await.unwrap();
    browser.read("tr[data-document=welcome] [data-field=head]", "2").await;
    browser.stop().await;
    again.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_see_each_others_words_and_ctrl_c_saves_what_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let demo = Demo::start(folder.path());
    let browser = Browser::start().await;

    browser.client.goto(&demo.link).await.unwrap();
    let home = browser.open_tab("a[href='/edit/blank']").await;
    browser.enter_editor().await;
    let first = browser.client.window().await.unwrap();
    browser.client.switch_to_window(home).await.unwrap();
    browser.open_tab("a[href='/edit/blank']").await;
    browser.enter_editor().await;
    let paragraph = browser.see("[data-p]").await;
    paragraph.click().await.unwrap();
    paragraph.send_keys("Words from the second tab.").await.unwrap();
    browser.client.switch_to_window(first).await.unwrap();
    browser.client.enter_frame(0).await.unwrap();
    browser.read("#us-main", "Words from the second tab.").await;
    browser.picture("two-tabs").await;
    // Nobody closes a tab: the demo itself lets them save.
    demo.end();
    browser.stop().await;

    let again = Demo::start(folder.path());
    let token = again.link.split("token=").nth(1).unwrap().to_owned();
    let base = again.link.split("sign-in").next().unwrap().to_owned();
    // Unless its last callback came to nothing (a disk too slow to answer, say): then the start collects it.
    let content = content_of_version(&format!("{base}api/v1/documents/blank/content"), &token, "2").await;
    assert!(understudy::office::text_of(&content).contains("Words from the second tab."));
    again.end();
}

async fn content_of_version(link: &str, token: &str, version: &str) -> bytes::Bytes {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut found = None;
    patiently(&format!("version {version}"), async || {
        let content = client.get(link).bearer_auth(token).send().await.unwrap();
        let is_it = content.headers()["saveguard-version"] == version;
        if is_it {
            found = Some(content.bytes().await.unwrap());
        }
        is_it
    })
    .await;
    found.unwrap()
}
