//! One transaction: a step of the port, or a read of several statements.
//!
//! A step is begun, done and ended:
//!
//! ```text
//! let step = self.write().await?;
//! let done = create(&step, company).await;
//! step.end(done).await
//! ```
//!
//! Guarantees: [`Step::end`] commits what went well and undoes everything else; a step whose future is dropped on the way is
//! undone, because its connection is closed. A statement that failed dooms its step: it cannot be committed by accident. If
//! the connection breaks while the commit is on its way, the server is asked on another one whether it happened: what is
//! reported as not done was not done. Does not do: repeat a step. Only beginning is repeated, because nothing was done yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, SimpleQueryMessage};

use super::Shared;
use super::errors::{no_connection, unavailable};
use crate::{LedgerError, Result};

/// Values of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Connections that are tried until one can begin: after a restart of the server all idle ones are dead.
const BEGIN_ATTEMPTS: usize = 3;
/// How often the fate of a commit is asked for, and how long in between: longer than a server takes to restart.
const FATE_ATTEMPTS: u32 = 20;
const FATE_INTERVAL: Duration = Duration::from_millis(250);

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A step that changes something: `READ COMMITTED`, with locks. See [`super::locks`].
    Write,
    /// Several statements that must see one state: a snapshot.
    Read,
    /// A single statement, which is a transaction by itself.
    Glance,
}

/// A transaction on a connection of its own.
pub(super) struct Step {
    /// Gone when it is given back.
    connection: Option<Object>,
    purpose: Purpose,
    /// The server's number for it, if it writes.
    transaction: Option<String>,
    is_doomed: AtomicBool,
    pool: Pool,
    pub(super) shared: Arc<Shared>,
}

impl Step {
    pub(super) async fn begin(pool: &Pool, shared: &Arc<Shared>, purpose: Purpose) -> Result<Self> {
        let mut attempt = 1;
        loop {
            let connection = pool.get().await.map_err(no_connection)?;
            let mut step = Self {
                connection: Some(connection),
                purpose,
                transaction: None,
                is_doomed: AtomicBool::new(false),
                pool: pool.clone(),
                shared: Arc::clone(shared),
            };
            match step.start().await {
                Ok(()) => return Ok(step),
                Err(cause) if cause.is_closed() && attempt < BEGIN_ATTEMPTS => attempt += 1,
                Err(cause) => return Err(cause.into()),
            }
        }
    }

    async fn start(&mut self) -> std::result::Result<(), tokio_postgres::Error> {
        let Some(connection) = &self.connection else { return Ok(()) };
        match self.purpose {
            Purpose::Glance => Ok(()),
            Purpose::Read => {
                connection.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
            }
            Purpose::Write => {
                let told = connection.simple_query("BEGIN; SELECT pg_current_xact_id()").await?;
                self.transaction = told.iter().find_map(|message| match message {
                    SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                });
                Ok(())
            }
        }
    }

    fn connection(&self) -> Result<&Object> {
        self.connection.as_ref().ok_or_else(|| unavailable("the step has ended"))
    }

    /// All rows of a query.
    pub(super) async fn query(&self, text: &str, values: Values<'_>) -> Result<Vec<Row>> {
        let connection = self.connection()?;
        let rows = async {
            let statement = connection.prepare_cached(text).await?;
            connection.query(&statement, values).await
        };
        self.dooming(rows.await)
    }

    /// The only row of a query that finds one or none.
    pub(super) async fn query_optional(&self, text: &str, values: Values<'_>) -> Result<Option<Row>> {
        Ok(self.query(text, values).await?.into_iter().next())
    }

    /// The row of a query that cannot but find one.
    pub(super) async fn query_one(&self, text: &str, values: Values<'_>) -> Result<Row> {
        let found = self.query_optional(text, values).await?;
        found.ok_or_else(|| LedgerError::damaged("a row that must be there is missing"))
    }

    /// Whether a query finds anything.
    pub(super) async fn exists(&self, text: &str, values: Values<'_>) -> Result<bool> {
        Ok(self.query_optional(text, values).await?.is_some())
    }

