//! The commit on PostgreSQL: the one place where bytes become history.
//!
//! Each function is one step of the port and runs inside one transaction: lock the document, read the facts, ask the rule,
//! write what it says, write down how the callback ended, append to the audit trail. Repeating any of them changes nothing,
//! also if two instances do so at once: the second finds the callback ended.

use jiff::Timestamp;
use model::callbacks::Answer;
use model::saves::{IncomingSave, KeyAfterFinal, Ruling, SaveKind};
use model::saves::{becomes_newest, key_after_final, rule_on_save};
use model::versions::Origin;
use model::{DocumentId, InboxNumber, Label};
use serde_json::json;

use super::audit::{Act, Actor, append};
use super::contents::{self, NewContent, NewForm, NewKept};
use super::rows::{Stored, get, ms};
use super::step::Step;
use super::{facts, inbox, keys, locks};
pub(super) use crate::adapting::adding::Placing;
use crate::adapting::{End, InboxRow, author_of, compare, mark_of, not_now, outcome_of, storing_since};
use crate::documents::{BlobFacts, Keeping};
use crate::saves::{Aside, Committed, PreparedSave, StillNeeded};
use crate::{LedgerError, Result};

/// Commits a save: order guard, version or kept copy, head, key, answer, audit.
pub(super) async fn commit_save(step: &Step, save: &PreparedSave) -> Result<Committed> {
    let is_final = save.kind == SaveKind::Final;
    let retires = is_final && key_after_final(save.someone_waits) == KeyAfterFinal::Retire;
    let is_guarded = is_final && step.shared.guards.order_guard;
    let ((), row, is_answered, overtakes) = tokio::try_join!(
        biased;
        locks::callback(step, save.number),
        inbox::load(step, save.number),
        async { Ok::<_, LedgerError>(retires && !still_needed(step, save.number, save.at).await?.is_any()) },
        async { Ok::<_, LedgerError>(is_guarded && is_overtaking(step, save.number, save.at).await?) },
    )?;
    if let Some(end) = row.end {
        // Another process was faster, and perhaps nobody waited there; here somebody is about to hear 0.
        if is_answered {
            acknowledge(step, save.number, save.at).await?;
        }
        return Ok(end);
    }
    let document = row.document.clone().ok_or_else(|| LedgerError::not_found("the document of an orphan"))?;
    if overtakes {
        return Ok(not_now(&document));
    }
    let incoming = IncomingSave { kind: save.kind, mark: mark_of(&row, &save.blob) };
    let ((), changes, mut key, (_, head)) = tokio::try_join!(
        biased;
        contents::name_blob(step, &save.blob, save.at),
        named_changes(step, save),
        facts::of_key(step, &row.callback.key, &save.blob.digest),
        facts::of_head(step, &document, &row.callback.key),
    )?;
    if let Some(forgotten) = &save.opened_on {
        key.opened_on = facts::came_as(step, &row.callback.key, forgotten).await?;
    }
    let ruling = rule_on_save(&step.shared.guards, &key, &head, &incoming);
    let compared = compare(&save.policy, (&head, ruling), &save.blob);
    let origin = match save.kind {
        SaveKind::Final => Origin::Save,
        SaveKind::Checkpoint => Origin::ForceSave,
    };
    let placing = Placing {
        document: &document,
        callback: &row.callback,
        blob: &compared.blob,
        changes,
        origin,
        mark: &incoming.mark,
    };
    let committed = compared.told(place(step, &placing, compared.ruling, save.at).await?);
    if let Some(changes) = changes.filter(|_| committed.label.is_none()) {
        contents::perhaps_unneeded(step, &[changes.digest], save.at).await?;
    }

    if let Some(form) = &save.form {
        let form = NewForm { document: &document, inbox: save.number, blob: form, at: save.at };
        contents::add_form(step, &form).await?;
    }
    let is_newest = becomes_newest(&step.shared.guards, &key, &incoming);
    let newest = is_newest.then_some(&incoming);
    let end = End { committed: &committed, at: save.at, answered_at: is_answered.then_some(save.at) };
    conclude(step, &row, newest, (outcome_of(compared.ruling), &end)).await?;
    Ok(committed)
}

