//! Editor keys on SQLite: issuing under the document's lock, reuse, retirement, presence.

use async_trait::async_trait;
use jiff::Timestamp;
use model::callbacks::Callback;
use model::opening::{OpenFacts, OpenRuling, rule_on_open};
use model::saves::{IncomingSave, KeyStanding, SaveKind};
use model::{Digest, DocumentId, EditorKey, InboxNumber, Label};
use rusqlite::{Connection, Row, params};
use serde_json::json;

use super::audit::{Act, Actor, append};
use super::rows::{Stored, get, get_optional, label, ms, names, optional, optional_ms};
use super::{Shared, SqliteLedger, facts, history, sessions};
pub(super) use crate::adapting::{Asked, Sessions, storing_since};
use crate::adapting::{left_facts, live_facts, reuse};
use crate::keys::{
    KeyGrant, KeyRecord, KeyStandingNow, OpenGrant, OpenRequest, Presence, Retirement, ViewKey,
};
use crate::{Keys, LedgerError, Result};

#[async_trait]
impl Keys for SqliteLedger {
    async fn open_for_editing(&self, request: &OpenRequest) -> Result<OpenGrant> {
        let request = request.clone();
        self.write(move |connection, shared| open_for_editing(connection, shared, &request)).await
    }

    async fn note_view_key(&self, view: &ViewKey) -> Result<()> {
        let view = view.clone();
        self.write(move |connection, _| history::note_view_key(connection, &view)).await
    }

    async fn key(&self, key: &EditorKey) -> Result<Option<KeyRecord>> {
        let key = key.clone();
        self.read(move |connection| find(connection, &key)).await
    }

    async fn live_key_of(&self, document: &DocumentId) -> Result<Option<KeyRecord>> {
        let document = document.clone();
        self.read(move |connection| live_key_of(connection, &document)).await
    }

