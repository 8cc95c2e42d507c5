//! Sessions on PostgreSQL: presence as the Document Server tells it, and what it says when it is asked.
//!
//! Who is inside stands in the key's own row (`users`); `session_people` knows their names and since when.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use model::EditorKey;
use model::opening::{Quiet, ServerKnowledge};
use model::sessions::{LookRuling, SessionFacts, rule_on_look};
use serde_json::json;
use tokio_postgres::Row;

use super::audit::{Act, Actor, append};
use super::keys::settle;
use super::rows::{all, get, get_optional, label, ms, names, text};
use super::step::Step;
use super::{PostgresLedger, locks};
use crate::adapting::{knowledge, standing, without_repeats, word};
use crate::documents::Author;
use crate::keys::{KeyStandingNow, Presence};
use crate::sessions::{Look, LookOutcome, Person, SessionPage, SessionRecord};
use crate::{Result, Sessions};

#[async_trait]
impl Sessions for PostgresLedger {
    async fn sessions(&self, page: &SessionPage) -> Result<Vec<SessionRecord>> {
        let step = self.read().await?;
        let found = list(&step, page).await;
        step.end(found).await
    }

    /// Behind everybody who waits for the document's row. Nothing was changed, so nothing is flushed.
    async fn named_under(&self, key: &EditorKey) -> Result<BTreeMap<String, Timestamp>> {
        let Some(parts) = key.parts() else { return Ok(BTreeMap::new()) };
        let step = self.write().await?;
        let found = async {
            let query = "SELECT \"user\", seen_ms FROM session_people WHERE key = $1 AND seen_ms IS NOT NULL";
            let name = key.as_str();
            let named = async { step.query(query, &[&name]).await };
            let (_, rows) = tokio::try_join!(biased; locks::document(&step, &parts.document), named)?;
            rows.iter().map(|row| Ok((get(row, "user")?, get(row, "seen_ms")?))).collect()
        };
        let found = found.await;
        step.leave(found).await
    }

    async fn note_look(&self, look: &Look) -> Result<LookOutcome> {
        let step = self.write().await?;
        let done = note_look(&step, look).await;
        step.end(done).await
    }
}

const COLUMNS: &str =
    "k.key, k.document, k.state, k.base_version, k.base_checkpoint, k.issued_ms, k.last_seen_ms, k.users,
    k.entered_ms, k.server_says, k.looked_ms,
    EXISTS (SELECT 1 FROM inbox i WHERE i.key = k.key AND i.outcome IS NULL AND i.status = 2
    AND i.number > coalesce(k.final_inbox, 0)) AS is_being_saved FROM keys k";

async fn list(step: &Step, page: &SessionPage) -> Result<Vec<SessionRecord>> {
    // Two indexes instead of a walk over every key there ever was.
    let query = format!(
        "SELECT {COLUMNS} WHERE k.key IN (
           SELECT key FROM keys WHERE mode = 'edit' AND state = 'live' AND ($1::text IS NULL OR document = $1)
           UNION SELECT key FROM keys WHERE users <> '[]' AND mode = 'edit' AND ($1::text IS NULL OR document = $1))
         AND k.key > $2 ORDER BY k.key LIMIT $3"
    );
    let document = page.document.as_ref().map(model::DocumentId::as_str);
    let after = page.after.as_ref().map_or("", EditorKey::as_str);
    let rows = step.query(&query, &[&document, &after, &i64::from(page.limit)]).await?;
    let mut found = all(&rows, record)?;
    name_people(step, &mut found).await?;
    Ok(found)
}

async fn find(step: &Step, key: &EditorKey) -> Result<Option<SessionRecord>> {
    let query = format!("SELECT {COLUMNS} WHERE k.key = $1");
    step.query_optional(&query, &[&key.as_str()]).await?.as_ref().map(record).transpose()
}

