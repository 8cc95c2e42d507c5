//! Writing versions, checkpoints, kept copies and blobs: small statements shared by the steps.

use jiff::Timestamp;
use model::{Digest, DocumentId, EditorKey, InboxNumber, Label};

use super::rows::{Stored, asked, extent_text, get, label, ms, optional_ms, text};
use super::step::{Step, Values};
pub(super) use crate::adapting::adding::{NewContent, NewKept};
use crate::documents::BlobFacts;
use crate::{LedgerError, Result};

/// Names a blob, so that other rows may. Refuses one that is just being removed, or was removed after it was stored. One whose
/// bytes were stored again after they were gone begins another life.
///
/// The blob is locked with it, also if nothing changes: whoever wants to remove it looks again after we are done.
pub(super) async fn name_blob(step: &Step, blob: &BlobFacts, at: Timestamp) -> Result<()> {
    let insert = "INSERT INTO blobs AS b (digest, size_bytes, named_ms) VALUES ($1, $2, $3)
         ON CONFLICT (digest) DO UPDATE SET state = 'present', removed_ms = NULL, unneeded_ms = NULL
         WHERE (b.state <> 'present' OR b.unneeded_ms IS NOT NULL)
         AND NOT (b.state = 'deleting' AND b.removed_ms IS NULL) AND b.removals = $4 AND b.size_bytes = $2";
    let query = "SELECT state = 'deleting' AND removed_ms IS NULL AS is_going, removals, size_bytes FROM blobs WHERE digest = $1";
    let (digest, size) = (Stored(blob.digest), Stored(blob.size_bytes));
    let (at, removals) = (ms(at), asked(blob.removals));
    let (inserted, asked): (Values<'_>, Values<'_>) = (&[&digest, &size, &at, &removals], &[&digest]);
    let (_, row) = tokio::try_join!(biased; step.execute(insert, inserted), step.query_one(query, asked))?;
    if get::<bool>(&row, "is_going")? || get::<u64>(&row, "removals")? != blob.removals {
        return Err(LedgerError::BlobGoing);
    }
    if get::<u64>(&row, "size_bytes")? != blob.size_bytes {
        return Err(LedgerError::damaged(format!("blob {} has two sizes", blob.digest)));
    }
    Ok(())
}

/// Perhaps nothing needs these blobs any more: whoever removes bytes will look.
pub(super) async fn perhaps_unneeded(step: &Step, digests: &[Digest], at: Timestamp) -> Result<()> {
    let digests: Vec<&[u8]> = digests.iter().map(|digest| digest.as_bytes().as_slice()).collect();
    step.execute(
        "UPDATE blobs SET unneeded_ms = $2 WHERE digest IN (SELECT b.digest FROM blobs b
           WHERE b.digest = ANY($1) AND b.state = 'present' ORDER BY b.digest FOR NO KEY UPDATE)",
        &[&digests, &ms(at)],
    )
    .await
    .map(drop)
}

/// Adds a version or checkpoint. Whoever adds a version moves the head to it, too.
pub(super) async fn add_content(step: &Step, new: &NewContent<'_>) -> Result<()> {
    step.execute(
        "INSERT INTO contents (document, version, checkpoint, origin, digest, file_type, flags, author_id,
         author_name, committed_ms, saved_ms, session_start_ms, key, inbox, is_filed_beside, history, server_version,
         extent, changes_digest, changes_bytes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)",
        &[
            &new.document.as_str(),
            &Stored(new.label.version),
            &Stored(new.label.checkpoint),
            &new.origin.as_str(),
            &Stored(new.blob.digest),
            &text(&new.blob.file_type),
            &text(&new.blob.flags),
            &text(&new.author.id),
            &text(&new.author.name),
            &ms(new.committed_at),
            &optional_ms(new.saved_at),
            &optional_ms(new.session_start),
            &new.key.map(EditorKey::as_str),
            &new.inbox.map(Stored),
            &new.is_filed_beside,
            &new.history.map(text),
            &new.server_version.map(text),
            &extent_text(new.blob.extent.as_ref()),
            &new.changes.map(|changes| Stored(changes.digest)),
            &new.changes.map(|changes| Stored(changes.size_bytes)),
        ],
    )
    .await
    .map(drop)
}

