//! Speaks to a Document Server over HTTP: downloads and commands.
//!
//! Guarantees: connects only to configured origins, follows no redirect, uses no proxy from the environment; a
//! download is whole (its length was announced and arrived) or it is an error; memory and disk stay within the limit.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use model::EditorKey;
use model::opening::ServerKnowledge;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, TRANSFER_ENCODING};
use serde_json::{Value, json};
use signals::{Signal, Signals};
use url::Url;
use vault::{Spool, Spooled};

use super::link;
use super::tokens::Tokens;
use crate::clock::{Clock, Random};
use crate::config::{Config, DocumentServer as Settings};
use crate::editors::{CommandError, DocumentServer, FetchError, ForceSave, Wanted};
use crate::instances::Answers;
use crate::telemetry;

/// A transfer that stands still for this long is broken.
const STALL: Duration = Duration::from_secs(20);
const CONNECT: Duration = Duration::from_secs(5);
/// Answers of the command service are small.
const COMMAND_BYTES_MAX: usize = 4 * 1024 * 1024;
/// `info` answers after its extra callback was answered; the callback is thus here before the answer, or never.
const KNOWLEDGE_GRACE: Duration = Duration::from_millis(500);

/// A Document Server over HTTP.
pub struct OnlyOffice {
    http: reqwest::Client,
    settings: Settings,
    tokens: Arc<Tokens>,
    callback_base: Url,
    fetch_bytes_max: u64,
    signals: Arc<dyn Signals>,
    answers: Arc<Answers>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl OnlyOffice {
    /// Prepares a client.
    pub fn new(
        config: &Config,
        tokens: Arc<Tokens>,
        (signals, answers): (Arc<dyn Signals>, Arc<Answers>),
        (clock, random): (Arc<dyn Clock>, Arc<dyn Random>),
    ) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT)
            .read_timeout(STALL)
            .pool_max_idle_per_host(32)
            .build()?;
        Ok(Self {
            http,
            settings: config.document_server.clone(),
            tokens,
            callback_base: config.server.internal_url.clone(),
            fetch_bytes_max: config.saving.fetch_bytes_max,
            signals,
            answers,
            clock,
            random,
        })
    }

    /// What the callback that a question causes says, wherever it arrives.
    async fn status_of(&self, nonce: &str, listener: &mut dyn signals::Listener) -> ServerKnowledge {
        let answered = async {
            tokio::select! {
                status = heard_here(nonce, listener) => status,
                status = self.answers.heard_elsewhere(nonce) => status,
            }
        };
        match tokio::time::timeout(KNOWLEDGE_GRACE, answered).await {
            Ok(4) => ServerKnowledge::NothingHeld,
            Ok(1) => ServerKnowledge::ChangesHeld,
            // It knows the key but its callback did not come through: we cannot tell.
            _ => ServerKnowledge::Away,
        }
    }

    async fn command(&self, command: &'static str, claims: Value) -> Result<Value, CommandError> {
        let answer = self.ask(command, claims).await;
        match &answer {
            Err(CommandError::Away { .. }) => telemetry::document_server_failed(command, "away"),
            // 1: it does not know the key. 4: there is nothing new. Both are answers.
            Err(CommandError::Refused { code, .. }) if !matches!(code, 1 | 4) => {
                telemetry::document_server_failed(command, "refused");
            }
            _ => {}
        }
        answer
    }

    async fn ask(&self, command: &'static str, mut claims: Value) -> Result<Value, CommandError> {
        let away = |cause: Box<dyn std::error::Error + Send + Sync>| CommandError::Away { command, cause };
        claims["c"] = json!(command);
        let mut url = self.settings.internal_url.clone();
        url.set_path(&format!("{}/command", url.path().trim_end_matches('/')));
        if let Some(key) = claims["key"].as_str() {
            url.query_pairs_mut().append_pair("shardkey", key);
        }
        let token = self.tokens.sign_command(&claims, self.clock.now());
        let request =
            self.http.post(url).timeout(self.settings.command_timeout).json(&json!({ "token": token }));
        let again = request.try_clone().filter(|_| is_question(command));
        let mut sent = request.send().await;
        if let (Err(cause), Some(again)) = (&sent, again)
            && is_stale(cause)
        {
            sent = again.send().await;
        }
        let mut response = sent.map_err(|cause| away(cause.into()))?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|cause| away(cause.into()))? {
            body.extend_from_slice(&chunk);
            if body.len() > COMMAND_BYTES_MAX {
                return Err(away("the answer is too long".into()));
            }
        }
        let answer: Value = serde_json::from_slice(&body).map_err(|cause| away(cause.into()))?;
        match answer["error"].as_i64() {
            Some(0) => Ok(answer),
            Some(code) => Err(CommandError::Refused { command, code }),
            None => Err(away("the answer has no error code".into())),
        }
    }

    fn callback_for_info(&self, key: &EditorKey) -> String {
        let document = key.parts().map_or_else(|| "unknown".to_owned(), |parts| parts.document.to_string());
        format!("{}/callback/{document}", self.callback_base.as_str().trim_end_matches('/'))
    }
}