    async fn live_keys(&self) -> Result<Vec<KeyRecord>> {
        self.read(|connection| {
            let mut query = connection.prepare_cached(
                "SELECT * FROM keys WHERE state = 'live' AND mode = 'edit' ORDER BY issued_ms, key",
            )?;
            Ok(query.query_map([], record)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn note_presence(&self, presence: &Presence) -> Result<KeyStandingNow> {
        let presence = presence.clone();
        self.write(move |connection, shared| sessions::note_presence(connection, shared, &presence)).await
    }

    async fn note_base_fetched(&self, key: &EditorKey, at: Timestamp) -> Result<()> {
        let key = key.clone();
        self.write(move |connection, _| {
            connection
                .prepare_cached(
                    "UPDATE keys SET base_fetched_again_ms = coalesce(base_fetched_again_ms, ?2)
                     WHERE key = ?1 AND mode = 'edit' AND first_save_ms IS NOT NULL",
                )?
                .execute(params![key.as_str(), ms(at)])?;
            Ok(())
        })
        .await
    }

    async fn retire_key(&self, retirement: &Retirement) -> Result<bool> {
        let retirement = retirement.clone();
        self.write(move |connection, _| {
            let Some(record) = find(connection, &retirement.key)? else { return Ok(false) };
            let has_moved_on =
                record.saves_received != retirement.saves_received || record.standing != KeyStanding::Live;
            if has_moved_on || is_being_stored(connection, &retirement.key, retirement.at)? {
                return Ok(false);
            }
            settle(connection, &retirement.key, retirement.why, retirement.at)?;
            confirm(connection, &retirement.key, retirement.at)?;
            Ok(true)
        })
        .await
    }
}

/// Whether a save of the key is on its way to the ledger. After retirement it would be a conflict copy for no reason, and a
/// forgotten file may be older than it.
pub(super) fn is_being_stored(connection: &Connection, key: &EditorKey, at: Timestamp) -> Result<bool> {
    facts::exists(
        connection,
        "SELECT 1 FROM inbox WHERE key = ?1 AND outcome IS NULL AND status IN (2, 6) AND link_received_ms >= ?2",
        params![key.as_str(), ms(storing_since(at))],
    )
}

fn find(connection: &Connection, key: &EditorKey) -> Result<Option<KeyRecord>> {
    optional(
        connection.prepare_cached("SELECT * FROM keys WHERE key = ?1")?.query_row([key.as_str()], record),
    )
}

pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    let base = match get_optional::<Digest>(row, "base_digest")? {
        Some(digest) => Some((label(row, "base_version", "base_checkpoint")?, digest)),
        None => None,
    };
    let standing = facts::standing(&row.get::<_, String>("state")?);
    let is_view = row.get::<_, String>("mode")? == "view";
    let is_settled = row.get::<_, Option<i64>>("settled_ms")?.is_some();
    Ok(KeyRecord {
        key: get(row, "key")?,
        document: get(row, "document")?,
        standing,
        base,
        issued_at: get(row, "issued_ms")?,
        retired_at: get_optional(row, "retired_ms")?,
        saves_received: row.get("saves_received")?,
        has_final_save: row.get::<_, Option<i64>>("final_inbox")?.is_some(),
        is_spent: !is_view && (is_settled || standing == KeyStanding::Retired),
        users: names(&row.get::<_, String>("users")?),
        last_seen_at: get_optional(row, "last_seen_ms")?,
    })
}

/// Rules on a wish to edit, under the writer's lock, so that two openers cannot both issue a key.
fn open_for_editing(connection: &Connection, shared: &Shared, request: &OpenRequest) -> Result<OpenGrant> {
    let grant = rule_and_do(connection, shared, request)?;
    if let OpenGrant::Granted(granted) = &grant {
        sessions::expect(connection, &granted.key, &request.user)?;
    }
    Ok(grant)
}

fn rule_and_do(connection: &Connection, shared: &Shared, request: &OpenRequest) -> Result<OpenGrant> {
    let asked = Asked {
        knowledge: request.knowledge.as_ref(),
        quiet_after: request.quiet_after,
        listening_since: Some(request.listening_since),
    };
    let Sessions { head, facts, live, left } = sessions_of(connection, &request.document, &asked)?;
    let ruling = rule_on_open(&shared.guards, &facts);
    if let (OpenRuling::Issue, Some(left)) = (ruling, &left) {
        confirm(connection, &left.key, request.at)?;
    }
    match (ruling, live.or(left)) {
        (OpenRuling::WaitForSave, _) => Ok(OpenGrant::Wait),
        (OpenRuling::ServerAway, _) => Ok(OpenGrant::ServerAway),
        (OpenRuling::AskServer, Some(live)) => Ok(OpenGrant::AskServer(Box::new(live))),
        (OpenRuling::RetireThenIssue, Some(live)) => Ok(OpenGrant::Finish(Box::new(live))),
        (OpenRuling::Reuse, Some(live)) => reuse(live),
        (OpenRuling::BringBackStranded, Some(live)) => bring_back(connection, live, request),
        (OpenRuling::Revive, Some(left)) => {
            revive(connection, &left.key)?;
            bring_back(connection, left, request)
        }
        _ => issue(connection, shared, request, (head, facts.head)),
    }
}

pub(super) fn sessions_of(
    connection: &Connection,
    document: &DocumentId,
    asked: &Asked<'_>,
) -> Result<Sessions> {
    let (head, head_digest) = head_of(connection, document)?;
    let live = live_key_of(connection, document)?;
    let left = left_key_of(connection, document)?.filter(|_| live.is_none());
    let facts = OpenFacts {
        head: head_digest,
        final_save_is_being_stored: final_save_is_being_stored(connection, document)?,
        live: live.as_ref().map(|live| live_facts(live, asked)).transpose()?,
        left: left.as_ref().map(|left| left_facts(left, asked)),
    };
    Ok(Sessions { head, facts, live, left })
}

/// A deleted document has no head to work on.
fn head_of(connection: &Connection, document: &DocumentId) -> Result<(Label, Digest)> {
    let found = connection
        .prepare_cached(
            "SELECT head_version, head_checkpoint, head_digest FROM documents WHERE id = ?1 AND deleted_ms IS NULL",
        )?
        .query_row([document.as_str()], |row| {
            Ok((label(row, "head_version", "head_checkpoint")?, get(row, "head_digest")?))
        });
    optional(found)?.ok_or_else(|| LedgerError::not_found(format!("document `{document}`")))
}

fn live_key_of(connection: &Connection, document: &DocumentId) -> Result<Option<KeyRecord>> {
    let query = "SELECT * FROM keys WHERE document = ?1 AND state = 'live' AND mode = 'edit'";
    optional(connection.prepare_cached(query)?.query_row([document.as_str()], record))
}

/// The newest key that retired with its final save and of which the server was not yet heard to be done.
fn left_key_of(connection: &Connection, document: &DocumentId) -> Result<Option<KeyRecord>> {
    let query = "SELECT * FROM keys WHERE document = ?1 AND state = 'retired' AND mode = 'edit' AND confirmed_ms IS NULL
                 ORDER BY issued_ms DESC, key DESC LIMIT 1";
    optional(connection.prepare_cached(query)?.query_row([document.as_str()], record))
}

/// The server holds nothing under a retired key.
pub(super) fn confirm(connection: &Connection, key: &EditorKey, at: Timestamp) -> Result<()> {
    connection
        .prepare_cached("UPDATE keys SET confirmed_ms = ?2 WHERE key = ?1 AND confirmed_ms IS NULL")?
        .execute(params![key.as_str(), ms(at)])?;
    Ok(())
}

/// A key that retired too early is live again, on its base.
fn revive(connection: &Connection, key: &EditorKey) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE keys SET state = 'live', settled_ms = NULL, retired_ms = NULL, retired_why = NULL WHERE key = ?1",
        )?
        .execute([key.as_str()])?;
    Ok(())
}

/// An open row older than a committed final save of its key no longer matters: that save holds everything it held.
fn final_save_is_being_stored(connection: &Connection, document: &DocumentId) -> Result<bool> {
    facts::exists(
        connection,
        "SELECT 1 FROM inbox i LEFT JOIN keys k ON k.key = i.key
         WHERE i.document = ?1 AND i.outcome IS NULL AND i.status = 2 AND i.number > coalesce(k.final_inbox, 0)",
        params![document.as_str()],
    )
}

fn bring_back(connection: &Connection, live: KeyRecord, request: &OpenRequest) -> Result<OpenGrant> {
    let details = json!({ "key": live.key.as_str() });
    let act = Act {
        document: &request.document,
        at: request.at,
        actor: Actor::person(&request.user),
        action: "stranded-changes-brought-back",
        details,
    };
    append(connection, &act)?;
    match reuse(live)? {
        OpenGrant::Granted(grant) => Ok(OpenGrant::Granted(KeyGrant { brings_back_stranded: true, ..grant })),
        other => Ok(other),
    }
}

fn issue(
    connection: &Connection,
    shared: &Shared,
    request: &OpenRequest,
    (base, base_digest): (Label, Digest),
) -> Result<OpenGrant> {
    let document = &request.document;
    let counter: u64 = connection
        .prepare_cached(
            "UPDATE documents SET key_counter = key_counter + 1 WHERE id = ?1 RETURNING key_counter",
        )?
        .query_row([document.as_str()], |row| row.get(0))?;
    let key = EditorKey::for_editing(&shared.environment, document, counter, request.random);
    insert_key(
        connection,
        &NewKey { key: &key, document, mode: "edit", state: "live", base: Some((base, base_digest)) },
        request.at,
    )?;
    let details = json!({ "key": key.as_str(), "base": base.to_string() });
    append(
        connection,
        &Act { document, at: request.at, actor: Actor::person(&request.user), action: "key-issued", details },
    )?;
    Ok(OpenGrant::Granted(KeyGrant { key, base, base_digest, is_new: true, brings_back_stranded: false }))
}

pub(super) struct NewKey<'a> {
    pub(super) key: &'a EditorKey,
    pub(super) document: &'a DocumentId,
    pub(super) mode: &'a str,
    pub(super) state: &'a str,
    pub(super) base: Option<(Label, Digest)>,
}

