//! The three example applications, each walked through in a real browser as its users would.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use understudy::Settings;

use crate::support::browser::Browser;
use crate::support::{Stage, free_port};

/// An example that runs; it ends with the test.
struct Example(Child);

impl Example {
    fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node and python3 are installed by `cargo xtask test`");
        let mut ready = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        assert!(!ready.is_empty(), "the example says where it listens");
        Self(process)
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn folder(example: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example)
}

/// A service that lets pages of this port in, and a document.
async fn stage_for(port: u16) -> Stage {
    let origin = format!("http://localhost:{port}");
    let changes = [("SERVER_ALLOWED_ORIGINS", origin.as_str())];
    let stage = Stage::start_with(&changes, Settings::default().with_time_scale(20.0)).await;
    stage.docx("12345").await;
    stage
}

fn secret_file(stage: &Stage) -> PathBuf {
    let file = stage.folder().join("api-secret");
    std::fs::write(&file, stage.app().config.api.secrets.current.as_bytes()).unwrap();
    file
}

/// Ann edits, force-saves and leaves; Vera only views, and sees what Ben saves meanwhile.
async fn walk_through(stage: Stage, port: u16, name: &str) {
    let browser = Browser::start().await;
    let home = format!("http://localhost:{port}/");

    browser.client.goto(&home).await.unwrap();
    browser.click("button[value=ann]").await;
    browser.read("tr[data-document='12345']", "version 1").await;
    browser.click("tr[data-document='12345'] a[href$='/edit']").await;
    browser.enter_editor_in("#editor").await;
    browser.write_and_save(" Written in an example.").await;
    browser.leave_editor().await;
    browser.read("#status", "Version 1.1 by Ann Author").await;
    browser.picture(&format!("example-{name}")).await;
    browser.click("header a").await;
    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Written in an example."));

    browser.client.goto(&format!("{home}sign-out")).await.unwrap();
    browser.click("button[value=vera]").await;
    browser.read("tr[data-document='12345']", "version 2").await;
    assert!(
        browser.client.find(fantoccini::Locator::Css("a[href$='/edit']")).await.is_err(),
        "she may only view"
    );
    browser.click("tr[data-document='12345'] a[href$='/view']").await;
    browser.enter_editor_in("#editor").await;
    browser.read("#us-main", "Written in an example.").await;
    let ben = stage.edit("12345", "ben").await;
    ben.write("Ben was quick.").await.unwrap();
    ben.press_save().await.unwrap();
    browser.read("#us-main", "Ben was quick.").await;
    ben.close().await.unwrap();
    stage.wait_for_head("12345", "3").await;

    browser.stop().await;
    stage.editor.quiet().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_application_opens_saves_and_follows() {
    let port = free_port();
    let stage = stage_for(port).await;
    let _app = Example::start(
        Command::new("python3")
            .arg(folder("python-app").join("app.py"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PORT", port.to_string())
            .env("SAVEGUARD_URL", &stage.base)
            .env("SAVEGUARD_API_SECRET_FILE", secret_file(&stage)),
    );

    walk_through(stage, port, "python").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_application_opens_saves_and_follows() {
    let port = free_port();
    let stage = stage_for(port).await;
    let _app = Example::start(
        Command::new("node")
            .arg(folder("node-app").join("app.mjs"))
            .env("PORT", port.to_string())
            .env("SAVEGUARD_URL", &stage.base)
            .env("SAVEGUARD_API_SECRET_FILE", secret_file(&stage)),
    );

    walk_through(stage, port, "node").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plain_page_signs_lists_opens_and_saves() {
    let port = free_port();
    let stage = stage_for(port).await;
    let mut server = Command::new("python3");
    server.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]);
    let _files = Example::start(server.current_dir(folder("plain-html")));
    let secret = std::fs::read_to_string(secret_file(&stage)).unwrap();
    let browser = Browser::start().await;

    browser.client.goto(&format!("http://localhost:{port}/")).await.unwrap();
    let server = browser.see("input[name=server]").await;
    server.clear().await.unwrap();
    server.send_keys(&stage.base).await.unwrap();
    browser.see("input[name=secret]").await.send_keys(secret.trim()).await.unwrap();
    browser.click("form button").await;
    browser.read("tr[data-document='12345']", "version 1").await;
    browser.click("tr[data-document='12345'] button.edit").await;
    browser.enter_editor_in("#editor").await;
    browser.write_and_save(" Written in a plain page.").await;
    browser.leave_editor().await;
    browser.read("#status", "Version 1.1 by Ann Author").await;
    browser.picture("example-plain").await;
    browser.stop().await;

    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Written in a plain page."));
    stage.editor.quiet().await;
    stage.stop().await;
}
