//! PostgreSQL and Redis behind a stage, each started by the test and gone with it.
//!
//! `LEDGER_OF_TESTS=postgres` runs every stage on them; without it a stage is embedded.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use ledger::postgres::throwaway::{Database, Server};
use test_stores::free_port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

/// A folder, and the engines that go with it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    _engines: Option<Engines>,
}

impl Place {
    pub(crate) fn new(folder: tempfile::TempDir, engines: Option<Engines>) -> Self {
        Self { folder, _engines: engines }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// What instances share.
pub(crate) struct Engines {
    pub(crate) database: Database,
    pub(crate) redis: Redis,
}

impl Engines {
    /// Those the environment asks for.
    pub(crate) async fn chosen() -> Option<Self> {
        let is_wanted = std::env::var("LEDGER_OF_TESTS").is_ok_and(|engine| engine == "postgres");
        if is_wanted { Some(Self::start().await) } else { None }
    }

    pub(crate) async fn start() -> Self {
        let database = Server::shared().await.unwrap().database().await.unwrap();
        Self { database, redis: Redis::start().await }
    }

    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("LEDGER_ENGINE", "postgres".to_owned()),
            ("LEDGER_URL", self.database.url()),
            ("SIGNALS_REDIS", self.redis.address()),
            ("API_SECRET", "the secret shared with the host application".to_owned()),
        ]
    }
}

/// A Redis of its own.
pub(crate) struct Redis {
    port: u16,
    folder: tempfile::TempDir,
    child: Child,
}

impl Redis {
    async fn start() -> Self {
        loop {
            let port = free_port();
            let folder = tempfile::tempdir().unwrap();
            let child = spawn(port, folder.path());
            let mut redis = Self { port, folder, child };
            if redis.is_up().await {
                return redis;
            }
        }
    }

    fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn flush(&self) {
        assert_eq!(ask(self.port, "FLUSHALL").await.unwrap(), "+OK\r\n");
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Starts it again, empty, where it was.
    pub(crate) async fn restart(&mut self) {
        self.child = spawn(self.port, self.folder.path());
        assert!(self.is_up().await, "its port is still free");
    }

    /// `false` if somebody else was quicker to take its port.
    async fn is_up(&mut self) -> bool {
        while self.child.try_wait().unwrap().is_none() {
            if ask(self.port, "PING").await.is_ok_and(|answer| answer == "+PONG\r\n") {
                return true;
            }
            // waits on purpose: a program that starts says nothing when it is ready
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }
}

fn spawn(port: u16, folder: &Path) -> Child {
    Command::new("redis-server")
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
        ])
        .arg(folder)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn ask(port: u16, word: &str) -> std::io::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(format!("{word}\r\n").as_bytes()).await?;
    let mut answer = [0; 64];
    let count = stream.read(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer[..count]).into_owned())
}
