//! Editor keys on PostgreSQL: issuing under the document's lock, reuse, retirement, presence.

use async_trait::async_trait;
use jiff::Timestamp;
use model::callbacks::Callback;
use model::opening::{OpenFacts, OpenRuling, rule_on_open};
use model::saves::{IncomingSave, KeyStanding, SaveKind};
use model::{Digest, DocumentId, EditorKey, InboxNumber, Label};
use serde_json::json;
use tokio_postgres::Row;

use super::audit::{Act, Actor, append};
use super::rows::{Stored, all, get, get_optional, label, ms, names, optional_ms};
use super::step::Step;
use super::{PostgresLedger, history, locks, sessions};
use crate::adapting::{Asked, Sessions, left_facts, live_facts, reuse, standing, storing_since};
use crate::keys::{
    KeyGrant, KeyRecord, KeyStandingNow, OpenGrant, OpenRequest, Presence, Retirement, ViewKey,
};
use crate::{Keys, LedgerError, Result};

/// What a record is read from.
pub(super) const COLUMNS: &str = "k.key, k.document, k.mode, k.state, k.base_version, k.base_checkpoint, k.base_digest,
    k.issued_ms, k.retired_ms, k.saves_received, k.final_inbox, k.settled_ms, k.users, k.last_seen_ms FROM keys k";

#[async_trait]
impl Keys for PostgresLedger {
    async fn open_for_editing(&self, request: &OpenRequest) -> Result<OpenGrant> {
        let step = self.write().await?;
        let done = open_for_editing(&step, request).await;
        step.end(done).await
    }

    async fn note_view_key(&self, view: &ViewKey) -> Result<()> {
        let step = self.write().await?;
        let done = history::note_view_key(&step, view).await;
        step.end(done).await
    }

    async fn key(&self, key: &EditorKey) -> Result<Option<KeyRecord>> {
        let step = self.glance().await?;
        let found = find(&step, key).await;
        step.end(found).await
    }

    async fn live_key_of(&self, document: &DocumentId) -> Result<Option<KeyRecord>> {
        let step = self.glance().await?;
        let found = live_key_of(&step, document).await;
        step.end(found).await
    }

    async fn live_keys(&self) -> Result<Vec<KeyRecord>> {
        let query = format!(
            "SELECT {COLUMNS} WHERE k.state = 'live' AND k.mode = 'edit' ORDER BY k.issued_ms, k.key"
        );
        let step = self.glance().await?;
        let found = step.query(&query, &[]).await;
        step.end(found).await.and_then(|rows| all(&rows, record))
    }

    async fn note_presence(&self, presence: &Presence) -> Result<KeyStandingNow> {
        let step = self.write().await?;
        let done = sessions::note_presence(&step, presence).await;
        step.end(done).await
    }

    async fn note_base_fetched(&self, key: &EditorKey, at: Timestamp) -> Result<()> {
        let update = "UPDATE keys SET base_fetched_again_ms = coalesce(base_fetched_again_ms, $2)
                      WHERE key = $1 AND mode = 'edit' AND first_save_ms IS NOT NULL";
        let step = self.write().await?;
        let done = async {
            locks::document_of_key(&step, key).await?;
            step.execute(update, &[&key.as_str(), &ms(at)]).await.map(drop)
        };
        let done = done.await;
        step.end(done).await
    }

    async fn retire_key(&self, retirement: &Retirement) -> Result<bool> {
        let step = self.write().await?;
        let done = retire(&step, retirement).await;
        step.end(done).await
    }
}

async fn retire(step: &Step, retirement: &Retirement) -> Result<bool> {
    locks::document_of_key(step, &retirement.key).await?;
    let Some(record) = find(step, &retirement.key).await? else { return Ok(false) };
    let has_moved_on =
        record.saves_received != retirement.saves_received || record.standing != KeyStanding::Live;
    if has_moved_on || is_being_stored(step, &retirement.key, retirement.at).await? {
        return Ok(false);
    }
    settle(step, &retirement.key, retirement.why, retirement.at).await?;
    confirm(step, &retirement.key, retirement.at).await?;
    Ok(true)
}

/// Whether a save of the key is on its way to the ledger. After retirement it would be a conflict copy for no reason, and a
/// forgotten file may be older than it.
pub(super) async fn is_being_stored(step: &Step, key: &EditorKey, at: Timestamp) -> Result<bool> {
    step.exists(
        "SELECT 1 FROM inbox WHERE key = $1 AND outcome IS NULL AND status IN (2, 6) AND link_received_ms >= $2 LIMIT 1",
        &[&key.as_str(), &ms(storing_since(at))],
    )
    .await
}

