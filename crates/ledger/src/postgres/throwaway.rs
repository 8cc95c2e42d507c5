//! A real PostgreSQL for tests: started when first needed, thrown away at the end.
//!
//! Debian's binaries run in a folder of their own on a free loopback port, without flushing. All tests of one run share one
//! server (nextest has a process for each test): whoever comes first starts it, under a lock. Each test has a database of its
//! own, copied from one that is migrated already.
//!
//! Guarantees: nothing is left behind. A small watcher waits for the end of the run, however it comes, then stops the server
//! and removes its folder. Does not do: durability; [`Server::durable`] is for tests that pull the plug, [`Server::durable_in`] for benches. [`Server::alone`] is for
//! those that kill the server and not the machine.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};

use super::errors::unavailable;
use super::{Options, PostgresLedger};
use crate::{LedgerError, Result};

/// Where Debian keeps the binaries, by major version.
const BINARIES: &str = "/usr/lib/postgresql";
/// The database that those of tests are copied from.
const TEMPLATE: &str = "migrated";
/// Free ports are taken by others now and then between asking and using.
const START_ATTEMPTS: usize = 5;
/// Waits for the end of a process, then stops a server and removes its folder.
const WATCHER: &str = r#"trap '' INT TERM HUP
tail --pid="$1" -f /dev/null
if [ -s "$2/data/postmaster.pid" ]; then
    server=$(head -n 1 "$2/data/postmaster.pid")
    kill -QUIT "$server" && tail --pid="$server" -f /dev/null
fi
rm -rf "$2""#;

static DATABASES: AtomicU64 = AtomicU64::new(1);

/// A server of tests.
#[derive(Debug, Clone)]
pub struct Server {
    folder: PathBuf,
    port: u16,
    settings: &'static str,
}

/// A database of one test; it goes when this is dropped.
#[derive(Debug)]
pub struct Database {
    server: Server,
    name: String,
}

