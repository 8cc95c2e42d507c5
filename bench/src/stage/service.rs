//! The server as users run it: a process of its own, its data on a real disk, and its API as the host application uses it.
//!
//! Guarantees: the process ends with the value. Does not repeat a request: what fails is a finding of the bench.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

pub(crate) const SECRET: &str = "a secret that only this bench knows, long enough";
const STARTED_WITHIN: Duration = Duration::from_secs(20);
const TOKEN_LIFE_S: i64 = 3600;

/// The running server.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    process: Child,
    http: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl Service {
    /// Starts it for a Document Server, with a company and a project in it. Built in release mode, if no program is given.
    pub(crate) async fn start(document_server_url: &str, program: Option<&Path>) -> Result<Self> {
        Self::start_with(document_server_url, program, &[]).await
    }

    /// The same with more settings.
    pub(crate) async fn start_with(
        document_server_url: &str,
        program: Option<&Path>,
        settings: &[(&str, String)],
    ) -> Result<Self> {
        let service = Self::start_bare(document_server_url, program, settings).await?;
        service.furnish().await?;
        Ok(service)
    }

    /// The same, with nothing in it.
    pub(crate) async fn start_bare(
        document_server_url: &str,
        program: Option<&Path>,
        settings: &[(&str, String)],
    ) -> Result<Self> {
        // Beside the build results: `/tmp` may be memory, and memory flushes for free.
        let folder = tempfile::tempdir_in(target_folder()?)?;
        Self::start_on(folder, document_server_url, program, settings).await
    }

    /// Puts a company and a project in.
    pub(crate) async fn furnish(&self) -> Result<()> {
        self.post("/api/v1/companies", "bench", &json!({ "id": "bench", "name": "Bench" })).await?;
        let project = json!({ "id": "saves", "name": "Saves" });
        self.post("/api/v1/companies/bench/projects", "bench", &project).await.map(drop)
    }

    /// Starts it on a folder whose `data` may have something in it already.
    pub(crate) async fn start_on(
        folder: tempfile::TempDir,
        document_server_url: &str,
        program: Option<&Path>,
        settings: &[(&str, String)],
    ) -> Result<Self> {
        let program = program.map_or_else(build, |program| Ok(program.to_owned()))?;
        let address = free_address()?;
        let process = start_process(&program, folder.path(), (address, document_server_url), settings)?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        let service = Self { address, process, http, _folder: folder };
        service.until_ready().await?;
        Ok(service)
    }

    /// A token of somebody who may do everything, for signing in.
    pub(crate) fn token(&self) -> Result<String> {
        api_token("bench")
    }

    /// The server's process, for its time and memory.
    pub(crate) fn process(&self) -> u32 {
        self.process.id()
    }

    async fn until_ready(&self) -> Result<()> {
        let deadline = tokio::time::Instant::now() + STARTED_WITHIN;
        while self.http.get(self.url("/readyz")).send().await.is_err() {
            if tokio::time::Instant::now() > deadline {
                bail!("the server did not start");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn post(&self, path: &str, user: &str, body: &Value) -> Result<Value> {
        let request = self.http.post(self.url(path)).bearer_auth(api_token(user)?).json(body);
        Ok(answered(path, request).await?.json().await?)
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        let request = self.http.get(self.url(path)).bearer_auth(api_token("bench")?);
        Ok(answered(path, request).await?.json().await?)
    }

    /// What a stream of events says, until it ends.
    pub(crate) async fn listen(&self, path: &str) -> Result<String> {
        let request = self.http.get(self.url(path)).bearer_auth(api_token("bench")?);
        Ok(answered(path, request).await?.text().await?)
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<Value> {
        let request = self.http.put(self.url(path)).bearer_auth(api_token("bench")?).json(body);
        Ok(answered(path, request).await?.json().await?)
    }

    /// Brings a file or a text in.
    pub(crate) async fn post_bytes(&self, path: &str, bytes: Bytes) -> Result<Value> {
        let request = self.http.post(self.url(path)).bearer_auth(api_token("bench")?).body(bytes);
        Ok(answered(path, request).await?.json().await?)
    }

    /// Brings a document in.
    pub(crate) async fn upload(&self, id: &str, bytes: Bytes) -> Result<()> {
        let path = format!("/api/v1/companies/bench/projects/saves/documents?id={id}&name=bench.docx");
        let request = self.http.post(self.url(&path)).bearer_auth(api_token("bench")?).body(bytes);
        answered(&path, request).await.map(drop)
    }
}

async fn answered(path: &str, request: reqwest::RequestBuilder) -> Result<reqwest::Response> {
    let response = request.send().await?;
    if !response.status().is_success() {
        bail!("{path} answered {}: {}", response.status(), response.text().await?);
    }
    Ok(response)
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn api_token(user: &str) -> Result<String> {
    let expires_s = jiff::Zoned::now().timestamp().as_second() + TOKEN_LIFE_S;
    let claims =
        json!({ "sub": user, "role": "admin", "companies": "*", "organisations": "*", "exp": expires_s });
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    Ok(jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key)?)
}

/// Builds the server as users run it; returns the binary.
pub(crate) fn build() -> Result<PathBuf> {
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

/// Where build results are, and so what benches write.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    Ok(program.parent().context("the bench lies in no folder")?.to_owned())
}

pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn start_process(
    program: &Path,
    folder: &Path,
    (address, document_server_url): (SocketAddr, &str),
    more: &[(&str, String)],
) -> Result<Child> {
    let settings = [
        ("SERVER_LISTEN", address.to_string()),
        ("SERVER_DATA", folder.join("data").display().to_string()),
        ("DOCUMENT_SERVER_PUBLIC_URL", document_server_url.to_owned()),
        ("DOCUMENT_SERVER_SECRET", SECRET.to_owned()),
        ("API_SECRET", SECRET.to_owned()),
        ("LOG_FILTER", "error".to_owned()),
        // Workbooks of half a million rows are larger than the default.
        ("SERVER_UPLOAD_MIB_MAX", "400".to_owned()),
    ];
    let mut command = Command::new(program);
    command.arg("serve").stdout(Stdio::null()).stderr(Stdio::null());
    for (name, value) in settings.iter().chain(more) {
        command.env(format!("SAVEGUARD_{name}"), value);
    }
    command.spawn().context("the server cannot be started")
}
