//! The world of one round: a folder, a Document Server, a service that is killed again and again, and documents.
//!
//! Guarantees: nothing is shared between two rounds but the machine. Does not act: `load` plays the users, `killing`
//! kills, `watching` and `checking` judge.

mod disk;
mod editor;
mod host;
mod process;
mod storage;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::{RwLock, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::arguments::Flow;
use crate::checking::History;
use crate::chronicle::Chronicle;
use crate::cluster::{Cluster, Shape};
use crate::dice::Dice;

pub(crate) use disk::{Cut, Disk, DiskKind};
pub(crate) use editor::{Autosave, Editor};
pub(crate) use host::{Grant, Host, Mode, NoAnswer};
pub(crate) use process::{CrashAt, Launcher, Process, Start, free_port};
pub(crate) use storage::{DepotUse, Shelf, Storage, VaultKind, ensure_far};

pub(crate) const ENVIRONMENT: &str = "torture";
pub(crate) const COMPANY: &str = "torture";
pub(crate) const PROJECT: &str = "papers";
pub(crate) const DOCUMENT_SERVER_SECRET: &str = "the secret shared with the document server";
pub(crate) const API_SECRET: &str = "the secret of the application that calls the service";

/// A callback is answered within this time, whatever happens.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A 0 that would come later is not given. Shorter, so that late answers happen at all: see `load::scenes::revival`.
pub(crate) const ANSWER_ZERO_WITHIN: Duration = Duration::from_secs(1);

/// What a round is made of.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) round: u64,
    pub(crate) seed: u64,
    pub(crate) conditions: Conditions,
    pub(crate) folder: PathBuf,
}

/// What all rounds of a run have in common.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    pub(crate) flow: Flow,
    pub(crate) documents: usize,
    pub(crate) disk: DiskKind,
    pub(crate) mutant: Option<String>,
    pub(crate) weather: Weather,
    pub(crate) executable: PathBuf,
    pub(crate) vault: VaultKind,
    /// For how long the storage is away, instead of kills.
    pub(crate) outage: Option<Duration>,
    /// Several instances on PostgreSQL; otherwise one service with its embedded ledger.
    pub(crate) cluster: Option<Shape>,
}

/// How much goes wrong around the service, beside its own death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weather {
    /// Everything: callbacks and answers are lost, files damaged, conversions fail, the Document Server dies.
    Rough,
    /// Everyday editing and races.
    Mild,
}

/// The world of one round.
pub(crate) struct World {
    pub(crate) setting: Setting,
    pub(crate) chronicle: Chronicle,
    pub(crate) editor: Editor,
    pub(crate) host: Host,
    pub(crate) disk: Disk,
    /// Where the far vault is, if it is far.
    pub(crate) storage: Option<Storage>,
    pub(crate) launcher: Launcher,
    /// Where the other instances are, and what they share.
    pub(crate) cluster: Option<Cluster>,
    /// What clients were told.
    pub(crate) history: History,
    /// Held for writing while the power-loss disk puts another folder in the place of the data.
    pub(crate) disk_in_place: RwLock<()>,
    /// When it falls, everybody finishes what they are doing and leaves.
    pub(crate) curtain: CancellationToken,
    /// Until when nobody is going to be killed, as far as is known.
    calm_until: watch::Sender<Instant>,
    papers: Mutex<BTreeMap<String, Paper>>,
    handed_out: Mutex<Vec<HandedOut>>,
    kills: AtomicU64,
}

/// A document of the play.
#[derive(Debug, Clone)]
pub(crate) struct Paper {
    pub(crate) name: String,
    /// What was uploaded.
    pub(crate) sha256: String,
}

/// A key the service gave to somebody.
#[derive(Debug, Clone)]
pub(crate) struct HandedOut {
    pub(crate) document: String,
    pub(crate) key: String,
    pub(crate) asked_ms: u64,
}

impl World {
    pub(crate) async fn new(setting: Setting) -> Result<Self> {
        let dice = Dice::of(setting.seed);
        let chronicle = Chronicle::new();
        let (port, editor_port) =
            (free_port(dice.part("port", 1).seed())?, free_port(dice.part("port", 2).seed())?);
        let autosave = if setting.round % 3 == 2 { Autosave::On } else { Autosave::Off };
        let editor = Editor::start(editor_port, setting.seed, autosave).await?;
        let data = setting.folder.join("data");
        std::fs::create_dir_all(&data).with_context(|| format!("cannot make {}", data.display()))?;
        let disk = Disk::new(setting.conditions.disk, &data, &setting.folder.join("shadow"))?;
        let cluster = match &setting.conditions.cluster {
            Some(shape) => Some(Cluster::start(&setting, shape, chronicle.now_ms()).await?),
            None => None,
        };
        let alone = format!("http://127.0.0.1:{port}");
        let url = cluster.as_ref().map_or(alone, |cluster| cluster.balancer.url.clone());
        let mut environment = settings_of_the_service(&data, &url, &editor.url);
        environment.extend(disk.environment());
        let storage_port = free_port(dice.part("port", 3).seed())?;
        let storage = Storage::start(setting.conditions.vault, &setting.folder, storage_port).await?;
        let depot = DepotUse::of_round(setting.round);
        environment.extend(storage.iter().flat_map(|storage| storage.environment(depot)));
        environment.extend(cluster.iter().flat_map(|cluster| cluster.settings_of(0)));
        let mutant = setting.conditions.mutant.iter();
        environment.extend(mutant.map(|name| variable("SAVEGUARD_TORTURE_MUTANT", name)));
        let launcher = Launcher {
            executable: setting.conditions.executable.clone(),
            port,
            environment,
            log: setting.folder.join("service.log"),
            steps: setting.folder.join("steps.txt"),
        };
        Ok(Self {
            host: Host::new(&url, chronicle.now_ms())?,
            chronicle,
            editor,
            disk,
            storage,
            launcher,
            cluster,
            history: History::default(),
            disk_in_place: RwLock::new(()),
            curtain: CancellationToken::new(),
            calm_until: watch::Sender::new(Instant::now()),
            papers: Mutex::default(),
            handed_out: Mutex::default(),
            kills: AtomicU64::new(0),
            setting,
        })
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.setting.folder.join("data")
    }

