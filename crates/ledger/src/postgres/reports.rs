//! What instances tell each other, in a table that the server does not log: it costs no flush, and a crash empties it.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::PostgresLedger;
use super::rows::{all, get, text};
use crate::reports::{KEPT_FOR, Report};
use crate::{Reports, Result};

#[async_trait]
impl Reports for PostgresLedger {
    async fn tell(&self, instance: &str, subject: &str, body: &str) -> Result<Option<Timestamp>> {
        let statement =
            "WITH gone AS (DELETE FROM reports WHERE told_at < clock_timestamp() - make_interval(secs => $4))
            INSERT INTO reports (instance, subject, body, told_at) VALUES ($1, $2, $3, clock_timestamp())
            ON CONFLICT (instance, subject) DO UPDATE SET body = excluded.body, told_at = excluded.told_at
            RETURNING (extract(epoch FROM told_at) * 1000)::bigint AS told_ms";
        let kept_for = KEPT_FOR.as_secs_f64();
        let step = self.glance().await?;
        let told = step.query_one(statement, &[&instance, &subject, &text(body), &kept_for]).await;
        get(&step.end(told).await?, "told_ms").map(Some)
    }

    async fn take_back(&self, instance: &str, subject: &str) -> Result<()> {
        let step = self.glance().await?;
        let gone = step
            .execute("DELETE FROM reports WHERE instance = $1 AND subject = $2", &[&instance, &subject])
            .await;
        step.end(gone).await.map(|_| ())
    }

    async fn told(&self, instance: &str, subject: &str) -> Result<Vec<Report>> {
        let query = "SELECT instance, body,
            greatest(0, extract(epoch FROM clock_timestamp() - told_at) * 1000)::bigint AS age_ms
            FROM reports WHERE subject = $2 AND instance <> $1 ORDER BY told_at DESC, instance";
        let step = self.glance().await?;
        let found = step.query(query, &[&instance, &subject]).await;
        let rows = step.end(found).await?;
        all(&rows, |row| {
            Ok(Report {
                instance: get(row, "instance")?,
                body: get(row, "body")?,
                age: Duration::from_millis(get(row, "age_ms")?),
            })
        })
    }
}
