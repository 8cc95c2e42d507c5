//! Speaks to the service over its real HTTP API, as the host application, its people and its operators do.
//!
//! Guarantees: a service that is down is told apart from one that refuses. Does not retry: whoever asks decides.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use understudy::tokens::{Secret, sign};

use super::{API_SECRET, COMPANY, PROJECT};

/// Longer than the service may take for anything the harness asks.
const PATIENCE: Duration = Duration::from_secs(15);
/// Far beyond a round.
const TOKEN_LIFE_SECONDS: u64 = 24 * 3600;

/// A client of the service.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    http: reqwest::Client,
    pub(crate) url: String,
    now_s: u64,
}

/// Why there is no answer to work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The service is down, or went down meanwhile.
    Down,
    /// It answered this instead.
    Refused(StatusCode, String),
}

/// A configuration for an editor, as the service handed it out.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub(crate) key: String,
    pub(crate) base: String,
    pub(crate) config: Value,
}

/// How an editor is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Edit,
    View,
}

type Answer<T> = std::result::Result<T, NoAnswer>;

impl Host {
    pub(crate) fn new(url: &str, now_ms: u64) -> Result<Self> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // A killed service leaves dead connections behind; a new one each time is the simple truth.
            .pool_max_idle_per_host(0)
            .timeout(PATIENCE)
            .build()?;
        Ok(Self { http, url: url.to_owned(), now_s: now_ms / 1000 })
    }

    fn request(&self, method: Method, path: &str, user: &str) -> RequestBuilder {
        let claims = json!({
            "sub": user, "name": format!("User {user}"), "companies": "*", "organisations": "*", "role": "admin",
            "exp": self.now_s + TOKEN_LIFE_SECONDS,
        });
        let token = sign(&claims, &Secret::new(API_SECRET));
        self.http.request(method, format!("{}{path}", self.url)).bearer_auth(token)
    }

    async fn send(request: RequestBuilder) -> Answer<(StatusCode, Bytes)> {
        let response = request.send().await.map_err(|_| NoAnswer::Down)?;
        let status = response.status();
        let body = response.bytes().await.map_err(|_| NoAnswer::Down)?;
        if status.is_success() {
            Ok((status, body))
        } else {
            Err(NoAnswer::Refused(status, String::from_utf8_lossy(&body).into_owned()))
        }
    }

    /// An answer in JSON.
    pub(crate) async fn get(&self, path: &str) -> Answer<Value> {
        let (_, body) = Self::send(self.request(Method::GET, path, "checker")).await?;
        serde_json::from_slice(&body).map_err(|_| NoAnswer::Down)
    }

    async fn post(&self, path: &str, user: &str, body: &Value) -> Answer<Value> {
        let (_, body) = Self::send(self.request(Method::POST, path, user).json(body)).await?;
        serde_json::from_slice(&body).map_err(|_| NoAnswer::Down)
    }

    /// Any call with bytes. What is no JSON is nothing.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        (user, body): (&str, Bytes),
    ) -> Answer<(StatusCode, Value)> {
        let (status, body) = Self::send(self.request(method, path, user).body(body)).await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer<()> {
        Self::send(self.request(Method::PUT, path, "root").json(body)).await.map(drop)
    }

    /// Adds the company and the project everything happens in.
    pub(crate) async fn set_up(&self) -> Answer<()> {
        self.post("/api/v1/companies", "root", &json!({ "id": COMPANY, "name": "Torture" })).await?;
        let path = format!("/api/v1/companies/{COMPANY}/projects");
        self.post(&path, "root", &json!({ "id": PROJECT, "name": "Torture" })).await.map(drop)
    }

    pub(crate) async fn upload(&self, id: &str, name: &str, bytes: Bytes) -> Answer<()> {
        let path = format!("/api/v1/companies/{COMPANY}/projects/{PROJECT}/documents");
        let request = self.request(Method::POST, &path, "uploader").query(&[("id", id), ("name", name)]);
        Self::send(request.body(bytes)).await.map(drop)
    }

    /// Asks for a configuration.
    pub(crate) async fn configure(&self, document: &str, user: &str, mode: Mode) -> Answer<Grant> {
        let mode = match mode {
            Mode::Edit => "edit",
            Mode::View => "view",
        };
        let path = format!("/api/v1/documents/{document}/editor-config");
        let answer = self.post(&path, user, &json!({ "mode": mode })).await?;
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        Ok(Grant { key: text("key"), base: text("base"), config: answer["config"].clone() })
    }

    /// The bytes under a path, and the label and hash they came with.
    pub(crate) async fn bytes(&self, path: &str) -> Answer<(Bytes, String, String)> {
        let request = self.request(Method::GET, path, "reader");
        let response = request.send().await.map_err(|_| NoAnswer::Down)?;
        let status = response.status();
        let header = |name: &str| {
            let value = response.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().trim_matches('"').to_owned()
        };
        let (label, hash) = (header("saveguard-version"), header("etag"));
        let body = response.bytes().await.map_err(|_| NoAnswer::Down)?;
        if status == StatusCode::OK {
            Ok((body, label, hash))
        } else {
            Err(NoAnswer::Refused(status, String::from_utf8_lossy(&body).into_owned()))
        }
    }

    /// A callback of a Document Server, signed by whoever has its secret: what it is answered.
    pub(crate) async fn callback(&self, document: &str, token: &str) -> Answer<Value> {
        let request = self.http.post(format!("{}/callback/{document}", self.url));
        let (_, body) = Self::send(request.json(&json!({ "token": token }))).await?;
        serde_json::from_slice(&body).map_err(|_| NoAnswer::Down)
    }

    /// A callback once more, as a proxy on the way would send it. The answer is nobody's.
    pub(crate) async fn repeat_callback(&self, url: &str, token: &str, body: &Value) {
        let _ = self.http.post(url).bearer_auth(token).json(body).send().await;
    }
}
