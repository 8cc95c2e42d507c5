//! The outbox on PostgreSQL. [`announce`] is called by whatever appends to an audit chain, inside the same transaction.
//!
//! Of the deliveries to a target about one document only the first is `due`; those `behind` it follow when it ends. So what is
//! due is found by an index, however much waits. Whoever adds to what is told of a document, and whoever ends or repeats a
//! delivery, is alone with it ([`locks::stream`]): else one would be put behind another that ends unseen, for ever.

use async_trait::async_trait;
use jiff::Timestamp;
use model::records::Scope;
use model::webhooks::{Event, event_of};
use model::{Digest, audit};
use serde_json::{Value, json};
use tokio_postgres::Row;

use super::PostgresLedger;
use super::audit::{Actor, CompanyAct, append_company_act};
use super::locks::{self, Kind};
use super::rows::{all, asked, get, get_optional, ms};
use super::step::Step;
use crate::adapting::telling::payload_of;
use crate::documents::Author;
use crate::outbox::{Delivery, DeliveryEnd, Subscription, WebhookStanding};
use crate::{Outbox, Result};

const COLUMNS: &str =
    "number, id, target, document, event, payload, created_ms, since_ms, attempts, last_error FROM outbox";

#[async_trait]
impl Outbox for PostgresLedger {
    async fn set_webhooks(&self, targets: &[Subscription], at: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = set_webhooks(&step, targets, at).await;
        step.end(done).await
    }

    async fn due_deliveries(&self, target: &str, at: Timestamp, limit: u32) -> Result<Vec<Delivery>> {
        let query = format!(
            "SELECT {COLUMNS} WHERE target = $1 AND state = 'due' AND next_ms <= $2 ORDER BY next_ms, number LIMIT $3"
        );
        let step = self.glance().await?;
        let found = step.query(&query, &[&target, &ms(at), &i64::from(limit)]).await;
        step.end(found).await.and_then(|rows| all(&rows, delivery))
    }

    async fn next_delivery_at(&self, target: &str) -> Result<Option<Timestamp>> {
        let query = "SELECT min(next_ms) AS next_ms FROM outbox WHERE target = $1 AND state = 'due'";
        let step = self.glance().await?;
        let found = step.query_one(query, &[&target]).await;
        get_optional(&step.end(found).await?, "next_ms")
    }

    async fn delivery_ended(&self, number: u64, end: &DeliveryEnd, at: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = delivery_ended(&step, number, (end, at)).await;
        step.end(done).await
    }

    async fn webhooks(&self) -> Result<Vec<WebhookStanding>> {
        let step = self.glance().await?;
        let found = standings(&step).await;
        step.end(found).await
    }

    async fn dead_deliveries(&self, before: Option<u64>, limit: u32) -> Result<Vec<Delivery>> {
        let query = format!(
            "SELECT {COLUMNS} WHERE state = 'dead' AND ($1::bigint IS NULL OR number < $1) ORDER BY number DESC LIMIT $2"
        );
        let step = self.glance().await?;
        let found = step.query(&query, &[&before.map(asked), &i64::from(limit)]).await;
        step.end(found).await.and_then(|rows| all(&rows, delivery))
    }

    async fn retry_delivery(&self, number: u64, who: &Author, at: Timestamp) -> Result<bool> {
        let step = self.write().await?;
        let done = retry(&step, number, (who, at)).await;
        step.end(done).await
    }

    async fn forget_deliveries(&self, delivered: Timestamp, dead: Timestamp) -> Result<u64> {
        let statement = "DELETE FROM outbox WHERE (state = 'delivered' AND ended_ms < $1) OR (state = 'dead' AND ended_ms < $2)";
        let step = self.write().await?;
        let gone = step.execute(statement, &[&ms(delivered), &ms(dead)]).await;
        step.end(gone).await
    }
}

/// An entry was just written: whoever wants to hear of it will.
pub(super) async fn announce(
    step: &Step,
    entry: &audit::Entry,
    (details, company, hash): (&Value, &str, &Digest),
) -> Result<()> {
    let Some(event) = event_of(&entry.action, details) else { return Ok(()) };
    let told = [("company".to_owned(), json!(company)), ("document".to_owned(), json!(entry.chain))];
    tell(step, entry, (&format!("document.{}", event.as_str()), event), (details, told, hash)).await
}

