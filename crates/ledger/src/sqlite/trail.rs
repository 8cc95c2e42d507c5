//! Looking back, on SQLite: the audit trail and the walk over everything.

use async_trait::async_trait;
use jiff::Timestamp;
use model::audit::Entry;
use model::{CompanyId, Digest, DocumentId, Label};
use rusqlite::{Connection, params};

use super::rows::{self, Stored, get, ms};
use super::{SqliteLedger, acts, audit, record_checks};
use crate::trail::{ActsPage, Anchored, Anchoring, BlobRecord, Inconsistency, ReadBack, SaveReceipt, Totals};
use crate::{Result, Trail};

#[async_trait]
impl Trail for SqliteLedger {
    async fn audit(&self, chain: &str, after: u64, limit: u32) -> Result<Vec<(Entry, Digest)>> {
        let chain = chain.to_owned();
        self.read(move |connection| acts::chain(connection, &chain, (after, limit))).await
    }

    async fn chains(&self, company: Option<&CompanyId>, after: &str, limit: u32) -> Result<Vec<String>> {
        let (company, after) = (company.cloned(), after.to_owned());
        self.read(move |connection| acts::chains(connection, company.as_ref(), (&after, limit))).await
    }

    async fn find_acts(&self, page: &ActsPage) -> Result<Vec<(Entry, Digest)>> {
        let page = page.clone();
        self.read(move |connection| acts::find(connection, &page)).await
    }

    async fn anchor(&self, wish: &Anchoring) -> Result<Vec<Anchored>> {
        let wish = *wish;
        self.write(move |connection, _| audit::anchor(connection, &wish)).await
    }

    async fn receipt(&self, document: &DocumentId, label: Label) -> Result<Option<SaveReceipt>> {
        let document = document.clone();
        self.read(move |connection| acts::receipt(connection, &document, label)).await
    }

    async fn note_read_back(&self, noted: &ReadBack) -> Result<()> {
        let noted = noted.clone();
        self.write(move |connection, _| {
            let before = noted.at.checked_sub(noted.spacing).unwrap_or(Timestamp::MIN);
            let mut update = connection.prepare_cached(
                "UPDATE blobs SET read_back_ms = ?2 WHERE digest = ?1 AND (read_back_ms IS NULL OR read_back_ms <= ?3)",
            )?;
            for digest in &noted.digests {
                update.execute(params![Stored(*digest), ms(noted.at), ms(before)])?;
            }
            Ok(())
        })
        .await
    }

    async fn blobs(&self, after: Option<&Digest>, limit: u32) -> Result<Vec<BlobRecord>> {
        let after = after.copied();
        self.read(move |connection| blobs(connection, after, limit)).await
    }

    async fn document_ids(&self, after: Option<&DocumentId>, limit: u32) -> Result<Vec<DocumentId>> {
        let after = after.map_or_else(String::new, ToString::to_string);
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT id FROM documents WHERE id > ?1 AND purged_ms IS NULL ORDER BY id LIMIT ?2",
            )?;
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
            record_checks::check(connection, &mut found)?;
            acts::check(connection, &mut found)?;
            Ok(found)
        })
        .await
    }

    async fn totals(&self) -> Result<Totals> {
        self.read(|connection| {
            let count =
                |query: &str| connection.prepare_cached(query)?.query_row([], |row| row.get::<_, u64>(0));
            Ok(Totals {
                // Counted along with every change (`verify` counts them one by one).
                documents: count("SELECT coalesce(sum(documents), 0) FROM companies")?,
                versions: count(
                    "SELECT count(*) FROM contents WHERE (checkpoint > 0) = 0 AND pruned_ms IS NULL",
                )?,
                checkpoints: count(
                    "SELECT count(*) FROM contents WHERE (checkpoint > 0) = 1 AND pruned_ms IS NULL",
                )?,
                conflicts: count("SELECT count(*) FROM kept WHERE kind = 'conflict' AND pruned_ms IS NULL")?,
                quarantined: count(
                    "SELECT count(*) FROM kept WHERE kind = 'quarantine' AND pruned_ms IS NULL",
                )?,
                orphans: count("SELECT count(*) FROM kept WHERE kind = 'orphan' AND pruned_ms IS NULL")?,
                deleted_documents: count(
                    "SELECT count(*) FROM documents WHERE deleted_ms IS NOT NULL AND purged_ms IS NULL",
                )?,
                open_saves: count("SELECT count(*) FROM inbox WHERE outcome IS NULL")?,
                live_keys: count("SELECT count(*) FROM keys WHERE state = 'live' AND mode = 'edit'")?,
                owed_publications: count("SELECT count(*) FROM documents WHERE owes_since_ms IS NOT NULL")?,
            })
        })
        .await
    }
}

