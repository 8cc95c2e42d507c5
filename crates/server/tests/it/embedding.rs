//! The client module in a real browser: history, restoring, refreshing, trouble; and which origins may use it.

use reqwest::Method;
use reqwest::header::{ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ORIGIN};
use serde_json::json;
use understudy::Settings;

use crate::support::browser::Browser;
use crate::support::{Stage, admin};

/// Opens a page of Saveguard as somebody who is signed in.
async fn enter(stage: &Stage, browser: &Browser, page: &str) {
    let token = stage.token(&admin());
    browser.client.goto(&format!("{}/sign-in?token={token}&next={page}", stage.base)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_is_shown_in_the_editor_and_a_version_is_restored_from_it() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let ann = stage.edit("12345", "ann").await;
    ann.write("Regretted later.").await.unwrap();
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    let browser = Browser::start().await;

    enter(&stage, &browser, "/edit/12345").await;
    browser.enter_editor().await;
    browser.read("#us-main", "Regretted later.").await;
    browser.leave_editor().await;
    let frame = browser.see("#frame iframe").await;
    let first = frame.attr("id").await.unwrap().unwrap();
    frame.enter_frame().await.unwrap();
    browser.click("#us-history").await;
    browser.read("#us-versions", "User ann").await;
    browser.picture("history-in-the-editor").await;
    browser.click("[data-restore='1']").await;
    browser.read("#us-versions", "Version 3").await;
    browser.click("#us-side-close").await;
    browser.leave_editor().await;
    browser.see(&format!("#frame iframe:not([id='{first}'])")).await;
    browser.enter_editor().await;
    browser.read("#us-main", "It begins.").await;

    assert_eq!(stage.versions("12345").await, ["3", "2", "1"]);
    assert!(!stage.text("12345").await.contains("Regretted later."));
    browser.stop().await;
    stage.editor.quiet().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_with_unsaved_changes_is_never_reloaded_and_trouble_is_shown() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let browser = Browser::start().await;
    enter(&stage, &browser, "/document/12345").await;
    let module = r#"
        const [element, done] = [document.createElement("div"), arguments[0]];
        document.body.append(element);
        const made = [];
        let answers = 0;
        window.DocsAPI = { DocEditor: function (place, config) {
            made.push(this);
            this.events = config.events;
            this.destroyEditor = () => {};
            this.refreshFile = () => { this.refreshed = true; };
            this.showMessage = (text) => { this.said = text; };
        } };
        const refuse = () => Promise.reject(Object.assign(new Error("Gone."), { next: "Ask somebody." }));
        const client = {
            configuration: () => (answers++ < 3 ? Promise.resolve({ api_url: "/assets/live.js", base: "1", config: {} }) : refuse()),
            events: (document, heard) => { window.heard = heard; return { close() {} }; },
        };
        (async () => {
            const { mount } = await import("/client/saveguard.js");
            const mounted = await mount({ element, client, document: "12345", operation: "edit" });
            mounted.editor.events.onDocumentStateChange({ data: true });
            window.heard("version", { version: "2" });
            const reopened = mounted.reopen();
            await new Promise((then) => setTimeout(then));
            const whileDirty = made.length;
            mounted.editor.events.onDocumentStateChange({ data: false });
            await reopened;
            const whenClean = made.length;
            mounted.editor.events.onRequestRefreshFile();
            await new Promise((then) => setTimeout(then));
            const refreshed = Boolean(mounted.editor.refreshed);
            mounted.editor.events.onError({ data: { errorCode: -4 } });
            while (!element.querySelector(".saveguard-trouble")) await new Promise((then) => setTimeout(then));
            done({ whileDirty, whenClean, refreshed, trouble: element.textContent });
        })().catch((error) => done(String(error)));
    "#;

    let told = browser.client.execute_async(module, Vec::new()).await.unwrap();

    assert_eq!((told["whileDirty"].as_u64(), told["whenClean"].as_u64()), (Some(1), Some(2)), "{told}");
    assert_eq!(told["refreshed"], true, "a spent key gets a fresh configuration without a new frame");
    assert!(told["trouble"].as_str().unwrap().contains("Gone. Ask somebody."), "{told}");
    browser.stop().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_opens_from_a_ready_configuration() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let ready = stage.configure("12345", "guest", "edit").await;
    let browser = Browser::start().await;
    enter(&stage, &browser, "/edit/12345").await;
    browser.see("#frame iframe").await;

    let script = r#"
        const [configuration, done] = arguments;
        const element = Object.assign(document.createElement("div"), { id: "guest" });
        document.getElementById("frame").replaceWith(element);
        import("/client/saveguard.js").then(({ mountConfiguration }) =>
            mountConfiguration({ element, configuration })).then(() => done(null), (error) => done(String(error)));
    "#;
    let trouble = browser.client.execute_async(script, vec![ready]).await.unwrap();
    assert!(trouble.is_null(), "{trouble}");
    browser.enter_editor_in("#guest").await;
    browser.write_and_save(" Guests write too.").await;

    stage.wait_until("it is saved", async || stage.text("12345").await.contains("Guests write too.")).await;
    browser.stop().await;
    stage.editor.quiet().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_configured_origins_may_call_from_a_browser_and_only_the_interface() {
    let changes = [("SERVER_ALLOWED_ORIGINS", "https://app.example.org")];
    let stage = Stage::start_with(&changes, Settings::default().with_time_scale(20.0)).await;
    stage.docx("12345").await;
    let allowed = async |path: &str, origin: &str| {
        let response = stage.request(Method::GET, path).header(ORIGIN, origin).send().await.unwrap();
        assert!(response.headers().get(ACCESS_CONTROL_ALLOW_CREDENTIALS).is_none(), "never with cookies");
        response.headers().get(ACCESS_CONTROL_ALLOW_ORIGIN).map(|value| value.to_str().unwrap().to_owned())
    };
    let (ours, theirs) = ("https://app.example.org", "https://evil.example.org");

    for path in ["/api/v1/documents/12345", "/client/saveguard.js", "/client/saveguard.d.ts"] {
        assert_eq!(allowed(path, ours).await.as_deref(), Some(ours), "{path}");
        assert_eq!(allowed(path, theirs).await, None, "{path}");
    }
    for path in ["/", "/document/12345", "/stream/12345", "/healthz"] {
        assert_eq!(allowed(path, ours).await, None, "{path}");
    }
    let url = format!("{}/api/v1/documents/12345/editor-config", stage.base);
    let asked = stage.http.request(Method::OPTIONS, url).header(ORIGIN, ours);
    let asked = asked.header("access-control-request-method", "POST").send().await.unwrap();
    assert!(asked.status().is_success());
    assert_eq!(asked.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], ours);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_origin_is_allowed_by_default() {
    let stage = Stage::start().await;

    let response = stage.http.get(format!("{}/client/saveguard.js", stage.base));
    let response = response.header(ORIGIN, "https://app.example.org").send().await.unwrap();

    assert!(response.status().is_success() && response.headers().get(ACCESS_CONTROL_ALLOW_ORIGIN).is_none());
    let type_of = response.headers()["content-type"].to_str().unwrap().to_owned();
    assert_eq!(json!(type_of), "text/javascript; charset=utf-8", "a module must be one");
    stage.stop().await;
}
