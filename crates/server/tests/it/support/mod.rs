//! A stage: a real service in a temporary folder, an understudy beside it, and a client that speaks the API.
//!
//! On what it stands is chosen for a whole run of the tests (`engines`). Of several instances the client and the understudy see only
//! their balancer; `service` and `app()` are the first one.

pub(crate) mod axe;
mod balancer;
pub(crate) mod browser;
pub(crate) mod cluster;
pub(crate) mod engines;
mod finding;
pub(crate) mod npm;
pub(crate) mod pausing;
pub(crate) mod serving;
pub(crate) mod site;
pub(crate) mod stores;
pub(crate) mod submissions;
pub(crate) mod variables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::access::{Caller, Companies, Organisations, Role};
use reqwest::StatusCode;
use saveguard::app::App;
use saveguard::clock::{Clock as _, SystemClock};
use saveguard::config::Config;
use saveguard::editors::onlyoffice::Tokens;
use saveguard::http::sign_api_token;
use saveguard::service::Service;
use serde_json::{Value, json};
use understudy::server::{Opening, Session};
use understudy::{Running, Settings};

use pausing::Paused;
use site::Site;
pub(crate) use test_stores::free_port;

/// Real delays of the Document Server are divided by this.
const TIME_SCALE: f64 = 20.0;
/// Longer than anything on the stage takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const SECRET: &str = "the secret shared with the document server";

pub(crate) struct Stage {
    pub(crate) service: Service,
    /// Further instances beside the first.
    pub(crate) others: Vec<Service>,
    pub(crate) editor: Running,
    pub(crate) http: reqwest::Client,
    pub(crate) base: String,
    pub(crate) site: Site,
}

pub(crate) fn admin() -> Caller {
    Caller {
        id: "root".to_owned(),
        name: "Root".to_owned(),
        role: Role::Admin,
        companies: Companies::All,
        organisations: Organisations::NONE,
    }
}

/// A configuration for a folder, with what a test changes.
pub(crate) fn config(folder: &Path, document_server: &str, changes: &[(&str, &str)]) -> Config {
    let port = free_port();
    let here = format!("http://127.0.0.1:{port}");
    let data = folder.join("data").display().to_string();
    let settings = [
        ("SERVER_LISTEN", format!("127.0.0.1:{port}")),
        ("SERVER_PUBLIC_URL", here.clone()),
        ("SERVER_INTERNAL_URL", here),
        ("SERVER_DATA", data),
        ("SERVER_ENVIRONMENT", "test".to_owned()),
        ("DOCUMENT_SERVER_PUBLIC_URL", document_server.to_owned()),
        ("DOCUMENT_SERVER_SECRET", SECRET.to_owned()),
        ("SAVING_FETCH_SPREAD_MS", "300".to_owned()),
        ("RECOVERING_INTERVAL_SECONDS", "1".to_owned()),
        ("STOPPING_NOTICE_MS", "0".to_owned()),
        // How full the disk of this machine is, is no matter of the tests.
        ("DISK_WARN_FREE_MIB", "0".to_owned()),
        ("DISK_WARN_FREE_PERCENT", "0".to_owned()),
        ("DISK_UPLOADS_FREE_MIB", "0".to_owned()),
        ("DISK_SAVES_FREE_MIB", "0".to_owned()),
    ];
    let mut variables: BTreeMap<String, String> =
        settings.into_iter().map(|(name, value)| (format!("SAVEGUARD_{name}"), value)).collect();
    let far = stores::settings(folder);
    variables.extend(far.into_iter().map(|(name, value)| (format!("SAVEGUARD_{name}"), value)));
    variables.extend(changes.iter().map(|(name, value)| (format!("SAVEGUARD_{name}"), (*value).to_owned())));
    Config::from_sources(toml::Table::new(), variables).unwrap()
}

