//! A stage for benches of the running server: the release binary as its own process on a real disk, a Document Server
//! of a few lines beside it, and callbacks signed as the real one signs them.
//!
//! Does not do: anything clever on our side of the wire. What the driver costs is the machine's, not the server's.

mod callbacks;
mod document_server;
mod documents;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

pub(crate) use callbacks::{Callback, Wire};
pub(crate) use document_server::DocumentServer;
pub(crate) use documents::Template;

const SECRET: &str = "a secret that only this bench knows, long enough";
const STARTED_WITHIN: Duration = Duration::from_secs(20);

/// The running server and what it talks to.
pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    pub(crate) documents: DocumentServer,
    server: Child,
    http: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) async fn start() -> Result<Self> {
        let binary = build()?;
        // Beside the build results: `/tmp` may be memory, and memory flushes for free.
        let folder = tempfile::tempdir_in(target_folder()?)?;
        let documents = DocumentServer::start().await?;
        let address = free_address()?;
        let server = start_server(&binary, folder.path(), (address, &documents))?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        let stage = Self { address, documents, server, http, _folder: folder };
        stage.until_ready().await?;
        stage.post("/api/v1/companies", &json!({ "id": "bench", "name": "Bench" })).await?;
        stage.post("/api/v1/companies/bench/projects", &json!({ "id": "saves", "name": "Saves" })).await?;
        Ok(stage)
    }

    /// The server's process, for its time and memory.
    pub(crate) fn process(&self) -> u32 {
        self.server.id()
    }

    async fn until_ready(&self) -> Result<()> {
        let deadline = tokio::time::Instant::now() + STARTED_WITHIN;
        let url = format!("http://{}/readyz", self.address);
        while self.http.get(&url).send().await.is_err() {
            if tokio::time::Instant::now() > deadline {
                bail!("the server did not start");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let url = format!("http://{}{path}", self.address);
        let response = self.http.post(url).bearer_auth(api_token()?).json(body).send().await?;
        if !response.status().is_success() {
            bail!("{path} answered {}: {}", response.status(), response.text().await?);
        }
        Ok(response.json().await?)
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        let url = format!("http://{}{path}", self.address);
        Ok(self.http.get(url).bearer_auth(api_token()?).send().await?.error_for_status()?.json().await?)
    }

    /// Brings a document in and opens it; returns its editor key.
    pub(crate) async fn open_document(&self, id: &str, template: &Template) -> Result<String> {
        let path = format!("/api/v1/companies/bench/projects/saves/documents?id={id}&name=bench.docx");
        let url = format!("http://{}{path}", self.address);
        let sent = self.http.post(url).bearer_auth(api_token()?).body(template.copy(u64::MAX)).send().await?;
        sent.error_for_status()?;
        let view =
            self.post(&format!("/api/v1/documents/{id}/editor-config"), &json!({ "mode": "edit" })).await?;
        Ok(view["key"].as_str().context("no key")?.to_owned())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn api_token() -> Result<String> {
    let claims = json!({ "sub": "bench", "role": "admin", "companies": "*", "exp": jiff::Zoned::now().timestamp().as_second() + 3600 });
    Ok(jsonwebtoken::encode(
        &Header::new(Algorithm::HS256),
        &claims,
        &EncodingKey::from_secret(SECRET.as_bytes()),
    )?)
}

/// Builds the server as users run it; returns the binary.
fn build() -> Result<PathBuf> {
    let output = Command::new("cargo")
        .args(["build", "--release", "--package", "saveguard", "--message-format=json"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo cannot be started")?;
    let lines = BufReader::new(output.stdout.as_slice()).lines().map_while(Result::ok);
    let binary = lines
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
        .filter(|message| message["target"]["name"] == "saveguard")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    binary.context("the server could not be built")
}

fn target_folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    Ok(program.parent().context("the bench lies in no folder")?.to_owned())
}

fn free_address() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn start_server(
    binary: &Path,
    folder: &Path,
    (address, documents): (SocketAddr, &DocumentServer),
) -> Result<Child> {
    let settings = [
        ("SERVER_LISTEN", address.to_string()),
        ("SERVER_DATA", folder.join("data").display().to_string()),
        ("DOCUMENT_SERVER_PUBLIC_URL", documents.url()),
        ("DOCUMENT_SERVER_SECRET", SECRET.to_owned()),
        ("API_SECRET", SECRET.to_owned()),
        ("LOG_FILTER", "error".to_owned()),
    ];
    let mut command = Command::new(binary);
    command.arg("serve").stdout(Stdio::null()).stderr(Stdio::null());
    for (name, value) in settings {
        command.env(format!("SAVEGUARD_{name}"), value);
    }
    command.spawn().context("the server cannot be started")
}