/// Whether a command changes nothing, so that it may be sent twice. `deleteForgotten` would delete the next file too.
fn is_question(command: &str) -> bool {
    matches!(command, "info" | "version" | "getForgotten" | "getForgottenList")
}

/// Whether a connection that was kept open turned out to be dead: a server that was started again does not know it.
fn is_stale(cause: &reqwest::Error) -> bool {
    cause.is_request() && !cause.is_connect() && !cause.is_timeout()
}

/// Links are signed: whoever reads a log must not be able to follow them.
fn broken(cause: reqwest::Error) -> FetchError {
    FetchError::Broken { cause: cause.without_url().into() }
}

#[async_trait]
impl DocumentServer for OnlyOffice {
    async fn fetch(&self, link: &str, spool: &Spool) -> Result<Spooled, FetchError> {
        self.fetch_at_most(&Wanted { link, bytes_max: self.fetch_bytes_max }, spool).await
    }

    async fn fetch_at_most(&self, wanted: &Wanted<'_>, spool: &Spool) -> Result<Spooled, FetchError> {
        let link = wanted.link;
        let target = link::resolve(&self.settings, link).map_err(|what| FetchError::BadLink { what })?;
        if link::is_foreign(&self.settings, link) {
            tracing::debug!("a link named another host and was fetched from the configured server");
            telemetry::foreign_link();
        }
        let sent = self.http.get(target).header(ACCEPT_ENCODING, "identity").send().await;
        let response = sent.map_err(broken)?;
        let announced = announced_length(&response, is_page(link))?;
        let too_large = || FetchError::TooLarge { limit_bytes: wanted.bytes_max };
        if announced.is_some_and(|length| length > wanted.bytes_max) {
            return Err(too_large());
        }
        let mut writer = spool.begin();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(broken)?;
            if writer.size_bytes() + chunk.len() as u64 > wanted.bytes_max {
                return Err(too_large());
            }
            writer.write(&chunk).await.map_err(FetchError::Spool)?;
        }
        if announced.is_some_and(|length| length != writer.size_bytes()) {
            return Err(FetchError::Broken { cause: "the body is shorter than announced".into() });
        }
        writer.finish().await.map_err(FetchError::Spool)
    }

    async fn fetch_for_browser(&self, wanted: &Wanted<'_>, spool: &Spool) -> Result<Spooled, FetchError> {
        link::require_result(&self.settings, wanted.link).map_err(|what| FetchError::BadLink { what })?;
        self.fetch_at_most(wanted, spool).await
    }

    async fn knowledge_of(&self, key: &EditorKey) -> ServerKnowledge {
        let nonce = self.answers.nonce(self.random.bits());
        let mut listener = self.signals.listen();
        let claims =
            json!({ "key": key.as_str(), "userdata": nonce, "callback": self.callback_for_info(key) });
        match self.command("info", claims).await {
            Ok(answer) if answer["users"].as_array().is_some_and(|users| !users.is_empty()) => {
                ServerKnowledge::UsersInside
            }
            Ok(_) => self.status_of(&nonce, listener.as_mut()).await,
            Err(CommandError::Refused { code: 1, .. }) => ServerKnowledge::Unknown,
            Err(cause) => {
                tracing::warn!(error = %cause, "the Document Server could not be asked about a key");
                ServerKnowledge::Away
            }
        }
    }

    async fn forgotten_keys(&self) -> Result<Vec<String>, CommandError> {
        let answer = self.command("getForgottenList", json!({})).await?;
        let keys = answer["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(keys.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    async fn forgotten_link(&self, key: &EditorKey) -> Result<Option<String>, CommandError> {
        match self.command("getForgotten", json!({ "key": key.as_str() })).await {
            Ok(answer) => Ok(answer["url"].as_str().map(str::to_owned)),
            Err(CommandError::Refused { code: 1, .. }) => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    async fn delete_forgotten(&self, key: &EditorKey) -> Result<(), CommandError> {
        match self.command("deleteForgotten", json!({ "key": key.as_str() })).await {
            Ok(_) | Err(CommandError::Refused { code: 1, .. }) => Ok(()),
            Err(cause) => Err(cause),
        }
    }

    async fn drop_users(&self, key: &EditorKey, users: &[String]) -> Result<(), CommandError> {
        self.command("drop", json!({ "key": key.as_str(), "users": users })).await.map(drop)
    }

    async fn force_save(&self, key: &EditorKey, word: &str) -> Result<ForceSave, CommandError> {
        match self.command("forcesave", json!({ "key": key.as_str(), "userdata": word })).await {
            Ok(_) => Ok(ForceSave::Begun),
            Err(CommandError::Refused { code: 4, .. }) => Ok(ForceSave::NothingNew),
            Err(CommandError::Refused { code: 1, .. }) => Ok(ForceSave::NobodyThere),
            Err(cause) => Err(cause),
        }
    }

    async fn rename(&self, key: &EditorKey, title: &str) -> Result<(), CommandError> {
        self.command("meta", json!({ "key": key.as_str(), "meta": { "title": title } })).await.map(drop)
    }

    async fn version(&self) -> Result<String, CommandError> {
        let answer = self.command("version", json!({})).await?;
        Ok(answer["version"].as_str().unwrap_or("unknown").to_owned())
    }
}

/// Whether the result itself is a web page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsPage {
    Yes,
    No,
}

fn is_page(link: &str) -> IsPage {
    let path = link.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    if [".html", ".htm", ".mht"].iter().any(|extension| path.ends_with(extension)) {
        IsPage::Yes
    } else {
        IsPage::No
    }
}

/// Accepts only a plain 200 whose end can be told; returns the announced length.
fn announced_length(response: &reqwest::Response, expected: IsPage) -> Result<Option<u64>, FetchError> {
    let status = response.status().as_u16();
    let headers = response.headers();
    match status {
        200 => {}
        403 | 404 | 410 => return Err(FetchError::Gone { status }),
        300..=399 => return Err(FetchError::NotTheFile { what: "a redirect".to_owned() }),
        _ => return Err(FetchError::Broken { cause: format!("it answered {status}").into() }),
    }
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(FetchError::NotTheFile { what: "an encoded body".to_owned() });
    }
    let says_html = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if says_html && expected == IsPage::No {
        return Err(FetchError::NotTheFile { what: "a web page".to_owned() });
    }
    let is_chunked = headers
        .get(TRANSFER_ENCODING)
        .is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    match response.content_length() {
        Some(length) => Ok(Some(length)),
        None if is_chunked => Ok(None),
        // Ended by closing the connection, a body cut in half looks like a whole one.
        None => Err(FetchError::NotTheFile { what: "a body without a length".to_owned() }),
    }
}

/// Waits until the answer to a question is heard by this process.
async fn heard_here(nonce: &str, listener: &mut dyn signals::Listener) -> u8 {
    loop {
        match listener.next().await {
            Some(Signal::Answered { nonce: heard, status }) if heard == nonce => return status,
            _ => {}
        }
    }
}
