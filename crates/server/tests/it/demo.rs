//! The demo's story in a real browser, with real clicks; and its workbooks, handed in.

use serde_json::{Value, json};

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
    browser.read("#status", "Saved to the vault just now, version 1.1").await;
    let editor = browser.client.window().await.unwrap();
    browser.client.switch_to_window(home.clone()).await.unwrap();
    browser.read("tr[data-document=welcome] [data-field=head]", "1.1").await;
    browser.read("tr[data-document=welcome] [data-field=editors]", "Ann Author").await;
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
    browser.leave_editor().await;
    browser.read("#status", "not yet in the vault").await;
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

#[tokio::test(flavor = "multi_thread")]
async fn the_workbooks_of_the_demo_become_records() {
    let folder = tempfile::tempdir().unwrap();
    let demo = Demo::start(folder.path());
    let (base, token) = demo.link.split_once("sign-in?token=").unwrap();
    let here = format!("{base}api/v1/organisations/demo-site/registrations/plastic");
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = async |below: &str| -> Value {
        let link = format!("{here}{below}");
        client.get(link).bearer_auth(token).send().await.unwrap().json().await.unwrap()
    };
    let settled = async |log: &str| {
        let mut found = Value::Null;
        patiently("the log is settled", async || {
            found = get(&format!("/summary-logs/{log}")).await;
            !["preprocessing", "validating", "submitting"].contains(&found["state"].as_str().unwrap())
        })
        .await;
        found
    };

    for (month, expected) in [("january", [2, 0, 0]), ("february", [1, 1, 1])] {
        let workbook = std::fs::read(folder.path().join(format!("loads-{month}.xlsx"))).unwrap();
        let link = format!("{here}/summary-logs?id={month}");
        let sent = client.post(link).bearer_auth(token).body(workbook).send().await.unwrap();
        assert!(sent.status().is_success(), "{}", sent.text().await.unwrap());
        let preview = settled(month).await;
        let stats = ["created", "updated", "unchanged"].map(|name| &preview["previewStats"][name]);
        assert_eq!(stats, expected.each_ref().map(|count| json!(count)).each_ref(), "{preview}");
        let link = format!("{here}/summary-logs/{month}/submit");
        let confirmed = client.post(link).bearer_auth(token).send().await.unwrap();
        assert!(confirmed.status().is_success(), "{}", confirmed.text().await.unwrap());
        assert_eq!(settled(month).await["state"], "submitted");
    }

    assert_eq!(get("/records").await["records"].as_array().unwrap().len(), 3);
    assert!(folder.path().join("loads-to-fill-in.xlsx").is_file());
    demo.end();
}
