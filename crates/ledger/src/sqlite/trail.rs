//! Looking back, on SQLite: the audit trail and the walk over everything.

use async_trait::async_trait;
use model::audit::{CHAIN_START, Entry, hash_of};
use model::{Digest, DocumentId};
use rusqlite::{Connection, Row, params};

use super::SqliteLedger;
use super::rows::{Stored, get};
use crate::trail::{BlobRecord, Inconsistency, Totals};
use crate::{Result, Trail};

#[async_trait]
impl Trail for SqliteLedger {
    async fn audit(&self, chain: &str, after: u64, limit: u32) -> Result<Vec<(Entry, Digest)>> {
        let chain = chain.to_owned();
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT * FROM audit WHERE chain = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
            )?;
            Ok(query.query_map(params![chain, after, limit], entry)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn blobs(&self, after: Option<&Digest>, limit: u32) -> Result<Vec<BlobRecord>> {
        let after = after.copied();
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT digest, size_bytes FROM blobs WHERE state = 'present' AND (?1 IS NULL OR digest > ?1)
                 ORDER BY digest LIMIT ?2",
            )?;
            let rows = query.query_map(params![after.map(Stored), limit], |row| {
                Ok(BlobRecord { digest: get(row, "digest")?, size_bytes: row.get("size_bytes")? })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn document_ids(&self, after: Option<&DocumentId>, limit: u32) -> Result<Vec<DocumentId>> {
        let after = after.map_or_else(String::new, ToString::to_string);
        self.read(move |connection| {
            let mut query =
                connection.prepare_cached("SELECT id FROM documents WHERE id > ?1 ORDER BY id LIMIT ?2")?;
            Ok(query
                .query_map(params![after, limit], |row| get(row, "id"))?
                .collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn inconsistencies(&self) -> Result<Vec<Inconsistency>> {
        self.read(|connection| {
            let mut found = Vec::new();
            for (invariant, query) in CHECKS {
                let mut query = connection.prepare(query)?;
                for row in query.query_map([], |row| row.get::<_, String>(0))? {
                    found.push(Inconsistency { invariant, what: row? });
                }
            }
            broken_chains(connection, &mut found)?;
            Ok(found)
        })
        .await
    }

    async fn totals(&self) -> Result<Totals> {
        self.read(|connection| {
            let count =
                |query: &str| connection.prepare_cached(query)?.query_row([], |row| row.get::<_, u64>(0));
            Ok(Totals {
                documents: count("SELECT count(*) FROM documents")?,
                versions: count("SELECT count(*) FROM contents WHERE checkpoint = 0")?,
                checkpoints: count("SELECT count(*) FROM contents WHERE checkpoint > 0")?,
                conflicts: count("SELECT count(*) FROM kept WHERE kind = 'conflict'")?,
                quarantined: count("SELECT count(*) FROM kept WHERE kind = 'quarantine'")?,
                orphans: count("SELECT count(*) FROM kept WHERE kind = 'orphan'")?,
                open_saves: count("SELECT count(*) FROM inbox WHERE outcome IS NULL")?,
                live_keys: count("SELECT count(*) FROM keys WHERE state = 'live' AND mode = 'edit'")?,
                owed_publications: count("SELECT count(*) FROM documents WHERE owes_since_ms IS NOT NULL")?,
            })
        })
        .await
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<(Entry, Digest)> {
    let entry = Entry {
        chain: row.get("chain")?,
        sequence: row.get("sequence")?,
        at: get(row, "at_ms")?,
        actor: row.get("actor")?,
        action: row.get("action")?,
        details: row.get("details")?,
    };
    Ok((entry, get(row, "hash")?))
}

/// What no row may say. Each query returns one sentence per violation.
const CHECKS: [(&str, &str); 10] = [
    ("database", "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'"),
    ("references", "SELECT 'a row of ' || \"table\" || ' names a missing row of ' || parent FROM pragma_foreign_key_check"),
    (
        "head",
        "SELECT 'document ' || d.id || ': its head is not one of its contents' FROM documents d
         LEFT JOIN contents c ON c.document = d.id AND c.version = d.head_version AND c.checkpoint = d.head_checkpoint
         WHERE c.document IS NULL OR c.digest <> d.head_digest OR c.is_filed_beside",
    ),
    (
        "head-is-newest",
        "SELECT 'document ' || d.id || ': content ' || c.version || '.' || c.checkpoint || ' is newer than the head'
         FROM documents d JOIN contents c ON c.document = d.id AND NOT c.is_filed_beside
         WHERE c.version > d.head_version OR (c.version = d.head_version AND c.checkpoint > d.head_checkpoint)",
    ),
    (
        "dense-versions",
        "SELECT 'document ' || d.id || ': versions have a gap' FROM documents d
         WHERE (SELECT count(*) FROM contents c WHERE c.document = d.id AND c.checkpoint = 0) <> d.last_version
            OR (SELECT max(version) FROM contents c WHERE c.document = d.id) <> d.last_version",
    ),
    (
        "blob-named",
        "SELECT 'a blob being removed is still named' FROM blobs b WHERE b.state = 'deleting' AND
         (EXISTS (SELECT 1 FROM contents c WHERE c.digest = b.digest) OR EXISTS (SELECT 1 FROM kept k WHERE k.digest = b.digest))",
    ),
    (
        "answered-is-kept",
        "SELECT 'callback ' || i.number || ' was answered 0 and left nothing' FROM inbox i
         WHERE i.answer = 'saved' AND i.outcome IN ('version', 'checkpoint', 'filed', 'conflict')
         AND NOT EXISTS (SELECT 1 FROM contents c WHERE c.inbox = i.number)
         AND NOT EXISTS (SELECT 1 FROM kept k WHERE k.inbox = i.number)",
    ),
    (
        "one-place-per-save",
        "SELECT 'callback ' || c.inbox || ' is both a content and a kept copy' FROM contents c JOIN kept k ON k.inbox = c.inbox",
    ),
    (
        "one-live-key",
        "SELECT 'document ' || document || ' has more than one live edit key' FROM keys
         WHERE state = 'live' AND mode = 'edit' GROUP BY document HAVING count(*) > 1",
    ),
    (
        "key-counter",
        "SELECT 'document ' || d.id || ': more edit keys were issued than its counter says' FROM documents d
         WHERE (SELECT count(*) FROM keys k WHERE k.document = d.id AND k.mode = 'edit' AND k.base_version IS NOT NULL) > d.key_counter",
    ),
];

/// Every document's chain, from its first entry to the end its row names.
fn broken_chains(connection: &Connection, found: &mut Vec<Inconsistency>) -> Result<()> {
    let mut query = connection.prepare("SELECT * FROM audit ORDER BY chain, sequence")?;
    let mut rows = query.query([])?;
    let mut ends: std::collections::HashMap<String, (u64, Digest, bool)> = std::collections::HashMap::new();
    while let Some(row) = rows.next()? {
        let (entry, hash) = entry(row)?;
        let end = ends.entry(entry.chain.clone()).or_insert((0, CHAIN_START, true));
        let holds = entry.sequence == end.0 + 1 && hash_of(&end.1, &entry) == hash;
        if end.2 && !holds {
            let what =
                format!("the audit chain of {} does not hold at entry {}", entry.chain, entry.sequence);
            found.push(Inconsistency { invariant: "audit-chain", what });
        }
        *end = (entry.sequence, hash, end.2 && holds);
    }
    let mut query = connection.prepare("SELECT id, audit_sequence, audit_hash FROM documents")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (id, sequence): (String, u64) = (row.get(0)?, row.get(1)?);
        let hash: Stored<Digest> = row.get(2)?;
        let end = ends.get(&id).map_or((0, CHAIN_START), |end| (end.0, end.1));
        if end != (sequence, hash.0) {
            let what =
                format!("the audit chain of {id} ends at entry {}, its document says {sequence}", end.0);
            found.push(Inconsistency { invariant: "audit-chain", what });
        }
    }
    Ok(())
}
