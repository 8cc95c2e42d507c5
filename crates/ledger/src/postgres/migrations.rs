//! Numbered, forward-only changes of the schema, each in a transaction of its own.
//!
//! Guarantees: a database is at some whole number; one that is newer than this program is refused, not guessed at. Several
//! instances may start at once: one holds an advisory lock and migrates, the others wait for it and find the work done. The
//! numbers and names are the same for every engine (tidy checks that).

use std::time::{Duration, Instant};

use deadpool_postgres::{Object, Pool};
use tokio_postgres::error::SqlState;

use super::errors::unavailable;
use super::pool;
use crate::{LedgerError, Result};

macro_rules! migrations {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../migrations/postgres/", $name, ".sql")))),*]
    };
}

/// Add the next one at the end; never edit one that was released.
const MIGRATIONS: &[(&str, &str)] = migrations![
    "0001_documents",
    "0002_extents",
    "0003_confirmed_keys",
    "0004_changes",
    "0005_audit",
    "0006_callers",
    "0007_shares",
    "0008_sessions",
    "0009_operations",
    "0010_history",
    "0011_scopes",
    "0012_submissions",
    "0013_console",
    "0014_finding",
    "0015_reports",
];

/// The lock of whoever migrates: the letters SGMG.
const LOCK: i64 = 0x53_47_4d_47;

/// How long others may have to wait behind a migration that waits itself, and how long until it tries again.
const MOMENT_S: u64 = 1;
const PAUSE: Duration = Duration::from_secs(4);
/// Then it is given up; the next start tries again.
const QUIET_WITHIN: Duration = Duration::from_secs(600);

/// The number of the schema that this program knows.
pub(super) const fn newest() -> usize {
    MIGRATIONS.len()
}

pub(super) async fn migrate(pool: &Pool) -> Result<()> {
    let connection = pool::connection(pool).await?;
    if done(&connection).await? == MIGRATIONS.len() {
        return Ok(());
    }
    // A migration may take its time, and so may waiting for somebody else's. Waiting for tables is another matter.
    connection.batch_execute("SET lock_timeout = '10min'; SET statement_timeout = 0").await?;
    let migrated = match connection.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await {
        Ok(_) => migrate_locked(&connection).await,
        Err(cause) => Err(cause.into()),
    };
    // With the connection go its lock and its settings.
    drop(Object::take(connection));
    migrated
}

async fn migrate_locked(connection: &Object) -> Result<()> {
    let done = done(connection).await?;
    for (number, (name, statements)) in (1_i64..).zip(MIGRATIONS).skip(done) {
        let text = format!(
            "BEGIN; {statements};
             CREATE TABLE IF NOT EXISTS migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL);
             INSERT INTO migrations (number, name) VALUES ({number}, '{name}'); COMMIT"
        );
        if let Err(cause) = in_a_quiet_moment(connection, &text).await {
            tracing::error!(migration = name, "the ledger's schema could not be moved to {number}");
            return Err(cause.into());
        }
        tracing::info!(migration = name, "the ledger's schema moved to {number}");
    }
    Ok(())
}

/// A change of a table waits for all who use it, and everybody who comes later waits behind it: other instances would stand still for as
/// long as a backup reads. So it gives way after a moment and tries again.
async fn in_a_quiet_moment(
    connection: &Object,
    text: &str,
) -> std::result::Result<(), tokio_postgres::Error> {
    connection.batch_execute(&format!("SET lock_timeout = '{MOMENT_S}s'")).await?;
    let began = Instant::now();
    loop {
        match connection.batch_execute(text).await {
            Err(cause)
                if cause.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) && began.elapsed() < QUIET_WITHIN =>
            {
                connection.batch_execute("ROLLBACK").await?;
                tracing::info!("a migration waits until nobody reads the tables it changes");
                // waits on purpose: those who waited behind it go first
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

/// How many migrations the database has had.
async fn done(connection: &Object) -> Result<usize> {
    let is_new = connection.query_one("SELECT to_regclass('migrations') IS NULL", &[]).await?.try_get(0)?;
    if is_new {
        return Ok(0);
    }
    let query = "SELECT coalesce(max(number), 0) FROM migrations";
    let done: i64 = connection.query_one(query, &[]).await?.try_get(0)?;
    let done = usize::try_from(done).map_err(unavailable)?;
    if done > MIGRATIONS.len() {
        return Err(LedgerError::damaged(format!(
            "its schema has number {done}, this program knows {}: a newer Saveguard wrote it",
            MIGRATIONS.len()
        )));
    }
    Ok(done)
}