/// The same for an entry of a scope of records.
pub(super) async fn announce_of_scope(
    step: &Step,
    entry: &audit::Entry,
    (scope, details, hash): (&Scope, &Value, &Digest),
) -> Result<()> {
    let Some(event) = event_of(&entry.action, details) else { return Ok(()) };
    let told = [
        ("organisation".to_owned(), json!(scope.organisation.as_str())),
        ("registration".to_owned(), json!(scope.registration.as_str())),
    ];
    tell(step, entry, (&format!("summary_log.{}", event.as_str()), event), (details, told, hash)).await
}

async fn tell(
    step: &Step,
    entry: &audit::Entry,
    (called, event): (&str, Event),
    (details, about, hash): (&Value, [(String, Value); 2], &Digest),
) -> Result<()> {
    if !step.exists("SELECT 1 FROM webhook_events WHERE event = $1 LIMIT 1", &[&event.as_str()]).await? {
        return Ok(());
    }
    let id = format!("evt_{}", hash.short(32));
    let payload = payload_of(entry, called, (details, about)).to_string();
    locks::stream(step, &entry.chain).await?;
    step.execute(
        "INSERT INTO outbox (target, id, document, event, payload, created_ms, since_ms, next_ms, state)
         SELECT w.target, $2::text, $3::text, w.event, $4::text, $5::bigint, $5::bigint, $5::bigint, CASE WHEN EXISTS (SELECT 1 FROM outbox o
           WHERE o.target = w.target AND o.document = $3 AND o.state IN ('due', 'behind')) THEN 'behind' ELSE 'due' END
         FROM webhook_events w WHERE w.event = $1",
        &[&event.as_str(), &id, &entry.chain, &payload, &ms(entry.at)],
    )
    .await
    .map(drop)
}

/// Instances that start together say the same, one after the other.
async fn set_webhooks(step: &Step, targets: &[Subscription], at: Timestamp) -> Result<()> {
    locks::advisory(step, Kind::Webhooks, "").await?;
    let (events, names): (Vec<&str>, Vec<&str>) = targets
        .iter()
        .flat_map(|target| target.events.iter().map(|event| (event.as_str(), target.target.as_str())))
        .unzip();
    // What stays is not touched: whoever announces something meanwhile sees all of it.
    step.execute(
        "DELETE FROM webhook_events w WHERE NOT EXISTS (SELECT 1 FROM UNNEST($1::text[], $2::text[]) AS n (event, target)
           WHERE n.event = w.event AND n.target = w.target)",
        &[&events, &names],
    )
    .await?;
    step.execute(
        "INSERT INTO webhook_events (event, target) SELECT n.event, n.target
         FROM UNNEST($1::text[], $2::text[]) AS n (event, target) ON CONFLICT DO NOTHING",
        &[&events, &names],
    )
    .await?;
    step.execute(
        "UPDATE outbox SET state = 'dead', ended_ms = $1, last_error = 'the target is not configured any more'
         WHERE state IN ('due', 'behind') AND target NOT IN (SELECT target FROM webhook_events)",
        &[&ms(at)],
    )
    .await
    .map(drop)
}

/// Locks what is told of the document of a delivery; false if there is no such delivery.
async fn lock_stream_of(step: &Step, number: u64) -> Result<bool> {
    let query = "SELECT document FROM outbox WHERE number = $1";
    let Some(row) = step.query_optional(query, &[&asked(number)]).await? else { return Ok(false) };
    locks::stream(step, &get::<String>(&row, "document")?).await?;
    Ok(true)
}

