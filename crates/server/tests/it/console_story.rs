//! The whole story of a newcomer, from the link of the demo and without reading anything: bring in, edit together, share, see the version,
//! and find out as an operator what happened.

use understudy::office::sample_docx;

use crate::support::browser::{Browser, Demo};

async fn type_in_editor(browser: &Browser, words: &str) {
    browser.enter_editor().await;
    let paragraph = browser.see("[data-p]:last-of-type").await;
    paragraph.click().await.unwrap();
    // Behind all words, wherever the click went: Ctrl+End.
    paragraph.send_keys(&format!("\u{E009}\u{E010}\u{E000}{words}")).await.unwrap();
    browser.leave_editor().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_brings_in_edits_in_two_tabs_shares_with_a_guest_and_finds_out_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Our plan.docx");
    std::fs::write(&file, sample_docx("Our plan", &["First thought."])).unwrap();
    let demo = Demo::start(folder.path());
    let base = demo.link.split("/sign-in").next().unwrap().to_owned();
    let browser = Browser::start().await;

    browser.client.goto(&demo.link).await.unwrap();
    let input = browser.client.find(fantoccini::Locator::Css("#files")).await.unwrap();
    input.send_keys(file.to_str().unwrap()).await.unwrap();
    let row = "tr[data-name='Our plan.docx']";
    let home = browser.open_tab(&format!("{row} a[href^='/edit/']")).await;
    type_in_editor(&browser, " From the first tab.").await;
    let first = browser.client.window().await.unwrap();
    browser.client.switch_to_window(home.clone()).await.unwrap();
    browser.read(&format!("{row} [data-field=editors]"), "Ann Author").await;
    browser.open_tab(&format!("{row} a[href^='/edit/']")).await;
    type_in_editor(&browser, " From the second.").await;
    let second = browser.client.window().await.unwrap();

    browser.client.switch_to_window(home.clone()).await.unwrap();
    browser.press(&format!("{row} [data-act=share]")).await;
    browser.click("dialog select[name=allows] option[value=edit]").await;
    browser.click("dialog form button").await;
    let link = browser.see("#share-link").await.prop("value").await.unwrap().unwrap();
    let guest = browser.client.new_window(false).await.unwrap().handle;
    browser.client.switch_to_window(guest.clone()).await.unwrap();
    browser.client.goto(&link).await.unwrap();
    browser.fill("#guest-name", "Gus Guest").await;
    browser.click("#enter").await;
    type_in_editor(&browser, " And a guest.").await;
    browser.client.switch_to_window(first.clone()).await.unwrap();
    browser.see("#frame iframe").await.enter_frame().await.unwrap();
    browser.read("#us-main", "And a guest.").await;
    browser.leave_editor().await;
    for window in [guest, second, first] {
        browser.client.switch_to_window(window).await.unwrap();
        browser.client.close_window().await.unwrap();
    }
    browser.client.switch_to_window(home).await.unwrap();

    browser.client.goto(&format!("{base}/?words=plan")).await.unwrap();
    browser.read(&format!("{row} [data-field=head]"), "2").await;
    browser.click(&format!("{row} td.name a")).await;
    browser.read("#versions tbody tr:first-child .version", "2").await;
    browser.click("#versions input[value='1']").await;
    browser.click("#versions input[value='2']").await;
    browser.click("#compare").await;
    browser.read("#comparison ins", "From the second.").await;
    browser.client.goto(&format!("{base}/audit")).await.unwrap();
    browser.fill("#filters [name=action]", "save-committed").await;
    browser.click("#filters button").await;
    browser.see("#entries tbody tr:first-child a[href^='/document/']").await;
    browser.client.goto(&format!("{base}/operations")).await.unwrap();
    browser.read("#verdict[data-state=yes]", "Nothing is on its way").await;
    browser.stop().await;
    demo.end();
}
