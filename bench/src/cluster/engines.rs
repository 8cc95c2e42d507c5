//! What instances share: a PostgreSQL that flushes what it commits, and a Redis, both started for the bench and gone with it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use ledger::postgres::throwaway::{Database, Server};

use crate::gauge::family_cpu_s;
use crate::stage::free_address;

const STARTED_WITHIN: Duration = Duration::from_secs(10);

/// A PostgreSQL server on a real disk, with one database.
pub(super) struct Postgres {
    pub(super) server: Server,
    pub(super) database: Database,
}

impl Postgres {
    pub(super) async fn start(folder: &Path) -> Result<Self> {
        let server = Server::durable_in(folder).await.context("PostgreSQL cannot be started")?;
        let database = server.database().await?;
        let postgres = Self { server, database };
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            let value = postgres.ask(&format!("SHOW {setting}"))?;
            ensure!(value == "on", "{setting} is {value}: the figures would mean nothing");
        }
        Ok(postgres)
    }

    /// What the server answers to a question about one value.
    pub(super) fn ask(&self, question: &str) -> Result<String> {
        let output = Command::new(Server::program("psql")?)
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", question])
            .arg(self.database.url())
            .output()?;
        ensure!(output.status.success(), "{question}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The same for a number.
    pub(super) fn number(&self, question: &str) -> Result<f64> {
        let answer = self.ask(question)?;
        answer.parse().with_context(|| format!("{question}: {answer}"))
    }

    /// Bytes in the tables with their indexes, and bytes written to the log of changes so far.
    pub(super) fn bytes(&self) -> Result<(f64, f64)> {
        let tables = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
        Ok((self.number(tables)?, self.number("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")?))
    }

    /// Processor time of the server so far, in seconds: its own, that of its processes, and of those that ended.
    pub(super) fn cpu_s(&self) -> Result<f64> {
        let pid = self.server.log().with_file_name("data").join("postmaster.pid");
        let first = std::fs::read_to_string(pid)?.lines().next().unwrap_or_default().to_owned();
        let mut cpu = family_cpu_s(first.parse()?);
        for entry in std::fs::read_dir("/proc")? {
            let Ok(process) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let mut words = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
            if words.nth(1) == Some(first.as_str()) {
                cpu += family_cpu_s(process);
            }
        }
        Ok(cpu)
    }
}

/// A Redis server that keeps nothing.
pub(super) struct Redis {
    address: SocketAddr,
    process: Child,
}

impl Redis {
    pub(super) async fn start(folder: &Path) -> Result<Self> {
        let address = free_address()?;
        let mut command = test_stores::redis::command(address.port(), folder);
        let process = command.spawn().context("redis-server cannot be started")?;
        let redis = Self { address, process };
        let deadline = tokio::time::Instant::now() + STARTED_WITHIN;
        while tokio::net::TcpStream::connect(address).await.is_err() {
            if tokio::time::Instant::now() > deadline {
                bail!("redis-server did not start");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(redis)
    }

    pub(super) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