pub(super) fn insert_key(connection: &Connection, new: &NewKey<'_>, at: Timestamp) -> Result<bool> {
    let inserted = connection
        .prepare_cached(
            "INSERT INTO keys (key, document, mode, state, base_version, base_checkpoint, base_digest, issued_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (key) DO NOTHING",
        )?
        .execute(params![
            new.key.as_str(),
            new.document.as_str(),
            new.mode,
            new.state,
            new.base.map(|(label, _)| label.version),
            new.base.map(|(label, _)| label.checkpoint),
            new.base.map(|(_, digest)| Stored(digest)),
            ms(at),
        ])?;
    Ok(inserted > 0)
}

pub(super) fn is_known_document(connection: &Connection, document: &DocumentId) -> Result<bool> {
    let query = "SELECT 1 FROM documents WHERE id = ?1 AND purged_ms IS NULL";
    facts::exists(connection, query, params![document.as_str()])
}

/// A key of a history this ledger does not have (a restored backup): known from now on, its saves are kept aside.
pub(super) fn adopt_if_unknown(
    connection: &Connection,
    document: &DocumentId,
    key: &EditorKey,
    at: Timestamp,
) -> Result<()> {
    let is_new =
        insert_key(connection, &NewKey { key, document, mode: "edit", state: "adopted", base: None }, at)?;
    if is_new {
        let details = json!({ "key": key.as_str() });
        append(
            connection,
            &Act { document, at, actor: Actor::DOCUMENT_SERVER, action: "key-adopted", details },
        )?;
    }
    Ok(())
}

