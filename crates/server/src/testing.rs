//! A workbench for tests of flows: ports in memory that outlive a process, the Document Server of [`crate::editors::testing`],
//! and a clock that moves when told. A "process" is an [`App`] on these stores; its calls can be made to fail.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use ledger::Ledger;
use ledger::documents::{Author, Company, Document, Project};
use ledger::reports::Alone;
use ledger::sqlite::{Options, SqliteLedger};
use ledger::turns::LocalTurns;
use model::callbacks::{Answer, Callback};
use model::names::FileName;
use model::operations::Rights;
use model::retention::Retention;
use model::{CompanyId, Digest, DocumentId, EditorKey, Environment, Guards, ProjectId};
use signals::local::LocalSignals;
use steps::Faults;
use vault::Spool;
use vault::faulty::{FaultyTree, FaultyVault};
use vault::memory::{MemoryTree, MemoryVault};

use crate::app::{App, Parts};
use crate::clock::{Clock, Random};
use crate::config::Config;
use crate::editors::testing::{FakeEditor, FaultyEditor};
use crate::instances::{Answers, Instance};
use crate::opening::{Upload, configure, upload};
use crate::progress::Progress;
use crate::saving::{Reply, accept};

/// A time all tests share.
const EPOCH_SECONDS: i64 = 1_794_770_000;

/// Stores and a Document Server that outlive processes.
pub(crate) struct Workbench {
    pub(crate) ledger: Arc<SqliteLedger>,
    pub(crate) vault: MemoryVault,
    pub(crate) tree: MemoryTree,
    pub(crate) editor: FakeEditor,
    pub(crate) clock: TestClock,
    pub(crate) disk: TestDisk,
    /// What processes keep; everything if not set.
    pub(crate) retention: Retention,
    /// What processes believe to stand on.
    pub(crate) engines: &'static [(&'static str, &'static str)],
    random: Arc<TestRandom>,
    folder: tempfile::TempDir,
}

/// The smallest whole docx there is, with a text that tells it apart.
pub(crate) fn docx(text: &str) -> Bytes {
    understudy::office::sample_docx("Test", &[text])
}

/// The same with another main part.
pub(crate) fn docx_of(main_part: &str) -> Bytes {
    understudy::office::docx_of(main_part)
}

/// As if there were other instances.
pub(crate) const SHARED: &[(&str, &str)] = &[
    ("LEDGER_ENGINE", "postgres"),
    ("LEDGER_URL", "postgresql://nobody@127.0.0.1:1/none"),
    ("API_SECRET", "the secret of the host application"),
    ("DOCUMENT_SERVER_SECRET", "the secret of the Document Server!"),
];

impl Workbench {
    /// Fresh stores with the document `12345`, whose content is `docx("base")`.
    pub(crate) async fn new() -> Self {
        let options = Options::new(Environment::parse("test").unwrap());
        let bench = Self {
            ledger: Arc::new(SqliteLedger::temporary(&options).unwrap()),
            vault: MemoryVault::default(),
            tree: MemoryTree::default(),
            editor: FakeEditor::default(),
            clock: TestClock::default(),
            disk: TestDisk::default(),
            retention: Retention::EVERYTHING,
            engines: &[],
            random: Arc::new(TestRandom::default()),
            folder: tempfile::tempdir().unwrap(),
        };
        let app = bench.process();
        let (company, project) = (CompanyId::parse("acme").unwrap(), ProjectId::parse("plans").unwrap());
        let (name, created_at) = ("Acme".to_owned(), app.now());
        app.ledger
            .create_company(&Company::new(company.clone(), name.clone(), created_at), &author("ops"))
            .await
            .unwrap();
        let project = Project { company, id: project, name, created_at };
        app.ledger.create_project(&project, &author("ops")).await.unwrap();
        bench.bring(&app, "12345", docx("base")).await;
        bench
    }

    /// A process whose calls all work.
    pub(crate) fn process(&self) -> Arc<App> {
        self.process_with(&Arc::new(Faults::none()))
    }