impl Stage {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[], Settings::default().with_time_scale(TIME_SCALE)).await
    }

    pub(crate) async fn start_with(changes: &[(&str, &str)], editor: Settings) -> Self {
        Self::start_on(Site::new().await, changes, editor).await
    }

    pub(crate) async fn start_on(mut site: Site, changes: &[(&str, &str)], editor: Settings) -> Self {
        let editor = understudy::start(editor.with_secret(SECRET)).await.unwrap();
        let configs = site.configs(&editor.url(), changes).await;
        let server = &configs[0].server;
        // A public https address is a proxy's that is not there.
        let base = match server.public_url.scheme() {
            "https" => format!("http://{}", server.listen),
            _ => server.public_url.as_str().trim_end_matches('/').to_owned(),
        };
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        let paused = Paused { configs, editor, http, base, site };
        let stage = paused.resume().await;
        stage.post("/api/v1/companies", &json!({ "id": "acme", "name": "Acme" })).await;
        stage.post("/api/v1/companies/acme/projects", &json!({ "id": "plans", "name": "Plans" })).await;
        stage
    }

    pub(crate) fn app(&self) -> &Arc<App> {
        &self.service.app
    }

    /// Every instance.
    pub(crate) fn apps(&self) -> impl Iterator<Item = &Arc<App>> {
        std::iter::once(&self.service).chain(&self.others).map(|service| &service.app)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.site.path()
    }

    /// A place in the published tree, as the disk has it.
    pub(crate) fn published(&self, path: &str) -> PathBuf {
        site::published(&self.app().config).join(path)
    }

    /// A blob, as the disk has it.
    pub(crate) fn blob(&self, digest: &str) -> PathBuf {
        site::blob(&self.app().config, digest)
    }

    /// Whether everything that was saved is shown.
    pub(crate) async fn is_published(&self) -> bool {
        self.app().ledger.totals().await.unwrap().owed_publications == 0
            && self.apps().all(|app| app.publications.is_empty())
    }

    pub(crate) fn token(&self, caller: &Caller) -> String {
        sign_api_token(&self.app().config, caller, SystemClock.now(), Duration::from_secs(600))
    }

    pub(crate) fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(self.token(&admin()))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let response = self.request(reqwest::Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        response.json().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let response = self.request(reqwest::Method::POST, path).json(body).send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.text().await.unwrap());
        response.json().await.unwrap()
    }

    pub(crate) async fn upload(&self, id: &str, name: &str, bytes: &[u8]) -> reqwest::Response {
        let path = "/api/v1/companies/acme/projects/plans/documents";
        let query = [("id", id), ("name", name)];
        self.request(reqwest::Method::POST, path).query(&query).body(bytes.to_vec()).send().await.unwrap()
    }

    /// A docx with one paragraph.
    pub(crate) async fn docx(&self, id: &str) -> Value {
        let bytes = understudy::office::sample_docx("Report", &["It begins."]);
        let response = self.upload(id, "report.docx", &bytes).await;
        assert_eq!(response.status(), StatusCode::CREATED);
        response.json().await.unwrap()
    }

    pub(crate) async fn configure(&self, id: &str, user: &str, mode: &str) -> Value {
        let caller = Caller { id: user.to_owned(), name: format!("User {user}"), ..admin() };
        let response = self
            .http
            .post(format!("{}/api/v1/documents/{id}/editor-config", self.base))
            .bearer_auth(self.token(&caller))
            .json(&json!({ "mode": mode }))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{}", response.text().await.unwrap());
        response.json().await.unwrap()
    }

    /// Somebody opens a document for editing and sees it.
    pub(crate) async fn edit(&self, id: &str, user: &str) -> Session {
        let view = self.configure(id, user, "edit").await;
        let session = self.editor.open(&view["config"]).await.unwrap();
        assert!(matches!(session.opened().await, Opening::Ready), "the document opens");
        session
    }

    pub(crate) async fn document(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/documents/{id}")).await
    }

    /// The versions of a document, newest first.
    pub(crate) async fn versions(&self, id: &str) -> Vec<String> {
        let versions = self.get(&format!("/api/v1/documents/{id}/versions")).await;
        versions.as_array().unwrap().iter().map(|each| each["version"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn kept(&self, id: &str) -> Vec<Value> {
        self.get(&format!("/api/v1/documents/{id}/kept")).await.as_array().unwrap().clone()
    }

    /// The text of the head.
    pub(crate) async fn text(&self, id: &str) -> String {
        let response = self
            .request(reqwest::Method::GET, &format!("/api/v1/documents/{id}/content"))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        understudy::office::text_of(&response.bytes().await.unwrap())
    }

    /// Waits until the head has this number.
    pub(crate) async fn wait_for_head(&self, id: &str, head: &str) {
        self.wait_until(&format!("head {head}"), async || self.document(id).await["head"] == head).await;
    }

    /// Waits until something is so, looking again and again.
    pub(crate) async fn wait_until(&self, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !is_so().await {
            assert!(tokio::time::Instant::now() < deadline, "waited in vain for {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Signs claims as the Document Server does.
    pub(crate) fn signed(&self, claims: &Value) -> String {
        Tokens::new(&self.app().config.document_server.secrets).sign(claims, SystemClock.now(), 300)
    }

    /// Signs claims and delivers them to the callback route, in the body's token only.
    pub(crate) async fn deliver(&self, claims: &Value) -> reqwest::Response {
        self.deliver_to(&self.base, claims).await
    }

    /// Delivers them to an instance.
    pub(crate) async fn deliver_to(&self, base: &str, claims: &Value) -> reqwest::Response {
        let body = json!({ "token": self.signed(claims) });
        self.http.post(format!("{base}/callback/12345")).json(&body).send().await.unwrap()
    }

    pub(crate) async fn stop(self) {
        assert_eq!(self.service.app.ledger.inconsistencies().await.unwrap(), []);
        let (paused, left) = self.pause().await;
        assert_eq!(left, 0, "work was left behind");
        paused.editor.stop().await;
    }
}