async fn find(step: &Step, key: &EditorKey) -> Result<Option<KeyRecord>> {
    let query = format!("SELECT {COLUMNS} WHERE k.key = $1");
    step.query_optional(&query, &[&key.as_str()]).await?.as_ref().map(record).transpose()
}

pub(super) fn record(row: &Row) -> Result<KeyRecord> {
    let base = match get_optional::<Digest>(row, "base_digest")? {
        Some(digest) => Some((label(row, "base_version", "base_checkpoint")?, digest)),
        None => None,
    };
    let standing = standing(&get::<String>(row, "state")?);
    let is_view = get::<String>(row, "mode")? == "view";
    let is_settled = get_optional::<i64>(row, "settled_ms")?.is_some();
    Ok(KeyRecord {
        key: get(row, "key")?,
        document: get(row, "document")?,
        standing,
        base,
        issued_at: get(row, "issued_ms")?,
        retired_at: get_optional(row, "retired_ms")?,
        saves_received: get(row, "saves_received")?,
        has_final_save: get_optional::<i64>(row, "final_inbox")?.is_some(),
        is_spent: !is_view && (is_settled || standing == KeyStanding::Retired),
        users: names(&get::<String>(row, "users")?),
        last_seen_at: get_optional(row, "last_seen_ms")?,
    })
}

/// Rules on a wish to edit, under the document's lock, so that two openers cannot both issue a key.
async fn open_for_editing(step: &Step, request: &OpenRequest) -> Result<OpenGrant> {
    locks::document(step, &request.document).await?;
    let grant = rule_and_do(step, request).await?;
    if let OpenGrant::Granted(granted) = &grant {
        sessions::expect(step, &granted.key, &request.user).await?;
    }
    Ok(grant)
}

async fn rule_and_do(step: &Step, request: &OpenRequest) -> Result<OpenGrant> {
    let asked = Asked {
        knowledge: request.knowledge.as_ref(),
        quiet_after: request.quiet_after,
        listening_since: Some(request.listening_since),
    };
    let Sessions { head, facts, live, left } = sessions_of(step, &request.document, &asked).await?;
    let ruling = rule_on_open(&step.shared.guards, &facts);
    if let (OpenRuling::Issue, Some(left)) = (ruling, &left) {
        confirm(step, &left.key, request.at).await?;
    }
    match (ruling, live.or(left)) {
        (OpenRuling::WaitForSave, _) => Ok(OpenGrant::Wait),
        (OpenRuling::ServerAway, _) => Ok(OpenGrant::ServerAway),
        (OpenRuling::AskServer, Some(live)) => Ok(OpenGrant::AskServer(Box::new(live))),
        (OpenRuling::RetireThenIssue, Some(live)) => Ok(OpenGrant::Finish(Box::new(live))),
        (OpenRuling::Reuse, Some(live)) => reuse(live),
        (OpenRuling::BringBackStranded, Some(live)) => bring_back(step, live, request).await,
        (OpenRuling::Revive, Some(left)) => {
            revive(step, &left.key).await?;
            bring_back(step, left, request).await
        }
        _ => issue(step, request, (head, facts.head)).await,
    }
}

pub(super) async fn sessions_of(step: &Step, document: &DocumentId, asked: &Asked<'_>) -> Result<Sessions> {
    let (head, head_digest) = head_of(step, document).await?;
    let live = live_key_of(step, document).await?;
    let left = if live.is_none() { left_key_of(step, document).await? } else { None };
    let facts = OpenFacts {
        head: head_digest,
        final_save_is_being_stored: final_save_is_being_stored(step, document).await?,
        live: live.as_ref().map(|live| live_facts(live, asked)).transpose()?,
        left: left.as_ref().map(|left| left_facts(left, asked)),
    };
    Ok(Sessions { head, facts, live, left })
}

/// A deleted document has no head to work on.
async fn head_of(step: &Step, document: &DocumentId) -> Result<(Label, Digest)> {
    let query = "SELECT head_version, head_checkpoint, head_digest FROM documents WHERE id = $1 AND deleted_ms IS NULL";
    let row = step.query_optional(query, &[&document.as_str()]).await?;
    let row = row.ok_or_else(|| LedgerError::not_found(format!("document `{document}`")))?;
    Ok((label(&row, "head_version", "head_checkpoint")?, get(&row, "head_digest")?))
}

async fn live_key_of(step: &Step, document: &DocumentId) -> Result<Option<KeyRecord>> {
    let query = format!("SELECT {COLUMNS} WHERE k.document = $1 AND k.state = 'live' AND k.mode = 'edit'");
    step.query_optional(&query, &[&document.as_str()]).await?.as_ref().map(record).transpose()
}

