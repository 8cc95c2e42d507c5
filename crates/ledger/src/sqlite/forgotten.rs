//! Forgotten files on SQLite: collected into the history, or their bytes only kept.
//!
//! Each function is one step of the port and runs inside one transaction, like the commit of a save. Repeating any of them
//! changes nothing.

use jiff::SignedDuration;
use model::callbacks::{Answer, Callback};
use model::saves::{ConflictReason, ForgottenFacts, IncomingSave, Ruling, SaveKind, SaveMark};
use model::saves::{is_known_forgotten, rule_on_forgotten};
use model::versions::Origin;
use model::{EditorKey, InboxNumber};
use rusqlite::Connection;
use serde_json::json;

use super::audit::{Act, Actor, append};
use super::commit::{Placing, author_of, compare, keep_aside, not_now, nothing_new, outcome_of, place};
use super::contents::{self, NewKept};
use super::inbox::{self, End};
use super::rows::optional;
use super::{Shared, facts, keys, sessions};
use crate::Result;
use crate::callback_text;
use crate::documents::Keeping;
use crate::saves::{Arrival, Aside, Committed, ForgottenFile};

/// Commits a forgotten file. The key is spent with it, unless the file is damaged: it may yet arrive whole. It does not
/// retire: somebody may be entering it at this moment, from that very file.
pub(super) fn collect_forgotten(
    connection: &Connection,
    shared: &Shared,
    found: &ForgottenFile,
) -> Result<Committed> {
    keys::adopt_if_unknown(connection, &found.document, &found.key, found.at)?;
    let has_moved_on = keys::saves_received(connection, &found.key)? != found.saves_received;
    if has_moved_on || keys::is_being_stored(connection, &found.key, found.at)? {
        return Ok(not_now(&found.document));
    }
    let key = facts::of_key(connection, &found.key, &found.blob.digest)?;
    let callback = forgotten_callback(connection, &found.key)?;
    let (_, head) = facts::of_head(connection, &found.document, &found.key)?;
    let is_known = match found.damaged {
        Some(_) => key.bytes_kept_before,
        None => is_known_forgotten(&key, &head, &found.blob.digest),
    };
    let committed = if is_known {
        nothing_new(&found.document)
    } else {
        contents::name_blob(connection, &found.blob, found.at)?;
        let number = write_down_forgotten(connection, found, &callback)?;
        match found.damaged {
            Some(reason) => {
                let answer = Answer::NotSaved;
                keep_aside(
                    connection,
                    &Aside { number, reason, blob: Some(found.blob.clone()), answer, at: found.at },
                )?
            }
            None => commit_forgotten(connection, shared, found, (&callback, number))?,
        }
    };
    if found.damaged.is_none() && !found.keeps_source {
        keys::spend(connection, &found.key, found.at)?;
    }
    Ok(committed)
}

/// Keeps the bytes of a forgotten file, if they are not kept yet.
pub(super) fn keep_forgotten(connection: &Connection, found: &ForgottenFile) -> Result<Option<u64>> {
    if facts::bytes_kept_before(connection, &found.key, &found.blob.digest)? {
        return Ok(None);
    }
    contents::name_blob(connection, &found.blob, found.at)?;
    let callback = forgotten_callback(connection, &found.key)?;
    let kept = contents::keep_copy(
        connection,
        &NewKept {
            document: Some(&found.document),
            keeping: Keeping::Conflict(ConflictReason::OlderSession),
            blob: &found.blob,
            author: &author_of(&callback),
            kept_at: found.at,
            key: Some(&found.key),
            inbox: None,
        },
    )?;
    let details = json!({ "kept": kept, "digest": found.blob.digest.to_string(), "key": found.key.as_str() });
    let (document, at) = (&found.document, found.at);
    append(
        connection,
        &Act { document, at, actor: Actor::DOCUMENT_SERVER, action: "forgotten-file-kept", details },
    )?;
    Ok(Some(kept))
}

fn commit_forgotten(
    connection: &Connection,
    shared: &Shared,
    found: &ForgottenFile,
    (callback, number): (&Callback, InboxNumber),
) -> Result<Committed> {
    let key = facts::of_key(connection, &found.key, &found.blob.digest)?;
    let (_, head) = facts::of_head(connection, &found.document, &found.key)?;
    let places = keys::places_of(connection, &found.key)?;
    let ruling = rule_on_forgotten(
        &shared.guards,
        &key,
        &head,
        &ForgottenFacts {
            digest: found.blob.digest,
            own_number: number,
            last_received_final: places.last_received_final,
            newest_save: places.newest_save,
        },
    );
    let compared = compare(&found.policy, (&head, ruling), &found.blob);
    let mark = SaveMark {
        inbox: number,
        last_save: None,
        digest: found.blob.digest,
        session_start: None,
        runs: None,
    };
    let placing = Placing {
        document: &found.document,
        callback,
        blob: &compared.blob,
        changes: None,
        origin: Origin::Recovered,
        mark: &mark,
    };
    let committed = compared.told(place(connection, &placing, compared.ruling, found.at)?);
    if matches!(ruling, Ruling::NewVersion) {
        keys::note_newest(connection, &found.key, &IncomingSave { kind: SaveKind::Final, mark }, found.at)?;
    }
    inbox::finish(
        connection,
        number,
        outcome_of(compared.ruling),
        &End { committed: &committed, at: found.at, answered_at: None },
    )?;
    Ok(committed)
}

/// A forgotten file has no callback of its own; who worked on it is known from the last one of its key.
fn forgotten_callback(connection: &Connection, key: &EditorKey) -> Result<Callback> {
    let found = connection
        .prepare_cached("SELECT callback FROM inbox WHERE key = ?1 ORDER BY number DESC LIMIT 1")?
        .query_row([key.as_str()], |row| row.get::<_, String>(0));
    let mut callback = match optional(found)? {
        Some(text) => callback_text::read(&text)?,
        None => Callback { users: sessions::last_users(connection, key)?, ..Callback::bare(key.clone(), 2) },
    };
    callback.status = 2;
    callback.url = None;
    Ok(callback)
}

fn write_down_forgotten(
    connection: &Connection,
    found: &ForgottenFile,
    callback: &Callback,
) -> Result<InboxNumber> {
    let arrival = Arrival {
        callback: callback.clone(),
        document: Some(found.document.clone()),
        at: found.at,
        identity_window: SignedDuration::ZERO,
    };
    inbox::write_down(connection, &arrival, Some(&found.document))
}
