//! Sessions on SQLite: presence as the Document Server tells it, and what it says when it is asked.
//!
//! Who is inside stands in the key's own row (`users`); `session_people` knows their names and since when.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use model::EditorKey;
use model::opening::{Quiet, ServerKnowledge};
use model::sessions::{LookRuling, SessionFacts, rule_on_look};
use rusqlite::{Connection, Row, params};
use serde_json::json;

use super::audit::{Act, Actor, append};
use super::keys::settle;
use super::rows::{get, get_optional, label, ms, names, optional};
use super::{Shared, SqliteLedger, facts};
use crate::adapting::{knowledge, without_repeats, word};
use crate::documents::Author;
use crate::keys::{KeyStandingNow, Presence};
use crate::sessions::{Look, LookOutcome, Person, SessionPage, SessionRecord};
use crate::{Result, Sessions};

#[async_trait]
impl Sessions for SqliteLedger {
    async fn sessions(&self, page: &SessionPage) -> Result<Vec<SessionRecord>> {
        let page = page.clone();
        self.read(move |connection| list(connection, &page)).await
    }

    /// Behind everybody who waits for the writer.
    async fn named_under(&self, key: &EditorKey) -> Result<BTreeMap<String, Timestamp>> {
        let key = key.clone();
        self.write(move |connection, _| {
            let mut query = connection.prepare_cached(
                "SELECT user, seen_ms FROM session_people WHERE key = ?1 AND seen_ms IS NOT NULL",
            )?;
            let named =
                query.query_map([key.as_str()], |row| Ok((row.get("user")?, get(row, "seen_ms")?)))?;
            Ok(named.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn note_look(&self, look: &Look) -> Result<LookOutcome> {
        let look = look.clone();
        self.write(move |connection, _| note_look(connection, &look)).await
    }
}

const COLUMNS: &str =
    "k.*, EXISTS (SELECT 1 FROM inbox i WHERE i.key = k.key AND i.outcome IS NULL AND i.status = 2
    AND i.number > coalesce(k.final_inbox, 0)) AS is_being_saved FROM keys k";

fn list(connection: &Connection, page: &SessionPage) -> Result<Vec<SessionRecord>> {
    // Two indexes instead of a walk over every key there ever was.
    let mut query = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} WHERE k.key IN (
           SELECT key FROM keys WHERE mode = 'edit' AND state = 'live' AND (?1 IS NULL OR document = ?1)
           UNION SELECT key FROM keys WHERE users <> '[]' AND mode = 'edit' AND (?1 IS NULL OR document = ?1))
         AND k.key > ?2 ORDER BY k.key LIMIT ?3"
    ))?;
    let document = page.document.as_ref().map(model::DocumentId::as_str);
    let after = page.after.as_ref().map_or("", EditorKey::as_str);
    let mut found: Vec<SessionRecord> =
        query.query_map(params![document, after, page.limit], record)?.collect::<rusqlite::Result<_>>()?;
    for session in found.iter_mut().filter(|session| session.facts.has_people) {
        name_people(connection, session)?;
    }
    Ok(found)
}

fn find(connection: &Connection, key: &EditorKey) -> Result<Option<SessionRecord>> {
    let mut query = connection.prepare_cached(&format!("SELECT {COLUMNS} WHERE k.key = ?1"))?;
    optional(query.query_row([key.as_str()], record))
}