pub(super) fn blobs(connection: &Connection, after: Option<Digest>, limit: u32) -> Result<Vec<BlobRecord>> {
    let mut query = connection.prepare_cached(
        "SELECT digest, size_bytes, state, removals FROM blobs WHERE removed_ms IS NULL AND (?1 IS NULL OR digest > ?1)
         ORDER BY digest LIMIT ?2",
    )?;
    let rows = query.query_map(params![after.map(Stored), limit], rows::blob_record)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What no row may say. Each query returns one sentence per violation.
const CHECKS: [(&str, &str); 14] = [
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
         (EXISTS (SELECT 1 FROM contents c WHERE c.digest = b.digest AND c.pruned_ms IS NULL)
          OR EXISTS (SELECT 1 FROM contents c WHERE c.changes_digest = b.digest AND c.pruned_ms IS NULL)
          OR EXISTS (SELECT 1 FROM kept k WHERE k.digest = b.digest AND k.pruned_ms IS NULL)
          OR EXISTS (SELECT 1 FROM summary_logs l WHERE l.digest = b.digest))",
    ),
    (
        "in-use-is-kept",
        "SELECT 'document ' || c.document || ': content ' || c.version || '.' || c.checkpoint || ' is in use and was let go' FROM contents c
         JOIN documents d ON d.id = c.document AND d.purged_ms IS NULL WHERE c.pruned_ms IS NOT NULL
         AND ((c.version, c.checkpoint) = (d.head_version, d.head_checkpoint) OR EXISTS (SELECT 1 FROM keys k
              WHERE k.document = d.id AND k.state = 'live' AND k.mode = 'edit'
              AND (k.base_version, k.base_checkpoint) = (c.version, c.checkpoint)))",
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
        "company-usage",
        "SELECT 'company ' || c.id || ': it is counted to have ' || c.documents || ' documents and ' || c.head_bytes || ' bytes'
         FROM companies c WHERE (c.documents, c.head_bytes) IS NOT
           (SELECT count(*), coalesce(sum(b.size_bytes), 0) FROM documents d JOIN blobs b ON b.digest = d.head_digest
            WHERE d.company = c.id AND d.purged_ms IS NULL)",
    ),
    (
        "share-uses",
        "SELECT 'share link ' || s.number || ': it is counted to have ' || s.uses || ' uses' FROM shares s
         WHERE s.uses <> (SELECT count(*) FROM guests g WHERE g.share = s.number)",
    ),
    (
        "assigned-template",
        "SELECT 'registration ' || r.organisation || '/' || r.id || ': its template ' || r.template || ' is not here'
         FROM registrations r WHERE r.template IS NOT NULL AND NOT EXISTS (SELECT 1 FROM templates t WHERE t.id = r.template)",
    ),
    (
        "key-counter",
        "SELECT 'document ' || d.id || ': more edit keys were issued than its counter says' FROM documents d
         WHERE (SELECT count(*) FROM keys k WHERE k.document = d.id AND k.mode = 'edit' AND k.base_version IS NOT NULL) > d.key_counter",
    ),
];