    /// A process whose calls fail as told.
    pub(crate) fn process_with(&self, faults: &Arc<Faults>) -> Arc<App> {
        let app = App::from_parts(Parts {
            config: self.config(),
            ledger: Arc::new(ledger::faulty::Faulty::new(
                self.ledger.clone() as Arc<dyn Ledger>,
                Arc::clone(faults),
            )),
            turns: Arc::new(LocalTurns::default()),
            reports: Arc::new(Alone),
            instance: Instance { id: "test".to_owned(), name: "test".to_owned() },
            answers: Arc::new(Answers::new(Arc::new(Alone), "test")),
            vault: Arc::new(FaultyVault::new(Arc::new(self.vault.clone()), Arc::clone(faults))),
            tree: Arc::new(FaultyTree::new(Arc::new(self.tree.clone()), Arc::clone(faults))),
            depot: None,
            signals: Arc::new(LocalSignals::default()),
            editor: Arc::new(FaultyEditor { inner: self.editor.clone(), faults: Arc::clone(faults) }),
            spool: Spool::open(&self.folder.path().join("spool")).unwrap(),
            disk: Arc::new(self.disk.clone()),
            clock: Arc::new(self.clock.clone()),
            random: Arc::clone(&self.random) as Arc<dyn Random>,
            guards: Guards::ALL,
        });
        Arc::new(app.unwrap())
    }

