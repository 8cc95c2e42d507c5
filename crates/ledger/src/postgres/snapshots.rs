//! Copies of the whole ledger, on PostgreSQL.
//!
//! A copy is a file of its own kind: a line with the schema's number and how many blobs there are, then the blobs in the order
//! of their digests (all of the same length, so that one is found without reading the others), then every table, a row of JSON
//! to a line, in an order in which each row comes after those it refers to.
//!
//! Guarantees: a copy is of one moment, whatever is written meanwhile (all of it is read in one snapshot). Needs no tool of
//! PostgreSQL's. Does not do: what the server's own means do better for large ledgers, a base backup with its write-ahead log.

use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use async_trait::async_trait;
use model::Digest;
use model::keys::counter_after_restoring;
use serde_json::{Value, json};

use super::audit::{Actor, CompanyAct, append_company_act};
use super::errors::unavailable;
use super::rows::{Stored, get};
use super::step::Step;
use super::{PostgresLedger, migrations};
use crate::snapshots::{BegunAgain, Restoration};
use crate::trail::BlobRecord;
use crate::{LedgerError, Result, Snapshots};

/// What a copy begins with.
const KIND: &str = "saveguard-ledger";
/// A digest, a length and whether the blob is going.
const BLOB_BYTES: u64 = 32 + 8 + 1;
/// Rows that are in memory at once.
pub(super) const ROWS_AT_ONCE: &str = "FETCH 2000 FROM copied";
/// All tables, each after those its rows refer to. A test holds this against the schema.
pub(crate) const TABLES: [&str; 34] = [
    "companies",
    "company_usage",
    "projects",
    "blobs",
    "documents",
    "contents",
    "kept",
    "forms",
    "keys",
    "inbox",
    "audit",
    "chains",
    "api_tokens",
    "shares",
    "guests",
    "guest_sessions",
    "guest_drops",
    "session_people",
    "webhook_events",
    "outbox",
    "mentions",
    "organisations",
    "registrations",
    "accreditations",
    "deadlines",
    "templates",
    "record_scopes",
    "summary_logs",
    "row_contents",
    "staged_rows",
    "problems",
    "problem_counts",
    "record_commits",
    "record_versions",
];

#[async_trait]
impl Snapshots for PostgresLedger {
    async fn write_snapshot(&self, file: &Path) -> Result<()> {
        let out = std::fs::File::create_new(file).map_err(unavailable)?;
        let step = self.read().await?;
        let written = write(&step, out).await;
        step.end(written).await
    }

    async fn snapshot_blobs(
        &self,
        file: &Path,
        after: Option<&Digest>,
        limit: u32,
    ) -> Result<Vec<BlobRecord>> {
        let (file, after) = (file.to_owned(), after.copied());
        let read = move || read_blobs(&file, after, limit);
        tokio::task::spawn_blocking(read).await.map_err(unavailable)?
    }

    async fn begin_again(&self, restoration: &Restoration) -> Result<BegunAgain> {
        let step = self.write().await?;
        let done = begin_again(&step, restoration).await;
        step.end(done).await
    }
}

async fn write(step: &Step, out: std::fs::File) -> Result<()> {
    // Between two statements rows go to a disk, which may be slow.
    step.may_pause().await?;
    let mut out = BufWriter::new(out);
    let row = step.query_one("SELECT count(*) AS blobs FROM blobs WHERE removed_ms IS NULL", &[]).await?;
    let header = json!({ "kind": KIND, "schema": migrations::newest(), "blobs": get::<u64>(&row, "blobs")? });
    writeln!(out, "{header}").map_err(unavailable)?;
    write_blobs(step, &mut out).await?;
    for table in TABLES {
        writeln!(out, "{}", json!({ "table": table })).map_err(unavailable)?;
        let rows =
            format!("DECLARE copied NO SCROLL CURSOR FOR SELECT row_to_json(t)::text AS row FROM {table} t");
        step.execute(&rows, &[]).await?;
        loop {
            let rows = step.query(ROWS_AT_ONCE, &[]).await?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                writeln!(out, "{}", get::<String>(row, "row")?).map_err(unavailable)?;
            }
        }
        step.execute("CLOSE copied", &[]).await?;
    }
    let file = out.into_inner().map_err(|failed| unavailable(failed.into_error()))?;
    tokio::task::spawn_blocking(move || file.sync_all()).await.map_err(unavailable)?.map_err(unavailable)
}

