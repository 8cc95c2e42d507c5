//! The handles flows need, put together once. The only place that names adapters.
//!
//! Guarantees: flows see ports; which engine stands behind them is decided here and nowhere else.

mod stores;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use jiff::Timestamp;
use lanes::Lanes;
use ledger::postgres::{self, PostgresLedger, PostgresTurns};
use ledger::reports::Alone;
use ledger::sqlite::{Options, SqliteLedger};
use ledger::turns::LocalTurns;
use ledger::{Ledger, LedgerError, Reports, Turns};
use model::{DocumentId, Guards, SummaryLogId};
use signals::Signals;
use signals::local::LocalSignals;
use signals::redis::{self, RedisSignals, Standing};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use vault::depot::Depot;
use vault::local::LocalVault;
use vault::{Spool, Tree, Vault, VaultError};

use crate::arrived::Arrived;
use crate::awake::Awake;
use crate::callers::HostKeys;
use crate::clock::{Clock, LedgerClock, Random, SystemClock, SystemRandom};
use crate::config::{Config, Engine, Postgres, StoreKind, Stores};
use crate::counting::Counted;
use crate::draining::DrainView;
use crate::editors::DocumentServer;
use crate::editors::onlyoffice::{OnlyOffice, Tokens};
use crate::examining::{Engines, ExaminationView};
use crate::forgotten_files::ForgottenFiles;
use crate::instances::{Answers, Instance, Own};
use crate::metered::Metered;
use crate::pruning::Turn;
use crate::read_backs::ReadBacks;
use crate::room::{Disk, LocalDisk};
use crate::saving::{Entries, Jobs};
use crate::sharing::Door;
pub use crate::starting::{FolderLock, StartError};
use crate::telemetry;
use crate::wanted::Wanted;
use crate::watching::Rooms;
use stores::OpeningStores;

/// The embedded ledger, in the data folder.
const LEDGER: &str = "ledger.sqlite";
/// Where blobs wait for a far vault.
const DEPOT: &str = "depot";

/// Everything a flow may use.
pub struct App {
    /// What was set.
    pub config: Config,
    /// Metadata, history, unfinished work.
    pub ledger: Arc<dyn Ledger>,
    /// Who does what only one should do at a time.
    pub turns: Arc<dyn Turns>,
    /// What instances tell each other.
    pub reports: Arc<dyn Reports>,
    /// Which of them this process is.
    pub instance: Instance,
    /// Answers to questions of other instances.
    pub answers: Arc<Answers>,
    /// Bytes.
    pub vault: Arc<dyn Vault>,
    /// What people see.
    pub tree: Arc<dyn Tree>,
    /// Hints.
    pub signals: Arc<dyn Signals>,
    /// The other side.
    pub editor: Arc<dyn DocumentServer>,
    /// The tokens shared with it.
    pub tokens: Arc<Tokens>,
    /// The keys of the host application.
    pub(crate) host_keys: HostKeys,
    /// What waits for a far vault, if there is one; the vault above goes through it.
    pub depot: Option<Arc<Depot>>,
    /// Bytes on their way.
    pub spool: Spool,
    /// What room there is.
    pub disk: Arc<dyn Disk>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Random bits.
    pub random: Arc<dyn Random>,
    /// Which guards stand; all of them outside of tests.
    pub guards: Guards,
    /// Callbacks of one document are written down in the order they arrive.
    pub arrivals: Lanes<DocumentId>,
    /// Saves of one document are prepared side by side and committed in order.
    pub saves: Lanes<DocumentId>,
    /// Publications of one document happen in order.
    pub publications: Lanes<DocumentId>,
    /// Documents whose publication waits.
    pub publications_wanted: Wanted<DocumentId>,
    /// Publications at once.
    pub publishing: Arc<Semaphore>,
    /// Saves in progress in this process.
    pub jobs: Jobs,
    /// Who came into which session.
    pub entries: Entries,
    /// Whether this process ran all the time.
    pub awake: Awake,
    /// The drain of this process.
    pub(crate) drains: Own<DrainView>,
    /// The examination of this process.
    pub(crate) examinations: Own<ExaminationView>,
    /// How the engines were when somebody last looked.
    pub engines: Engines,
    /// How much there was when somebody last counted.
    pub counted: Counted,
    /// Blobs that were read back whole and of which the ledger does not know yet.
    pub read_backs: Arc<ReadBacks>,
    /// Who watches which document.
    pub rooms: Arc<Rooms>,
    /// Downloads and checks at once.
    pub fetching: Arc<Semaphore>,
    /// Comparisons at once.
    pub comparisons: Arc<Semaphore>,
    /// Workbooks that are read and submitted at once.
    pub assessments: Arc<Semaphore>,
    /// Pages that follow a summary log at once.
    pub log_streams: Arc<Semaphore>,
    /// Exports of records at once.
    pub exports: Arc<Semaphore>,
    /// Summary logs whose work waits.
    pub(crate) logs_wanted: Wanted<SummaryLogId>,
    /// A summary log has moved on.
    pub logs_moved: Notify,
    /// Work on a summary log has ended, well or not.
    pub(crate) logs_settled: watch::Sender<()>,
    /// Workbooks that have just come in.
    pub(crate) arrived: Arrived,
    /// Who tries what at share links.
    pub(crate) door: Door,
    /// The last document whose published file was looked at for changes from outside.
    pub(crate) looked_outside: Mutex<Option<DocumentId>>,
    /// Forgotten files that the Document Server keeps.
    pub forgotten: ForgottenFiles,
    /// Whose turn it is to let go of things, and how far it got.
    pub(crate) pruning: Turn,
    /// Since when this process works.
    pub started_at: Timestamp,
    /// Wakes the recovery loop before its time.
    pub recovery_wanted: Notify,
    stopping: CancellationToken,
    closing: CancellationToken,
}

