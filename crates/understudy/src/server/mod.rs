//! A running server: the machine at its desk, with its HTTP side.
//!
//! Guarantees: [`start`] returns when the address answers; [`Running::crash`] is like `kill -9` (sockets cut,
//! callbacks in flight cut, presence and force-save state gone, the rest as it was) and [`Crashed::restart`] like
//! starting the process again on the same port.
//!
//! Does not stop by itself; dropping a [`Running`] stops it dead.

mod busy;
mod desk;
mod errands;
mod faults;
mod mailbox;
mod session;

use std::net::SocketAddr;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use desk::Gone;
pub use faults::{Fault, FaultKind, Faults};
pub use session::{OpenError, Opening, SaveAnswer, Session};

pub(crate) use desk::DeskHandle;
pub(crate) use errands::damaged;
pub(crate) use faults::Point;
pub(crate) use mailbox::{LocalBox, Mail, Mailbox, Reaction, UNREAD_MAX};

use crate::admission::{Greeting, Policy};
use crate::clock::Clock;
use crate::http;
use crate::journal::{Journal, Note};
use crate::links::Signer;
use crate::machine::{Change, Command, CommandReply, Durable, Machine, Record, Row, Rules, Shutdown, Status};
use crate::settings::{LinkBase, Settings, Storage};
use crate::store::Store;
use crate::tokens::SessionTokens;

use busy::Busy;
use desk::{Desk, Furniture, StopDesk};
use errands::Errands;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the settings are wrong: {}", .0.join("; "))]
    Settings(Vec<String>),
    #[error("could not listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        cause: std::io::Error,
    },
    #[error("could not open the storage or the journal")]
    Storage(#[source] std::io::Error),
    #[error("could not make an HTTP client")]
    Client(#[from] reqwest::Error),
}

/// A server that runs.
pub struct Running {
    settings: Settings,
    address: SocketAddr,
    desk: DeskHandle,
    policy: Policy,
    journal: Journal,
    faults: Faults,
    stop_desk: StopDesk,
    stop_http: oneshot::Sender<()>,
    tasks: Vec<JoinHandle<()>>,
}

/// A server that was killed, and what survived.
pub struct Crashed {
    settings: Settings,
    durable: Durable,
    journal: Journal,
}

/// What the server has under a key, for tests and checkers.
#[derive(Clone, Debug)]
pub struct KeyState {
    pub status: Option<Status>,
    pub row: Option<Row>,
    pub changes: Vec<Change>,
    pub base_sha256: Option<String>,
    pub forgotten_sha256: Option<String>,
    /// Ids of the users who edit.
    pub editors: Vec<String>,
    pub viewers: usize,
}

/// Starts a server.
pub async fn start(settings: Settings) -> Result<Running, StartError> {
    let journal = Journal::open(settings.journal.as_deref()).map_err(StartError::Storage)?;
    begin(settings, None, journal).await
}

/// A process that is being started elsewhere in this program holds our last life's socket until it has begun.
async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    const ATTEMPTS: u32 = 40;
    for _ in 1..ATTEMPTS {
        match TcpListener::bind(address).await {
            Err(cause) if cause.kind() == std::io::ErrorKind::AddrInUse => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            bound => return bound,
        }
    }
    TcpListener::bind(address).await
}

