//! A real Chromium, driven through its own chromedriver, and the demo as a person starts it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::{Value, json};

/// Longer than anything on a page takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Chromium and its driver; both end with the test.
pub(crate) struct Browser {
    pub(crate) client: Client,
    driver: Driver,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// A browser that does not come up on a busy machine says nothing about us: it is started again.
    pub(crate) async fn start() -> Self {
        let mut refusal = String::new();
        for _ in 0..3 {
            match Self::try_start().await {
                Ok(browser) => return browser,
                Err(cause) => refusal = cause.to_string(),
            }
        }
        panic!("no Chromium: {refusal}");
    }

    async fn try_start() -> Result<Self, fantoccini::error::NewSessionError> {
        let profile = tempfile::tempdir().unwrap();
        let (driver, port) = start_driver();
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            // A tab nobody looks at keeps its pace.
            "--disable-background-timer-throttling",
            "--disable-backgrounding-occluded-windows",
            "--disable-renderer-backgrounding",
            "--window-size=1280,900",
            &format!("--user-data-dir={}", profile.path().display()),
        ];
        let capabilities =
            json!({ "goog:chromeOptions": { "args": arguments, "binary": "/usr/bin/chromium" } });
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(capabilities.as_object().unwrap().clone())
            .connect(&format!("http://127.0.0.1:{port}"))
            .await?;
        Ok(Self { client, driver, _profile: profile })
    }

    /// Light or dark, on a desk or on a phone, from now on.
    pub(crate) async fn look_like(&self, theme: &str, (width, height): (u32, u32)) {
        let scheme = json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        for command in [
            DevTools("Emulation.setEmulatedMedia", scheme),
            DevTools("Emulation.setDeviceMetricsOverride", metrics),
        ] {
            self.client.issue_cmd(command).await.unwrap();
        }
    }

    /// Waits for an element.
    pub(crate) async fn see(&self, selector: &str) -> Element {
        let found = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(selector)).await;
        found.unwrap_or_else(|_| panic!("waited in vain to see {selector}"))
    }

    /// Waits until an element says something.
    pub(crate) async fn read(&self, selector: &str, words: &str) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let text = match self.client.find(Locator::Css(selector)).await {
                Ok(element) => element.text().await.unwrap_or_default(),
                Err(_) => String::new(),
            };
            if text.contains(words) {
                return;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "waited in vain to read `{words}` in {selector}, which says `{text}`"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Follows a link that opens a tab, into that tab; returns the tab it came from.
    pub(crate) async fn open_tab(&self, selector: &str) -> fantoccini::wd::WindowHandle {
        let here = self.client.window().await.unwrap();
        let before = self.client.windows().await.unwrap();
        self.see(selector).await.click().await.unwrap();
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let new =
                self.client.windows().await.unwrap().into_iter().find(|window| !before.contains(window));
            if let Some(new) = new {
                self.client.switch_to_window(new).await.unwrap();
                return here;
            }
            assert!(tokio::time::Instant::now() < deadline, "no tab opened");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Steps into the editor's frame and waits until it is ready.
    pub(crate) async fn enter_editor(&self) {
        self.enter_editor_in("#frame").await;
    }

    /// The same for an editor that stands somewhere else in its page.
    pub(crate) async fn enter_editor_in(&self, place: &str) {
        self.see(&format!("{place} iframe")).await.enter_frame().await.unwrap();
        self.see("body[data-state=ready]").await;
    }

    /// Writes into a field, in the place of what is there.
    pub(crate) async fn fill(&self, selector: &str, words: &str) {
        let field = self.see(selector).await;
        field.clear().await.unwrap();
        field.send_keys(words).await.unwrap();
    }

    /// Presses something that stands in a menu, by script: menus close when the mouse is elsewhere.
    pub(crate) async fn press(&self, selector: &str) {
        self.see(selector).await;
        let press = "document.querySelector(arguments[0]).click()";
        self.client.execute(press, vec![json!(selector)]).await.unwrap();
    }

    /// Waits until there is no such element.
    pub(crate) async fn miss(&self, selector: &str) {
        patiently(&format!("no {selector}"), async || {
            self.client.find_all(Locator::Css(selector)).await.unwrap().is_empty()
        })
        .await;
    }

    /// Clicks something.
    pub(crate) async fn click(&self, selector: &str) {
        self.see(selector).await.click().await.unwrap();
    }

    /// Writes at the end of the document in the editor, and presses Save.
    pub(crate) async fn write_and_save(&self, words: &str) {
        let paragraph = self.see("[data-p]:last-of-type").await;
        paragraph.click().await.unwrap();
        paragraph.send_keys(words).await.unwrap();
        self.click("#us-save").await;
    }

    /// Steps out of the editor's frame.
    pub(crate) async fn leave_editor(&self) {
        self.client.enter_parent_frame().await.unwrap();
    }

    /// Keeps a picture as a build result.
    pub(crate) async fn picture(&self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screens");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), self.client.screenshot().await.unwrap()).unwrap();
    }

    pub(crate) async fn stop(self) {
        let _ = self.client.close().await;
        drop(self.driver);
    }
}

/// A command of Chromium's own protocol.
#[derive(Debug)]
struct DevTools(&'static str, Value);

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(json!({ "cmd": self.0, "params": self.1 }).to_string()))
    }
}

/// Looks until something is so.
pub(crate) async fn patiently(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Ends with whoever holds it.
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a driver on a port of its own choice and reads which.
fn start_driver() -> (Driver, u16) {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map(Driver)
        .expect("chromedriver is installed by `cargo xtask test`");
    let lines = BufReader::new(driver.0.stdout.as_mut().unwrap()).lines();
    for line in lines {
        let line = line.unwrap();
        if let Some(port) = line.strip_prefix("ChromeDriver was started successfully on port ") {
            let port = port.trim_end_matches('.').parse().unwrap();
            return (driver, port);
        }
    }
    panic!("chromedriver did not say where it listens");
}

/// `saveguard demo`, as a person starts it.
pub(crate) struct Demo {
    process: Child,
    pub(crate) link: String,
    folder: PathBuf,
}

impl Demo {
    pub(crate) fn start(folder: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_saveguard"))
            .args(["demo", "--port", "0", "--folder"])
            .arg(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut link = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut link).unwrap();
        if link.is_empty() {
            let mut words = String::new();
            process.stderr.take().unwrap().read_to_string(&mut words).unwrap();
            panic!("the demo printed no link: {words}");
        }
        Self { process, link: link.trim().to_owned(), folder: folder.to_owned() }
    }

    /// Ctrl-C, then proof that what is left is consistent.
    pub(crate) fn end(mut self) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert!(self.process.wait().unwrap().success(), "Ctrl-C ends it in order");
        let verified = Command::new(env!("CARGO_BIN_EXE_saveguard"))
            .args(["verify", "--read-data"])
            .env("SAVEGUARD_SERVER_DATA", self.folder.join("data"))
            .env("SAVEGUARD_SERVER_ENVIRONMENT", "demo")
            .output()
            .unwrap();
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
