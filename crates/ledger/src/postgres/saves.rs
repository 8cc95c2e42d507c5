//! The port's part about saves, on PostgreSQL: `inbox` writes callbacks down, `commit` makes history of them.

use async_trait::async_trait;
use jiff::Timestamp;
use model::callbacks::Answer;
use model::opening::builds_on_forgotten;
use model::{Digest, EditorKey, InboxNumber};
use tokio_postgres::Row;

use super::rows::{Stored, all, get, get_optional};
use super::step::Step;
use super::{PostgresLedger, commit, companies, facts, forgotten, inbox};
use crate::saves::{
    Arrival, Aside, Committed, ForgottenFile, OpenSave, PreparedSave, Receipt, SaveRecord, StillNeeded,
};
use crate::{Result, Saves, callback_text};

#[async_trait]
impl Saves for PostgresLedger {
    async fn receive(&self, arrival: &Arrival) -> Result<Receipt> {
        let step = self.write().await?;
        let done = inbox::receive(&step, arrival).await;
        step.end(done).await
    }

    async fn commit_save(&self, save: &PreparedSave) -> Result<Committed> {
        let step = self.write().await?;
        let done = commit_save(&step, save).await;
        step.end(done).await
    }

    async fn keep_aside(&self, aside: &Aside) -> Result<Committed> {
        let step = self.write().await?;
        let done = commit::keep_aside(&step, aside).await;
        step.end(done).await
    }

    async fn acknowledge(&self, number: InboxNumber, at: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = commit::acknowledge(&step, number, at).await;
        step.end(done).await
    }

    async fn give_up(&self, number: InboxNumber, at: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = commit::give_up(&step, number, at).await;
        step.end(done).await
    }

    async fn is_overtaking(&self, number: InboxNumber, at: Timestamp) -> Result<bool> {
        let step = self.glance().await?;
        let found = commit::is_overtaking(&step, number, at).await;
        step.end(found).await
    }

    async fn open_saves(&self) -> Result<Vec<OpenSave>> {
        let query = "SELECT number, document, callback, link_received_ms FROM inbox WHERE outcome IS NULL ORDER BY number";
        let step = self.glance().await?;
        let found = step.query(query, &[]).await;
        all(&step.end(found).await?, |row| {
            Ok(OpenSave {
                number: get(row, "number")?,
                document: get_optional(row, "document")?,
                callback: callback_text::read(&get::<String>(row, "callback")?)?,
                link_received_at: get(row, "link_received_ms")?,
            })
        })
    }

    async fn save(&self, number: InboxNumber) -> Result<Option<SaveRecord>> {
        let query = "SELECT number, key, status, received_ms, deliveries, outcome, answer FROM inbox WHERE number = $1";
        let step = self.glance().await?;
        let found = step.query_optional(query, &[&Stored(number)]).await;
        step.end(found).await?.as_ref().map(record).transpose()
    }

    async fn still_needed(&self, number: InboxNumber, at: Timestamp) -> Result<StillNeeded> {
        let step = self.glance().await?;
        let found = commit::still_needed(&step, number, at).await;
        step.end(found).await
    }

    async fn builds_on_forgotten(&self, key: &EditorKey, forgotten: &Digest) -> Result<bool> {
        let step = self.read().await?;
        let found = async {
            let last = facts::last_brought(&step, key).await?;
            Ok(builds_on_forgotten(last, facts::came_as(&step, key, forgotten).await?))
        };
        let found = found.await;
        step.end(found).await
    }

    async fn keep_forgotten(&self, found: &ForgottenFile) -> Result<Option<u64>> {
        let step = self.write().await?;
        let done = forgotten::keep_forgotten(&step, found).await;
        step.end(done).await
    }

    async fn collect_forgotten(&self, found: &ForgottenFile) -> Result<Committed> {
        let step = self.write().await?;
        let done = collect_forgotten(&step, found).await;
        step.end(done).await
    }
}

async fn commit_save(step: &Step, save: &PreparedSave) -> Result<Committed> {
    companies::with_quota(step, commit::commit_save(step, save).await?).await
}

async fn collect_forgotten(step: &Step, found: &ForgottenFile) -> Result<Committed> {
    companies::with_quota(step, forgotten::collect_forgotten(step, found).await?).await
}

fn record(row: &Row) -> Result<SaveRecord> {
    Ok(SaveRecord {
        number: get(row, "number")?,
        key: get(row, "key")?,
        status: get(row, "status")?,
        received_at: get(row, "received_ms")?,
        deliveries: get(row, "deliveries")?,
        outcome: get_optional(row, "outcome")?,
        answer: get_optional::<String>(row, "answer")?.as_deref().and_then(Answer::parse),
    })
}