/// The ports and sources an [`App`] is made of; tests put their own together.
pub struct Parts {
    /// What was set.
    pub config: Config,
    /// Metadata, history, unfinished work.
    pub ledger: Arc<dyn Ledger>,
    /// Who does what only one should do at a time.
    pub turns: Arc<dyn Turns>,
    /// What instances tell each other.
    pub reports: Arc<dyn Reports>,
    /// Which of them this process is.
    pub instance: Instance,
    /// Answers to questions of other instances.
    pub answers: Arc<Answers>,
    /// Bytes.
    pub vault: Arc<dyn Vault>,
    /// What people see.
    pub tree: Arc<dyn Tree>,
    /// Hints.
    pub signals: Arc<dyn Signals>,
    /// The other side.
    pub editor: Arc<dyn DocumentServer>,
    /// What waits for a far vault, if there is one; the vault above goes through it.
    pub depot: Option<Arc<Depot>>,
    /// Bytes on their way.
    pub spool: Spool,
    /// What room there is.
    pub disk: Arc<dyn Disk>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Random bits.
    pub random: Arc<dyn Random>,
    /// Which guards stand.
    pub guards: Guards,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Serve,
    Inspect,
    Restore,
}

type OpenLedger = (Arc<dyn Ledger>, Arc<dyn Turns>, Arc<dyn Reports>);

/// The ledger, at the newest number of its schema.
async fn open_ledger(config: &Config, guards: Guards) -> Result<OpenLedger, LedgerError> {
    match &config.ledger {
        Engine::Sqlite => {
            let ledger = Arc::new(open_embedded(config, guards)?);
            Ok((ledger, Arc::new(LocalTurns::default()), Arc::new(Alone)))
        }
        Engine::Postgres(settings) => {
            let options = options_of(config, settings, guards);
            let ledger = Arc::new(PostgresLedger::open(&options).await?);
            Ok((Arc::clone(&ledger) as Arc<dyn Ledger>, Arc::new(PostgresTurns::open(&options)?), ledger))
        }
    }
}

fn open_embedded(config: &Config, guards: Guards) -> Result<SqliteLedger, LedgerError> {
    let on_trouble = || telemetry::storage_failed("ledger");
    let options = Options { guards, on_trouble, ..Options::new(config.server.environment.clone()) };
    SqliteLedger::open(&config.server.data.join(LEDGER), &options)
}

fn options_of(config: &Config, settings: &Postgres, guards: Guards) -> postgres::Options {
    postgres::Options {
        ca_file: settings.ca_file.clone(),
        connections: settings.connections_max,
        wait_max: settings.wait_max,
        guards,
        on_trouble: || telemetry::storage_failed("ledger"),
        ..postgres::Options::new(config.server.environment.clone(), &settings.url)
    }
}

/// With others about, all go by the clock of the ledger.
async fn open_clock(config: &Config, ledger: &dyn Ledger) -> Result<Arc<dyn Clock>, LedgerError> {
    if !config.ledger.is_shared() {
        return Ok(Arc::new(SystemClock));
    }
    let clock = LedgerClock::until_heard(Arc::new(SystemClock));
    let asked = Instant::now();
    if let Some(said) = ledger.ping().await? {
        clock.heard(said, asked);
    }
    Ok(Arc::new(clock))
}

fn open_signals(config: &Config) -> Result<Arc<dyn Signals>, StartError> {
    let Some(redis) = &config.signals else { return Ok(Arc::new(LocalSignals::default())) };
    Ok(Arc::new(RedisSignals::open(redis::Settings {
        address: redis.address.clone(),
        prefix: redis.prefix.clone(),
        instance: format!("{:016x}", SystemRandom.bits()),
        on_change: |standing| match standing {
            Standing::Heard => tracing::info!("Redis is there: other instances are heard"),
            Standing::Away => {
                tracing::warn!("Redis is away: other instances are not heard, and waits get longer")
            }
        },
    })?))
}