    /// Changes rows; says how many.
    pub(super) async fn execute(&self, text: &str, values: Values<'_>) -> Result<u64> {
        let connection = self.connection()?;
        let changed = async {
            let statement = connection.prepare_cached(text).await?;
            connection.execute(&statement, values).await
        };
        self.dooming(changed.await)
    }

    /// A statement that the server refused ends its transaction: `COMMIT` would undo it and say nothing.
    fn dooming<T>(&self, result: std::result::Result<T, tokio_postgres::Error>) -> Result<T> {
        result.map_err(|cause| {
            self.is_doomed.store(true, Ordering::Relaxed);
            LedgerError::from(cause)
        })
    }

    /// Commits what went well, undoes everything else, and gives the connection back.
    pub(super) async fn end<T>(mut self, result: Result<T>) -> Result<T> {
        let result = match result {
            Ok(_) if self.is_doomed.load(Ordering::Relaxed) => {
                Err(unavailable("a statement of the step failed and was passed over"))
            }
            other => other,
        };
        let ended = match &result {
            Ok(_) => self.commit().await,
            Err(_) => self.undo().await,
        };
        let result = ended.and(result);
        self.shared.notice(&result);
        result
    }

    async fn commit(&mut self) -> Result<()> {
        if self.purpose == Purpose::Glance {
            self.give_back();
            return Ok(());
        }
        let committed = self.connection()?.batch_execute("COMMIT").await;
        match committed {
            Ok(()) => {
                self.give_back();
                Ok(())
            }
            Err(cause) if may_have_arrived(&cause) => self.fate(cause).await,
            Err(cause) => Err(cause.into()),
        }
    }

    /// The connection broke while the commit was on its way: perhaps it arrived.
    async fn fate(&self, cause: tokio_postgres::Error) -> Result<()> {
        let Some(transaction) = &self.transaction else { return Err(cause.into()) };
        for _ in 0..FATE_ATTEMPTS {
            match self.ask_for_fate(transaction).await {
                Ok(Some(fate)) if fate == "committed" => return Ok(()),
                Ok(Some(fate)) if fate == "in progress" => {}
                // Aborted, or too old to be known, or of a future that a failover took away.
                Ok(_) => return Err(cause.into()),
                Err(asking) => tracing::debug!(error = %asking, "the fate of a commit is not known yet"),
            }
            // waits on purpose: the server may be starting again.
            tokio::time::sleep(FATE_INTERVAL).await;
        }
        tracing::error!(transaction, "it could not be told whether a step of the ledger happened");
        Err(cause.into())
    }

    async fn ask_for_fate(&self, transaction: &str) -> Result<Option<String>> {
        let connection = self.pool.get().await.map_err(no_connection)?;
        let query = "SELECT pg_xact_status($1::text::xid8)";
        let asked = connection.query_one(query, &[&transaction]).await;
        match asked {
            Ok(row) => Ok(row.try_get(0)?),
            // The server that answers never heard of such a transaction.
            Err(cause) if cause.code() == Some(&tokio_postgres::error::SqlState::INVALID_PARAMETER_VALUE) => {
                Ok(None)
            }
            Err(cause) => Err(cause.into()),
        }
    }

    async fn undo(&mut self) -> Result<()> {
        if self.purpose == Purpose::Glance {
            self.give_back();
            return Ok(());
        }
        if self.connection()?.batch_execute("ROLLBACK").await.is_ok() {
            self.give_back();
        }
        // Otherwise the connection goes, and the server undoes the rest by itself.
        Ok(())
    }

    fn give_back(&mut self) {
        drop(self.connection.take());
    }
}

/// Whether a commit that failed so may have happened: the connection broke, or the server was on its way down.
fn may_have_arrived(cause: &tokio_postgres::Error) -> bool {
    cause.code().is_none_or(|code| code.code().starts_with("57P") || code.code().starts_with("08"))
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && self.purpose != Purpose::Glance
        {
            // In the middle of a transaction: nobody may get this connection again.
            drop(Object::take(connection));
        }
    }
}
