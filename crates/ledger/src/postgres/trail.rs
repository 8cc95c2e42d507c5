//! Looking back, on PostgreSQL: the audit trail and the walk over everything.

use async_trait::async_trait;
use jiff::Timestamp;
use model::audit::Entry;
use model::{CompanyId, Digest, DocumentId, Label};

use super::rows::{self, Stored, all, get, ms};
use super::step::Step;
use super::{PostgresLedger, acts, audit, record_checks};
use crate::trail::{ActsPage, Anchored, Anchoring, BlobRecord, Inconsistency, ReadBack, SaveReceipt, Totals};
use crate::{Result, Trail};

#[async_trait]
impl Trail for PostgresLedger {
    async fn audit(&self, chain: &str, after: u64, limit: u32) -> Result<Vec<(Entry, Digest)>> {
        let step = self.read().await?;
        let done = acts::chain(&step, chain, (after, limit)).await;
        step.end(done).await
    }

    async fn chains(&self, company: Option<&CompanyId>, after: &str, limit: u32) -> Result<Vec<String>> {
        let step = self.read().await?;
        let done = acts::chains(&step, company, (after, limit)).await;
        step.end(done).await
    }

    async fn find_acts(&self, page: &ActsPage) -> Result<Vec<(Entry, Digest)>> {
        let step = self.read().await?;
        let done = acts::find(&step, page).await;
        step.end(done).await
    }

    async fn anchor(&self, wish: &Anchoring) -> Result<Vec<Anchored>> {
        let step = self.write().await?;
        let done = audit::anchor(&step, wish).await;
        step.end(done).await
    }

    async fn receipt(&self, document: &DocumentId, label: Label) -> Result<Option<SaveReceipt>> {
        let step = self.read().await?;
        let done = acts::receipt(&step, document, label).await;
        step.end(done).await
    }

    async fn note_read_back(&self, noted: &ReadBack) -> Result<()> {
        let before = noted.at.checked_sub(noted.spacing).unwrap_or(Timestamp::MIN);
        let digests: Vec<&[u8]> = noted.digests.iter().map(|digest| digest.as_bytes().as_slice()).collect();
        let step = self.write().await?;
        let done = step
            .execute(
                "UPDATE blobs SET read_back_ms = $2 WHERE digest IN (SELECT b.digest FROM blobs b WHERE b.digest = ANY($1)
                 AND (b.read_back_ms IS NULL OR b.read_back_ms <= $3) ORDER BY b.digest FOR NO KEY UPDATE)",
                &[&digests, &ms(noted.at), &ms(before)],
            )
            .await
            .map(drop);
        step.end(done).await
    }

    async fn blobs(&self, after: Option<&Digest>, limit: u32) -> Result<Vec<BlobRecord>> {
        let step = self.read().await?;
        let done = blobs(&step, after, limit).await;
        step.end(done).await
    }

    async fn document_ids(&self, after: Option<&DocumentId>, limit: u32) -> Result<Vec<DocumentId>> {
        let after = after.map_or("", DocumentId::as_str);
        let query = "SELECT id FROM documents WHERE id > $1 AND purged_ms IS NULL ORDER BY id LIMIT $2";
        let step = self.glance().await?;
        let found = step.query(query, &[&after, &i64::from(limit)]).await;
        step.end(found).await.and_then(|rows| all(&rows, |row| get(row, "id")))
    }

    async fn inconsistencies(&self) -> Result<Vec<Inconsistency>> {
        let step = self.read().await?;
        let found = inconsistencies(&step).await;
        step.end(found).await
    }

    async fn totals(&self) -> Result<Totals> {
        let step = self.glance().await?;
        let found = step.query_one(TOTALS, &[]).await;
        let row = step.end(found).await?;
        Ok(Totals {
            documents: get(&row, "documents")?,
            versions: get(&row, "versions")?,
            checkpoints: get(&row, "checkpoints")?,
            conflicts: get(&row, "conflicts")?,
            quarantined: get(&row, "quarantined")?,
            orphans: get(&row, "orphans")?,
            deleted_documents: get(&row, "deleted_documents")?,
            open_saves: get(&row, "open_saves")?,
            live_keys: get(&row, "live_keys")?,
            owed_publications: get(&row, "owed_publications")?,
        })
    }
}