impl App {
    /// For the one process that may write to its data folder: the service.
    pub async fn serving(config: Config, guards: Guards) -> Result<(Self, FolderLock), StartError> {
        let lock = FolderLock::take(&config.server.data)?;
        Self::open(config, guards, Purpose::Serve).await.map(|app| (app, lock))
    }

    /// Whether a service ever ran on this configuration's data folder. A database is brought up to date when it is opened.
    pub fn has_data(config: &Config) -> bool {
        config.ledger.is_shared() || Self::has_data_in(&config.server.data)
    }

    /// Whether there is an embedded ledger in this configuration's data folder, whatever is used now.
    pub(crate) fn has_embedded_data(config: &Config) -> bool {
        Self::has_data_in(&config.server.data)
    }

    /// The embedded ledger of the data folder and the database the configuration names, both at the newest number, for the one process
    /// that copies from the first into the second.
    pub(crate) async fn both_ledgers(
        config: &Config,
    ) -> Result<(FolderLock, SqliteLedger, PostgresLedger), StartError> {
        let lock = FolderLock::take(&config.server.data)?;
        let place = Engine::Sqlite.place();
        let embedded =
            open_embedded(config, Guards::ALL).map_err(|cause| StartError::Ledger { place, cause })?;
        let failed = |cause| StartError::Ledger { place: config.ledger.place(), cause };
        let Engine::Postgres(settings) = &config.ledger else {
            return Err(failed(LedgerError::not_found("the address of a PostgreSQL server")));
        };
        let options = options_of(config, settings, Guards::ALL);
        let shared = PostgresLedger::open(&options).await.map_err(failed)?;
        Ok((lock, embedded, shared))
    }

    /// Whether a service ever ran on this folder.
    pub(crate) fn has_data_in(data: &Path) -> bool {
        Self::ledger_in(data).exists()
    }

    /// Where the embedded ledger of a data folder is.
    pub(crate) fn ledger_in(data: &Path) -> PathBuf {
        data.join(LEDGER)
    }

    /// A vault in a folder of its own: a backup.
    pub(crate) fn vault_in(folder: &Path) -> Result<Arc<dyn Vault>, vault::VaultError> {
        Ok(Arc::new(LocalVault::open(folder, &Guards::ALL)?))
    }

    /// A vault that the configuration names and that is not the one in use.
    pub(crate) fn other_vault(&self, kind: StoreKind) -> Result<Arc<dyn Vault>, VaultError> {
        let stores = Stores { vault: kind, tree: kind, ..self.config.stores.clone() };
        let data = &self.config.server.data;
        let opening = OpeningStores {
            stores: &stores,
            data,
            guards: self.guards,
            purpose: Purpose::Inspect,
            spool: &self.spool,
        };
        opening.vault(kind, opening.sftp()?.as_ref())
    }

    /// The embedded engine on a folder that is being restored, for the one process that does so.
    pub(crate) async fn restoring(config: Config, guards: Guards) -> Result<Self, StartError> {
        Self::open(config, guards, Purpose::Restore).await
    }

    /// To look at beside a running service.
    pub async fn inspecting(config: Config) -> Result<Self, StartError> {
        Self::open(config, Guards::ALL, Purpose::Inspect).await
    }

    async fn open(config: Config, guards: Guards, purpose: Purpose) -> Result<Self, StartError> {
        let data = config.server.data.clone();
        let folder = data.display().to_string();
        if purpose != Purpose::Restore && crate::preserving::unfinished(&data) {
            return Err(StartError::HalfRestored { folder });
        }
        let vault_failed = |cause| StartError::Vault { folder: folder.clone(), cause };
        let spool = Spool::open(&data.join("spool")).map_err(vault_failed)?;
        if purpose == Purpose::Serve {
            spool.clean().map_err(vault_failed)?;
        }
        let ledger_failed = |cause| StartError::Ledger { place: config.ledger.place(), cause };
        let (ledger, turns, reports) = open_ledger(&config, guards).await.map_err(ledger_failed)?;
        let opening = OpeningStores { stores: &config.stores, data: &data, guards, purpose, spool: &spool };
        if let Some(missing) = opening.missing_vault() {
            let names_files = !ledger.blobs(None, 1).await.map_err(ledger_failed)?.is_empty();
            if names_files && purpose != Purpose::Restore {
                return Err(StartError::NoVault { folder: missing.display().to_string() });
            }
        }
        let (vault, tree, depot) = opening.open().map_err(vault_failed)?;
        let signals = open_signals(&config)?;
        let random: Arc<dyn Random> = Arc::new(SystemRandom);
        let clock = open_clock(&config, ledger.as_ref()).await.map_err(ledger_failed)?;
        let tokens = Arc::new(Tokens::new(&config.document_server.secrets));
        let sources = (Arc::clone(&clock), Arc::clone(&random));
        let instance = Instance::here(format!("{:016x}", random.bits()), config.server.listen.port());
        let answers = Arc::new(Answers::new(Arc::clone(&reports), &instance.id));
        let hearing = (Arc::clone(&signals), Arc::clone(&answers));
        let editor = OnlyOffice::new(&config, Arc::clone(&tokens), hearing, sources)?;
        Self::from_parts(Parts {
            config,
            ledger,
            turns,
            reports,
            instance,
            answers,
            vault: Arc::new(Metered(vault)),
            tree,
            depot,
            signals,
            editor: Arc::new(editor),
            spool,
            disk: Arc::new(LocalDisk::of(data)),
            clock,
            random,
            guards,
        })
    }