/// A session; people have only their ids yet.
fn record(row: &Row) -> Result<SessionRecord> {
    let issued_at = get(row, "issued_ms")?;
    let last_seen_at: Option<Timestamp> = get_optional(row, "last_seen_ms")?;
    let seen = last_seen_at.unwrap_or(issued_at);
    let nameless = |id: String| Person { name: id.clone(), id, since: seen, last_seen_at: seen };
    let people: Vec<Person> = names(&get::<String>(row, "users")?).into_iter().map(nameless).collect();
    let has_base = get_optional::<u32>(row, "base_version")?.is_some();
    Ok(SessionRecord {
        key: get(row, "key")?,
        document: get(row, "document")?,
        base: if has_base { Some(label(row, "base_version", "base_checkpoint")?) } else { None },
        facts: SessionFacts {
            standing: standing(&get::<String>(row, "state")?),
            has_people: !people.is_empty(),
            was_entered: get_optional::<i64>(row, "entered_ms")?.is_some(),
            is_being_saved: get(row, "is_being_saved")?,
            server: get_optional::<String>(row, "server_says")?.and_then(|word| knowledge(&word)),
        },
        people,
        issued_at,
        last_seen_at,
        looked_at: get_optional(row, "looked_ms")?,
    })
}

async fn name_people(step: &Step, sessions: &mut [SessionRecord]) -> Result<()> {
    let keys: Vec<String> =
        sessions.iter().filter(|each| each.facts.has_people).map(|each| each.key.to_string()).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let query = "SELECT key, \"user\", name, since_ms, seen_ms FROM session_people WHERE key = ANY($1)";
    let mut known = BTreeMap::new();
    for row in step.query(query, &[&keys]).await? {
        known.insert((get::<String>(&row, "key")?, get::<String>(&row, "user")?), row);
    }
    for session in sessions {
        for person in &mut session.people {
            let Some(row) = known.get(&(session.key.to_string(), text(&person.id).into_owned())) else {
                continue;
            };
            let name: String = get(row, "name")?;
            if !name.is_empty() {
                person.name = name;
            }
            person.since = get_optional(row, "since_ms")?.unwrap_or(person.since);
            person.last_seen_at = get_optional(row, "seen_ms")?.unwrap_or(person.last_seen_at);
        }
    }
    Ok(())
}