async fn begin(
    settings: Settings,
    survived: Option<Durable>,
    journal: Journal,
) -> Result<Running, StartError> {
    let wrong = settings.check();
    if !wrong.is_empty() {
        return Err(StartError::Settings(wrong));
    }
    let (store, found) = Store::open(&settings.storage).map_err(StartError::Storage)?;
    let durable = survived.filter(|_| matches!(settings.storage, Storage::Memory)).unwrap_or(found);
    let listen = |cause| StartError::Listen { address: settings.listen, cause };
    let listener = bind(settings.listen).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;

    let clock = settings.clock.clone();
    let keys_found = durable.keys().count();
    // Numbers of one life never come again in the next, as long as the journal is kept.
    let first_number = journal.next_number().saturating_mul(1_000_000);
    journal.write(clock.now_ms(), Note::Started { seed: settings.seed, keys_found });
    let faults = Faults::new(settings.seed, journal.clone(), clock.clone());
    let sessions = SessionTokens::new(settings.secrets.session.clone());
    let policy = Policy {
        tokens_required: settings.jwt.browser,
        inbox: settings.secrets.inbox.clone(),
        sessions: sessions.clone(),
    };
    let links = Signer::new(&settings.secrets.link);
    let rules = Rules {
        timings: settings.timings.clone(),
        seed: settings.seed,
        links: links.clone(),
        sessions,
        autosave: settings.autosave,
        results_bytes_max: settings.results_bytes_max,
        version: settings.version.clone(),
        first_delivery: first_number,
    };
    let busy = Busy::new();
    let errands = Errands::new(&settings, faults.clone(), busy.clone())?;
    let machine = Machine::new(rules, durable, clock.now_ms());
    let furniture = Furniture {
        machine,
        store,
        journal: journal.clone(),
        clock: clock.clone(),
        busy,
        errands,
        first_number,
    };
    let (desk, handle, stop_desk) = Desk::set_up(furniture);

    let site = http::Site {
        desk: handle.clone(),
        policy: policy.clone(),
        journal: journal.clone(),
        faults: faults.clone(),
        links,
        address,
        started_ms: clock.now_ms(),
        settings: settings.clone(),
    };
    let (stop_http, stopped) = oneshot::channel::<()>();
    let tasks = vec![tokio::spawn(desk.run()), tokio::spawn(http::serve(listener, site, stopped))];
    Ok(Running { settings, address, desk: handle, policy, journal, faults, stop_desk, stop_http, tasks })
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The script a page loads to get `DocsAPI`.
    pub fn api_js_url(&self) -> String {
        format!("{}/web-apps/apps/api/documents/api.js", self.url())
    }

    /// Opens a session with a configuration as the host hands it out (see [`crate::EditorConfig`]).
    pub async fn open(&self, config: &Value) -> Result<Session, OpenError> {
        let base_url = match &self.settings.link_base {
            LinkBase::Fixed(base) => base.clone(),
            LinkBase::FromOpener => self.url(),
        };
        self.open_from(config, &base_url).await
    }

    /// Opens a session as if the browser had reached this server under that address.
    pub async fn open_from(&self, config: &Value, base_url: &str) -> Result<Session, OpenError> {
        let greeting = Greeting::of_config(config);
        let clock = self.settings.clock.clone();
        Session::open(self.desk.clone(), self.policy.clone(), clock, (greeting, base_url.to_owned())).await
    }

    /// Takes up a session of an earlier life of this server by its session token, as an editor does by itself.
    pub async fn resume(&self, session: &Session) -> Result<Session, OpenError> {
        let (greeting, base_url) = session.resuming();
        let clock = self.settings.clock.clone();
        Session::open(self.desk.clone(), self.policy.clone(), clock, (greeting, base_url)).await
    }

    /// A command, without the token HTTP would ask for.
    pub async fn command(&self, command: Command) -> Result<CommandReply, Gone> {
        self.desk.command(command, &self.url()).await
    }

    /// Begins a graceful shutdown (`PUT /internal/cluster/inactive`); returns when all is saved.
    pub async fn shut_down(&self) -> Result<bool, Gone> {
        self.desk.shut_down(Shutdown::Begin).await.map(|reply| reply.done)
    }

    /// Calls a graceful shutdown off.
    pub async fn call_shutdown_off(&self) -> Result<bool, Gone> {
        self.desk.shut_down(Shutdown::CallOff).await.map(|reply| reply.done)
    }

    /// Whether a graceful shutdown is on.
    pub async fn is_shutting_down(&self) -> bool {
        self.desk.look(Machine::is_shut_down).await.unwrap_or(true)
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    pub fn clock(&self) -> &Clock {
        &self.settings.clock
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the server has under a key.
    pub async fn key(&self, key: &str) -> Result<KeyState, Gone> {
        let key = key.to_owned();
        self.desk.look(move |machine| key_state(machine, &key)).await
    }

    /// Keys that have anything at all, with or without a row.
    pub async fn keys(&self) -> Result<Vec<String>, Gone> {
        self.desk.look(|machine| machine.durable().keys().map(str::to_owned).collect()).await
    }

    /// Bytes of a key's forgotten copy.
    pub async fn forgotten(&self, key: &str) -> Result<Option<bytes::Bytes>, Gone> {
        let key = key.to_owned();
        let copy = |record: &Record| record.forgotten.as_ref().map(|file| file.bytes.clone());
        self.desk.look(move |machine| machine.durable().record(&key).and_then(copy)).await
    }

    /// Waits until nothing is going on but waiting for the clock: no event, callback, download or build.
    pub async fn settle(&self) {
        self.settle_but(&|| 0).await;
    }

    /// As [`Running::settle`], while the host keeps back as many answers as `held` says.
    pub async fn settle_but(&self, held: &(dyn Fn() -> usize + Sync)) {
        self.desk.settle_but(held).await;
    }

    /// Whether nothing is going on and nothing is about to, except for the clock's regular rounds.
    pub async fn is_quiet(&self) -> bool {
        self.desk.look(Machine::is_quiet).await.unwrap_or(true)
    }

    /// Waits until no save, retry or status is outstanding. Real or scaled time only: a manual clock must be moved.
    pub async fn quiet(&self) {
        while !self.is_quiet().await {
            let seen = self.journal.next_number();
            let more = self.journal.wait_for(|entry| (entry.number >= seen).then_some(()));
            let pause = std::time::Duration::from_millis(20);
            // A timer may be all that is left; it writes nothing until it fires.
            let _ = tokio::time::timeout(pause, more).await;
        }
    }

    /// With a manual clock: moves it from deadline to deadline for that long, letting things settle at each.
    pub async fn pass_time(&self, span_ms: u64) {
        self.pass_time_but(span_ms, &|| 0).await;
    }

    /// As [`Running::pass_time`], while the host keeps back as many answers as `held` says.
    pub async fn pass_time_but(&self, span_ms: u64, held: &(dyn Fn() -> usize + Sync)) {
        let clock = self.clock();
        let end_ms = clock.now_ms() + span_ms;
        self.settle_but(held).await;
        while let Some(wake_ms) = clock.next_wake_ms().filter(|wake_ms| *wake_ms <= end_ms) {
            clock.advance_to(wake_ms);
            self.settle_but(held).await;
        }
        clock.advance_to(end_ms);
        self.settle_but(held).await;
    }

    /// Dies like a killed process.
    pub async fn crash(self) -> Crashed {
        self.journal.write(self.clock().now_ms(), Note::Crashed);
        let mut settings = self.settings;
        settings.listen = self.address;
        let (answer, survived) = oneshot::channel();
        // Both ends are gone if the server already stopped.
        let _ = self.stop_desk.send(answer);
        let durable = survived.await.unwrap_or_default();
        let _ = self.stop_http.send(());
        for task in self.tasks {
            let _ = task.await;
        }
        Crashed { settings, durable, journal: self.journal }
    }

    /// Stops, without saving anything.
    pub async fn stop(self) {
        drop(self.crash().await);
    }
}

impl Crashed {
    /// Starts again on what survived, under the same address.
    pub async fn restart(self) -> Result<Running, StartError> {
        begin(self.settings, Some(self.durable), self.journal).await
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Changes settings for the next life.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

fn key_state(machine: &Machine, key: &str) -> KeyState {
    let record = machine.durable().record(key).cloned().unwrap_or_default();
    let conns: Vec<_> = machine.conns_of(key).map(|(_, conn)| conn.clone()).collect();
    KeyState {
        status: record.row.as_ref().map(|row| row.status),
        base_sha256: record.base.map(|base| base.content.sha256),
        forgotten_sha256: record.forgotten.map(|file| file.sha256),
        row: record.row,
        changes: record.changes,
        editors: conns.iter().filter(|conn| conn.edits()).map(|conn| conn.user.id.clone()).collect(),
        viewers: conns.iter().filter(|conn| !conn.edits()).count(),
    }
}
