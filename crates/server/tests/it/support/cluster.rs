//! Three instances on one PostgreSQL, one Redis and one shared folder, whatever the run of tests stands on.
//!
//! Their Document Server is a plain one: it serves a file for every path, and can be told to hold one back.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use saveguard::config::Config;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use understudy::office::sample_docx;

use super::Stage;
use super::engines::{Choice, Engines};
use super::site::Site;

pub(crate) const INSTANCES: usize = 3;

/// The stage speaks to the balancer.
pub(crate) struct Cluster {
    pub(crate) stage: Stage,
    /// The address of each instance.
    pub(crate) bases: Vec<String>,
    pub(crate) files: Files,
    changes: Vec<(&'static str, String)>,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let (site, files) = (Site::on(Choice::Cluster).await, Files::serve().await);
        let changes = vec![
            ("DOCUMENT_SERVER_INTERNAL_URL", files.url.clone()),
            ("VAULT_KIND", "local".to_owned()),
            ("VAULT_FOLDER", site.path().join("shared").display().to_string()),
        ];
        let stage = Stage::start_on(site, &borrowed(&changes), understudy::Settings::default()).await;
        let bases = stage.apps().map(|app| format!("http://{}", app.config.server.listen)).collect();
        Self { stage, bases, files, changes }
    }

    /// The configuration of one more instance.
    pub(crate) fn another(&self, name: &str) -> Config {
        let mut config = self.stage.site.config(&self.stage.editor.url(), &borrowed(&self.changes));
        config.server.data = self.stage.folder().join(name);
        config
    }

    pub(crate) fn engines(&mut self) -> &mut Engines {
        self.stage.site.engines.as_mut().expect("a cluster has them")
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
        self.stage.stop().await;
    }
}

fn borrowed<'a>(changes: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    changes.iter().map(|(name, value)| (*name, value.as_str())).collect()
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
