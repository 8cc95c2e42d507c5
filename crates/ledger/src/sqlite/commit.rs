//! The commit on SQLite: the one place where bytes become history.
//!
//! Each function is one step of the port and runs inside one transaction: read the facts, ask the rule, write what it
//! says, write down how the callback ended, append to the audit trail. Repeating any of them changes nothing.

use jiff::Timestamp;
use model::callbacks::Answer;
use model::saves::{IncomingSave, KeyAfterFinal, Ruling, SaveKind};
use model::saves::{becomes_newest, key_after_final, rule_on_save};
use model::versions::Origin;
use model::{DocumentId, InboxNumber, Label};
use rusqlite::{Connection, params};
use serde_json::json;

use super::audit::{Act, Actor, append};
use super::contents::{self, NewContent, NewForm, NewKept};
use super::inbox::{self, End, InboxRow};
use super::rows::{Stored, ms};
use super::{Shared, facts, keys};
pub(super) use crate::adapting::adding::Placing;
use crate::adapting::mark_of;
pub(super) use crate::adapting::{author_of, compare, not_now, nothing_new, outcome_of};
use crate::documents::{BlobFacts, Keeping};
use crate::saves::{Aside, Committed, PreparedSave, StillNeeded};
use crate::{LedgerError, Result};

/// Commits a save: order guard, version or kept copy, head, key, answer, audit.
pub(super) fn commit_save(
    connection: &Connection,
    shared: &Shared,
    save: &PreparedSave,
) -> Result<Committed> {
    let row = inbox::load(connection, save.number)?;
    let is_answered = save.kind == SaveKind::Final
        && key_after_final(save.someone_waits) == KeyAfterFinal::Retire
        && !still_needed(connection, save.number, save.at)?.is_any();
    if let Some(end) = row.end {
        // Another process was faster, and perhaps nobody waited there; here somebody is about to hear 0.
        if is_answered {
            acknowledge(connection, save.number, save.at)?;
        }
        return Ok(end);
    }
    let document = row.document.clone().ok_or_else(|| LedgerError::not_found("the document of an orphan"))?;
    if save.kind == SaveKind::Final
        && shared.guards.order_guard
        && is_overtaking(connection, save.number, save.at)?
    {
        return Ok(not_now(&document));
    }
    contents::name_blob(connection, &save.blob, save.at)?;
    let incoming = IncomingSave { kind: save.kind, mark: mark_of(&row, &save.blob) };

    let mut key = facts::of_key(connection, &row.callback.key, &save.blob.digest)?;
    if let Some(forgotten) = &save.opened_on {
        key.opened_on = facts::came_as(connection, &row.callback.key, forgotten)?;
    }
    let (_, head) = facts::of_head(connection, &document, &row.callback.key)?;
    let ruling = rule_on_save(&shared.guards, &key, &head, &incoming);
    let compared = compare(&save.policy, (&head, ruling), &save.blob);
    let origin = match save.kind {
        SaveKind::Final => Origin::Save,
        SaveKind::Checkpoint => Origin::ForceSave,
    };
    let changes = named_changes(connection, save)?;
    let placing = Placing {
        document: &document,
        callback: &row.callback,
        blob: &compared.blob,
        changes,
        origin,
        mark: &incoming.mark,
    };
    let committed = compared.told(place(connection, &placing, compared.ruling, save.at)?);
    if let Some(changes) = changes.filter(|_| committed.label.is_none()) {
        contents::perhaps_unneeded(connection, &changes.digest, save.at)?;
    }

    if becomes_newest(&shared.guards, &key, &incoming) {
        keys::note_newest(connection, &row.callback.key, &incoming, save.at)?;
    }
    if let Some(form) = &save.form {
        let form = NewForm { document: &document, inbox: save.number, blob: form, at: save.at };
        contents::add_form(connection, &form)?;
    }
    if is_answered {
        keys::settle(connection, &row.callback.key, "final save answered", save.at)?;
    }
    let answered_at = is_answered.then_some(save.at);
    inbox::finish(
        connection,
        save.number,
        outcome_of(compared.ruling),
        &End { committed: &committed, at: save.at, answered_at },
    )?;
    Ok(committed)
}

