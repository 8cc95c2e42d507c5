//! The ledger on SQLite: the embedded engine, nothing to install.
//!
//! One thread writes, many read. Steps that arrive together share one transaction and one flush (group commit), each
//! in a savepoint of its own, so that one failing step harms no other. WAL with `synchronous=FULL`: a step that
//! returned survives a power cut.
//!
//! Guarantees: the port's. A step that waited longer than [`Options::wait_max`] for the writer is refused as busy and
//! never happens. Does not do: several machines (PostgreSQL does).

mod acts;
mod audit;
mod callers;
mod changes;
mod clearing;
mod commit;
mod companies;
mod comparing;
mod contents;
mod documents;
mod erasing;
mod facts;
mod forgotten;
mod history;
mod inbox;
mod journal;
mod keys;
mod log_rows;
mod logs;
mod migrations;
mod needs;
mod operations;
mod outbox;
mod problems;
mod pruning;
mod publications;
mod readers;
mod record_checks;
mod records;
mod registering;
mod rows;
mod saves;
mod scopes;
mod searching;
mod sessions;
mod shares;
mod snapshots;
mod staging;
mod submitting;
mod templates;
mod trail;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::{Environment, Guards};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::{LedgerError, Result};
use journal::{JOURNAL_PAGES_MAX, Journal};
use readers::Readers;
use writer::{Urgency, Writer};

/// How the engine is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// The installation the keys belong to.
    pub environment: Environment,
    /// How long a step may wait for the writer before it is refused as busy. The seed's lock timeout: 3 s.
    pub wait_max: Duration,
    /// Connections for reading side by side.
    pub readers: usize,
    /// Whether commits are flushed. Only tests that never pull the plug may say no.
    pub durability: Durability,
    /// Which guards stand; all of them outside of tests.
    pub guards: Guards,
    /// Called whenever the engine fails a step or a read, to be counted.
    pub on_trouble: fn(),
}

impl Options {
    /// The defaults for an environment.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            wait_max: Duration::from_secs(3),
            readers: 4,
            durability: Durability::Full,
            guards: Guards::ALL,
            on_trouble: || {},
        }
    }
}

/// Whether commits are flushed to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Each commit is flushed before it returns.
    Full,
    /// Nothing is flushed: for tests.
    None,
}

/// The SQLite adapter.
#[derive(Debug)]
pub struct SqliteLedger {
    writer: Writer,
    /// Behind the writer, for whose end it waits.
    _journal: Journal,
    readers: Readers,
    shared: Arc<Shared>,
    on_trouble: fn(),
    /// Holds the database of [`SqliteLedger::temporary`] until the ledger goes.
    _folder: Option<tempfile::TempDir>,
}

/// What every step may look at.
#[derive(Debug)]
struct Shared {
    environment: Environment,
    guards: Guards,
}

impl SqliteLedger {
    /// Opens the database file, creating and migrating it as needed.
    pub fn open(file: &Path, options: &Options) -> Result<Self> {
        let connection = connect(file, options.durability)?;
        migrations::migrate(&connection)?;
        if options.durability == Durability::Full {
            flush_folder_of(file)?;
        }
        let (journal, wake) = Journal::start(connect(file, options.durability)?)?;
        let shared = Arc::new(Shared { environment: options.environment.clone(), guards: options.guards });
        Ok(Self {
            writer: Writer::start(connection, options.wait_max, wake)?,
            _journal: journal,
            readers: Readers::new(file.to_owned(), options.readers),
            shared,
            on_trouble: options.on_trouble,
            _folder: None,
        })
    }

    /// A database in a folder of its own that goes with the ledger: the memory adapter for tests.
    pub fn temporary(options: &Options) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(unavailable)?;
        let options = Options { durability: Durability::None, ..options.clone() };
        let mut ledger = Self::open(&folder.path().join("ledger.sqlite"), &options)?;
        ledger._folder = Some(folder);
        Ok(ledger)
    }

    /// Runs a step on the writer's thread, in a transaction.
    async fn write<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Connection, &Shared) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        self.noticed(self.writer.run(Urgency::Awaited, move |connection| step(connection, &shared)).await)
    }

    /// Runs a small part of work on many rows: whoever saves goes first.
    async fn write_bulk<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.noticed(self.writer.run(Urgency::Bulk, step).await)
    }

    /// Runs a read on some reader's connection.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.noticed(self.readers.run(read).await)
    }

    fn noticed<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(LedgerError::Busy | LedgerError::Unavailable { .. } | LedgerError::Damaged { .. }) =
            &result
        {
            (self.on_trouble)();
        }
        result
    }
}

fn connect(file: &Path, durability: Durability) -> Result<Connection> {
    let connection = Connection::open(file).map_err(unavailable)?;
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::None => "OFF",
    };
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = {synchronous};
             PRAGMA foreign_keys = ON;
             PRAGMA busy_timeout = 3000;
             PRAGMA journal_size_limit = 67108864;
             PRAGMA wal_autocheckpoint = {JOURNAL_PAGES_MAX};
             PRAGMA temp_store = MEMORY;"
        ))
        .map_err(unavailable)?;
    connection.set_prepared_statement_cache_capacity(128);
    keep_plans(&connection)?;
    Ok(connection)
}

/// A statement keeps the plan it was prepared with. Otherwise SQLite plans many of them anew whenever other values are bound, which
/// takes longer than looking up a row.
fn keep_plans(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop).map_err(unavailable)
}

/// SQLite flushes its files but not the entry of the main file in its folder.
fn flush_folder_of(file: &Path) -> Result<()> {
    let folder = file.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(unavailable)
}

fn unavailable(cause: impl std::error::Error + Send + Sync + 'static) -> LedgerError {
    LedgerError::Unavailable { cause: Box::new(cause) }
}

impl From<rusqlite::Error> for LedgerError {
    fn from(cause: rusqlite::Error) -> Self {
        match cause.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => Self::Busy,
            _ => unavailable(cause),
        }
    }
}