/// Somebody was given a key: when the server names them, we know what they are called.
pub(super) async fn expect(step: &Step, key: &EditorKey, user: &Author) -> Result<()> {
    step.execute(
        "INSERT INTO session_people AS p (key, \"user\", name) VALUES ($1, $2, $3)
         ON CONFLICT (key, md5(\"user\")) DO UPDATE SET name = excluded.name WHERE p.name <> excluded.name",
        &[&key.as_str(), &text(&user.id), &text(&user.name)],
    )
    .await
    .map(drop)
}

/// Who is inside, as the Document Server just said. Unknown keys are ignored.
pub(super) async fn note_presence(step: &Step, presence: &Presence) -> Result<KeyStandingNow> {
    locks::document_of_key(step, &presence.key).await?;
    let Some(before) = find(step, &presence.key).await? else { return Ok(KeyStandingNow::AsExpected) };
    let users = without_repeats(&presence.users);
    let says = presence.is_idle.then_some(word(ServerKnowledge::NothingHeld)).flatten();
    let inside = json!(users).to_string();
    step.execute(
        "UPDATE keys SET users = $2, last_seen_ms = $3, server_says = $4,
         entered_ms = CASE WHEN $5 THEN coalesce(entered_ms, $3) ELSE entered_ms END WHERE key = $1",
        &[&presence.key.as_str(), &inside, &ms(presence.at), &says, &!users.is_empty()],
    )
    .await?;
    note_people(step, presence, &users, &before).await?;
    if presence.is_idle && !step.shared.guards.key_survives_status_4 {
        settle(step, &presence.key, "status 4", presence.at).await?;
    }
    let query = "SELECT 1 FROM keys WHERE key = $1 AND mode = 'edit' AND state = 'retired'";
    let is_stale = !users.is_empty() && step.exists(query, &[&presence.key.as_str()]).await?;
    Ok(if is_stale { KeyStandingNow::Retired } else { KeyStandingNow::AsExpected })
}

/// Whoever was inside before has been there since then; whoever was not came in just now.
async fn note_people(
    step: &Step,
    presence: &Presence,
    users: &[&String],
    before: &SessionRecord,
) -> Result<()> {
    let people: Vec<String> = users.iter().map(|user| text(user).into_owned()).collect();
    // Whoever was inside keeps the time they came; the others get a new one.
    step.execute(
        "INSERT INTO session_people AS p (key, \"user\", since_ms, seen_ms)
         SELECT DISTINCT $1::text, u.id, $3::bigint, $3::bigint FROM UNNEST($2::text[]) AS u (id)
         ON CONFLICT (key, md5(\"user\")) DO UPDATE SET seen_ms = $3,
           since_ms = CASE WHEN p.\"user\" = ANY($4) THEN coalesce(p.since_ms, $3) ELSE $3 END",
        &[&presence.key.as_str(), &people, &ms(presence.at), &inside_before(before)],
    )
    .await
    .map(drop)
}

fn inside_before(before: &SessionRecord) -> Vec<String> {
    before.people.iter().map(|person| text(&person.id).into_owned()).collect()
}

/// Who was inside when the server last spoke of people under this key; whoever it named last, if they are gone.
pub(super) async fn last_users(step: &Step, key: &EditorKey) -> Result<Vec<String>> {
    let found = step.query_optional("SELECT users FROM keys WHERE key = $1", &[&key.as_str()]).await?;
    let inside = match found {
        Some(row) => names(&get::<String>(&row, "users")?),
        None => Vec::new(),
    };
    if !inside.is_empty() {
        return Ok(inside);
    }
    let query = "SELECT \"user\" FROM session_people WHERE key = $1 AND seen_ms IS NOT NULL
                 ORDER BY seen_ms DESC, \"user\" LIMIT 1";
    all(&step.query(query, &[&key.as_str()]).await?, |row| get(row, "user"))
}

async fn note_look(step: &Step, look: &Look) -> Result<LookOutcome> {
    locks::document_of_key(step, &look.key).await?;
    let Some(before) = find(step, &look.key).await? else { return Ok(LookOutcome::GoesOn) };
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
            let update = "UPDATE keys SET looked_ms = $2 WHERE key = $1";
            step.execute(update, &[&look.key.as_str(), &ms(look.at)]).await?;
            Ok(LookOutcome::GoesOn)
        }
        LookRuling::Close => {
            empty(step, look).await?;
            if before.facts.has_people {
                write_down(step, look, &before, "session-closed").await?;
            }
            Ok(LookOutcome::Closed { people: before.people.len() })
        }
        LookRuling::Strand => {
            empty(step, look).await?;
            let is_news = before.facts.server != Some(ServerKnowledge::ChangesHeld);
            if is_news {
                write_down(step, look, &before, "changes-stranded").await?;
            }
            Ok(LookOutcome::Stranded { is_news })
        }
    }
}

/// A key retired under these people: they are inside until the server says that they left.
pub(super) async fn leave_inside(step: &Step, key: &EditorKey, users: &[String]) -> Result<()> {
    let update = "UPDATE keys SET users = $2 WHERE key = $1";
    step.execute(update, &[&key.as_str(), &json!(users).to_string()]).await.map(drop)
}

/// Nobody is inside. The key stays what it is.
async fn empty(step: &Step, look: &Look) -> Result<()> {
    let update = "UPDATE keys SET users = '[]', server_says = $2, looked_ms = $3 WHERE key = $1";
    step.execute(update, &[&look.key.as_str(), &word(look.server), &ms(look.at)]).await.map(drop)
}

async fn write_down(step: &Step, look: &Look, before: &SessionRecord, action: &'static str) -> Result<()> {
    let people: Vec<&str> = before.people.iter().map(|person| person.id.as_str()).collect();
    let details = json!({ "key": look.key.as_str(), "people": people });
    let act = Act { document: &before.document, at: look.at, actor: Actor::SAVEGUARD, action, details };
    append(step, &act).await
}
