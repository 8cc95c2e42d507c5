//! The outbox on SQLite. [`announce`] is called by whatever appends to an audit chain, inside the same transaction.
//!
//! Of the deliveries to a target about one document only the first is `due`; those `behind` it follow when it ends. So what is
//! due is found by an index, however much waits.

use async_trait::async_trait;
use jiff::Timestamp;
use model::records::Scope;
use model::webhooks::{Event, event_of};
use model::{Digest, audit};
use rusqlite::{Connection, Row, params};
use serde_json::{Value, json};

use super::SqliteLedger;
use super::audit::{Actor, CompanyAct, append_company_act};
use super::rows::{asked, get, get_optional, ms, optional};
use crate::adapting::telling::payload_of;
use crate::documents::Author;
use crate::outbox::{Delivery, DeliveryEnd, Subscription, WebhookStanding};
use crate::{LedgerError, Outbox, Result};

#[async_trait]
impl Outbox for SqliteLedger {
    async fn set_webhooks(&self, targets: &[Subscription], at: Timestamp) -> Result<()> {
        let targets = targets.to_vec();
        self.write(move |connection, _| set_webhooks(connection, &targets, at)).await
    }

    async fn due_deliveries(&self, target: &str, at: Timestamp, limit: u32) -> Result<Vec<Delivery>> {
        let target = target.to_owned();
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT * FROM outbox WHERE target = ?1 AND state = 'due' AND next_ms <= ?2 ORDER BY next_ms, number LIMIT ?3",
            )?;
            Ok(query.query_map(params![target, ms(at), limit], delivery)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn next_delivery_at(&self, target: &str) -> Result<Option<Timestamp>> {
        let target = target.to_owned();
        self.read(move |connection| {
            let query = "SELECT min(next_ms) AS next_ms FROM outbox WHERE target = ?1 AND state = 'due'";
            Ok(connection.prepare_cached(query)?.query_row([target], |row| get_optional(row, "next_ms"))?)
        })
        .await
    }

    async fn delivery_ended(&self, number: u64, end: &DeliveryEnd, at: Timestamp) -> Result<()> {
        let end = end.clone();
        self.write(move |connection, _| delivery_ended(connection, number, (&end, at))).await
    }

    async fn webhooks(&self) -> Result<Vec<WebhookStanding>> {
        self.read(standings).await
    }

    async fn dead_deliveries(&self, before: Option<u64>, limit: u32) -> Result<Vec<Delivery>> {
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT * FROM outbox WHERE state = 'dead' AND (?1 IS NULL OR number < ?1) ORDER BY number DESC LIMIT ?2",
            )?;
            Ok(query.query_map(params![before.map(asked), limit], delivery)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn retry_delivery(&self, number: u64, who: &Author, at: Timestamp) -> Result<bool> {
        let who = who.clone();
        self.write(move |connection, _| retry(connection, number, (&who, at))).await
    }

    async fn forget_deliveries(&self, delivered: Timestamp, dead: Timestamp) -> Result<u64> {
        self.write(move |connection, _| {
            let gone = connection.execute(
                "DELETE FROM outbox WHERE (state = 'delivered' AND ended_ms < ?1) OR (state = 'dead' AND ended_ms < ?2)",
                params![ms(delivered), ms(dead)],
            )?;
            Ok(u64::try_from(gone).unwrap_or(u64::MAX))
        })
        .await
    }
}

/// An entry was just written: whoever wants to hear of it will.
pub(super) fn announce(
    connection: &Connection,
    entry: &audit::Entry,
    (details, company, hash): (&Value, &str, &Digest),
) -> Result<()> {
    let Some(event) = event_of(&entry.action, details) else { return Ok(()) };
    let told = [("company".to_owned(), json!(company)), ("document".to_owned(), json!(entry.chain))];
    tell(connection, entry, (&format!("document.{}", event.as_str()), event), (details, told, hash))
}

/// The same for an entry of a scope of records.
pub(super) fn announce_of_scope(
    connection: &Connection,
    entry: &audit::Entry,
    (scope, details, hash): (&Scope, &Value, &Digest),
) -> Result<()> {
    let Some(event) = event_of(&entry.action, details) else { return Ok(()) };
    let told = [
        ("organisation".to_owned(), json!(scope.organisation.as_str())),
        ("registration".to_owned(), json!(scope.registration.as_str())),
    ];
    tell(connection, entry, (&format!("summary_log.{}", event.as_str()), event), (details, told, hash))
}

fn tell(
    connection: &Connection,
    entry: &audit::Entry,
    (called, event): (&str, Event),
    (details, about, hash): (&Value, [(String, Value); 2], &Digest),
) -> Result<()> {
    let targets: Vec<String> = connection
        .prepare_cached("SELECT target FROM webhook_events WHERE event = ?1")?
        .query_map([event.as_str()], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if targets.is_empty() {
        return Ok(());
    }
    let id = format!("evt_{}", hash.short(32));
    let payload = payload_of(entry, called, (details, about));
    let payload = payload.to_string();
    for target in targets {
        connection
            .prepare_cached(
                "INSERT INTO outbox (target, id, document, event, payload, created_ms, since_ms, next_ms, state)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?6, CASE WHEN EXISTS (SELECT 1 FROM outbox o WHERE o.target = ?1
                   AND o.document = ?3 AND o.state IN ('due', 'behind')) THEN 'behind' ELSE 'due' END)",
            )?
            .execute(params![target, id, entry.chain, event.as_str(), payload, ms(entry.at)])?;
    }
    Ok(())
}

fn set_webhooks(connection: &Connection, targets: &[Subscription], at: Timestamp) -> Result<()> {
    connection.execute("DELETE FROM webhook_events", [])?;
    for subscription in targets {
        for event in &subscription.events {
            connection
                .prepare_cached("INSERT OR IGNORE INTO webhook_events (event, target) VALUES (?1, ?2)")?
                .execute(params![event.as_str(), subscription.target])?;
        }
    }
    connection.execute(
        "UPDATE outbox SET state = 'dead', ended_ms = ?1, last_error = 'the target is not configured any more'
         WHERE state IN ('due', 'behind') AND target NOT IN (SELECT target FROM webhook_events)",
        params![ms(at)],
    )?;
    Ok(())
}

fn delivery_ended(connection: &Connection, number: u64, (end, at): (&DeliveryEnd, Timestamp)) -> Result<()> {
    let (state, why, next_at) = match end {
        DeliveryEnd::Delivered => ("delivered", None, at),
        DeliveryEnd::Failed { next_at, why } => ("due", Some(why), *next_at),
        DeliveryEnd::GivenUp { why } => ("dead", Some(why), at),
    };
    let changed = connection
        .prepare_cached(
            "UPDATE outbox SET state = ?2, attempts = attempts + 1, next_ms = ?3, last_error = ?4,
             ended_ms = CASE WHEN ?2 = 'due' THEN NULL ELSE ?5 END WHERE number = ?1 AND state = 'due'",
        )?
        .execute(params![number, state, ms(next_at), why, ms(at)])?;
    if changed > 0 && state != "due" {
        let_the_next_follow(connection, number, at)?;
    }
    Ok(())
}

fn let_the_next_follow(connection: &Connection, number: u64, at: Timestamp) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE outbox SET state = 'due', next_ms = ?2 WHERE number =
               (SELECT min(o.number) FROM outbox o JOIN outbox mine ON mine.target = o.target AND mine.document = o.document
                WHERE mine.number = ?1 AND o.state IN ('due', 'behind')) AND state = 'behind'",
        )?
        .execute(params![number, ms(at)])?;
    Ok(())
}