    /// Everybody who can be asked: the service, or the balancer and each instance behind it.
    pub(crate) fn hosts(&self) -> Vec<Host> {
        let instances = self.cluster.iter().flat_map(|cluster| &cluster.instances);
        std::iter::once(&self.host).chain(instances.map(|instance| &instance.host)).cloned().collect()
    }

    /// How long, in that time, something stood between an instance and its work.
    pub(crate) fn held_up_ms(&self, from_ms: u64, to_ms: u64) -> u64 {
        self.cluster.as_ref().map_or(0, |cluster| cluster.held_up_ms(from_ms, to_ms))
    }

    /// How often the service was killed so far.
    pub(crate) fn kills(&self) -> u64 {
        self.kills.load(Ordering::SeqCst)
    }

    /// The service is about to die.
    pub(crate) fn count_kill(&self) {
        self.kills.fetch_add(1, Ordering::SeqCst);
    }

    /// Promises that nobody is killed for a while.
    pub(crate) fn promise_calm(&self, time: Duration) {
        self.calm_until.send_replace(Instant::now() + time);
    }

    /// How long nobody is going to be killed.
    pub(crate) fn calm_left(&self) -> Duration {
        self.calm_until.borrow().saturating_duration_since(Instant::now())
    }

    /// Remembers a document that the service says it has.
    pub(crate) fn add_paper(&self, id: &str, paper: Paper) {
        self.papers.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), paper);
    }

    pub(crate) fn papers(&self) -> BTreeMap<String, Paper> {
        self.papers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks for a configuration to edit, and remembers what was handed out.
    pub(crate) async fn configure(&self, document: &str, user: &str) -> Result<Grant, NoAnswer> {
        let asked_ms = self.chronicle.now_ms();
        let grant = self.host.configure(document, user, Mode::Edit).await?;
        self.history.note_base(document, (asked_ms, self.chronicle.now_ms()), &grant);
        self.chronicle.note_of(document, format!("{user} was handed {} on {}", grant.key, grant.base));
        let handed_out = HandedOut { document: document.to_owned(), key: grant.key.clone(), asked_ms };
        self.handed_out.lock().unwrap_or_else(PoisonError::into_inner).push(handed_out);
        Ok(grant)
    }

    pub(crate) fn handed_out(&self) -> Vec<HandedOut> {
        self.handed_out.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The file people see.
    pub(crate) fn published_file(&self, document: &str, name: &str) -> PathBuf {
        self.published_root().join(COMPANY).join(PROJECT).join(document).join(name)
    }
}

fn variable(name: &str, value: &str) -> (String, OsString) {
    (name.to_owned(), value.into())
}

/// The service's own settings, shrunk as the Document Server's delays are.
fn settings_of_the_service(data: &Path, url: &str, editor_url: &str) -> Vec<(String, OsString)> {
    let listen = url.trim_start_matches("http://");
    let life = editor::LINK_LIFE_SECONDS.to_string();
    let answer = ANSWER_WITHIN.as_secs().to_string();
    let answer_zero = ANSWER_ZERO_WITHIN.as_secs().to_string();
    let settings = [
        ("SERVER_LISTEN", listen),
        ("SERVER_PUBLIC_URL", url),
        ("SERVER_INTERNAL_URL", url),
        ("SERVER_DATA", &data.display().to_string()),
        ("SERVER_ENVIRONMENT", ENVIRONMENT),
        ("DOCUMENT_SERVER_PUBLIC_URL", editor_url),
        ("DOCUMENT_SERVER_SECRET", DOCUMENT_SERVER_SECRET),
        ("DOCUMENT_SERVER_COMMAND_SECONDS", "3"),
        ("API_SECRET", API_SECRET),
        ("OPENING_WAIT_SECONDS", "4"),
        ("SAVING_ANSWER_SECONDS", &answer),
        ("SAVING_ANSWER_ZERO_SECONDS", &answer_zero),
        ("SAVING_PASS_AFTER_MS", "300"),
        ("SAVING_FETCH_SPREAD_MS", "120"),
        ("SAVING_FETCH_SECONDS", "4"),
        ("SAVING_IDENTITY_WINDOW_SECONDS", &life),
        ("RECOVERING_INTERVAL_SECONDS", "1"),
        ("SUBMITTING_LEASE_SECONDS", "1"),
        ("SUBMITTING_PARALLEL_MAX", "4"),
        ("STOPPING_NOTICE_MS", "0"),
        ("LOG_FILTER", "info"),
    ];
    settings.into_iter().map(|(name, value)| variable(&format!("SAVEGUARD_{name}"), value)).collect()
}