/// A session; people have only their ids yet.
fn record(row: &Row<'_>) -> rusqlite::Result<SessionRecord> {
    let issued_at = get(row, "issued_ms")?;
    let last_seen_at: Option<Timestamp> = get_optional(row, "last_seen_ms")?;
    let seen = last_seen_at.unwrap_or(issued_at);
    let nameless = |id: String| Person { name: id.clone(), id, since: seen, last_seen_at: seen };
    let people: Vec<Person> = names(&row.get::<_, String>("users")?).into_iter().map(nameless).collect();
    let has_base = row.get::<_, Option<u32>>("base_version")?.is_some();
    Ok(SessionRecord {
        key: get(row, "key")?,
        document: get(row, "document")?,
        base: if has_base { Some(label(row, "base_version", "base_checkpoint")?) } else { None },
        facts: SessionFacts {
            standing: facts::standing(&row.get::<_, String>("state")?),
            has_people: !people.is_empty(),
            was_entered: row.get::<_, Option<i64>>("entered_ms")?.is_some(),
            is_being_saved: row.get("is_being_saved")?,
            server: row.get::<_, Option<String>>("server_says")?.and_then(|word| knowledge(&word)),
        },
        people,
        issued_at,
        last_seen_at,
        looked_at: get_optional(row, "looked_ms")?,
    })
}

fn name_people(connection: &Connection, session: &mut SessionRecord) -> Result<()> {
    let mut query = connection
        .prepare_cached("SELECT name, since_ms, seen_ms FROM session_people WHERE key = ?1 AND user = ?2")?;
    for person in &mut session.people {
        let found = query.query_row(params![session.key.as_str(), person.id], |row| {
            let (since, seen) = (get_optional(row, "since_ms")?, get_optional(row, "seen_ms")?);
            Ok((row.get::<_, String>("name")?, since, seen))
        });
        let Some((name, since, seen)) = optional(found)? else { continue };
        if !name.is_empty() {
            person.name = name;
        }
        person.since = since.unwrap_or(person.since);
        person.last_seen_at = seen.unwrap_or(person.last_seen_at);
    }
    Ok(())
}

/// Somebody was given a key: when the server names them, we know what they are called.
pub(super) fn expect(connection: &Connection, key: &EditorKey, user: &Author) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO session_people (key, user, name) VALUES (?1, ?2, ?3)
             ON CONFLICT (key, user) DO UPDATE SET name = excluded.name WHERE name <> excluded.name",
        )?
        .execute(params![key.as_str(), user.id, user.name])?;
    Ok(())
}

/// Who is inside, as the Document Server just said. Unknown keys are ignored.
pub(super) fn note_presence(
    connection: &Connection,
    shared: &Shared,
    presence: &Presence,
) -> Result<KeyStandingNow> {
    let Some(before) = find(connection, &presence.key)? else { return Ok(KeyStandingNow::AsExpected) };
    let users = without_repeats(&presence.users);
    let says = presence.is_idle.then_some(word(ServerKnowledge::NothingHeld)).flatten();
    connection
        .prepare_cached(
            "UPDATE keys SET users = ?2, last_seen_ms = ?3, server_says = ?4,
             entered_ms = CASE WHEN ?5 THEN coalesce(entered_ms, ?3) ELSE entered_ms END WHERE key = ?1",
        )?
        .execute(params![
            presence.key.as_str(),
            json!(users).to_string(),
            ms(presence.at),
            says,
            !users.is_empty()
        ])?;
    note_people(connection, presence, &users, &before)?;
    if presence.is_idle && !shared.guards.key_survives_status_4 {
        settle(connection, &presence.key, "status 4", presence.at)?;
    }
    let is_stale = facts::exists(
        connection,
        "SELECT 1 FROM keys WHERE key = ?1 AND mode = 'edit' AND state = 'retired' AND ?2",
        params![presence.key.as_str(), !users.is_empty()],
    )?;
    Ok(if is_stale { KeyStandingNow::Retired } else { KeyStandingNow::AsExpected })
}

/// Whoever was inside before has been there since then; whoever was not came in just now.
fn note_people(
    connection: &Connection,
    presence: &Presence,
    users: &[&String],
    before: &SessionRecord,
) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO session_people (key, user, since_ms, seen_ms) VALUES (?1, ?2, ?3, ?3)
         ON CONFLICT (key, user) DO UPDATE SET seen_ms = ?3, since_ms = CASE WHEN ?4 THEN coalesce(since_ms, ?3) ELSE ?3 END",
    )?;
    for user in users {
        let was_inside = before.people.iter().any(|person| person.id == **user);
        statement.execute(params![presence.key.as_str(), user, ms(presence.at), was_inside])?;
    }
    Ok(())
}

