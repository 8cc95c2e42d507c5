//! The ledger on PostgreSQL: the engine that many instances share.
//!
//! Each step is one transaction on a connection of a bounded pool. Files and functions have the names they have in
//! [`crate::sqlite`]; what differs is what many writers need:
//!
//! - `READ COMMITTED` with locks. A step that touches a document begins by locking its row, one that touches a scope locks the
//!   scope's; from then on it reads facts that nobody else changes, and each of its statements sees all that was committed
//!   before the lock was had. Snapshot isolation would make it read what was true before it waited, and fail at the end
//!   instead; `SERIALIZABLE` had bugs, costs memory and fails without need. What must never be, stands in unique and partial
//!   indexes and in triggers besides. The order of locks is in [`locks`].
//! - A read of several statements takes a snapshot (`REPEATABLE READ READ ONLY`), a read of one needs no transaction.
//! - Statements name their columns and never say `*` of a table: a prepared one would fail when a newer instance adds a column.
//! - No loops of awaited statements over rows: sets go as arrays (`UNNEST`, `= ANY`).
//! - Texts of people may hold a zero byte, which PostgreSQL does not store: [`rows::text`].
//!
//! Guarantees: the port's. Survives restarts and failovers of the server: steps fail as unavailable meanwhile, and the next
//! one finds a new connection. Does not do: run the server, keep a standby (`synchronous_commit` makes a commit wait for one
//! that the server is told of).

mod acts;
mod audit;
mod book;
mod book_rows;
mod callers;
mod chains;
mod changes;
mod clearing;
mod commit;
mod companies;
mod comparing;
mod contents;
mod documents;
mod erasing;
mod errors;
mod facts;
mod forgotten;
mod history;
mod inbox;
mod keys;
mod locks;
mod log_rows;
mod logs;
mod migrations;
mod moving;
mod needs;
mod operations;
mod outbox;
mod pool;
mod primary;
mod problems;
mod pruning;
mod publications;
mod record_checks;
mod records;
mod registering;
mod reports;
mod rows;
mod saves;
mod scopes;
mod searching;
mod sessions;
mod shares;
mod snapshots;
mod staging;
mod step;
mod submitting;
mod templates;
pub mod throwaway;
mod trail;
mod turns;

use std::sync::Arc;

use deadpool_postgres::Pool;
use model::{Environment, Guards};

use crate::{LedgerError, Result};
pub use pool::Options;
pub(crate) use snapshots::TABLES;
use step::{Purpose, Step};
pub use turns::PostgresTurns;

/// The PostgreSQL adapter.
#[derive(Debug, Clone)]
pub struct PostgresLedger {
    pool: Pool,
    shared: Arc<Shared>,
    /// Holds the database of [`throwaway::Database::into_ledger`] until the ledger goes.
    _database: Option<Arc<throwaway::Database>>,
}

/// What every step may look at.
#[derive(Debug)]
pub(crate) struct Shared {
    environment: Environment,
    guards: Guards,
    on_trouble: fn(),
}

impl Shared {
    fn notice<T>(&self, result: &Result<T>) {
        if let Err(LedgerError::Busy | LedgerError::Unavailable { .. } | LedgerError::Damaged { .. }) = result
        {
            (self.on_trouble)();
        }
    }
}

impl PostgresLedger {
    /// Connects, and brings the schema up to date. Several instances may do so at once: one migrates, the others wait.
    pub async fn open(options: &Options) -> Result<Self> {
        let pool = pool::open(options)?;
        migrations::migrate(&pool).await?;
        let shared = Shared {
            environment: options.environment.clone(),
            guards: options.guards,
            on_trouble: options.on_trouble,
        };
        Ok(Self { pool, shared: Arc::new(shared), _database: None })
    }

    /// Begins a step that changes something.
    async fn write(&self) -> Result<Step> {
        self.begin(Purpose::Write).await
    }

    /// Begins a read of several statements, which see one state.
    async fn read(&self) -> Result<Step> {
        self.begin(Purpose::Read).await
    }

    /// A connection for a single statement.
    async fn glance(&self) -> Result<Step> {
        self.begin(Purpose::Glance).await
    }

    async fn begin(&self, purpose: Purpose) -> Result<Step> {
        let begun = Step::begin(&self.pool, &self.shared, purpose).await;
        self.shared.notice(&begun);
        begun
    }
}
