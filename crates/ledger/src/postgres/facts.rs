//! Reads the facts that the rules of `model` decide by, inside the step's own transaction and behind the document's lock.

use model::opening::LastBrought;
use model::saves::{HeadFacts, KeyFacts, SaveMark};
use model::{Digest, DocumentId, EditorKey, InboxNumber, Label};
use tokio_postgres::Row;

use super::rows::{Stored, extent, get, get_optional, label};
use super::step::Step;
use crate::adapting::standing;
use crate::{LedgerError, Result, callback_text};

/// What is known of a key, as far as a save with these bytes is concerned: all of it in one question.
pub(super) async fn of_key(step: &Step, key: &EditorKey, digest: &Digest) -> Result<KeyFacts> {
    let row = step
        .query_one(
            "SELECT k.state, k.base_digest, k.base_fetched_again_ms, k.final_inbox, k.final_saved_ms, k.final_digest,
               k.final_start_ms, k.checkpoint_inbox, k.checkpoint_saved_ms, k.checkpoint_digest, k.checkpoint_start_ms,
               (SELECT i.callback FROM inbox i WHERE i.number = k.final_inbox) AS final_callback,
               (SELECT i.callback FROM inbox i WHERE i.number = k.checkpoint_inbox) AS checkpoint_callback,
               EXISTS (SELECT 1 FROM keys o WHERE o.document = k.document AND o.key <> k.key AND o.state = 'live'
                 AND o.mode = 'edit') AS another_is_live,
               EXISTS (SELECT 1 FROM contents c WHERE c.key = k.key AND c.digest = $2 AND c.pruned_ms IS NULL)
                 OR EXISTS (SELECT 1 FROM kept c WHERE c.key = k.key AND c.digest = $2 AND c.pruned_ms IS NULL) AS is_kept
             FROM keys k WHERE k.key = $1",
            &[&key.as_str(), &Stored(*digest)],
        )
        .await?;
    Ok(KeyFacts {
        standing: standing(&get::<String>(&row, "state")?),
        another_key_is_live: get(&row, "another_is_live")?,
        base: get_optional(&row, "base_digest")?,
        newest_final: mark(&row, "final")?,
        newest_checkpoint: mark(&row, "checkpoint")?,
        base_fetched_again: get_optional::<i64>(&row, "base_fetched_again_ms")?.is_some(),
        bytes_kept_before: get(&row, "is_kept")?,
        opened_on: None,
    })
}

/// The newest save of a kind, from the columns that begin with its name.
fn mark(row: &Row, kind: &str) -> Result<Option<SaveMark>> {
    let Some(inbox) = get_optional(row, &format!("{kind}_inbox"))? else {
        return Ok(None);
    };
    let callback = get_optional::<String>(row, &format!("{kind}_callback"))?;
    Ok(Some(SaveMark {
        inbox,
        last_save: get_optional(row, &format!("{kind}_saved_ms"))?,
        digest: get(row, &format!("{kind}_digest"))?,
        session_start: get_optional(row, &format!("{kind}_start_ms"))?,
        runs: match callback {
            Some(text) => callback_text::runs_in(&callback_text::read(&text)?),
            None => None,
        },
    }))
}

pub(super) async fn bytes_kept_before(step: &Step, key: &EditorKey, digest: &Digest) -> Result<bool> {
    step.exists(
        "SELECT 1 FROM contents WHERE key = $1 AND digest = $2 AND pruned_ms IS NULL
         UNION ALL SELECT 1 FROM kept WHERE key = $1 AND digest = $2 AND pruned_ms IS NULL LIMIT 1",
        &[&key.as_str(), &Stored(*digest)],
    )
    .await
}

/// The newest callback of a key that brought a file. A forgotten file came without a link. Times are of whole seconds: a checkpoint of
/// the same one as a final save before it was made before everybody left, and overtaken.
pub(super) async fn last_brought(step: &Step, key: &EditorKey) -> Result<Option<LastBrought>> {
    let query =
        "SELECT number, callback FROM inbox AS brought WHERE key = $1 AND url_path IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM inbox AS before WHERE before.key = brought.key AND before.url_path IS NOT NULL
         AND before.number < brought.number AND (before.last_save_ms > brought.last_save_ms
         OR before.last_save_ms = brought.last_save_ms AND before.status IN (2, 3) AND brought.status IN (6, 7)))
        ORDER BY number DESC LIMIT 1";
    let Some(row) = step.query_optional(query, &[&key.as_str()]).await? else { return Ok(None) };
    let callback = callback_text::read(&get::<String>(&row, "callback")?)?;
    Ok(Some(LastBrought { number: get(&row, "number")?, has_history: callback.session_start.is_some() }))
}

/// The newest callback of a key that brought these bytes.
pub(super) async fn came_as(step: &Step, key: &EditorKey, digest: &Digest) -> Result<Option<InboxNumber>> {
    let row = step
        .query_one(
            "SELECT max(inbox) AS number FROM (SELECT inbox FROM contents WHERE key = $1 AND digest = $2
             UNION ALL SELECT inbox FROM kept WHERE key = $1 AND digest = $2) came",
            &[&key.as_str(), &Stored(*digest)],
        )
        .await?;
    get_optional(&row, "number")
}

/// The head, and the save that made it if it came under this key.
pub(super) async fn of_head(
    step: &Step,
    document: &DocumentId,
    key: &EditorKey,
) -> Result<(Label, HeadFacts)> {
    let row = step
        .query_optional(
            "SELECT d.head_version, d.head_checkpoint, d.head_digest, c.key, c.inbox, c.saved_ms, c.session_start_ms, c.digest, c.extent
             FROM documents d JOIN contents c
             ON c.document = d.id AND c.version = d.head_version AND c.checkpoint = d.head_checkpoint WHERE d.id = $1",
            &[&document.as_str()],
        )
        .await?
        .ok_or_else(|| LedgerError::not_found(format!("document `{document}`")))?;
    let label = label(&row, "head_version", "head_checkpoint")?;
    let is_own = get_optional::<EditorKey>(&row, "key")?.as_ref() == Some(key);
    let own = SaveMark {
        inbox: get_optional(&row, "inbox")?.unwrap_or(InboxNumber(0)),
        last_save: get_optional(&row, "saved_ms")?,
        digest: get(&row, "digest")?,
        session_start: get_optional(&row, "session_start_ms")?,
        runs: None,
    };
    let head = HeadFacts {
        digest: get(&row, "head_digest")?,
        is_version: label.is_version(),
        made_by_this_key: is_own.then_some(own),
        extent: extent(&row)?,
    };
    Ok((label, head))
}

/// The content a key was issued on.
pub(super) async fn base_of(step: &Step, key: &EditorKey) -> Result<Option<Label>> {
    let query = "SELECT base_version, base_checkpoint FROM keys WHERE key = $1 AND base_version IS NOT NULL";
    let row = step.query_optional(query, &[&key.as_str()]).await?;
    row.map(|row| label(&row, "base_version", "base_checkpoint")).transpose()
}