async fn delivery_ended(step: &Step, number: u64, (end, at): (&DeliveryEnd, Timestamp)) -> Result<()> {
    let (state, why, next_at) = match end {
        DeliveryEnd::Delivered => ("delivered", None, at),
        DeliveryEnd::Failed { next_at, why } => ("due", Some(why), *next_at),
        DeliveryEnd::GivenUp { why } => ("dead", Some(why), at),
    };
    if !lock_stream_of(step, number).await? {
        return Ok(());
    }
    let why = why.map(|why| super::rows::text(why));
    let changed = step
        .execute(
            "UPDATE outbox SET state = $2, attempts = attempts + 1, next_ms = $3, last_error = $4,
             ended_ms = CASE WHEN $2 = 'due' THEN NULL ELSE $5::bigint END WHERE number = $1 AND state = 'due'",
            &[&asked(number), &state, &ms(next_at), &why, &ms(at)],
        )
        .await?;
    if changed > 0 && state != "due" {
        let_the_next_follow(step, number, at).await?;
    }
    Ok(())
}

async fn let_the_next_follow(step: &Step, number: u64, at: Timestamp) -> Result<()> {
    step.execute(
        "UPDATE outbox SET state = 'due', next_ms = $2 WHERE number =
           (SELECT min(o.number) FROM outbox o JOIN outbox mine ON mine.target = o.target AND mine.document = o.document
            WHERE mine.number = $1 AND o.state IN ('due', 'behind')) AND state = 'behind'",
        &[&asked(number), &ms(at)],
    )
    .await
    .map(drop)
}

async fn retry(step: &Step, number: u64, (who, at): (&Author, Timestamp)) -> Result<bool> {
    if !lock_stream_of(step, number).await? {
        return Ok(false);
    }
    let changed = step
        .query_optional(
            "UPDATE outbox SET attempts = 0, since_ms = $2, next_ms = $2, ended_ms = NULL,
               state = CASE WHEN EXISTS (SELECT 1 FROM outbox o WHERE o.target = outbox.target AND o.document = outbox.document
                 AND o.state IN ('due', 'behind')) THEN 'behind' ELSE 'due' END
             WHERE number = $1 AND state = 'dead' AND target IN (SELECT target FROM webhook_events) RETURNING target, id",
            &[&asked(number), &ms(at)],
        )
        .await?;
    let Some(row) = changed else { return Ok(false) };
    let details = json!({ "target": get::<String>(&row, "target")?, "id": get::<String>(&row, "id")? });
    let (actor, action) = (Actor::person(who), "webhook-retried");
    append_company_act(step, &CompanyAct { company: None, at, actor, action, details }).await?;
    Ok(true)
}

async fn standings(step: &Step) -> Result<Vec<WebhookStanding>> {
    let rows = step
        .query(
            "SELECT t.target, t.events, coalesce(o.waiting, 0) AS waiting, o.oldest_ms, coalesce(o.dead, 0) AS dead,
               coalesce(o.delivered, 0) AS delivered
             FROM (SELECT target, string_agg(event, ',' ORDER BY event) AS events FROM webhook_events GROUP BY target) t
             LEFT JOIN (SELECT target, count(*) FILTER (WHERE state IN ('due', 'behind')) AS waiting,
                 min(created_ms) FILTER (WHERE state IN ('due', 'behind')) AS oldest_ms,
                 count(*) FILTER (WHERE state = 'dead') AS dead, count(*) FILTER (WHERE state = 'delivered') AS delivered
               FROM outbox GROUP BY target) o ON o.target = t.target
             ORDER BY t.target",
            &[],
        )
        .await?;
    all(&rows, |row| {
        Ok(WebhookStanding {
            target: get(row, "target")?,
            events: get::<String>(row, "events")?.split(',').map(str::to_owned).collect(),
            waiting: get(row, "waiting")?,
            oldest_at: get_optional(row, "oldest_ms")?,
            dead: get(row, "dead")?,
            delivered: get(row, "delivered")?,
        })
    })
}

fn delivery(row: &Row) -> Result<Delivery> {
    Ok(Delivery {
        number: get(row, "number")?,
        id: get(row, "id")?,
        target: get(row, "target")?,
        document: get(row, "document")?,
        event: get(row, "event")?,
        payload: get(row, "payload")?,
        created_at: get(row, "created_ms")?,
        waiting_since: get(row, "since_ms")?,
        attempts: get(row, "attempts")?,
        last_error: get_optional(row, "last_error")?,
    })
}