const TOTALS: &str = "SELECT
    (SELECT count(*) FROM documents WHERE purged_ms IS NULL) AS documents,
    (SELECT count(*) FROM contents WHERE checkpoint = 0 AND pruned_ms IS NULL) AS versions,
    (SELECT count(*) FROM contents WHERE checkpoint > 0 AND pruned_ms IS NULL) AS checkpoints,
    (SELECT count(*) FROM kept WHERE kind = 'conflict' AND pruned_ms IS NULL) AS conflicts,
    (SELECT count(*) FROM kept WHERE kind = 'quarantine' AND pruned_ms IS NULL) AS quarantined,
    (SELECT count(*) FROM kept WHERE kind = 'orphan' AND pruned_ms IS NULL) AS orphans,
    (SELECT count(*) FROM documents WHERE deleted_ms IS NOT NULL AND purged_ms IS NULL) AS deleted_documents,
    (SELECT count(*) FROM inbox WHERE outcome IS NULL) AS open_saves,
    (SELECT count(*) FROM keys WHERE state = 'live' AND mode = 'edit') AS live_keys,
    (SELECT count(*) FROM documents WHERE owes_since_ms IS NOT NULL) AS owed_publications";

async fn blobs(step: &Step, after: Option<&Digest>, limit: u32) -> Result<Vec<BlobRecord>> {
    let query = "SELECT digest, size_bytes, state, removals FROM blobs WHERE removed_ms IS NULL AND ($1::bytea IS NULL OR digest > $1)
                 ORDER BY digest LIMIT $2";
    let rows = step.query(query, &[&after.map(|digest| Stored(*digest)), &i64::from(limit)]).await?;
    all(&rows, rows::blob_record)
}

async fn inconsistencies(step: &Step) -> Result<Vec<Inconsistency>> {
    let mut found = Vec::new();
    for (invariant, query) in CHECKS {
        for row in step.query(query, &[]).await? {
            found.push(Inconsistency { invariant, what: get(&row, "what")? });
        }
    }
    record_checks::check(step, &mut found).await?;
    acts::check(step, &mut found).await?;
    Ok(found)
}