/// The newest key that retired with its final save and of which the server was not yet heard to be done.
async fn left_key_of(step: &Step, document: &DocumentId) -> Result<Option<KeyRecord>> {
    let query = format!(
        "SELECT {COLUMNS} WHERE k.document = $1 AND k.state = 'retired' AND k.mode = 'edit' AND k.confirmed_ms IS NULL
         ORDER BY k.issued_ms DESC, k.key DESC LIMIT 1"
    );
    step.query_optional(&query, &[&document.as_str()]).await?.as_ref().map(record).transpose()
}

/// The server holds nothing under a retired key.
pub(super) async fn confirm(step: &Step, key: &EditorKey, at: Timestamp) -> Result<()> {
    let update = "UPDATE keys SET confirmed_ms = $2 WHERE key = $1 AND confirmed_ms IS NULL";
    step.execute(update, &[&key.as_str(), &ms(at)]).await.map(drop)
}

/// A key that retired too early is live again, on its base.
async fn revive(step: &Step, key: &EditorKey) -> Result<()> {
    let update = "UPDATE keys SET state = 'live', settled_ms = NULL, retired_ms = NULL, retired_why = NULL WHERE key = $1";
    step.execute(update, &[&key.as_str()]).await.map(drop)
}

/// An open row older than a committed final save of its key no longer matters: that save holds everything it held.
async fn final_save_is_being_stored(step: &Step, document: &DocumentId) -> Result<bool> {
    step.exists(
        "SELECT 1 FROM inbox i LEFT JOIN keys k ON k.key = i.key
         WHERE i.document = $1 AND i.outcome IS NULL AND i.status = 2 AND i.number > coalesce(k.final_inbox, 0) LIMIT 1",
        &[&document.as_str()],
    )
    .await
}

async fn bring_back(step: &Step, live: KeyRecord, request: &OpenRequest) -> Result<OpenGrant> {
    let details = json!({ "key": live.key.as_str() });
    let act = Act {
        document: &request.document,
        at: request.at,
        actor: Actor::person(&request.user),
        action: "stranded-changes-brought-back",
        details,
    };
    append(step, &act).await?;
    match reuse(live)? {
        OpenGrant::Granted(grant) => Ok(OpenGrant::Granted(KeyGrant { brings_back_stranded: true, ..grant })),
        other => Ok(other),
    }
}

async fn issue(
    step: &Step,
    request: &OpenRequest,
    (base, base_digest): (Label, Digest),
) -> Result<OpenGrant> {
    let document = &request.document;
    let update = "UPDATE documents SET key_counter = key_counter + 1 WHERE id = $1 RETURNING key_counter";
    let counter = get(&step.query_one(update, &[&document.as_str()]).await?, "key_counter")?;
    let key = EditorKey::for_editing(&step.shared.environment, document, counter, request.random);
    let new = NewKey { key: &key, document, mode: "edit", state: "live", base: Some((base, base_digest)) };
    insert_key(step, &new, request.at).await?;
    let details = json!({ "key": key.as_str(), "base": base.to_string() });
    let actor = Actor::person(&request.user);
    append(step, &Act { document, at: request.at, actor, action: "key-issued", details }).await?;
    Ok(OpenGrant::Granted(KeyGrant { key, base, base_digest, is_new: true, brings_back_stranded: false }))
}

pub(super) struct NewKey<'a> {
    pub(super) key: &'a EditorKey,
    pub(super) document: &'a DocumentId,
    pub(super) mode: &'a str,
    pub(super) state: &'a str,
    pub(super) base: Option<(Label, Digest)>,
}

pub(super) async fn insert_key(step: &Step, new: &NewKey<'_>, at: Timestamp) -> Result<bool> {
    let inserted = step
        .execute(
            "INSERT INTO keys (key, document, mode, state, base_version, base_checkpoint, base_digest, issued_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (key) DO NOTHING",
            &[
                &new.key.as_str(),
                &new.document.as_str(),
                &new.mode,
                &new.state,
                &new.base.map(|(label, _)| Stored(label.version)),
                &new.base.map(|(label, _)| Stored(label.checkpoint)),
                &new.base.map(|(_, digest)| Stored(digest)),
                &ms(at),
            ],
        )
        .await?;
    Ok(inserted > 0)
}

pub(super) async fn is_known_document(step: &Step, document: &DocumentId) -> Result<bool> {
    let query = "SELECT 1 FROM documents WHERE id = $1 AND purged_ms IS NULL";
    step.exists(query, &[&document.as_str()]).await
}

