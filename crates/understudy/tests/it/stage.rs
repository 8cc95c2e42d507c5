//! A server with a hand-moved clock, a recording host, and short words for what people do.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use understudy::clock::Clock;
use understudy::server::{Crashed, OpenError, Running, Session};
use understudy::settings::Settings;
use understudy::tokens::{Secret, sign};
use understudy::{EditorConfig, Timings};

use crate::host::{Callback, Host, Reply};

pub(crate) const SECRET: &str = "oo-test-secret";

/// Long enough for everything that can still come by itself.
pub(crate) const LONG_MS: u64 = 120_000;

/// One server, one host, one key as a rule.
pub(crate) struct Stage {
    pub(crate) server: Option<Running>,
    pub(crate) host: Arc<Host>,
    pub(crate) name: String,
    pub(crate) key: String,
    crashed: Option<Crashed>,
    client: reqwest::Client,
}

impl Stage {
    pub(crate) async fn set(name: &str) -> Stage {
        Stage::set_with(name, |_| {}).await
    }

    pub(crate) async fn set_with(name: &str, adjust: impl FnOnce(&mut Settings)) -> Stage {
        let source = understudy::office::sample_docx("Title", &["First paragraph."]);
        let host = Host::start(source).await;
        let mut settings = Settings {
            clock: Clock::manual_at(1_794_770_435_250),
            timings: Timings::default(),
            ..Settings::default().with_secret(SECRET)
        };
        adjust(&mut settings);
        let server = understudy::start(settings).await.unwrap();
        Stage {
            server: Some(server),
            host,
            name: name.to_owned(),
            key: format!("{name}-k1"),
            crashed: None,
            client: reqwest::Client::new(),
        }
    }

    pub(crate) fn server(&self) -> &Running {
        self.server.as_ref().unwrap()
    }

    pub(crate) fn config(&self, user: &str) -> EditorConfig {
        self.config_for(&self.key, user)
    }

    pub(crate) fn config_for(&self, key: &str, user: &str) -> EditorConfig {
        let document_url = self.host.url(&format!("/doc/t.docx?sc={}", self.name));
        let callback_url = self.host.url(&format!("/cb/{}?u={user}", self.name));
        EditorConfig::new(key, &document_url, &callback_url, user)
    }

    /// Opens and waits until the document is there or cannot be.
    pub(crate) async fn opens(&self, user: &str) -> Session {
        let session = self.opens_with(&self.config(user)).await.unwrap();
        self.pass(5_000).await;
        session
    }

    pub(crate) async fn opens_with(&self, config: &EditorConfig) -> Result<Session, OpenError> {
        self.server().open(&config.signed(&Secret::new(SECRET))).await
    }

    /// Opens, edits, and closes the tab; the final save is still to come.
    pub(crate) async fn edits_and_closes(&self, user: &str) -> String {
        let session = self.opens(user).await;
        let id = session.write("some words").await.unwrap();
        self.pass(1_000).await;
        session.hang_up().await.unwrap();
        id
    }

    /// Lets time pass, except for answers the host holds back.
    pub(crate) async fn pass(&self, span_ms: u64) {
        let host = self.host.clone();
        self.server().pass_time_but(span_ms, &move || host.held()).await;
    }

    /// Lets everything happen that can still happen by itself.
    pub(crate) async fn pass_long(&self) {
        self.pass(LONG_MS).await;
    }

    /// A command over HTTP, signed in the body.
    pub(crate) async fn command(&self, command: &Value) -> Value {
        let token = sign(command, &Secret::new(SECRET));
        self.raw_command(&json!({"token": token}), &BTreeMap::new()).await
    }

    pub(crate) async fn raw_command(&self, body: &Value, headers: &BTreeMap<String, String>) -> Value {
        let mut request = self.client.post(format!("{}/command?shardkey={}", self.server().url(), self.key));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let response = request.json(body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    }

    pub(crate) async fn ask(&self, command: &str) -> Value {
        self.command(&json!({"c": command, "key": self.key})).await
    }

    pub(crate) async fn get(&self, url: &str) -> (u16, Bytes) {
        let response = self.client.get(url).send().await.unwrap();
        (response.status().as_u16(), response.bytes().await.unwrap())
    }

    /// The bytes of a save.
    pub(crate) async fn file_of(&self, callback: &Callback) -> Bytes {
        let (status, bytes) = self.get(callback.body["url"].as_str().unwrap()).await;
        assert_eq!(status, 200);
        bytes
    }

    pub(crate) async fn crash(&mut self) {
        self.crashed = Some(self.server.take().unwrap().crash().await);
    }

    pub(crate) async fn restart(&mut self) {
        let crashed = self.crashed.take().unwrap();
        self.server = Some(crashed.restart().await.unwrap());
    }

    pub(crate) fn callbacks(&self) -> Vec<Callback> {
        self.host.callbacks()
    }

    /// Statuses of the callbacks so far, in order.
    pub(crate) fn statuses(&self) -> Vec<u64> {
        self.callbacks().iter().map(Callback::status).collect()
    }

    pub(crate) fn last(&self) -> Callback {
        self.callbacks().last().unwrap().clone()
    }

    pub(crate) async fn changes_left(&self) -> usize {
        self.server().key(&self.key).await.unwrap().changes.len()
    }

    pub(crate) async fn has_forgotten(&self) -> bool {
        self.server().key(&self.key).await.unwrap().forgotten_sha256.is_some()
    }

    pub(crate) fn answers(&self, status: u64, replies: impl IntoIterator<Item = Reply>) {
        self.host.answers(status, replies);
    }
}
