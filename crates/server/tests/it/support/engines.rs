//! What the whole-server tests stand on, and the PostgreSQL and Redis that go with a test.
//!
//! `ENGINES_OF_TESTS` chooses for every stage of a run:
//!
//! - `embedded`, or nothing: one instance on SQLite and a local vault.
//! - `postgres`: one instance on PostgreSQL, Redis and SFTP.
//! - `cluster`: three instances on them, behind a balancer.
//!
//! Which tests are left out on which, and why, is in `.config/nextest.toml`. All tests of a run share one PostgreSQL server, with a
//! database for each (`ledger::postgres::throwaway`); Redis and sshd are started by each test, which takes milliseconds.

use std::path::Path;
use std::time::Duration;

use ledger::postgres::throwaway::{Database, Server};
use test_stores::free_port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

/// What a run stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Embedded,
    Postgres,
    Cluster,
}

impl Choice {
    pub(crate) fn of_this_run() -> Self {
        match std::env::var("ENGINES_OF_TESTS").as_deref() {
            Err(_) | Ok("" | "embedded") => Self::Embedded,
            Ok("postgres") => Self::Postgres,
            Ok("cluster") => Self::Cluster,
            Ok(other) => panic!("ENGINES_OF_TESTS is `{other}`, and not embedded, postgres or cluster"),
        }
    }

    pub(crate) fn instances(self) -> usize {
        if self == Self::Cluster { 3 } else { 1 }
    }
}

/// What instances share.
pub(crate) struct Engines {
    pub(crate) database: Database,
    pub(crate) redis: Redis,
}

impl Engines {
    /// Those a choice needs.
    pub(crate) async fn of(choice: Choice) -> Option<Self> {
        if choice == Choice::Embedded {
            return None;
        }
        let database = Server::shared().await.unwrap().database().await.unwrap();
        Some(Self { database, redis: Redis::start().await })
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
        assert_eq!(self.ask("FLUSHALL").await, "+OK");
    }

    /// What it answers to a command, in its own words.
    pub(crate) async fn ask(&self, words: &str) -> String {
        ask(self.port, words).await.unwrap().trim_end().to_owned()
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
    Command::from(test_stores::redis::command(port, folder)).kill_on_drop(true).spawn().unwrap()
}

async fn ask(port: u16, word: &str) -> std::io::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(format!("{word}\r\n").as_bytes()).await?;
    let mut answer = [0; 64];
    let count = stream.read(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer[..count]).into_owned())
}
