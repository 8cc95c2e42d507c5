//! Three instances on one PostgreSQL, one Redis and one shared folder, behind a balancer that goes round.
//!
//! Their Document Server is a plain one: it serves a file for every path, and can be told to hold one back.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use model::Guards;
use saveguard::config::Config;
use saveguard::service::Service;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use understudy::office::sample_docx;

use super::engines::{Engines, Place};
use super::{SECRET, Stage, config};

pub(crate) const INSTANCES: usize = 3;

/// The first instance is the stage's own; the stage speaks to whichever it is told to.
pub(crate) struct Cluster {
    pub(crate) stage: Stage,
    pub(crate) others: Vec<Service>,
    /// The address of each instance.
    pub(crate) bases: Vec<String>,
    pub(crate) files: Files,
    pub(crate) engines: Engines,
    pub(crate) settings: Vec<(&'static str, String)>,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (engines, files) = (Engines::start().await, Files::serve().await);
        let editor = understudy::start(understudy::Settings::default().with_secret(SECRET)).await.unwrap();
        let balancer = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let front = format!("http://{}", balancer.local_addr().unwrap());
        let mut settings = engines.settings();
        settings.extend([
            ("SERVER_PUBLIC_URL", front.clone()),
            ("SERVER_INTERNAL_URL", front.clone()),
            ("DOCUMENT_SERVER_INTERNAL_URL", files.url.clone()),
            ("VAULT_FOLDER", folder.path().join("shared").display().to_string()),
        ]);
        let mut services = Vec::new();
        for number in 0..INSTANCES {
            let config = instance(&folder.path().join(number.to_string()), &editor.url(), &settings);
            services.push(Service::start(config, Guards::ALL).await.unwrap());
        }
        let addresses: Vec<SocketAddr> = services.iter().map(Service::address).collect();
        let bases: Vec<String> = addresses.iter().map(|address| format!("http://{address}")).collect();
        tokio::spawn(balance(balancer, addresses));
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        let service = services.remove(0);
        let stage = Stage { service, editor, http, base: front, folder: Place::new(folder, None) };
        stage.post("/api/v1/companies", &json!({ "id": "acme", "name": "Acme" })).await;
        stage.post("/api/v1/companies/acme/projects", &json!({ "id": "plans", "name": "Plans" })).await;
        Self { stage, others: services, bases, files, engines, settings }
    }

    /// The configuration of one more instance.
    pub(crate) fn another(&self, name: &str) -> Config {
        instance(&self.stage.folder().join(name), &self.stage.editor.url(), &self.settings)
    }

    /// A document somebody opened: its key.
    pub(crate) async fn opened(&self, id: &str) -> String {
        self.stage.docx(id).await;
        self.stage.configure(id, "ann", "edit").await["key"].as_str().unwrap().to_owned()
    }

    /// Delivers a callback to one instance; what it is answered.
    pub(crate) async fn deliver(&self, base: &str, claims: &Value) -> Value {
        let response = self.stage.deliver_to(base, claims).await;
        let status = response.status().as_u16();
        response.json::<Value>().await.map_or_else(|_| json!(status), |answer| answer["error"].clone())
    }

    /// A callback with a file of its own. Without `notmodified` the time of a final save would say nothing.
    pub(crate) fn callback(&self, key: &str, status: u8, file: &str) -> Value {
        let at = jiff::Timestamp::now().to_string();
        let history = json!({ "serverVersion": "9.3.0", "changes": [{ "created": "2026-11-15 19:20:43", "user": { "id": "ann", "name": "Ann" } }] });
        json!({ "key": key, "status": status, "url": format!("{}/cache/{file}/output.docx", self.files.url),
                "history": history, "users": ["ann"], "lastsave": at, "notmodified": false, "filetype": "docx" })
    }

    pub(crate) async fn stop(self) {
        assert_eq!(self.stage.app().ledger.inconsistencies().await.unwrap(), []);
        for service in self.others {
            assert_eq!(service.stop().await, 0, "work was left behind");
        }
        assert_eq!(self.stage.service.stop().await, 0, "work was left behind");
        self.stage.editor.stop().await;
    }
}

fn instance(folder: &std::path::Path, document_server: &str, settings: &[(&'static str, String)]) -> Config {
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    config(folder, document_server, &settings)
}

/// Hands each connection to the next instance that takes it.
async fn balance(listener: TcpListener, instances: Vec<SocketAddr>) {
    let mut turn = 0;
    while let Ok((mut client, _)) = listener.accept().await {
        for _ in 0..instances.len() {
            turn += 1;
            if let Ok(mut instance) = TcpStream::connect(instances[turn % instances.len()]).await {
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut instance).await });
                break;
            }
        }
    }
}

/// A file for every path, the same one each time.
pub(crate) struct Files {
    pub(crate) url: String,
    state: Arc<FilesState>,
}

struct FilesState {
    asked: watch::Sender<HashMap<String, usize>>,
    held: watch::Sender<HashSet<String>>,
    files: Mutex<HashMap<String, bytes::Bytes>>,
}

impl Files {
    async fn serve() -> Self {
        let state = Arc::new(FilesState {
            asked: watch::Sender::default(),
            held: watch::Sender::default(),
            files: Mutex::default(),
        });
        let router = axum::Router::new().fallback(file).with_state(Arc::clone(&state));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, state }
    }

    /// From now on nobody gets this file.
    pub(crate) fn hold(&self, file: &str) {
        self.state.held.send_modify(|held| {
            held.insert(file.to_owned());
        });
    }

    pub(crate) fn release(&self, file: &str) {
        self.state.held.send_modify(|held| {
            held.remove(file);
        });
    }

    /// Waits until somebody has asked for a file.
    pub(crate) async fn asked_for(&self, file: &str) {
        self.state.asked.subscribe().wait_for(|asked| asked.contains_key(file)).await.unwrap();
    }

    /// How often it was asked for.
    pub(crate) fn times(&self, file: &str) -> usize {
        self.state.asked.borrow().get(file).copied().unwrap_or(0)
    }
}

async fn file(State(state): State<Arc<FilesState>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    if path.ends_with("/command") {
        return axum::Json(json!({ "error": 0, "keys": [] })).into_response();
    }
    let name = path.split('/').nth(2).unwrap_or_default().to_owned();
    state.asked.send_modify(|asked| *asked.entry(name.clone()).or_default() += 1);
    let mut held = state.held.subscribe();
    held.wait_for(|held| !held.contains(&name)).await.unwrap();
    let mut files = state.files.lock().unwrap();
    files.entry(name.clone()).or_insert_with(|| sample_docx("Report", &[&name])).clone().into_response()
}