/// Who was inside when the server last spoke of people under this key; whoever it named last, if they are gone.
pub(super) fn last_users(connection: &Connection, key: &EditorKey) -> Result<Vec<String>> {
    let found = connection
        .prepare_cached("SELECT users FROM keys WHERE key = ?1")?
        .query_row([key.as_str()], |row| row.get::<_, String>(0));
    let inside = optional(found)?.map(|users| names(&users)).unwrap_or_default();
    if !inside.is_empty() {
        return Ok(inside);
    }
    let query = "SELECT user FROM session_people WHERE key = ?1 AND seen_ms IS NOT NULL ORDER BY seen_ms DESC, user LIMIT 1";
    let last = connection.prepare_cached(query)?.query_row([key.as_str()], |row| row.get(0));
    Ok(optional(last)?.into_iter().collect())
}

fn note_look(connection: &Connection, look: &Look) -> Result<LookOutcome> {
    let Some(before) = find(connection, &look.key)? else { return Ok(LookOutcome::GoesOn) };
    // Somebody came or saved since: what the server says about before counts for nothing.
    if before.last_seen_at.is_some_and(|seen| seen >= look.asked_at) || before.facts.is_being_saved {
        return Ok(LookOutcome::GoesOn);
    }
    let heard_of = before.last_seen_at.unwrap_or(before.issued_at);
    let was_quiet = look.asked_at.duration_since(heard_of) >= look.quiet_after;
    let quiet = if was_quiet { Quiet::Yes } else { Quiet::No };
    match rule_on_look(look.server, quiet) {
        LookRuling::NotKnown => Ok(LookOutcome::GoesOn),
        LookRuling::GoesOn => {
            connection
                .prepare_cached("UPDATE keys SET looked_ms = ?2 WHERE key = ?1")?
                .execute(params![look.key.as_str(), ms(look.at)])?;
            Ok(LookOutcome::GoesOn)
        }
        LookRuling::Close => {
            empty(connection, look)?;
            if before.facts.has_people {
                write_down(connection, look, &before, "session-closed")?;
            }
            Ok(LookOutcome::Closed { people: before.people.len() })
        }
        LookRuling::Strand => {
            empty(connection, look)?;
            let is_news = before.facts.server != Some(ServerKnowledge::ChangesHeld);
            if is_news {
                write_down(connection, look, &before, "changes-stranded")?;
            }
            Ok(LookOutcome::Stranded { is_news })
        }
    }
}

/// A key retired under these people: they are inside until the server says that they left.
pub(super) fn leave_inside(connection: &Connection, key: &EditorKey, users: &[String]) -> Result<()> {
    connection
        .prepare_cached("UPDATE keys SET users = ?2 WHERE key = ?1")?
        .execute(params![key.as_str(), json!(users).to_string()])?;
    Ok(())
}

/// Nobody is inside. The key stays what it is.
fn empty(connection: &Connection, look: &Look) -> Result<()> {
    connection
        .prepare_cached("UPDATE keys SET users = '[]', server_says = ?2, looked_ms = ?3 WHERE key = ?1")?
        .execute(params![look.key.as_str(), word(look.server), ms(look.at)])?;
    Ok(())
}

fn write_down(
    connection: &Connection,
    look: &Look,
    before: &SessionRecord,
    action: &'static str,
) -> Result<()> {
    let people: Vec<&str> = before.people.iter().map(|person| person.id.as_str()).collect();
    let details = json!({ "key": look.key.as_str(), "people": people });
    let act = Act { document: &before.document, at: look.at, actor: Actor::SAVEGUARD, action, details };
    append(connection, &act)
}
