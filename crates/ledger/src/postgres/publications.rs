//! What the published tree owes, on PostgreSQL.

use std::ops::Range;

use async_trait::async_trait;
use jiff::Timestamp;
use model::names::FileName;
use model::versions::Origin;
use model::{CompanyId, Digest, DocumentId, Label, ProjectId};
use serde_json::json;
use tokio_postgres::Row;

use super::audit::{Act, Actor, append};
use super::contents::{self, NewContent};
use super::rows::{Stored, all, get, get_optional, id, label, ms};
use super::step::Step;
use super::{PostgresLedger, history, locks};
use crate::adapting::adding::external_copy;
use crate::documents::Author;
use crate::publications::{ExternalChange, Owed, Published, PublishedNow};
use crate::{Publications, Result};

const OWED: &str = "
    SELECT d.id, d.company, d.project, d.name, d.shown_name, d.head_version, d.head_checkpoint, d.head_digest, c.committed_ms,
           d.deleted_ms, d.published_version, d.published_checkpoint, d.published_ms, p.committed_ms AS published_committed_ms,
           d.owes_since_ms
    FROM documents d
    JOIN contents c ON c.document = d.id AND c.version = d.head_version AND c.checkpoint = d.head_checkpoint
    LEFT JOIN contents p ON p.document = d.id AND p.version = d.published_version
                        AND p.checkpoint = d.published_checkpoint
    WHERE d.owes_since_ms IS NOT NULL";

#[async_trait]
impl Publications for PostgresLedger {
    async fn owed_publications(&self, after: Option<&Owed>, limit: u32) -> Result<Vec<Owed>> {
        let (since, id) = after.map_or((Timestamp::MIN, ""), |after| (after.since, after.document.as_str()));
        let query =
            format!("{OWED} AND (d.owes_since_ms, d.id) > ($1, $2) ORDER BY d.owes_since_ms, d.id LIMIT $3");
        let step = self.glance().await?;
        let found = step.query(&query, &[&ms(since), &id, &i64::from(limit)]).await;
        all(&step.end(found).await?, owed)
    }

    async fn stalled_publications(&self, since: &Range<Timestamp>, limit: u32) -> Result<Vec<Owed>> {
        let query = format!(
            "{OWED} AND greatest(d.owes_since_ms, d.published_ms) >= $1
             AND greatest(d.owes_since_ms, d.published_ms) < $2 ORDER BY d.owes_since_ms, d.id LIMIT $3"
        );
        let step = self.glance().await?;
        let found = step.query(&query, &[&ms(since.start), &ms(since.end), &i64::from(limit)]).await;
        all(&step.end(found).await?, owed)
    }

    async fn owed_publication(&self, document: &DocumentId) -> Result<Option<Owed>> {
        let query = format!("{OWED} AND d.id = $1");
        let step = self.glance().await?;
        let found = step.query_optional(&query, &[&document.as_str()]).await;
        step.end(found).await?.as_ref().map(owed).transpose()
    }

