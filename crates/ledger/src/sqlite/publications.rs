//! What the published tree owes, on SQLite.

use std::ops::Range;

use async_trait::async_trait;
use jiff::Timestamp;
use model::names::FileName;
use model::versions::Origin;
use model::{CompanyId, Digest, DocumentId, Label, ProjectId};
use rusqlite::{Connection, Row, params};
use serde_json::json;

use super::audit::{Act, Actor, append};
use super::contents::{self, NewContent};
use super::facts::exists;
use super::rows::{Stored, get, get_optional, id, label, ms, optional};
use super::{SqliteLedger, history};
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
impl Publications for SqliteLedger {
    async fn owed_publications(&self, after: Option<&Owed>, limit: u32) -> Result<Vec<Owed>> {
        let after = after.map(|after| (after.since, after.document.to_string()));
        let (since, id) = after.unwrap_or((Timestamp::MIN, String::new()));
        self.read(move |connection| {
            let mut query = connection.prepare_cached(&format!(
                "{OWED} AND (d.owes_since_ms, d.id) > (?1, ?2) ORDER BY d.owes_since_ms, d.id LIMIT ?3"
            ))?;
            Ok(query.query_map(params![ms(since), id, limit], owed)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn stalled_publications(&self, since: &Range<Timestamp>, limit: u32) -> Result<Vec<Owed>> {
        let (start, end) = (ms(since.start), ms(since.end));
        self.read(move |connection| {
            let mut query = connection.prepare_cached(&format!(
                "{OWED} AND max(d.owes_since_ms, coalesce(d.published_ms, 0)) >= ?1
                 AND max(d.owes_since_ms, coalesce(d.published_ms, 0)) < ?2 ORDER BY d.owes_since_ms, d.id LIMIT ?3"
            ))?;
            Ok(query.query_map(params![start, end, limit], owed)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn owed_publication(&self, document: &DocumentId) -> Result<Option<Owed>> {
        let document = document.clone();
        self.read(move |connection| {
            let mut query = connection.prepare_cached(&format!("{OWED} AND d.id = ?1"))?;
            optional(query.query_row([document.as_str()], owed))
        })
        .await
    }

    async fn published(&self, document: &DocumentId, label: Label, at: Timestamp) -> Result<()> {
        let document = document.clone();
        self.write(move |connection, _| {
            connection
                .prepare_cached(
                    "UPDATE documents SET published_version = ?2, published_checkpoint = ?3, published_ms = ?4,
                     owes_since_ms = CASE WHEN head_version = ?2 AND head_checkpoint = ?3 AND deleted_ms IS NULL
                                          AND shown_name IS NULL THEN NULL ELSE owes_since_ms END
                     WHERE id = ?1",
                )?
                .execute(params![document.as_str(), label.version, label.checkpoint, ms(at)])?;
            Ok(())
        })
        .await
    }

    async fn shown_under(&self, document: &DocumentId, name: &FileName) -> Result<()> {
        let (document, name) = (document.clone(), name.clone());
        self.write(move |connection, _| history::shown_under(connection, &document, &name)).await
    }

    async fn withdrawn(&self, document: &DocumentId, _at: Timestamp) -> Result<()> {
        let document = document.clone();
        self.write(move |connection, _| {
            connection
                .prepare_cached(
                    "UPDATE documents SET published_version = NULL, published_checkpoint = NULL, published_ms = NULL,
                     shown_name = NULL, owes_since_ms = CASE WHEN deleted_ms IS NULL THEN owes_since_ms END WHERE id = ?1",
                )?
                .execute([document.as_str()])?;
            Ok(())
        })
        .await
    }

    async fn knows_content(&self, document: &DocumentId, digest: &Digest) -> Result<bool> {
        let (document, digest) = (document.clone(), *digest);
        self.read(move |connection| {
            exists(
                connection,
                "SELECT 1 FROM contents WHERE digest = ?2 AND document = ?1 AND pruned_ms IS NULL
                 UNION ALL SELECT 1 FROM kept WHERE digest = ?2 AND document = ?1 AND pruned_ms IS NULL",
                params![document.as_str(), Stored(digest)],
            )
        })
        .await
    }

    async fn take_in_external(&self, change: &ExternalChange) -> Result<Option<u64>> {
        let change = change.clone();
        self.write(move |connection, _| take_in_external(connection, &change)).await
    }

    async fn published_documents(&self, after: Option<&DocumentId>, limit: u32) -> Result<Vec<Published>> {
        let after = after.map_or_else(String::new, ToString::to_string);
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT d.id, d.company, d.project, d.name, d.head_digest, b.size_bytes, d.published_ms
                 FROM documents d JOIN blobs b ON b.digest = d.head_digest
                 WHERE d.id > ?1 AND d.owes_since_ms IS NULL AND d.published_ms IS NOT NULL AND d.deleted_ms IS NULL
                 ORDER BY d.id LIMIT ?2",
            )?;
            Ok(query.query_map(params![after, limit], published)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn owe_publication(&self, document: &DocumentId, at: Timestamp) -> Result<()> {
        let document = document.clone();
        self.write(move |connection, _| {
            connection
                .prepare_cached(
                    "UPDATE documents SET owes_since_ms = coalesce(owes_since_ms, ?2) WHERE id = ?1",
                )?
                .execute(params![document.as_str(), ms(at)])?;
            Ok(())
        })
        .await
    }
}

fn published(row: &Row<'_>) -> rusqlite::Result<Published> {
    Ok(Published {
        document: get(row, "id")?,
        company: id(row, "company", CompanyId::parse)?,
        project: id(row, "project", ProjectId::parse)?,
        name: get(row, "name")?,
        digest: get(row, "head_digest")?,
        size_bytes: row.get("size_bytes")?,
        published_at: get(row, "published_ms")?,
    })
}

fn owed(row: &Row<'_>) -> rusqlite::Result<Owed> {
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

fn take_in_external(connection: &Connection, change: &ExternalChange) -> Result<Option<u64>> {
    let document = &change.document;
    contents::name_blob(connection, &change.blob, change.at)?;
    // Somebody edited the very file we show, and nothing happened since: their change is the next version.
    let is_on_head = exists(
        connection,
        "SELECT 1 FROM documents d WHERE d.id = ?1 AND d.published_version = d.head_version
         AND d.published_checkpoint = d.head_checkpoint
         AND NOT EXISTS (SELECT 1 FROM keys k WHERE k.document = d.id AND k.state = 'live' AND k.mode = 'edit')",
        params![document.as_str()],
    )?;
    let author = Author::new("published-tree", "Published tree").calling_from("saveguard");
    let (label, kept) = if is_on_head && change.damaged.is_none() {
        let label = contents::next_version(connection, document)?;
        let new = NewContent::without_session(
            (document, label),
            (Origin::External, &change.blob),
            (&author, change.at),
        );
        contents::add_content(connection, &new)?;
        contents::move_head(connection, document, label, change.at)?;
        (Some(label), None)
    } else {
        (None, Some(contents::keep_copy(connection, &external_copy(change, &author))?))
    };
    let details = json!({
        "label": label.map(|label| label.to_string()),
        "kept": kept,
        "digest": change.blob.digest.to_string(),
        "sizeBytes": change.blob.size_bytes,
    });
    append(
        connection,
        &Act {
            document,
            at: change.at,
            actor: Actor::person(&author),
            action: "external-change-taken-in",
            details,
        },
    )?;
    Ok(kept)
}