/// What a key and its callback remember of a save: whether it is the newest, how it ended, and whether the key is done with.
async fn conclude(
    step: &Step,
    row: &InboxRow,
    newest: Option<&IncomingSave>,
    (outcome, end): (&str, &End<'_>),
) -> Result<()> {
    let key = &row.callback.key;
    let noting = async {
        match newest {
            Some(save) => keys::note_newest(step, key, save, end.at).await,
            None => Ok(()),
        }
    };
    let settling = async {
        match end.answered_at {
            Some(at) => keys::settle(step, key, "final save answered", at).await,
            None => Ok(()),
        }
    };
    tokio::try_join!(biased; noting, inbox::finish(step, row.number, outcome, end), settling).map(drop)
}

/// The record of changes, if rows may name it. A save never fails for it.
async fn named_changes<'a>(step: &Step, save: &'a PreparedSave) -> Result<Option<&'a BlobFacts>> {
    let Some(changes) = &save.changes else { return Ok(None) };
    match contents::name_blob(step, changes, save.at).await {
        Ok(()) => Ok(Some(changes)),
        Err(LedgerError::BlobGoing) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Whether an earlier final save of the same key is still being stored. The repeat of an older save carries the time of the
/// newest change, so only after that one can it be told which is newer.
pub(super) async fn is_overtaking(step: &Step, number: InboxNumber, at: Timestamp) -> Result<bool> {
    step.exists(
        "SELECT 1 FROM inbox i JOIN inbox mine ON mine.key = i.key AND mine.number = $1
         WHERE i.status = 2 AND i.outcome IS NULL AND i.number < $1 AND i.link_received_ms >= $2",
        &[&Stored(number), &ms(storing_since(at))],
    )
    .await
}

/// Whether something else of the save's key may need the server's copy. The key stays live then.
pub(super) async fn still_needed(step: &Step, number: InboxNumber, at: Timestamp) -> Result<StillNeeded> {
    let row = step
        .query_one(
            "SELECT EXISTS (SELECT 1 FROM inbox i JOIN inbox mine ON mine.key = i.key AND mine.number = $1
               WHERE i.status = 2 AND i.outcome IS NULL AND i.number <> $1 AND i.link_received_ms >= $2) AS another,
             EXISTS (SELECT 1 FROM kept k JOIN inbox mine ON mine.key = k.key AND mine.number = $1
               WHERE k.kind = 'quarantine') AS refused",
            &[&Stored(number), &ms(storing_since(at))],
        )
        .await?;
    Ok(StillNeeded { another_is_being_stored: get(&row, "another")?, one_was_refused: get(&row, "refused")? })
}

/// Writes what the rule says: a version, a checkpoint, a filed content, a conflict copy, or nothing.
pub(super) async fn place(
    step: &Step,
    placing: &Placing<'_>,
    ruling: Ruling,
    at: Timestamp,
) -> Result<Committed> {
    let (label, kept) = match ruling {
        Ruling::NothingNew => (None, None),
        Ruling::NewVersion => (Some(contents::next_version(step, placing.document).await?), None),
        Ruling::NewCheckpoint => (Some(next_checkpoint_on_head(step, placing.document).await?), None),
        Ruling::FileBeside => (Some(next_checkpoint_on_base(step, placing).await?), None),
        Ruling::KeepAside(reason) => (None, Some(keep(step, placing, Keeping::Conflict(reason), at).await?)),
    };
    let details = placing.details(ruling, (label, kept));
    let actor = placing.actor();
    let act = Act { document: placing.document, at, actor, action: "save-committed", details };
    tokio::try_join!(biased; add_if_placed(step, placing, (ruling, label), at), append(step, &act))?;
    Ok(placing.committed(ruling, (label, kept)))
}

async fn add_if_placed(
    step: &Step,
    placing: &Placing<'_>,
    (ruling, label): (Ruling, Option<Label>),
    at: Timestamp,
) -> Result<()> {
    let Some(label) = label else { return Ok(()) };
    let moves_head = matches!(ruling, Ruling::NewVersion | Ruling::NewCheckpoint);
    let when = When { at, is_filed_beside: !moves_head };
    let moving = async {
        if !moves_head {
            return Ok(());
        }
        contents::move_head(step, placing.document, label, at).await
    };
    tokio::try_join!(biased; add(step, placing, label, &when), moving).map(drop)
}

struct When {
    at: Timestamp,
    is_filed_beside: bool,
}

async fn add(step: &Step, placing: &Placing<'_>, label: Label, when: &When) -> Result<()> {
    let callback = placing.callback;
    contents::add_content(
        step,
        &NewContent {
            document: placing.document,
            label,
            origin: placing.origin,
            blob: placing.blob,
            author: &author_of(callback),
            committed_at: when.at,
            saved_at: callback.last_save,
            session_start: callback.session_start,
            key: Some(&callback.key),
            inbox: Some(placing.mark.inbox),
            is_filed_beside: when.is_filed_beside,
            history: callback.history.as_deref(),
            server_version: callback.server_version.as_deref(),
            changes: placing.changes,
        },
    )
    .await
}

async fn next_checkpoint_on_head(step: &Step, document: &DocumentId) -> Result<Label> {
    let head = contents::head_of(step, document).await?;
    contents::next_checkpoint(step, document, head.version).await
}

