//! Looking after the installation as a whole, on PostgreSQL.

use async_trait::async_trait;
use jiff::Timestamp;

use super::audit::{Actor, CompanyAct, append_company_act};
use super::rows::{all, get};
use super::{PostgresLedger, keys};
use crate::keys::KeyRecord;
use crate::operations::{Operation, Present};
use crate::{LedgerError, Operations, Result};

#[async_trait]
impl Operations for PostgresLedger {
    async fn keys_in_use(&self) -> Result<Vec<KeyRecord>> {
        let query = format!(
            "SELECT {} WHERE k.mode = 'edit' AND (k.state = 'live' OR k.users <> '[]') ORDER BY k.document, k.key",
            keys::COLUMNS
        );
        let step = self.glance().await?;
        let found = step.query(&query, &[]).await;
        step.end(found).await.and_then(|rows| all(&rows, keys::record))
    }

    async fn ping(&self) -> Result<Option<Timestamp>> {
        let step = self.glance().await?;
        let query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms";
        let found = step.query_one(query, &[]).await;
        get(&step.end(found).await?, "now_ms").map(Some)
    }

    async fn count_open_saves(&self) -> Result<u64> {
        let step = self.glance().await?;
        let found = step.query_one("SELECT count(*) AS open FROM inbox WHERE outcome IS NULL", &[]).await;
        get(&step.end(found).await?, "open")
    }

    async fn present(&self) -> Result<Present> {
        let query = "SELECT
            (SELECT count(*) FROM keys WHERE users <> '[]') AS sessions,
            (SELECT coalesce(sum(json_array_length(users::json)), 0)::bigint FROM keys WHERE users <> '[]') AS people,
            (SELECT count(*) FROM kept WHERE kind = 'conflict' AND settled_ms IS NULL) AS conflicts,
            (SELECT count(*) FROM kept WHERE kind = 'quarantine' AND settled_ms IS NULL) AS quarantined,
            (SELECT count(*) FROM kept WHERE kind = 'orphan' AND settled_ms IS NULL) AS orphans,
            (SELECT count(*) FROM outbox WHERE state IN ('due', 'behind')) AS deliveries";
        let step = self.glance().await?;
        let found = step.query_one(query, &[]).await;
        let row = step.end(found).await?;
        Ok(Present {
            sessions: get(&row, "sessions")?,
            people: get(&row, "people")?,
            conflicts: get(&row, "conflicts")?,
            quarantined: get(&row, "quarantined")?,
            orphans: get(&row, "orphans")?,
            deliveries: get(&row, "deliveries")?,
        })
    }

    async fn note_operation(&self, operation: &Operation) -> Result<()> {
        let step = self.write().await?;
        let done = async {
            let details = serde_json::from_str(&operation.details).map_err(LedgerError::damaged)?;
            let (at, actor, action) = (operation.at, Actor::person(&operation.who), operation.action);
            append_company_act(&step, &CompanyAct { company: None, at, actor, action, details }).await
        };
        let done = done.await;
        step.end(done).await
    }
}