/// What no row may say. Each query returns one sentence per violation. Foreign keys are the engine's own care, and so are its
/// pages (`initdb --data-checksums`, `pg_amcheck`).
const CHECKS: [(&str, &str); 12] = [
    (
        "head",
        "SELECT 'document ' || d.id || ': its head is not one of its contents' AS what FROM documents d
         LEFT JOIN contents c ON c.document = d.id AND c.version = d.head_version AND c.checkpoint = d.head_checkpoint
         WHERE c.document IS NULL OR c.digest <> d.head_digest OR c.is_filed_beside",
    ),
    (
        "head-is-newest",
        "SELECT 'document ' || d.id || ': content ' || c.version || '.' || c.checkpoint || ' is newer than the head' AS what
         FROM documents d JOIN contents c ON c.document = d.id AND NOT c.is_filed_beside
         WHERE c.version > d.head_version OR (c.version = d.head_version AND c.checkpoint > d.head_checkpoint)",
    ),
    (
        "dense-versions",
        "SELECT 'document ' || d.id || ': versions have a gap' AS what FROM documents d
         WHERE (SELECT count(*) FROM contents c WHERE c.document = d.id AND c.checkpoint = 0) <> d.last_version
            OR (SELECT max(version) FROM contents c WHERE c.document = d.id) <> d.last_version",
    ),
    (
        "blob-named",
        "SELECT 'a blob being removed is still named' AS what FROM blobs b WHERE b.state = 'deleting' AND
         (EXISTS (SELECT 1 FROM contents c WHERE c.digest = b.digest AND c.pruned_ms IS NULL)
          OR EXISTS (SELECT 1 FROM contents c WHERE c.changes_digest = b.digest AND c.pruned_ms IS NULL)
          OR EXISTS (SELECT 1 FROM kept k WHERE k.digest = b.digest AND k.pruned_ms IS NULL)
          OR EXISTS (SELECT 1 FROM summary_logs l WHERE l.digest = b.digest))",
    ),
    (
        "in-use-is-kept",
        "SELECT 'document ' || c.document || ': content ' || c.version || '.' || c.checkpoint || ' is in use and was let go' AS what FROM contents c
         JOIN documents d ON d.id = c.document AND d.purged_ms IS NULL WHERE c.pruned_ms IS NOT NULL
         AND ((c.version, c.checkpoint) = (d.head_version, d.head_checkpoint) OR EXISTS (SELECT 1 FROM keys k
              WHERE k.document = d.id AND k.state = 'live' AND k.mode = 'edit'
              AND (k.base_version, k.base_checkpoint) = (c.version, c.checkpoint)))",
    ),
    (
        "answered-is-kept",
        "SELECT 'callback ' || i.number || ' was answered 0 and left nothing' AS what FROM inbox i
         WHERE i.answer = 'saved' AND i.outcome IN ('version', 'checkpoint', 'filed', 'conflict')
         AND NOT EXISTS (SELECT 1 FROM contents c WHERE c.inbox = i.number)
         AND NOT EXISTS (SELECT 1 FROM kept k WHERE k.inbox = i.number)",
    ),
    (
        "one-place-per-save",
        "SELECT 'callback ' || c.inbox || ' is both a content and a kept copy' AS what FROM contents c JOIN kept k ON k.inbox = c.inbox",
    ),
    (
        "one-live-key",
        "SELECT 'document ' || document || ' has more than one live edit key' AS what FROM keys
         WHERE state = 'live' AND mode = 'edit' GROUP BY document HAVING count(*) > 1",
    ),
    (
        "company-usage",
        "SELECT 'company ' || c.id || ': it is counted to have ' || u.documents || ' documents and ' || u.head_bytes || ' bytes' AS what
         FROM companies c
         CROSS JOIN LATERAL (SELECT coalesce(sum(o.documents), 0) AS documents, coalesce(sum(o.head_bytes), 0) AS head_bytes
           FROM company_usage o WHERE o.company = c.id) u
         CROSS JOIN LATERAL (SELECT count(*) AS documents, coalesce(sum(b.size_bytes), 0) AS head_bytes
           FROM documents d JOIN blobs b ON b.digest = d.head_digest WHERE d.company = c.id AND d.purged_ms IS NULL) h
         WHERE (u.documents, u.head_bytes) <> (h.documents, h.head_bytes)",
    ),
    (
        "share-uses",
        "SELECT 'share link ' || s.number || ': it is counted to have ' || s.uses || ' uses' AS what FROM shares s
         WHERE s.uses <> (SELECT count(*) FROM guests g WHERE g.share = s.number)",
    ),
    (
        "assigned-template",
        "SELECT 'registration ' || r.organisation || '/' || r.id || ': its template ' || r.template || ' is not here' AS what
         FROM registrations r WHERE r.template IS NOT NULL AND NOT EXISTS (SELECT 1 FROM templates t WHERE t.id = r.template)",
    ),
    (
        "key-counter",
        "SELECT 'document ' || d.id || ': more edit keys were issued than its counter says' AS what FROM documents d
         WHERE (SELECT count(*) FROM keys k WHERE k.document = d.id AND k.mode = 'edit' AND k.base_version IS NOT NULL) > d.key_counter",
    ),
];