/// A late checkpoint is numbered inside the version its session started from.
async fn next_checkpoint_on_base(step: &Step, placing: &Placing<'_>) -> Result<Label> {
    let base = facts::base_of(step, &placing.callback.key).await?;
    let version = match base {
        Some(base) => base.version,
        None => contents::head_of(step, placing.document).await?.version,
    };
    contents::next_checkpoint(step, placing.document, version).await
}

async fn keep(step: &Step, placing: &Placing<'_>, keeping: Keeping, at: Timestamp) -> Result<u64> {
    contents::keep_copy(
        step,
        &NewKept {
            document: Some(placing.document),
            keeping,
            blob: placing.blob,
            author: &author_of(placing.callback),
            kept_at: at,
            key: Some(&placing.callback.key),
            inbox: Some(placing.mark.inbox),
        },
    )
    .await
}

/// Ends a callback whose content must not touch the head, or that brought none.
pub(super) async fn keep_aside(step: &Step, aside: &Aside) -> Result<Committed> {
    locks::callback(step, aside.number).await?;
    let row = inbox::load(step, aside.number).await?;
    if let Some(end) = row.end {
        return Ok(end);
    }
    let keeping = match &row.document {
        Some(_) => Keeping::Quarantine(aside.reason),
        None => Keeping::Orphan,
    };
    let kept = match &aside.blob {
        Some(blob) => Some(keep_bytes(step, &row, keeping, (blob, aside.at)).await?),
        None => None,
    };
    let outcome = if kept.is_some() { keeping.kind() } else { "alert" };
    if let Some(document) = &row.document {
        let details = json!({
            "outcome": outcome,
            "reason": keeping.reason(),
            "kept": kept,
            "digest": aside.blob.as_ref().map(|blob| blob.digest.to_string()),
            "key": row.callback.key.as_str(),
            "status": row.callback.status,
            "inbox": aside.number.0,
        });
        append(
            step,
            &Act {
                document,
                at: aside.at,
                actor: Actor::DOCUMENT_SERVER,
                action: "save-kept-aside",
                details,
            },
        )
        .await?;
    }
    let committed = Committed {
        document: row.document,
        ruling: None,
        label: None,
        kept,
        answer: aside.answer,
        vanished: Vec::new(),
        over_quota: None,
        is_new: true,
    };
    inbox::finish(
        step,
        aside.number,
        outcome,
        &End { committed: &committed, at: aside.at, answered_at: None },
    )
    .await?;
    Ok(committed)
}

/// Quarantined bytes are kept once per key, however often they come.
async fn keep_bytes(
    step: &Step,
    row: &InboxRow,
    keeping: Keeping,
    (blob, at): (&BlobFacts, Timestamp),
) -> Result<u64> {
    if let Some(kept) = contents::kept_under_key(step, &row.callback.key, &blob.digest).await? {
        return Ok(kept);
    }
    contents::name_blob(step, blob, at).await?;
    contents::keep_copy(
        step,
        &NewKept {
            document: row.document.as_ref(),
            keeping,
            blob,
            author: &author_of(&row.callback),
            kept_at: at,
            key: Some(&row.callback.key),
            inbox: Some(row.number),
        },
    )
    .await
}

/// A later delivery of a committed final save is about to be answered 0: the key retires now.
pub(super) async fn acknowledge(step: &Step, number: InboxNumber, at: Timestamp) -> Result<()> {
    locks::callback(step, number).await?;
    let row = inbox::load(step, number).await?;
    let is_saved = row.end.as_ref().is_some_and(|end| end.answer == Answer::Saved);
    let is_needed = still_needed(step, number, at).await?.another_is_being_stored;
    if row.callback.status != 2 || !is_saved || is_needed {
        return Ok(());
    }
    step.execute(
        "UPDATE inbox SET answered_ms = coalesce(answered_ms, $2) WHERE number = $1",
        &[&Stored(number), &ms(at)],
    )
    .await?;
    keys::settle(step, &row.callback.key, "final save answered", at).await
}

/// The link is dead and the bytes never came.
pub(super) async fn give_up(step: &Step, number: InboxNumber, at: Timestamp) -> Result<()> {
    locks::callback(step, number).await?;
    let row = inbox::load(step, number).await?;
    if row.end.is_some() {
        return Ok(());
    }
    step.execute(
        "UPDATE inbox SET outcome = 'expired', answer = 'try-again', finished_ms = $2 WHERE number = $1",
        &[&Stored(number), &ms(at)],
    )
    .await?;
    if let Some(document) = &row.document {
        let details =
            json!({ "key": row.callback.key.as_str(), "status": row.callback.status, "inbox": number.0 });
        append(step, &Act { document, at, actor: Actor::SAVEGUARD, action: "save-expired", details }).await?;
    }
    Ok(())
}
