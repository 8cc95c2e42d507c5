//! Copies of the whole ledger, on SQLite.
//!
//! Guarantees: a copy is of one moment, whatever is written meanwhile (`VACUUM INTO` reads one snapshot); it is a database of
//! its own, without a write-ahead log beside it.

use std::path::Path;

use async_trait::async_trait;
use model::Digest;
use model::keys::counter_after_restoring;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use super::audit::{Actor, CompanyAct, append_company_act};
use super::{SqliteLedger, trail, unavailable};
use crate::snapshots::{BegunAgain, Restoration};
use crate::trail::BlobRecord;
use crate::{Result, Snapshots};

#[async_trait]
impl Snapshots for SqliteLedger {
    async fn write_snapshot(&self, file: &Path) -> Result<()> {
        let (from, to) = (self.readers.file().to_owned(), file.to_owned());
        tokio::task::spawn_blocking(move || write(&from, &to)).await.map_err(unavailable)?
    }

    async fn snapshot_blobs(
        &self,
        file: &Path,
        after: Option<&Digest>,
        limit: u32,
    ) -> Result<Vec<BlobRecord>> {
        let (file, after) = (file.to_owned(), after.copied());
        tokio::task::spawn_blocking(move || trail::blobs(&open(&file)?, after, limit))
            .await
            .map_err(unavailable)?
    }

    async fn begin_again(&self, restoration: &Restoration) -> Result<BegunAgain> {
        let restoration = restoration.clone();
        self.write(move |connection, _| begin_again(connection, &restoration)).await
    }
}

fn write(from: &Path, to: &Path) -> Result<()> {
    let connection = open(from)?;
    connection.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
    std::fs::File::open(to).and_then(|file| file.sync_all()).map_err(unavailable)
}

fn open(file: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.execute_batch("PRAGMA busy_timeout = 3000")?;
    Ok(connection)
}

fn begin_again(connection: &Connection, restoration: &Restoration) -> Result<BegunAgain> {
    let counter = counter_after_restoring(restoration.at);
    let documents =
        connection.execute("UPDATE documents SET key_counter = max(key_counter, ?1)", [counter])?;
    // Perhaps their final save came after the copy was made: then they are spent, and only the server knows.
    let live_keys = connection.execute(
        "UPDATE keys SET saves_received = saves_received + 1 WHERE state = 'live' AND mode = 'edit'",
        [],
    )?;
    let open_saves =
        connection.query_row("SELECT count(*) FROM inbox WHERE outcome IS NULL", [], |row| row.get(0))?;
    let details =
        json!({ "backup": restoration.backup, "backedUpMs": restoration.backed_up_at.as_millisecond() });
    let (at, actor, action) = (restoration.at, Actor::person(&restoration.who), "ledger-restored");
    append_company_act(connection, &CompanyAct { company: None, at, actor, action, details })?;
    Ok(BegunAgain { documents: count(documents), live_keys: count(live_keys), open_saves })
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