/// A key of a history this ledger does not have (a restored backup): known from now on, its saves are kept aside.
pub(super) async fn adopt_if_unknown(
    step: &Step,
    document: &DocumentId,
    key: &EditorKey,
    at: Timestamp,
) -> Result<()> {
    let new = NewKey { key, document, mode: "edit", state: "adopted", base: None };
    if insert_key(step, &new, at).await? {
        let details = json!({ "key": key.as_str() });
        let actor = Actor::DOCUMENT_SERVER;
        append(step, &Act { document, at, actor, action: "key-adopted", details }).await?;
    }
    Ok(())
}

pub(super) async fn count_received_save(
    step: &Step,
    callback: &Callback,
    number: InboxNumber,
    at: Timestamp,
) -> Result<()> {
    // It comes when the last one has left.
    let is_final = callback.status == 2;
    step.execute(
        "UPDATE keys SET saves_received = saves_received + 1, last_seen_ms = greatest(coalesce(last_seen_ms, 0), $4),
         server_says = NULL, users = CASE WHEN $3 THEN '[]' ELSE users END,
         last_received_final = CASE WHEN $3 THEN $2 ELSE last_received_final END WHERE key = $1",
        &[&callback.key.as_str(), &Stored(number), &is_final, &ms(at)],
    )
    .await
    .map(drop)
}

/// Once it is answered, the server knows less than it said before: whoever asked it earlier asks again.
pub(super) async fn count_repeat(step: &Step, key: &EditorKey, at: Timestamp) -> Result<()> {
    step.execute(
        "UPDATE keys SET saves_received = saves_received + 1, last_seen_ms = greatest(coalesce(last_seen_ms, 0), $2),
         server_says = NULL WHERE key = $1",
        &[&key.as_str(), &ms(at)],
    )
    .await
    .map(drop)
}

pub(super) async fn saves_received(step: &Step, key: &EditorKey) -> Result<u64> {
    let query = "SELECT saves_received FROM keys WHERE key = $1";
    get(&step.query_one(query, &[&key.as_str()]).await?, "saves_received")
}

/// Remembers the newest final save or checkpoint of a key, for the order guard.
pub(super) async fn note_newest(
    step: &Step,
    key: &EditorKey,
    save: &IncomingSave,
    at: Timestamp,
) -> Result<()> {
    let kind = match save.kind {
        SaveKind::Final => "final",
        SaveKind::Checkpoint => "checkpoint",
    };
    let update = format!(
        "UPDATE keys SET {kind}_inbox = $2, {kind}_saved_ms = $3, {kind}_digest = $4, {kind}_start_ms = $5,
         first_save_ms = coalesce(first_save_ms, $6) WHERE key = $1"
    );
    let (saved, started) = (optional_ms(save.mark.last_save), optional_ms(save.mark.session_start));
    let (inbox, digest) = (Stored(save.mark.inbox), Stored(save.mark.digest));
    step.execute(&update, &[&key.as_str(), &inbox, &saved, &digest, &started, &ms(at)]).await.map(drop)
}

/// The server has nothing left under this key that we do not have: it is spent, and retires if it was live.
pub(super) async fn settle(step: &Step, key: &EditorKey, why: &str, at: Timestamp) -> Result<()> {
    let update = "UPDATE keys SET settled_ms = coalesce(settled_ms, $2), state = 'retired', retired_ms = $2,
                  retired_why = $3, users = '[]' WHERE key = $1 AND state = 'live' RETURNING document";
    let Some(row) = step.query_optional(update, &[&key.as_str(), &ms(at), &why]).await? else {
        return spend(step, key, at).await;
    };
    let document = get::<DocumentId>(&row, "document")?;
    let details = json!({ "key": key.as_str(), "why": why });
    let actor = Actor::SAVEGUARD;
    append(step, &Act { document: &document, at, actor, action: "key-retired", details }).await
}

/// Nobody shall open anything new under this key. Whoever is inside stays: a live key retires when the server says that
/// nobody is.
pub(super) async fn spend(step: &Step, key: &EditorKey, at: Timestamp) -> Result<()> {
    let update = "UPDATE keys SET settled_ms = coalesce(settled_ms, $2) WHERE key = $1";
    step.execute(update, &[&key.as_str(), &ms(at)]).await.map(drop)
}

/// Where the saves of a key stand in the order of arrival.
pub(super) struct Places {
    pub(super) last_received_final: Option<InboxNumber>,
    pub(super) newest_save: Option<InboxNumber>,
}

pub(super) async fn places_of(step: &Step, key: &EditorKey) -> Result<Places> {
    let query = "SELECT last_received_final, greatest(final_inbox, checkpoint_inbox) AS newest FROM keys WHERE key = $1";
    let row = step.query_one(query, &[&key.as_str()]).await?;
    Ok(Places {
        last_received_final: get_optional(&row, "last_received_final")?,
        newest_save: get_optional(&row, "newest")?,
    })
}