async fn write_blobs(step: &Step, out: &mut BufWriter<std::fs::File>) -> Result<()> {
    let mut after: Option<Digest> = None;
    loop {
        let query = "SELECT digest, size_bytes, state, removals FROM blobs WHERE removed_ms IS NULL
                     AND ($1::bytea IS NULL OR digest > $1) ORDER BY digest LIMIT 2000";
        let rows = step.query(query, &[&after.map(Stored)]).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(get(last, "digest")?);
        for row in &rows {
            let blob = super::rows::blob_record(row)?;
            out.write_all(blob.digest.as_bytes())
                .and_then(|()| out.write_all(&blob.size_bytes.to_be_bytes()))
                .and_then(|()| out.write_all(&[u8::from(blob.is_going)]))
                .map_err(unavailable)?;
        }
    }
}

/// The blobs of a copy after one of them, found by halving.
fn read_blobs(file: &Path, after: Option<Digest>, limit: u32) -> Result<Vec<BlobRecord>> {
    let mut file = BufReader::new(std::fs::File::open(file).map_err(unavailable)?);
    let mut line = String::new();
    file.read_line(&mut line).map_err(unavailable)?;
    let header: Value = serde_json::from_str(&line).map_err(|_| damaged())?;
    let count = header["blobs"].as_u64().filter(|_| header["kind"] == KIND).ok_or_else(damaged)?;
    let start = u64::try_from(line.len()).map_err(unavailable)?;
    let (mut low, mut high) = (0, count);
    while let Some(after) = after.filter(|_| low < high) {
        let middle = low.midpoint(high);
        if blob_at(&mut file, start + middle * BLOB_BYTES)?.digest <= after {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (low..count.min(low + u64::from(limit))).map(|at| blob_at(&mut file, start + at * BLOB_BYTES)).collect()
}

fn blob_at(file: &mut BufReader<std::fs::File>, place: u64) -> Result<BlobRecord> {
    let (mut digest, mut size, mut going) = ([0; 32], [0; 8], [0; 1]);
    file.seek(SeekFrom::Start(place))
        .and_then(|_| file.read_exact(&mut digest))
        .and_then(|()| file.read_exact(&mut size))
        .and_then(|()| file.read_exact(&mut going))
        .map_err(unavailable)?;
    let size_bytes = u64::from_be_bytes(size);
    Ok(BlobRecord { digest: Digest::new(digest), size_bytes, is_going: going == [1], removals: 0 })
}

fn damaged() -> LedgerError {
    LedgerError::damaged("the file is no copy of a ledger on PostgreSQL")
}

async fn begin_again(step: &Step, restoration: &Restoration) -> Result<BegunAgain> {
    let counter = counter_after_restoring(restoration.at);
    let update = "UPDATE documents SET key_counter = greatest(key_counter, $1)";
    let documents = step.execute(update, &[&Stored(counter)]).await?;
    // Perhaps their final save came after the copy was made: then they are spent, and only the server knows.
    let update = "UPDATE keys SET saves_received = saves_received + 1 WHERE state = 'live' AND mode = 'edit'";
    let live_keys = step.execute(update, &[]).await?;
    let open = step.query_one("SELECT count(*) AS open FROM inbox WHERE outcome IS NULL", &[]).await?;
    let details =
        json!({ "backup": restoration.backup, "backedUpMs": restoration.backed_up_at.as_millisecond() });
    let (at, actor, action) = (restoration.at, Actor::person(&restoration.who), "ledger-restored");
    append_company_act(step, &CompanyAct { company: None, at, actor, action, details }).await?;
    Ok(BegunAgain { documents, live_keys, open_saves: get(&open, "open")? })
}