fn retry(connection: &Connection, number: u64, (who, at): (&Author, Timestamp)) -> Result<bool> {
    let changed = connection.execute(
        "UPDATE outbox SET attempts = 0, since_ms = ?2, next_ms = ?2, ended_ms = NULL,
           state = CASE WHEN EXISTS (SELECT 1 FROM outbox o WHERE o.target = outbox.target AND o.document = outbox.document
             AND o.state IN ('due', 'behind')) THEN 'behind' ELSE 'due' END
         WHERE number = ?1 AND state = 'dead' AND target IN (SELECT target FROM webhook_events)",
        params![asked(number), ms(at)],
    )?;
    if changed == 0 {
        return Ok(false);
    }
    let found = connection.query_row("SELECT target, id FROM outbox WHERE number = ?1", [number], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    });
    let (target, id) =
        optional(found)?.ok_or_else(|| LedgerError::damaged("a delivery that was just changed is gone"))?;
    let details = json!({ "target": target, "id": id });
    let (actor, action) = (Actor::person(who), "webhook-retried");
    append_company_act(connection, &CompanyAct { company: None, at, actor, action, details })?;
    Ok(true)
}

fn standings(connection: &Connection) -> Result<Vec<WebhookStanding>> {
    let mut query = connection.prepare_cached(
        "SELECT t.target, t.events,
           (SELECT count(*) FROM outbox o WHERE o.target = t.target AND o.state IN ('due', 'behind')) AS waiting,
           (SELECT min(created_ms) FROM outbox o WHERE o.target = t.target AND o.state IN ('due', 'behind')) AS oldest_ms,
           (SELECT count(*) FROM outbox o WHERE o.target = t.target AND o.state = 'dead') AS dead,
           (SELECT count(*) FROM outbox o WHERE o.target = t.target AND o.state = 'delivered') AS delivered
         FROM (SELECT target, group_concat(event) AS events FROM webhook_events GROUP BY target) t ORDER BY t.target",
    )?;
    let found = query.query_map([], |row| {
        let events: String = row.get("events")?;
        Ok(WebhookStanding {
            target: row.get("target")?,
            events: events.split(',').map(str::to_owned).collect(),
            waiting: row.get("waiting")?,
            oldest_at: get_optional(row, "oldest_ms")?,
            dead: row.get("dead")?,
            delivered: row.get("delivered")?,
        })
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        number: row.get("number")?,
        id: row.get("id")?,
        target: row.get("target")?,
        document: row.get("document")?,
        event: row.get("event")?,
        payload: row.get("payload")?,
        created_at: get(row, "created_ms")?,
        waiting_since: get(row, "since_ms")?,
        attempts: row.get("attempts")?,
        last_error: row.get("last_error")?,
    })
}
