//! The engines that the instances of a round share: a real PostgreSQL and a real Redis.
//!
//! Guarantees: each round has a database and a Redis of its own. Servers of PostgreSQL are used again by later rounds of the run,
//! never by two at once, and are gone with the process. Does not do: decide when they fail; `troubles` does.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ledger::postgres::throwaway::{Database, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// A server that does not come up within this time is the harness's own trouble.
const START_PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Servers that no round uses at the moment.
static IDLE: Mutex<Vec<Server>> = Mutex::new(Vec::new());

/// A fresh database of a PostgreSQL that is this round's alone.
#[derive(Debug)]
pub(crate) struct LedgerEngine {
    server: Server,
    database: Database,
}

impl LedgerEngine {
    pub(crate) async fn start() -> Result<Self> {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let server = match idle {
            Some(server) => server,
            None => Server::alone().await.context("no PostgreSQL could be started")?,
        };
        let database = server.empty_database().await.context("no database could be made")?;
        Ok(Self { server, database })
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    /// Where it is for somebody who comes in by a port.
    pub(crate) fn url(&self, port: u16) -> String {
        format!("postgresql://postgres@127.0.0.1:{port}/{}", self.database.name())
    }

    /// The rows of a query, as texts. Waits while the server is away.
    pub(crate) async fn rows(&self, query: &str) -> Result<Vec<Vec<Option<String>>>> {
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            match self.database.rows(query).await {
                Ok(rows) => return Ok(rows),
                Err(_) if Instant::now() < deadline => tokio::time::sleep(LOOK_AGAIN).await,
                Err(cause) => {
                    return Err(cause).with_context(|| format!("the ledger cannot be read: {query}"));
                }
            }
        }
    }

    /// Stops the server as a crash would, for a while.
    pub(crate) async fn crash_for(&self, pause: Duration) -> Result<()> {
        let server = self.server.clone();
        tokio::task::spawn_blocking(move || server.crash()).await?.context("PostgreSQL does not stop")?;
        tokio::time::sleep(pause).await;
        self.launch().await
    }

    /// Its port may be taken for a moment by a connection that is about to end.
    async fn launch(&self) -> Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            let server = self.server.clone();
            match tokio::task::spawn_blocking(move || server.launch()).await? {
                Ok(()) => return Ok(()),
                Err(_) if Instant::now() < deadline => tokio::time::sleep(LOOK_AGAIN).await,
                Err(cause) => return Err(cause).context("PostgreSQL does not come back"),
            }
        }
    }
}

impl Drop for LedgerEngine {
    fn drop(&mut self) {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(self.server.clone());
    }
}

/// A Redis.
#[derive(Debug)]
pub(crate) struct SignalsEngine {
    pub(crate) port: u16,
    folder: PathBuf,
    child: tokio::sync::Mutex<Child>,
}

impl SignalsEngine {
    pub(crate) async fn start(port: u16, folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let child = tokio::sync::Mutex::new(spawn(port, folder)?);
        let engine = Self { port, folder: folder.to_owned(), child };
        engine.come_up().await?;
        Ok(engine)
    }

    /// Forgets everything.
    pub(crate) async fn flush(&self) -> Result<()> {
        let said = self.say("FLUSHALL").await?;
        anyhow::ensure!(said == "+OK\r\n", "Redis said {said:?}");
        Ok(())
    }

    /// `kill -9`.
    pub(crate) async fn kill(&self) -> Result<()> {
        self.child.lock().await.kill().await.context("Redis cannot be killed")
    }

    /// Starts it again, empty.
    pub(crate) async fn restart(&self) -> Result<()> {
        *self.child.lock().await = spawn(self.port, &self.folder)?;
        self.come_up().await
    }

    async fn come_up(&self) -> Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        while Instant::now() < deadline {
            if self.say("PING").await.is_ok_and(|said| said == "+PONG\r\n") {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        bail!("Redis does not come up")
    }

    async fn say(&self, word: &str) -> Result<String> {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.write_all(format!("{word}\r\n").as_bytes()).await?;
        let mut answer = [0; 64];
        let count = stream.read(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer[..count]).into_owned())
    }
}

fn spawn(port: u16, folder: &Path) -> Result<Child> {
    let mut command = Command::from(test_stores::redis::command(port, folder));
    command.stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().context("redis-server cannot be started")
}
