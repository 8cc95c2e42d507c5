//! A submitter's day in a real browser: a workbook breaks, is corrected, previewed, submitted, corrected again and taken back.

use std::path::Path;

use understudy::office::sample_xlsx;

use crate::support::axe;
use crate::support::browser::{Browser, Demo};

const HOME: &str = "/submissions/demo-site/plastic";
const COLUMNS: [&str; 15] = [
    "__SG_TABLE_LOADS_IN",
    "LOAD_ID",
    "RECEIVED_ON",
    "MATERIAL",
    "WASTE_CODE",
    "EVIDENCE_ISSUED",
    "GROSS_T",
    "TARE_T",
    "PACKING_T",
    "NET_T",
    "USABLE_SHARE",
    "COUNTED_T",
    "VEHICLE",
    "SUPPLIER",
    "SUPPLIER_PHONE",
];

/// The demo with a browser in it.
struct Day {
    demo: Demo,
    browser: Browser,
    folder: tempfile::TempDir,
}

impl Day {
    async fn begin() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (demo, browser) = (Demo::start(folder.path()), Browser::start().await);
        browser.client.goto(&format!("{}&next={HOME}", demo.link)).await.unwrap();
        Self { demo, browser, folder }
    }

    async fn go(&self, path: &str) {
        let base = self.demo.link.split("/sign-in").next().unwrap();
        self.browser.client.goto(&format!("{base}{path}")).await.unwrap();
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Uploads a workbook on the page of the registration, which leads to the page of its log.
    async fn hand_in(&self, file: &Path, state: &str) {
        self.go(HOME).await;
        let input = self.browser.client.find(fantoccini::Locator::Css("#workbook")).await.unwrap();
        input.send_keys(file.to_str().unwrap()).await.unwrap();
        self.browser.see(&format!("#state[data-state={state}]")).await;
    }

    async fn confirm(&self, words: &str) {
        self.browser.click("#confirm").await;
        self.browser.see("#state[data-state=submitted]").await;
        self.browser.read("#outcome", words).await;
    }

    async fn end(self) {
        self.browser.stop().await;
        self.demo.end();
    }
}

/// A load whose day is no day, of a registration that is another one's.
fn broken() -> Vec<u8> {
    let load = [
        "",
        "1000",
        "yesterday",
        "Plastic",
        "15 01 02",
        "No",
        "26.5",
        "14.02",
        "0.08",
        "12.4",
        "0.875",
        "10.85",
        "AB12CDE",
        "Northern Bins",
        "",
    ];
    let rows: [&[&str]; 5] = [
        &["__SG_META_TEMPLATE", "waste-records"],
        &["__SG_META_VERSION", "2.1"],
        &["__SG_META_REGISTRATION", "R-9999"],
        &COLUMNS,
        &load,
    ];
    sample_xlsx(&rows).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_workbook_is_explained_and_a_corrected_one_is_submitted_and_taken_back() {
    let day = Day::begin().await;
    let browser = &day.browser;
    std::fs::write(day.file("broken.xlsx"), broken()).unwrap();

    browser.read("main h1", "Plastic").await;
    axe::find_nothing(browser, "a registration").await;
    day.hand_in(&day.file("broken.xlsx"), "invalid").await;
    browser.read("#state", "cannot be submitted").await;
    browser.see("#problems .problem .cell").await;
    browser.see("#state a[href$='/marked']").await;
    browser.picture("console-problems").await;
    axe::find_nothing(browser, "a broken workbook").await;

    day.hand_in(&day.file("loads-january.xlsx"), "validated").await;
    browser.read("[data-count=created]", "2").await;
    day.confirm("Submitted as no. 1 by Ann Author").await;
    day.hand_in(&day.file("loads-february.xlsx"), "validated").await;
    browser.read("#changes tr[data-change=updated] del", "3").await;
    browser.read("#changes tr[data-change=updated] ins", "2.5").await;
    browser.picture("console-preview").await;
    axe::find_nothing(browser, "a preview").await;
    browser.click("#changes select option[value=created]").await;
    browser.miss("#changes tr[data-change=updated]").await;
    browser.read("#changes tr[data-change=created]", "1002").await;
    day.confirm("Submitted as no. 2").await;
    browser.see("#receipt").await;

    day.go("/submissions/demo-site/plastic/records").await;
    browser.read("#records tbody tr:nth-child(3)", "1002").await;
    axe::find_nothing(browser, "records").await;
    browser.fill("#filters [name=as_of]", "1").await;
    browser.click("#filters button").await;
    browser.read("#as-of", "no. 1").await;
    browser.miss("#records tbody tr:nth-child(3)").await;
    day.go("/submissions/demo-site/plastic/records/load-in/1001").await;
    browser.read("#history tbody tr:first-child", "No. 2").await;
    axe::find_nothing(browser, "a record").await;

    day.go(HOME).await;
    browser.click("[data-undo='2']").await;
    browser.click("dialog form button.button:not(.plain)").await;
    browser.see("#state[data-state=validated]").await;
    browser.read("[data-count=removed]", "1").await;
    day.confirm("Submitted as no. 3").await;
    day.go("/submissions").await;
    browser.read("#registrations", "No. 3").await;
    axe::find_nothing(browser, "registrations").await;
    day.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workbook_that_a_newer_one_replaced_says_so_plainly() {
    let day = Day::begin().await;
    let browser = &day.browser;

    day.hand_in(&day.file("loads-january.xlsx"), "validated").await;
    let first = browser.client.current_url().await.unwrap();
    day.hand_in(&day.file("loads-february.xlsx"), "validated").await;
    let second = browser.client.current_url().await.unwrap();
    browser.client.goto(first.as_str()).await.unwrap();

    browser.read("#superseded", "Replaced by a newer upload").await;
    browser.miss("#confirm").await;
    axe::find_nothing(browser, "a superseded log").await;
    browser.click("#state .acts a").await;
    browser.see("#state[data-state=validated]").await;
    assert_eq!(browser.client.current_url().await.unwrap(), second);
    day.end().await;
}