    fn config(&self) -> Config {
        let settings = [
            ("SERVER_DATA", self.folder.path().join("data").display().to_string()),
            ("SERVER_ENVIRONMENT", "test".to_owned()),
            ("SAVING_FETCH_SPREAD_MS", "0".to_owned()),
            ("OPENING_WAIT_SECONDS", "1".to_owned()),
        ];
        let settings =
            settings.into_iter().chain(self.engines.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let variables =
            settings.into_iter().map(|(name, value)| (format!("SAVEGUARD_{name}"), value)).collect();
        let config = Config::from_sources(toml::Table::new(), variables).unwrap();
        Config { retention: self.retention.clone(), ..config }
    }

    /// Brings a document in.
    pub(crate) async fn bring(&self, app: &Arc<App>, id: &str, bytes: Bytes) -> Document {
        let new = Upload {
            id: DocumentId::parse(id).unwrap(),
            company: CompanyId::parse("acme").unwrap(),
            project: ProjectId::parse("plans").unwrap(),
            name: FileName::parse("report.docx").unwrap(),
            author: author("u0"),
        };
        let body = futures_util::stream::once(async move { Ok::<_, std::convert::Infallible>(bytes) });
        upload(app, new, body).await.unwrap()
    }

    /// The document as it stands.
    pub(crate) async fn document(&self) -> Document {
        use ledger::Documents as _;
        self.ledger.document(&DocumentId::parse("12345").unwrap()).await.unwrap().unwrap()
    }

    /// Somebody opens the document for editing.
    pub(crate) async fn open(&self, app: &Arc<App>) -> EditorKey {
        configure(app, &self.document().await, &author("u1"), Rights::EDIT).await.unwrap().key
    }

    /// A callback with content, which the Document Server can serve.
    pub(crate) fn callback(&self, key: &EditorKey, status: u8, bytes: &Bytes) -> Callback {
        let path = format!("/cache/files/data/{key}_{}/output.docx", Digest::of(bytes).short(8));
        self.editor.offer(&path, bytes.clone());
        Callback {
            url: Some(format!("http://ds{path}?md5={}", self.random.bits())),
            file_type: Some("docx".to_owned()),
            users: vec!["u1".to_owned()],
            author_name: Some("User One".to_owned()),
            last_save: Some(self.clock.tick()),
            session_start: Timestamp::from_second(EPOCH_SECONDS).ok(),
            ..Callback::bare(key.clone(), status)
        }
    }

    /// A callback that is written down and not worked on: its process ended.
    pub(crate) async fn receive_only(&self, app: &App, callback: &Callback) {
        let arrival = ledger::saves::Arrival {
            document: callback.key.parts().map(|parts| parts.document),
            callback: callback.clone(),
            at: app.now(),
            identity_window: app.config.saving.identity_window,
        };
        app.ledger.receive(&arrival).await.unwrap();
    }

    /// The labels of the document's contents, newest first.
    pub(crate) async fn labels(&self) -> Vec<String> {
        use ledger::Documents as _;
        let contents = self.ledger.contents(&self.document().await.id).await.unwrap();
        contents.iter().map(|content| content.label.to_string()).collect()
    }

    /// The numbers of everything kept aside, oldest first.
    pub(crate) async fn kept_numbers(&self) -> Vec<u64> {
        use ledger::Documents as _;
        let page =
            ledger::documents::KeptPage { of: ledger::documents::Whose::All, before: None, limit: 1000 };
        self.ledger.kept_copies(&page).await.unwrap().iter().rev().map(|copy| copy.number).collect()
    }

    /// Everything that lasts, to compare two moments.
    pub(crate) async fn everything(&self) -> String {
        use ledger::{Documents as _, Trail as _};
        use vault::Vault as _;
        let document = self.document().await;
        let page =
            ledger::documents::KeptPage { of: ledger::documents::Whose::All, before: None, limit: 1000 };
        let parts = [
            format!("{:?}", self.ledger.contents(&document.id).await.unwrap()),
            format!("{:?}", self.ledger.kept_copies(&page).await.unwrap()),
            format!("{:?}", self.ledger.audit("12345", 0, 10_000).await.unwrap()),
            format!("{:?}", self.ledger.totals().await.unwrap()),
            format!("{:?}", self.vault.list(None, 10_000).await.unwrap()),
            format!("{:?}", self.tree.names(&place(&document))),
            format!("{:?}", self.editor.state.lock().unwrap().forgotten.keys()),
        ];
        parts.join("\n")
    }
}

pub(crate) fn place(document: &Document) -> vault::tree::Place {
    vault::tree::Place {
        company: document.company.clone(),
        project: document.project.clone(),
        document: document.id.clone(),
        name: document.name.clone(),
    }
}

pub(crate) fn author(id: &str) -> Author {
    Author::new(id, format!("User {id}"))
}

/// Delivers a callback; `None` if the connection was closed unanswered.
pub(crate) async fn deliver(app: &Arc<App>, callback: &Callback) -> Option<Answer> {
    match accept(app, callback.clone(), Instant::now()).await {
        Reply::Answer(answer) => Some(answer),
        Reply::Close => None,
    }
}

/// Waits until a process has nothing in hand.
pub(crate) async fn idle(app: &App) {
    while app.jobs.count() > 0
        || !app.arrivals.is_empty()
        || !app.saves.is_empty()
        || !app.publications.is_empty()
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Work of which nobody is told how far it is.
pub(crate) struct Quietly;

impl Progress for Quietly {
    fn begin(&self, _part: &'static str, _count: u64) {}
    fn advance(&self) {}
}

/// A disk of 100 GiB with as much room as told.
#[derive(Debug, Clone)]
pub(crate) struct TestDisk {
    free_mib: Arc<AtomicU64>,
}

impl Default for TestDisk {
    fn default() -> Self {
        Self { free_mib: Arc::new(AtomicU64::new(50 * 1024)) }
    }
}

impl TestDisk {
    pub(crate) fn leave(&self, free_mib: u64) {
        self.free_mib.store(free_mib, Ordering::Relaxed);
    }
}

impl crate::room::Disk for TestDisk {
    fn room(&self) -> Option<model::disk::Room> {
        let mib = 1024 * 1024;
        let free_bytes = self.free_mib.load(Ordering::Relaxed) * mib;
        Some(model::disk::Room { free_bytes, total_bytes: 100 * 1024 * mib })
    }
}

/// A clock that moves a second each time it is told to.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestClock {
    seconds: Arc<AtomicI64>,
}

impl TestClock {
    pub(crate) fn tick(&self) -> Timestamp {
        self.pass(1);
        self.now()
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(EPOCH_SECONDS + self.seconds.load(Ordering::Relaxed)).unwrap()
    }
}

/// Numbers that differ.
#[derive(Debug, Default)]
struct TestRandom {
    next: AtomicU64,
}

impl Random for TestRandom {
    fn bits(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}
