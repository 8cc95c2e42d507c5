//! What the service has written down: read from a copy of its embedded ledger while it is dead, or from PostgreSQL at any moment.
//!
//! Guarantees: the data folder is not touched, so that the power-loss disk stays true; the copy is what the next start
//! would see, write-ahead log included. Does not go through the service's own code: rows are read as they stand.

use std::path::Path;

use anyhow::{Context as _, Result};
use rusqlite::{Connection, Row};

use super::postgres;
use crate::world::World;

/// A version or checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentRow {
    pub(crate) document: String,
    pub(crate) version: u32,
    pub(crate) checkpoint: u32,
    pub(crate) sha256: String,
    pub(crate) key: Option<String>,
    pub(crate) saved_ms: Option<i64>,
    pub(crate) is_filed_beside: bool,
    /// Status and path of the callback that brought it.
    pub(crate) identity: Option<(u8, Option<String>, Option<i64>)>,
}

impl ContentRow {
    pub(crate) fn label(&self) -> String {
        if self.checkpoint == 0 {
            self.version.to_string()
        } else {
            format!("{}.{}", self.version, self.checkpoint)
        }
    }
}

/// A conflict copy, quarantined file or orphan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptRow {
    pub(crate) number: u64,
    pub(crate) document: Option<String>,
    pub(crate) kind: String,
    pub(crate) reason: String,
    pub(crate) sha256: String,
    pub(crate) key: Option<String>,
    /// `lastsave` of the callback that brought it.
    pub(crate) last_save_ms: Option<i64>,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) head_sha256: String,
    pub(crate) is_published: bool,
}

/// The ledger at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    pub(crate) documents: Vec<DocumentRow>,
    /// In order of version and checkpoint.
    pub(crate) contents: Vec<ContentRow>,
    pub(crate) kept: Vec<KeptRow>,
    /// Edit keys that are live, with their documents.
    pub(crate) live_keys: Vec<(String, String)>,
    /// Everything that recovery must not change when it has nothing to do, row by row.
    pub(crate) dump: Vec<String>,
}

const CONTENTS: &str =
    "SELECT c.document, c.version, c.checkpoint, lower(hex(c.digest)) AS sha256, c.key, c.saved_ms,
    c.is_filed_beside, i.status, i.url_path, i.last_save_ms
    FROM contents c LEFT JOIN inbox i ON i.number = c.inbox ORDER BY c.document, c.version, c.checkpoint";

const KEPT: &str =
    "SELECT k.number, k.document, k.kind, k.reason, lower(hex(k.digest)) AS sha256, k.key, i.last_save_ms
    FROM kept k LEFT JOIN inbox i ON i.number = k.inbox ORDER BY k.number";

const DOCUMENTS: &str =
    "SELECT id, name, lower(hex(head_digest)) AS sha256, published_version IS NOT NULL AS is_published
    FROM documents ORDER BY id";

const LIVE_KEYS: &str = "SELECT key, document FROM keys WHERE state = 'live' AND mode = 'edit' ORDER BY key";

/// Tables a recovery with nothing to do leaves as they are. Presence is only shown, so it may change. Anchors follow the clock:
/// a round may write one about what moved less than a minute before the last one.
const DUMPED: [&str; 11] = [
    "SELECT 'document', id, head_version, head_checkpoint, hex(head_digest), last_version, key_counter, owes_since_ms,
     published_version, published_checkpoint, audit_sequence FROM documents ORDER BY id",
    "SELECT 'content', document, version, checkpoint, hex(digest), inbox, is_filed_beside FROM contents
     ORDER BY document, version, checkpoint",
    "SELECT 'kept', number, document, kind, reason, hex(digest), inbox FROM kept ORDER BY number",
    "SELECT 'key', key, state, retired_why, saves_received, final_inbox, checkpoint_inbox, settled_ms FROM keys ORDER BY key",
    "SELECT 'inbox', number, key, status, outcome, answer, deliveries FROM inbox ORDER BY number",
    "SELECT 'blob', hex(digest), state FROM blobs ORDER BY digest",
    "SELECT 'scope', number, organisation, registration, head FROM record_scopes ORDER BY number",
    "SELECT 'log', id, state, reason, superseded_by, basis, created, updated, unchanged, removed, applied, submitter_id, run
     FROM summary_logs ORDER BY number",
    "SELECT 'commit', scope, sequence, log, committed_ms FROM record_commits ORDER BY scope, sequence",
    "SELECT 'versions', scope, sequence, log, count(*), sum(content) FROM record_versions
     GROUP BY scope, sequence, log ORDER BY scope, sequence, log",
    "SELECT 'audit', chain, sequence, action, details FROM audit WHERE chain NOT GLOB 'company:*'
     ORDER BY chain, sequence",
];