impl Server {
    /// The server of this run of tests.
    pub async fn shared() -> Result<Self> {
        // waits on purpose: for whoever else starts it; the lock ends with their process.
        tokio::task::spawn_blocking(|| {
            // Each test is a process of one run, or all of them are this process.
            #[expect(
                clippy::disallowed_methods,
                reason = "the runner of the tests says so, it is no setting of ours"
            )]
            let run = if std::env::var("NEXTEST").is_ok() { parent_id() } else { std::process::id() };
            let folder = std::env::temp_dir().join(format!("saveguard-postgres-{run}"));
            let settings = "-c fsync=off -c full_page_writes=off";
            tokio::runtime::Handle::current().block_on(Self::start(folder, run, settings))
        })
        .await
        .map_err(unavailable)?
    }

    /// A server of its own that flushes what it commits and goes with this process, for tests that stop and kill it.
    pub async fn durable() -> Result<Self> {
        let (run, number) = (std::process::id(), DATABASES.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("saveguard-postgres-{run}-{number}"));
        Self::start(folder, run, "-c fsync=on").await
    }

    /// A server of its own that goes with this process, for whoever stops and kills it. What it committed survives that, for the
    /// machine goes on; nothing is flushed to the disk.
    pub async fn alone() -> Result<Self> {
        let (run, number) = (std::process::id(), DATABASES.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("saveguard-postgres-{run}-{number}"));
        Self::start(folder, run, "-c fsync=off").await
    }

    /// As [`Self::durable`], in a folder below another, which everybody may walk through: for measuring on a real disk.
    pub async fn durable_in(parent: &Path) -> Result<Self> {
        let (run, number) = (std::process::id(), DATABASES.fetch_add(1, Ordering::Relaxed));
        Self::start(parent.join(format!("postgres-{run}-{number}")), run, "-c fsync=on").await
    }

    /// A second server that follows this one.
    pub fn standby(&self) -> Result<Self> {
        let (run, number) = (std::process::id(), DATABASES.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("saveguard-postgres-{run}-{number}"));
        let account = Account::of_server()?;
        std::fs::DirBuilder::new().recursive(true).mode(0o711).create(&folder).map_err(unavailable)?;
        watch(&folder, run)?;
        account.own(&folder)?;
        let from = format!("host=127.0.0.1 port={} user=postgres application_name=standby", self.port);
        let arguments =
            ["-D", "data", "-d", &from, "--write-recovery-conf", "--checkpoint=fast", "--no-sync"];
        account.run("pg_basebackup", &arguments, &folder)?;
        let mut standby = Self { folder, port: 0, settings: self.settings };
        standby.launch_somewhere()?;
        Ok(standby)
    }

    /// From now on every commit waits until the standby has it.
    pub async fn wait_for_standby(&self) -> Result<()> {
        self.command("ALTER SYSTEM SET synchronous_standby_names = 'standby'").await?;
        self.command("SELECT pg_reload_conf()").await
    }

    /// Makes a standby the one that takes changes, and waits until it does. It waits for nobody in turn.
    pub fn promote(&self) -> Result<()> {
        Account::of_server()?.run("pg_ctl", &["promote", "-w", "-s", "-D", "data"], &self.folder)
    }

    /// What the server says of itself.
    pub fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// A program that came with the server, such as `psql`.
    pub fn program(name: &str) -> Result<PathBuf> {
        binary(name)
    }

    /// Where it listens on the loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    async fn start(folder: PathBuf, run: u32, settings: &'static str) -> Result<Self> {
        let account = Account::of_server()?;
        std::fs::DirBuilder::new().recursive(true).mode(0o711).create(&folder).map_err(unavailable)?;
        let lock = File::create(folder.join("lock")).map_err(unavailable)?;
        lock.lock().map_err(unavailable)?;
        if let Ok(port) = std::fs::read_to_string(folder.join("port")) {
            let port = port.trim().parse().map_err(unavailable)?;
            return Ok(Self { folder, port, settings });
        }
        watch(&folder, run)?;
        account.own(&folder)?;
        account.run(
            "initdb",
            &["-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
            &folder,
        )?;
        let mut server = Self { folder, port: 0, settings };
        server.launch_somewhere()?;
        server.make_template().await?;
        std::fs::write(server.folder.join("port"), server.port.to_string()).map_err(unavailable)?;
        Ok(server)
    }

    fn launch_somewhere(&mut self) -> Result<()> {
        let mut failure = unavailable("no server was started");
        for _ in 0..START_ATTEMPTS {
            let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
            self.port = free.map_err(unavailable)?.port();
            match self.launch() {
                Ok(()) => return Ok(()),
                Err(cause) => failure = cause,
            }
        }
        Err(failure)
    }

    /// Starts the server and waits until it answers.
    pub fn launch(&self) -> Result<()> {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=300 -c shared_buffers=64MB \
             -c autovacuum_naptime=10s {}",
            self.port, self.settings
        );
        let arguments = ["start", "-w", "-s", "-D", "data", "-l", "server.log", "-o", &options];
        Account::of_server()?.run("pg_ctl", &arguments, &self.folder)
    }

    /// Stops the server as a crash would: nothing is written any more, every connection breaks.
    pub fn crash(&self) -> Result<()> {
        Account::of_server()?.run(
            "pg_ctl",
            &["stop", "-w", "-s", "-D", "data", "-m", "immediate"],
            &self.folder,
        )
    }

    /// Stops the server and starts it again.
    pub fn restart(&self) -> Result<()> {
        self.crash()?;
        self.launch()
    }

    async fn make_template(&self) -> Result<()> {
        self.command(&format!("CREATE DATABASE {TEMPLATE}")).await?;
        let options = Options::new(crate::contract::environment(), self.url(TEMPLATE));
        PostgresLedger::open(&options).await.map(drop)?;
        self.command(&format!("ALTER DATABASE {TEMPLATE} ALLOW_CONNECTIONS false")).await?;
        // Connections that are on their way out would be in the way of the first copy.
        let leave = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'migrated'";
        self.command(leave).await
    }

    /// A fresh and migrated database.
    pub async fn database(&self) -> Result<Database> {
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        self.command(&format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}")).await?;
        Ok(Database { server: self.clone(), name })
    }

    /// An empty database, without a schema.
    pub async fn empty_database(&self) -> Result<Database> {
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let name = format!("empty_{}_{number}", std::process::id());
        self.command(&format!("CREATE DATABASE {name}")).await?;
        Ok(Database { server: self.clone(), name })
    }

    fn url(&self, database: &str) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/{database}", self.port)
    }

    async fn command(&self, text: &str) -> Result<()> {
        execute(&self.url("postgres"), text).await
    }
}

impl Database {
    /// Where it is.
    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// Where it is for somebody who knows of a second server, in case that takes over.
    pub fn url_with(&self, standby: &Server) -> String {
        let hosts = format!("127.0.0.1:{},127.0.0.1:{}", self.server.port, standby.port);
        format!("postgresql://postgres@{hosts}/{}", self.name)
    }

    /// Its server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// A ledger on it: each is an instance of its own.
    pub async fn ledger(&self) -> Result<PostgresLedger> {
        PostgresLedger::open(&Options::new(crate::contract::environment(), self.url())).await
    }