pub(super) fn count_received_save(
    connection: &Connection,
    callback: &Callback,
    number: InboxNumber,
    at: Timestamp,
) -> Result<()> {
    // It comes when the last one has left.
    let is_final = callback.status == 2;
    connection
        .prepare_cached(
            "UPDATE keys SET saves_received = saves_received + 1, last_seen_ms = max(coalesce(last_seen_ms, 0), ?4),
             server_says = NULL, users = CASE WHEN ?3 THEN '[]' ELSE users END, last_received_final = CASE WHEN ?3 THEN ?2 ELSE last_received_final END WHERE key = ?1",
        )?
        .execute(params![callback.key.as_str(), Stored(number), is_final, ms(at)])?;
    Ok(())
}

/// Once it is answered, the server knows less than it said before: whoever asked it earlier asks again.
pub(super) fn count_repeat(connection: &Connection, key: &EditorKey, at: Timestamp) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE keys SET saves_received = saves_received + 1, last_seen_ms = max(coalesce(last_seen_ms, 0), ?2),
             server_says = NULL WHERE key = ?1",
        )?
        .execute(params![key.as_str(), ms(at)])?;
    Ok(())
}

pub(super) fn saves_received(connection: &Connection, key: &EditorKey) -> Result<u64> {
    let query = "SELECT saves_received FROM keys WHERE key = ?1";
    Ok(connection.prepare_cached(query)?.query_row([key.as_str()], |row| row.get(0))?)
}

/// Remembers the newest final save or checkpoint of a key, for the order guard.
pub(super) fn note_newest(
    connection: &Connection,
    key: &EditorKey,
    save: &IncomingSave,
    at: Timestamp,
) -> Result<()> {
    let kind = match save.kind {
        SaveKind::Final => "final",
        SaveKind::Checkpoint => "checkpoint",
    };
    connection
        .prepare_cached(&format!(
            "UPDATE keys SET {kind}_inbox = ?2, {kind}_saved_ms = ?3, {kind}_digest = ?4, {kind}_start_ms = ?5,
             first_save_ms = coalesce(first_save_ms, ?6) WHERE key = ?1"
        ))?
        .execute(params![
            key.as_str(),
            Stored(save.mark.inbox),
            optional_ms(save.mark.last_save),
            Stored(save.mark.digest),
            optional_ms(save.mark.session_start),
            ms(at),
        ])?;
    Ok(())
}

/// The server has nothing left under this key that we do not have: it is spent, and retires if it was live.
pub(super) fn settle(connection: &Connection, key: &EditorKey, why: &str, at: Timestamp) -> Result<()> {
    let retired = connection
        .prepare_cached(
            "UPDATE keys SET settled_ms = coalesce(settled_ms, ?2), state = 'retired', retired_ms = ?2, retired_why = ?3,
             users = '[]' WHERE key = ?1 AND state = 'live'",
        )?
        .execute(params![key.as_str(), ms(at), why])?;
    if retired == 0 {
        return spend(connection, key, at);
    }
    let document: Stored<DocumentId> = connection
        .prepare_cached("SELECT document FROM keys WHERE key = ?1")?
        .query_row([key.as_str()], |row| row.get(0))?;
    let details = json!({ "key": key.as_str(), "why": why });
    append(
        connection,
        &Act { document: &document.0, at, actor: Actor::SAVEGUARD, action: "key-retired", details },
    )
}

/// Nobody shall open anything new under this key. Whoever is inside stays: a live key retires when the server says that
/// nobody is.
pub(super) fn spend(connection: &Connection, key: &EditorKey, at: Timestamp) -> Result<()> {
    connection
        .prepare_cached("UPDATE keys SET settled_ms = coalesce(settled_ms, ?2) WHERE key = ?1")?
        .execute(params![key.as_str(), ms(at)])?;
    Ok(())
}

/// Where the saves of a key stand in the order of arrival.
pub(super) struct Places {
    pub(super) last_received_final: Option<InboxNumber>,
    pub(super) newest_save: Option<InboxNumber>,
}

pub(super) fn places_of(connection: &Connection, key: &EditorKey) -> Result<Places> {
    connection
        .prepare_cached(
            "SELECT last_received_final, nullif(max(coalesce(final_inbox, 0), coalesce(checkpoint_inbox, 0)), 0) AS newest
             FROM keys WHERE key = ?1",
        )?
        .query_row([key.as_str()], |row| {
            Ok(Places {
                last_received_final: get_optional(row, "last_received_final")?,
                newest_save: get_optional(row, "newest")?,
            })
        })
        .map_err(LedgerError::from)
}