impl Ledger {
    /// The ledger of a world; `None` if there is none yet. An embedded one is read while its service is dead.
    pub(crate) async fn of(world: &World) -> Result<Option<Self>> {
        match &world.cluster {
            Some(cluster) => postgres::read(&cluster.ledger).await.map(Some),
            None => Self::read(&world.data(), &world.setting.folder.join("copy")).await,
        }
    }

    /// Copies the ledger of a dead service and reads it; `None` if there is none yet.
    pub(crate) async fn read(data: &Path, copy: &Path) -> Result<Option<Self>> {
        let (data, copy) = (data.to_owned(), copy.to_owned());
        tokio::task::spawn_blocking(move || read(&data, &copy)).await?
    }

    pub(crate) fn contents_of<'a>(&'a self, document: &'a str) -> impl Iterator<Item = &'a ContentRow> {
        self.contents.iter().filter(move |content| content.document == document)
    }

    pub(crate) fn kept_of<'a>(&'a self, document: &'a str) -> impl Iterator<Item = &'a KeptRow> {
        self.kept.iter().filter(move |kept| kept.document.as_deref() == Some(document))
    }
}

fn read(data: &Path, copy: &Path) -> Result<Option<Ledger>> {
    let source = data.join("ledger.sqlite");
    if !source.exists() {
        return Ok(None);
    }
    let _ = std::fs::remove_dir_all(copy);
    std::fs::create_dir_all(copy)?;
    for suffix in ["", "-wal"] {
        let name = format!("ledger.sqlite{suffix}");
        if data.join(&name).exists() {
            std::fs::write(copy.join(&name), std::fs::read(data.join(&name))?)?;
        }
    }
    let connection =
        Connection::open(copy.join("ledger.sqlite")).context("the copy of the ledger cannot be opened")?;
    let is_migrated = connection
        .prepare("SELECT 1 FROM sqlite_master WHERE name = 'record_versions'")
        .and_then(|mut query| query.exists([]))
        .context("the ledger cannot be read")?;
    if !is_migrated {
        return Ok(None);
    }
    let mut dump = Vec::new();
    for table in DUMPED {
        dump.extend(rows(&connection, table, line)?);
    }
    Ok(Some(Ledger {
        documents: rows(&connection, DOCUMENTS, document)?,
        contents: rows(&connection, CONTENTS, content)?,
        kept: rows(&connection, KEPT, kept)?,
        live_keys: rows(&connection, LIVE_KEYS, |row| Ok((row.get(0)?, row.get(1)?)))?,
        dump,
    }))
}

fn rows<T>(
    connection: &Connection,
    query: &str,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut query = connection.prepare(query)?;
    let rows = query.query_map([], |row| read(row))?.collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

fn document(row: &Row<'_>) -> rusqlite::Result<DocumentRow> {
    Ok(DocumentRow {
        id: row.get("id")?,
        name: row.get("name")?,
        head_sha256: row.get("sha256")?,
        is_published: row.get("is_published")?,
    })
}

fn content(row: &Row<'_>) -> rusqlite::Result<ContentRow> {
    let status: Option<u8> = row.get("status")?;
    let identity = match status {
        Some(status) => Some((status, row.get("url_path")?, row.get("last_save_ms")?)),
        None => None,
    };
    Ok(ContentRow {
        document: row.get("document")?,
        version: row.get("version")?,
        checkpoint: row.get("checkpoint")?,
        sha256: row.get("sha256")?,
        key: row.get("key")?,
        saved_ms: row.get("saved_ms")?,
        is_filed_beside: row.get("is_filed_beside")?,
        identity,
    })
}

fn kept(row: &Row<'_>) -> rusqlite::Result<KeptRow> {
    Ok(KeptRow {
        number: row.get("number")?,
        document: row.get("document")?,
        kind: row.get("kind")?,
        reason: row.get("reason")?,
        sha256: row.get("sha256")?,
        key: row.get("key")?,
        last_save_ms: row.get("last_save_ms")?,
    })
}

/// A row as one line of text.
fn line(row: &Row<'_>) -> rusqlite::Result<String> {
    let count = row.as_ref().column_count();
    let cells = (0..count).map(|at| {
        row.get_ref(at).map(|cell| match cell {
            rusqlite::types::ValueRef::Null => "-".to_owned(),
            rusqlite::types::ValueRef::Integer(number) => number.to_string(),
            rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => format!("{other:?}"),
        })
    });
    Ok(cells.collect::<rusqlite::Result<Vec<_>>>()?.join(" "))
}
