//! OpenID Connect against a real provider (npm `oidc-provider`), in a real browser; and what forged returns are worth.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use reqwest::StatusCode;
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use understudy::Settings;

use crate::support::browser::Browser;
use crate::support::npm::fetched;
use crate::support::{Stage, free_port};

/// Runs on the Node of Debian 12.
const PACKAGE: &str = "oidc-provider@8.8.1";
const SECRET: &str = "a secret of the client, long enough";

/// A provider that runs; it ends with the test.
struct Provider(Child);

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A provider, and a service that trusts it.
async fn stage_with_provider() -> (Stage, Provider) {
    let (port, ours) = (free_port(), free_port());
    let here = format!("http://127.0.0.1:{ours}");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/provider.mjs");
    let mut process = Command::new("node")
        .arg(script)
        .arg(fetched("oidc", PACKAGE))
        .args([&port.to_string(), &format!("{here}/sign-in/return"), SECRET])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("node is installed by `cargo xtask test`");
    let stdout = process.stdout.take().unwrap();
    let provider = Provider(process);
    assert!(
        BufReader::new(stdout).lines().any(|line| line.unwrap().contains("ready")),
        "the provider starts"
    );
    let issuer = format!("http://127.0.0.1:{port}");
    let jwks = format!("{issuer}/jwks");
    let listen = format!("127.0.0.1:{ours}");
    let changes = [
        ("SERVER_LISTEN", listen.as_str()),
        ("SERVER_PUBLIC_URL", &here),
        ("SERVER_INTERNAL_URL", &here),
        ("API_ISSUER", &issuer),
        ("API_JWKS", &jwks),
        ("API_AUDIENCE", "saveguard"),
        ("API_CLIENT_ID", "saveguard"),
        ("API_CLIENT_SECRET", SECRET),
    ];
    (Stage::start_with(&changes, Settings::default().with_time_scale(20.0)).await, provider)
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_signs_in_with_their_account() {
    let (stage, _provider) = stage_with_provider().await;
    stage.docx("12345").await;
    let browser = Browser::start().await;

    browser.client.goto(&format!("{}/document/12345", stage.base)).await.unwrap();
    browser.click("#provider").await;
    browser.fill("input[name=login]", "olga").await;
    browser.fill("input[name=password]", "any").await;
    browser.click("button[type=submit]").await;
    browser.see("input[name=prompt][value=consent]").await;
    browser.click("button[type=submit]").await;
    browser.read("main h1", "report.docx").await;
    browser.read(".person", "Olga Openid").await;
    browser.click("#sign-out").await;
    browser.see("#provider").await;
    browser.stop().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_that_this_browser_did_not_ask_for_opens_nothing() {
    let (stage, _provider) = stage_with_provider().await;
    let get = |path: &str| stage.http.get(format!("{}{path}", stage.base));
    let begun = get("/sign-in/begin?next=/").send().await.unwrap();
    assert_eq!(begun.status(), StatusCode::SEE_OTHER);
    let address = url::Url::parse(begun.headers()[LOCATION].to_str().unwrap()).unwrap();
    let asked = |name: &str| address.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    assert_eq!((asked("response_type").as_str(), asked("code_challenge_method").as_str()), ("code", "S256"));
    let cookie = begun.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    let state = asked("state");
    let mut forged = cookie.clone();
    forged.replace_range(forged.len() - 2.., "xx");

    let attempts = [
        (get(&format!("/sign-in/return?code=stolen&state={state}")), StatusCode::FORBIDDEN),
        (get("/sign-in/return?code=stolen&state=other").header(COOKIE, &cookie), StatusCode::FORBIDDEN),
        (
            get(&format!("/sign-in/return?code=stolen&state={state}")).header(COOKIE, &forged),
            StatusCode::FORBIDDEN,
        ),
        (
            get(&format!("/sign-in/return?code=stolen&state={state}")).header(COOKIE, &cookie),
            StatusCode::UNAUTHORIZED,
        ),
    ];
    for (attempt, expected) in attempts {
        let response = attempt.send().await.unwrap();
        assert_eq!(response.status(), expected);
        let cookies = response.headers().get_all(SET_COOKIE).iter();
        assert!(cookies.into_iter().all(|cookie| !cookie.to_str().unwrap().starts_with("saveguard_session")));
    }
    stage.stop().await;
}