    /// A ledger that takes the database with it when it goes.
    pub async fn into_ledger(self) -> Result<std::sync::Arc<PostgresLedger>> {
        let ledger = self.ledger().await?;
        Ok(std::sync::Arc::new(PostgresLedger { _database: Some(std::sync::Arc::new(self)), ..ledger }))
    }

    /// Runs statements beside the ledger, as somebody who tampers would.
    pub async fn execute(&self, text: &str) -> Result<()> {
        execute(&self.url(), text).await
    }

    /// Does something in a transaction that lasts until what is returned goes.
    pub async fn hold(&self, text: &str) -> Result<impl Send + use<>> {
        let (client, connection) = tokio_postgres::connect(&self.url(), tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute(&format!("BEGIN; {text}")).await?;
        Ok(client)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rows of a query as texts, read beside the ledger by somebody who does not take its word.
    pub async fn rows(&self, query: &str) -> Result<Vec<Vec<Option<String>>>> {
        let (client, connection) = tokio_postgres::connect(&self.url(), tokio_postgres::NoTls).await?;
        let connection = tokio::spawn(connection);
        let answer = client.simple_query(query).await;
        drop(client);
        let _ = connection.await;
        let cells = |row: &SimpleQueryRow| (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect();
        let rows = answer?.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(cells(&row)),
            _ => None,
        });
        Ok(rows.collect())
    }

    /// Breaks every connection to it, as a failing network would.
    pub async fn cut(&self) -> Result<()> {
        let text =
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'", self.name);
        self.server.command(&text).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // Not on the runtime of the test, which may be ending. If it fails, the watcher removes it with everything else.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(server.command(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))).ok()
        });
        let _ = dropping.join();
    }
}

/// Runs statements on a connection of their own.
async fn execute(url: &str, text: &str) -> Result<()> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    let done = client.batch_execute(text).await;
    drop(client);
    let _ = connection.await;
    Ok(done?)
}

/// Starts the watcher, which outlives us.
fn watch(folder: &Path, run: u32) -> Result<()> {
    let mut watcher = Command::new("setsid");
    watcher.args(["--fork", "sh", "-c", WATCHER, "sh", &run.to_string()]).arg(folder).current_dir("/");
    watcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = watcher.status().map_err(unavailable)?;
    if status.success() { Ok(()) } else { Err(unavailable("the watcher of the server did not start")) }
}

/// As whom the server runs: never as root, it refuses that.
#[derive(Debug, Clone, Copy)]
struct Account {
    switch_to: Option<(u32, u32)>,
}

impl Account {
    fn of_server() -> Result<Self> {
        let switch_to = match number_of(&["-u"])? {
            0 => Some((number_of(&["-u", "postgres"])?, number_of(&["-g", "postgres"])?)),
            _ => None,
        };
        Ok(Self { switch_to })
    }

    fn own(self, folder: &Path) -> Result<()> {
        match self.switch_to {
            Some((user, group)) => chown(folder, Some(user), Some(group)).map_err(unavailable),
            None => Ok(()),
        }
    }

    fn run(self, program: &str, arguments: &[&str], folder: &Path) -> Result<()> {
        let mut command = Command::new(binary(program)?);
        command.args(arguments).current_dir(folder).env("LC_ALL", "C.UTF-8");
        if let Some((user, group)) = self.switch_to {
            command.uid(user).gid(group);
        }
        // The server holds on to what it gets: a pipe would never end.
        let said = File::create(folder.join(format!("{program}.log"))).map_err(unavailable)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).process_group(0);
        let status = command.status().map_err(unavailable)?;
        if status.success() {
            return Ok(());
        }
        let said = std::fs::read_to_string(folder.join(format!("{program}.log"))).unwrap_or_default();
        Err(unavailable(format!("{program} failed: {said}")))
    }
}

fn number_of(arguments: &[&str]) -> Result<u32> {
    let output = Command::new("id").args(arguments).output().map_err(unavailable)?;
    String::from_utf8_lossy(&output.stdout).trim().parse().map_err(unavailable)
}

/// The newest version that is installed.
fn binary(program: &str) -> Result<PathBuf> {
    let versions = std::fs::read_dir(BINARIES).map_err(unavailable)?;
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .max()
        .ok_or_else(|| LedgerError::not_found("a PostgreSQL (Debian's package `postgresql`)"))?;
    Ok(Path::new(BINARIES).join(newest.to_string()).join("bin").join(program))
}
