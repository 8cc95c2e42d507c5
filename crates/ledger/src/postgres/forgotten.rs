//! Forgotten files on PostgreSQL: collected into the history, or their bytes only kept.
//!
//! Each function is one step of the port and runs inside one transaction, like the commit of a save. Repeating any of them
//! changes nothing.

use jiff::SignedDuration;
use model::callbacks::{Answer, Callback};
use model::saves::{ConflictReason, ForgottenFacts, IncomingSave, Ruling, SaveKind, SaveMark};
use model::saves::{is_known_forgotten, rule_on_forgotten};
use model::versions::Origin;
use model::{EditorKey, InboxNumber};
use serde_json::json;

use super::audit::{Act, Actor, append};
use super::commit::{Placing, keep_aside, place};
use super::contents::{self, NewKept};
use super::rows::get;
use super::step::Step;
use super::{facts, inbox, keys, locks, sessions};
use crate::adapting::{End, author_of, compare, not_now, nothing_new, outcome_of};
use crate::documents::Keeping;
use crate::saves::{Arrival, Aside, Committed, ForgottenFile};
use crate::{Result, callback_text};

/// Commits a forgotten file. The key is spent with it, unless the file is damaged: it may yet arrive whole. It does not
/// retire: somebody may be entering it at this moment, from that very file.
pub(super) async fn collect_forgotten(step: &Step, found: &ForgottenFile) -> Result<Committed> {
    locks::known_document(step, &found.document).await?;
    keys::adopt_if_unknown(step, &found.document, &found.key, found.at).await?;
    let has_moved_on = keys::saves_received(step, &found.key).await? != found.saves_received;
    if has_moved_on || keys::is_being_stored(step, &found.key, found.at).await? {
        return Ok(not_now(&found.document));
    }
    let key = facts::of_key(step, &found.key, &found.blob.digest).await?;
    let callback = forgotten_callback(step, &found.key).await?;
    let (_, head) = facts::of_head(step, &found.document, &found.key).await?;
    let is_known = match found.damaged {
        Some(_) => key.bytes_kept_before,
        None => is_known_forgotten(&key, &head, &found.blob.digest),
    };
    let committed = if is_known {
        nothing_new(&found.document)
    } else {
        contents::name_blob(step, &found.blob, found.at).await?;
        let number = write_down_forgotten(step, found, &callback).await?;
        match found.damaged {
            Some(reason) => {
                let answer = Answer::NotSaved;
                keep_aside(
                    step,
                    &Aside { number, reason, blob: Some(found.blob.clone()), answer, at: found.at },
                )
                .await?
            }
            None => commit_forgotten(step, found, (&callback, number)).await?,
        }
    };
    if found.damaged.is_none() && !found.keeps_source {
        keys::spend(step, &found.key, found.at).await?;
    }
    Ok(committed)
}

/// Keeps the bytes of a forgotten file, if they are not kept yet.
pub(super) async fn keep_forgotten(step: &Step, found: &ForgottenFile) -> Result<Option<u64>> {
    locks::known_document(step, &found.document).await?;
    if facts::bytes_kept_before(step, &found.key, &found.blob.digest).await? {
        return Ok(None);
    }
    contents::name_blob(step, &found.blob, found.at).await?;
    let callback = forgotten_callback(step, &found.key).await?;
    let kept = contents::keep_copy(
        step,
        &NewKept {
            document: Some(&found.document),
            keeping: Keeping::Conflict(ConflictReason::OlderSession),
            blob: &found.blob,
            author: &author_of(&callback),
            kept_at: found.at,
            key: Some(&found.key),
            inbox: None,
        },
    )
    .await?;
    let details = json!({ "kept": kept, "digest": found.blob.digest.to_string(), "key": found.key.as_str() });
    let (document, at) = (&found.document, found.at);
    append(
        step,
        &Act { document, at, actor: Actor::DOCUMENT_SERVER, action: "forgotten-file-kept", details },
    )
    .await?;
    Ok(Some(kept))
}

async fn commit_forgotten(
    step: &Step,
    found: &ForgottenFile,
    (callback, number): (&Callback, InboxNumber),
) -> Result<Committed> {
    let key = facts::of_key(step, &found.key, &found.blob.digest).await?;
    let (_, head) = facts::of_head(step, &found.document, &found.key).await?;
    let places = keys::places_of(step, &found.key).await?;
    let ruling = rule_on_forgotten(
        &step.shared.guards,
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
    let committed = compared.told(place(step, &placing, compared.ruling, found.at).await?);
    if matches!(ruling, Ruling::NewVersion) {
        keys::note_newest(step, &found.key, &IncomingSave { kind: SaveKind::Final, mark }, found.at).await?;
    }
    inbox::finish(
        step,
        number,
        outcome_of(compared.ruling),
        &End { committed: &committed, at: found.at, answered_at: None },
    )
    .await?;
    Ok(committed)
}

/// A forgotten file has no callback of its own; who worked on it is known from the last one of its key.
async fn forgotten_callback(step: &Step, key: &EditorKey) -> Result<Callback> {
    let query = "SELECT callback FROM inbox WHERE key = $1 ORDER BY number DESC LIMIT 1";
    let mut callback = match step.query_optional(query, &[&key.as_str()]).await? {
        Some(row) => callback_text::read(&get::<String>(&row, "callback")?)?,
        None => Callback { users: sessions::last_users(step, key).await?, ..Callback::bare(key.clone(), 2) },
    };
    callback.status = 2;
    callback.url = None;
    Ok(callback)
}

async fn write_down_forgotten(
    step: &Step,
    found: &ForgottenFile,
    callback: &Callback,
) -> Result<InboxNumber> {
    let arrival = Arrival {
        callback: callback.clone(),
        document: Some(found.document.clone()),
        at: found.at,
        identity_window: SignedDuration::ZERO,
    };
    inbox::write_down(step, &arrival, Some(&found.document)).await
}