/// Points the document at a content that was just added, and counts it if it is a version; the published tree owes it from now on.
pub(super) async fn move_head(step: &Step, document: &DocumentId, label: Label, at: Timestamp) -> Result<()> {
    step.execute(
        "UPDATE documents SET (head_version, head_checkpoint, head_digest, head_key) =
           (SELECT version, checkpoint, digest, key FROM contents
            WHERE document = $1 AND version = $2 AND checkpoint = $3),
         last_version = greatest(last_version, $2), head_moved_ms = $4, owes_since_ms = coalesce(owes_since_ms, $4) WHERE id = $1",
        &[&document.as_str(), &Stored(label.version), &Stored(label.checkpoint), &ms(at)],
    )
    .await
    .map(drop)
}

pub(super) async fn head_of(step: &Step, document: &DocumentId) -> Result<Label> {
    let query = "SELECT head_version, head_checkpoint FROM documents WHERE id = $1";
    let row = step.query_optional(query, &[&document.as_str()]).await?;
    let row = row.ok_or_else(|| LedgerError::not_found(format!("document `{document}`")))?;
    label(&row, "head_version", "head_checkpoint")
}

pub(super) async fn next_version(step: &Step, document: &DocumentId) -> Result<Label> {
    let query = "SELECT last_version FROM documents WHERE id = $1";
    let row = step.query_one(query, &[&document.as_str()]).await?;
    Ok(Label::version(get::<u32>(&row, "last_version")? + 1))
}

pub(super) async fn next_checkpoint(step: &Step, document: &DocumentId, version: u32) -> Result<Label> {
    let query =
        "SELECT coalesce(max(checkpoint), 0) AS last FROM contents WHERE document = $1 AND version = $2";
    let row = step.query_one(query, &[&document.as_str(), &Stored(version)]).await?;
    Ok(Label { version, checkpoint: get::<u32>(&row, "last")? + 1 })
}

pub(super) async fn keep_copy(step: &Step, new: &NewKept<'_>) -> Result<u64> {
    let row = step
        .query_one(
            "INSERT INTO kept (document, kind, reason, digest, file_type, flags, author_id, author_name, kept_ms, key, inbox,
             extent) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING number",
            &[
                &new.document.map(DocumentId::as_str),
                &new.keeping.kind(),
                &new.keeping.reason(),
                &Stored(new.blob.digest),
                &text(&new.blob.file_type),
                &text(&new.blob.flags),
                &text(&new.author.id),
                &text(&new.author.name),
                &ms(new.kept_at),
                &new.key.map(EditorKey::as_str),
                &new.inbox.map(Stored),
                &extent_text(new.blob.extent.as_ref()),
            ],
        )
        .await?;
    get(&row, "number")
}

/// The kept copy with these bytes that came under this key, if there is one.
pub(super) async fn kept_under_key(step: &Step, key: &EditorKey, digest: &Digest) -> Result<Option<u64>> {
    let query = "SELECT number FROM kept WHERE key = $1 AND digest = $2 AND pruned_ms IS NULL ORDER BY number LIMIT 1";
    let row = step.query_optional(query, &[&key.as_str(), &Stored(*digest)]).await?;
    row.map(|row| get(&row, "number")).transpose()
}

/// The data of a submitted form.
pub(super) struct NewForm<'a> {
    pub(super) document: &'a DocumentId,
    pub(super) inbox: InboxNumber,
    pub(super) blob: &'a BlobFacts,
    pub(super) at: Timestamp,
}

/// Keeps the data of a submitted form: one each, never overwritten.
pub(super) async fn add_form(step: &Step, form: &NewForm<'_>) -> Result<()> {
    name_blob(step, form.blob, form.at).await?;
    step.execute(
        "INSERT INTO forms (inbox, document, digest, committed_ms) VALUES ($1, $2, $3, $4)",
        &[&Stored(form.inbox), &form.document.as_str(), &Stored(form.blob.digest), &ms(form.at)],
    )
    .await
    .map(drop)
}