    /// Puts given parts together.
    pub fn from_parts(parts: Parts) -> Result<Self, StartError> {
        let saving = &parts.config.saving;
        let settings = lanes::Settings {
            depth_max: saving.lane_depth_max,
            wait: saving.answer_within,
            pass_after: saving.pass_after,
            drain: parts.config.stopping.drain,
        };
        // A stream holds a connection, and callbacks need connections too.
        let watchers_max = parts.config.sessions.streams_max.min(parts.config.server.connections_max / 2);
        Ok(Self {
            tokens: Arc::new(Tokens::new(&parts.config.document_server.secrets)),
            host_keys: HostKeys::new(&parts.config.api),
            arrivals: Lanes::new(settings)?,
            saves: Lanes::new(settings)?,
            publications: Lanes::new(settings)?,
            publications_wanted: Wanted::default(),
            publishing: Arc::new(Semaphore::new(crate::recovering::PUBLICATIONS_MAX)),
            jobs: Jobs::default(),
            entries: Entries::default(),
            awake: Awake::default(),
            drains: Own::default(),
            examinations: Own::default(),
            engines: Engines::default(),
            counted: Counted::default(),
            read_backs: Arc::default(),
            rooms: Arc::new(Rooms::new(watchers_max)),
            fetching: Arc::new(Semaphore::new(saving.fetch_parallel_max)),
            comparisons: Arc::new(Semaphore::new(crate::comparing::PARALLEL_MAX)),
            assessments: Arc::new(Semaphore::new(parts.config.submitting.parallel_max)),
            log_streams: Arc::new(Semaphore::new(watchers_max)),
            exports: Arc::new(Semaphore::new(crate::recording::EXPORTS_MAX)),
            logs_wanted: Wanted::default(),
            logs_moved: Notify::new(),
            logs_settled: watch::Sender::new(()),
            arrived: Arrived::default(),
            door: Door::default(),
            looked_outside: Mutex::default(),
            forgotten: ForgottenFiles::default(),
            pruning: Turn::default(),
            started_at: parts.clock.now(),
            recovery_wanted: Notify::new(),
            stopping: CancellationToken::new(),
            closing: CancellationToken::new(),
            config: parts.config,
            ledger: parts.ledger,
            turns: parts.turns,
            reports: parts.reports,
            instance: parts.instance,
            answers: parts.answers,
            vault: parts.vault,
            tree: parts.tree,
            depot: parts.depot,
            signals: parts.signals,
            editor: parts.editor,
            spool: parts.spool,
            disk: parts.disk,
            clock: parts.clock,
            random: parts.random,
            guards: parts.guards,
        })
    }

    /// Since when this process reads all that is sent to it.
    pub(crate) fn listening_since(&self) -> Timestamp {
        let awake_since = self.awake.since_last_stop().and_then(|time| self.now().checked_sub(time).ok());
        awake_since.map_or(self.started_at, |since| since.max(self.started_at))
    }

    /// Now, by the service's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether a balancer may send new work.
    pub fn is_ready(&self) -> bool {
        !self.stopping.is_cancelled()
    }

    /// From now on no new work is asked for. What comes all the same is taken: balancers need a moment to notice.
    pub fn stop_being_ready(&self) {
        self.stopping.cancel();
    }

    /// Whether whoever comes is served.
    pub(crate) fn takes_newcomers(&self) -> bool {
        !self.closing.is_cancelled()
    }

    /// From now on newcomers are told to come back later.
    pub fn turn_newcomers_away(&self) {
        self.stopping.cancel();
        self.closing.cancel();
    }

    /// Waits until no new work is asked for.
    pub async fn stopped_being_ready(&self) {
        self.stopping.cancelled().await;
    }
}