    async fn published(&self, document: &DocumentId, label: Label, at: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = async {
            step.execute("UPDATE documents SET published_version = $2, published_checkpoint = $3, published_ms = $4,
                     owes_since_ms = CASE WHEN head_version = $2 AND head_checkpoint = $3 AND deleted_ms IS NULL
                                          AND shown_name IS NULL THEN NULL ELSE owes_since_ms END
                     WHERE id = $1", &[&document.as_str(), &Stored(label.version), &Stored(label.checkpoint), &ms(at)]).await?;
            Ok(())
        };
        let done = done.await;
        step.end(done).await
    }

    async fn shown_under(&self, document: &DocumentId, name: &FileName) -> Result<()> {
        let step = self.write().await?;
        let done = history::shown_under(&step, document, name).await;
        step.end(done).await
    }

    async fn withdrawn(&self, document: &DocumentId, _at: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = async {
            step.execute("UPDATE documents SET published_version = NULL, published_checkpoint = NULL, published_ms = NULL,
                     shown_name = NULL, owes_since_ms = CASE WHEN deleted_ms IS NULL THEN owes_since_ms END WHERE id = $1", &[&document.as_str()]).await?;
            Ok(())
        };
        let done = done.await;
        step.end(done).await
    }

    async fn knows_content(&self, document: &DocumentId, digest: &Digest) -> Result<bool> {
        let step = self.read().await?;
        let done = async {
            step.exists(
                "SELECT 1 FROM contents WHERE digest = $2 AND document = $1 AND pruned_ms IS NULL
                 UNION ALL SELECT 1 FROM kept WHERE digest = $2 AND document = $1 AND pruned_ms IS NULL",
                &[&document.as_str(), &Stored(*digest)],
            )
            .await
        };
        let done = done.await;
        step.end(done).await
    }

    async fn take_in_external(&self, change: &ExternalChange) -> Result<Option<u64>> {
        let step = self.write().await?;
        let done = take_in_external(&step, change).await;
        step.end(done).await
    }

    async fn published_documents(&self, after: Option<&DocumentId>, limit: u32) -> Result<Vec<Published>> {
        let after = after.map_or_else(String::new, ToString::to_string);
        let step = self.read().await?;
        let done = async {
            all(&step.query("SELECT d.id, d.company, d.project, d.name, d.head_digest, b.size_bytes, d.published_ms
                 FROM documents d JOIN blobs b ON b.digest = d.head_digest
                 WHERE d.id > $1 AND d.owes_since_ms IS NULL AND d.published_ms IS NOT NULL AND d.deleted_ms IS NULL
                 ORDER BY d.id LIMIT $2", &[&after, &i64::from(limit)]).await?, published)
        };
        let done = done.await;
        step.end(done).await
    }

    async fn owe_publication(&self, document: &DocumentId, at: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = async {
            step.execute(
                "UPDATE documents SET owes_since_ms = coalesce(owes_since_ms, $2) WHERE id = $1",
                &[&document.as_str(), &ms(at)],
            )
            .await?;
            Ok(())
        };
        let done = done.await;
        step.end(done).await
    }
}

fn published(row: &Row) -> Result<Published> {
    Ok(Published {
        document: get(row, "id")?,
        company: id(row, "company", CompanyId::parse)?,
        project: id(row, "project", ProjectId::parse)?,
        name: get(row, "name")?,
        digest: get(row, "head_digest")?,
        size_bytes: get(row, "size_bytes")?,
        published_at: get(row, "published_ms")?,
    })
}

fn owed(row: &Row) -> Result<Owed> {
    let published = match get_optional::<Timestamp>(row, "published_committed_ms")? {
        Some(committed_at) => Some(PublishedNow {
            label: label(row, "published_version", "published_checkpoint")?,
            committed_at,
            published_at: get(row, "published_ms")?,
        }),
        None => None,
    };
    Ok(Owed {
        document: get(row, "id")?,
        company: id(row, "company", CompanyId::parse)?,
        project: id(row, "project", ProjectId::parse)?,
        name: get(row, "name")?,
        old_name: get_optional(row, "shown_name")?,
        label: label(row, "head_version", "head_checkpoint")?,
        digest: get(row, "head_digest")?,
        committed_at: get(row, "committed_ms")?,
        since: get(row, "owes_since_ms")?,
        published,
        is_deleted: get_optional::<Timestamp>(row, "deleted_ms")?.is_some(),
    })
}

async fn take_in_external(step: &Step, change: &ExternalChange) -> Result<Option<u64>> {
    let document = &change.document;
    locks::known_document(step, document).await?;
    contents::name_blob(step, &change.blob, change.at).await?;
    // Somebody edited the very file we show, and nothing happened since: their change is the next version.
    let is_on_head = step.exists("SELECT 1 FROM documents d WHERE d.id = $1 AND d.published_version = d.head_version
         AND d.published_checkpoint = d.head_checkpoint
         AND NOT EXISTS (SELECT 1 FROM keys k WHERE k.document = d.id AND k.state = 'live' AND k.mode = 'edit')",
        &[&document.as_str()],
    ).await?;
    let author = Author::new("published-tree", "Published tree").calling_from("saveguard");
    let (label, kept) = if is_on_head && change.damaged.is_none() {
        let label = contents::next_version(step, document).await?;
        let new = NewContent::without_session(
            (document, label),
            (Origin::External, &change.blob),
            (&author, change.at),
        );
        contents::add_content(step, &new).await?;
        contents::move_head(step, document, label, change.at).await?;
        (Some(label), None)
    } else {
        (None, Some(contents::keep_copy(step, &external_copy(change, &author)).await?))
    };
    let details = json!({
        "label": label.map(|label| label.to_string()),
        "kept": kept,
        "digest": change.blob.digest.to_string(),
        "sizeBytes": change.blob.size_bytes,
    });
    append(
        step,
        &Act {
            document,
            at: change.at,
            actor: Actor::person(&author),
            action: "external-change-taken-in",
            details,
        },
    )
    .await?;
    Ok(kept)
}
