//! The port's part about saves, on SQLite: `inbox` writes callbacks down, `commit` makes history of them.

use async_trait::async_trait;
use jiff::Timestamp;
use model::callbacks::Answer;
use model::opening::builds_on_forgotten;
use model::{Digest, EditorKey, InboxNumber};
use rusqlite::Row;

use super::rows::{Stored, get, get_optional, optional};
use super::{SqliteLedger, commit, companies, facts, forgotten, inbox};
use crate::callback_text;
use crate::saves::{
    Arrival, Aside, Committed, ForgottenFile, OpenSave, PreparedSave, Receipt, SaveRecord, StillNeeded,
};
use crate::{Result, Saves};

#[async_trait]
impl Saves for SqliteLedger {
    async fn receive(&self, arrival: &Arrival) -> Result<Receipt> {
        let arrival = arrival.clone();
        self.write(move |connection, shared| inbox::receive(connection, shared, &arrival)).await
    }

    async fn commit_save(&self, save: &PreparedSave) -> Result<Committed> {
        let save = save.clone();
        self.write(move |connection, shared| {
            companies::with_quota(connection, commit::commit_save(connection, shared, &save)?)
        })
        .await
    }

    async fn keep_aside(&self, aside: &Aside) -> Result<Committed> {
        let aside = aside.clone();
        self.write(move |connection, _| commit::keep_aside(connection, &aside)).await
    }

    async fn acknowledge(&self, number: InboxNumber, at: Timestamp) -> Result<()> {
        self.write(move |connection, _| commit::acknowledge(connection, number, at)).await
    }

    async fn give_up(&self, number: InboxNumber, at: Timestamp) -> Result<()> {
        self.write(move |connection, _| commit::give_up(connection, number, at)).await
    }

    async fn is_overtaking(&self, number: InboxNumber, at: Timestamp) -> Result<bool> {
        self.read(move |connection| commit::is_overtaking(connection, number, at)).await
    }

    async fn open_saves(&self) -> Result<Vec<OpenSave>> {
        self.read(|connection| {
            let mut query = connection.prepare_cached(
                "SELECT number, document, callback, link_received_ms FROM inbox WHERE outcome IS NULL ORDER BY number",
            )?;
            let rows = query.query_map([], |row| {
                let text: String = row.get("callback")?;
                Ok((get(row, "number")?, get_optional(row, "document")?, text, get(row, "link_received_ms")?))
            })?;
            rows.map(|row| {
                let (number, document, text, link_received_at) = row?;
                Ok(OpenSave { number, document, callback: callback_text::read(&text)?, link_received_at })
            })
            .collect()
        })
        .await
    }

    async fn save(&self, number: InboxNumber) -> Result<Option<SaveRecord>> {
        self.read(move |connection| {
            let query = "SELECT * FROM inbox WHERE number = ?1";
            optional(connection.prepare_cached(query)?.query_row([Stored(number)], record))
        })
        .await
    }

    async fn still_needed(&self, number: InboxNumber, at: Timestamp) -> Result<StillNeeded> {
        self.read(move |connection| commit::still_needed(connection, number, at)).await
    }

    async fn builds_on_forgotten(&self, key: &EditorKey, forgotten: &Digest) -> Result<bool> {
        let (key, forgotten) = (key.clone(), *forgotten);
        self.read(move |connection| {
            let last = facts::last_brought(connection, &key)?;
            Ok(builds_on_forgotten(last, facts::came_as(connection, &key, &forgotten)?))
        })
        .await
    }

    async fn keep_forgotten(&self, found: &ForgottenFile) -> Result<Option<u64>> {
        let found = found.clone();
        self.write(move |connection, _| forgotten::keep_forgotten(connection, &found)).await
    }

    async fn collect_forgotten(&self, found: &ForgottenFile) -> Result<Committed> {
        let found = found.clone();
        self.write(move |connection, shared| {
            companies::with_quota(connection, forgotten::collect_forgotten(connection, shared, &found)?)
        })
        .await
    }
}

fn record(row: &Row<'_>) -> rusqlite::Result<SaveRecord> {
    Ok(SaveRecord {
        number: get(row, "number")?,
        key: get(row, "key")?,
        status: row.get("status")?,
        received_at: get(row, "received_ms")?,
        deliveries: row.get("deliveries")?,
        outcome: row.get("outcome")?,
        answer: row.get::<_, Option<String>>("answer")?.as_deref().and_then(Answer::parse),
    })
}