/// The record of changes, if rows may name it. A save never fails for it.
fn named_changes<'a>(connection: &Connection, save: &'a PreparedSave) -> Result<Option<&'a BlobFacts>> {
    let Some(changes) = &save.changes else { return Ok(None) };
    match contents::name_blob(connection, changes, save.at) {
        Ok(()) => Ok(Some(changes)),
        Err(LedgerError::BlobGoing) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Whether an earlier final save of the same key is still being stored. The repeat of an older save carries the time of the
/// newest change, so only after that one can it be told which is newer.
pub(super) fn is_overtaking(connection: &Connection, number: InboxNumber, at: Timestamp) -> Result<bool> {
    facts::exists(
        connection,
        "SELECT 1 FROM inbox i JOIN inbox mine ON mine.key = i.key AND mine.number = ?1
         WHERE i.status = 2 AND i.outcome IS NULL AND i.number < ?1 AND i.link_received_ms >= ?2",
        params![Stored(number), ms(keys::storing_since(at))],
    )
}

/// Whether something else of the save's key may need the server's copy. The key stays live then.
pub(super) fn still_needed(
    connection: &Connection,
    number: InboxNumber,
    at: Timestamp,
) -> Result<StillNeeded> {
    Ok(StillNeeded {
        another_is_being_stored: facts::exists(
            connection,
            "SELECT 1 FROM inbox i JOIN inbox mine ON mine.key = i.key AND mine.number = ?1
             WHERE i.status = 2 AND i.outcome IS NULL AND i.number <> ?1 AND i.link_received_ms >= ?2",
            params![Stored(number), ms(keys::storing_since(at))],
        )?,
        one_was_refused: facts::exists(
            connection,
            "SELECT 1 FROM kept k JOIN inbox mine ON mine.key = k.key AND mine.number = ?1 WHERE k.kind = 'quarantine'",
            params![Stored(number)],
        )?,
    })
}

/// Writes what the rule says: a version, a checkpoint, a filed content, a conflict copy, or nothing.
pub(super) fn place(
    connection: &Connection,
    placing: &Placing<'_>,
    ruling: Ruling,
    at: Timestamp,
) -> Result<Committed> {
    let (label, kept) = match ruling {
        Ruling::NothingNew => (None, None),
        Ruling::NewVersion => (Some(contents::next_version(connection, placing.document)?), None),
        Ruling::NewCheckpoint => (Some(next_checkpoint_on_head(connection, placing.document)?), None),
        Ruling::FileBeside => (Some(next_checkpoint_on_base(connection, placing)?), None),
        Ruling::KeepAside(reason) => (None, Some(keep(connection, placing, Keeping::Conflict(reason), at)?)),
    };
    let moves_head = matches!(ruling, Ruling::NewVersion | Ruling::NewCheckpoint);
    if let Some(label) = label {
        add(connection, placing, label, &When { at, is_filed_beside: !moves_head })?;
        if moves_head {
            contents::move_head(connection, placing.document, label, at)?;
        }
    }
    let details = placing.details(ruling, (label, kept));
    let actor = placing.actor();
    append(connection, &Act { document: placing.document, at, actor, action: "save-committed", details })?;
    Ok(placing.committed(ruling, (label, kept)))
}

struct When {
    at: Timestamp,
    is_filed_beside: bool,
}

fn add(connection: &Connection, placing: &Placing<'_>, label: Label, when: &When) -> Result<()> {
    let callback = placing.callback;
    contents::add_content(
        connection,
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
}

fn next_checkpoint_on_head(connection: &Connection, document: &DocumentId) -> Result<Label> {
    let head = contents::head_of(connection, document)?;
    contents::next_checkpoint(connection, document, head.version)
}

/// A late checkpoint is numbered inside the version its session started from.
fn next_checkpoint_on_base(connection: &Connection, placing: &Placing<'_>) -> Result<Label> {
    let base = facts::base_of(connection, &placing.callback.key)?;
    let version = match base {
        Some(base) => base.version,
        None => contents::head_of(connection, placing.document)?.version,
    };
    contents::next_checkpoint(connection, placing.document, version)
}

fn keep(connection: &Connection, placing: &Placing<'_>, keeping: Keeping, at: Timestamp) -> Result<u64> {
    contents::keep_copy(
        connection,
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
}

/// Ends a callback whose content must not touch the head, or that brought none.
pub(super) fn keep_aside(connection: &Connection, aside: &Aside) -> Result<Committed> {
    let row = inbox::load(connection, aside.number)?;
    if let Some(end) = row.end {
        return Ok(end);
    }
    let keeping = match &row.document {
        Some(_) => Keeping::Quarantine(aside.reason),
        None => Keeping::Orphan,
    };
    let kept = match &aside.blob {
        Some(blob) => Some(keep_bytes(connection, &row, keeping, (blob, aside.at))?),
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
            connection,
            &Act {
                document,
                at: aside.at,
                actor: Actor::DOCUMENT_SERVER,
                action: "save-kept-aside",
                details,
            },
        )?;
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
        connection,
        aside.number,
        outcome,
        &End { committed: &committed, at: aside.at, answered_at: None },
    )?;
    Ok(committed)
}

/// Quarantined bytes are kept once per key, however often they come.
fn keep_bytes(
    connection: &Connection,
    row: &InboxRow,
    keeping: Keeping,
    (blob, at): (&BlobFacts, Timestamp),
) -> Result<u64> {
    if let Some(kept) = contents::kept_under_key(connection, &row.callback.key, &blob.digest)? {
        return Ok(kept);
    }
    contents::name_blob(connection, blob, at)?;
    contents::keep_copy(
        connection,
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
}

/// A later delivery of a committed final save is about to be answered 0: the key retires now.
pub(super) fn acknowledge(connection: &Connection, number: InboxNumber, at: Timestamp) -> Result<()> {
    let row = inbox::load(connection, number)?;
    let is_saved = row.end.as_ref().is_some_and(|end| end.answer == Answer::Saved);
    let is_needed = still_needed(connection, number, at)?.another_is_being_stored;
    if row.callback.status != 2 || !is_saved || is_needed {
        return Ok(());
    }
    connection
        .prepare_cached("UPDATE inbox SET answered_ms = coalesce(answered_ms, ?2) WHERE number = ?1")?
        .execute(params![Stored(number), ms(at)])?;
    keys::settle(connection, &row.callback.key, "final save answered", at)
}

/// The link is dead and the bytes never came.
pub(super) fn give_up(connection: &Connection, number: InboxNumber, at: Timestamp) -> Result<()> {
    let row = inbox::load(connection, number)?;
    if row.end.is_some() {
        return Ok(());
    }
    connection
        .prepare_cached(
            "UPDATE inbox SET outcome = 'expired', answer = 'try-again', finished_ms = ?2 WHERE number = ?1",
        )?
        .execute(params![Stored(number), ms(at)])?;
    if let Some(document) = &row.document {
        let details =
            json!({ "key": row.callback.key.as_str(), "status": row.callback.status, "inbox": number.0 });
        append(connection, &Act { document, at, actor: Actor::SAVEGUARD, action: "save-expired", details })?;
    }
    Ok(())
}
