//! Looking after the installation as a whole, on SQLite.

use async_trait::async_trait;
use jiff::Timestamp;

use super::audit::{Actor, CompanyAct, append_company_act};
use super::{SqliteLedger, keys};
use crate::keys::KeyRecord;
use crate::operations::{Operation, Present};
use crate::{LedgerError, Operations, Result};

#[async_trait]
impl Operations for SqliteLedger {
    async fn keys_in_use(&self) -> Result<Vec<KeyRecord>> {
        self.read(|connection| {
            let mut query = connection.prepare_cached(
                "SELECT * FROM keys WHERE state = 'live' AND mode = 'edit'
                 UNION SELECT * FROM keys WHERE users <> '[]' AND mode = 'edit' ORDER BY document, key",
            )?;
            Ok(query.query_map([], keys::record)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn ping(&self) -> Result<Option<Timestamp>> {
        self.read(|connection| Ok(connection.query_row("SELECT 1", [], |_| Ok(None))?)).await
    }

    async fn count_open_saves(&self) -> Result<u64> {
        self.read(|connection| {
            let mut query = connection.prepare_cached("SELECT count(*) FROM inbox WHERE outcome IS NULL")?;
            Ok(query.query_row([], |row| row.get(0))?)
        })
        .await
    }

    async fn present(&self) -> Result<Present> {
        self.read(|connection| {
            let count =
                |query: &str| connection.prepare_cached(query)?.query_row([], |row| row.get::<_, u64>(0));
            Ok(Present {
                sessions: count("SELECT count(*) FROM keys WHERE users <> '[]'")?,
                people: count(
                    "SELECT coalesce(sum(json_array_length(users)), 0) FROM keys WHERE users <> '[]'",
                )?,
                conflicts: count("SELECT count(*) FROM kept WHERE kind = 'conflict' AND settled_ms IS NULL")?,
                quarantined: count(
                    "SELECT count(*) FROM kept WHERE kind = 'quarantine' AND settled_ms IS NULL",
                )?,
                orphans: count("SELECT count(*) FROM kept WHERE kind = 'orphan' AND settled_ms IS NULL")?,
                deliveries: count("SELECT count(*) FROM outbox WHERE state IN ('due', 'behind')")?,
            })
        })
        .await
    }

    async fn note_operation(&self, operation: &Operation) -> Result<()> {
        let operation = operation.clone();
        self.write(move |connection, _| {
            let details = serde_json::from_str(&operation.details).map_err(LedgerError::damaged)?;
            let (at, actor, action) = (operation.at, Actor::person(&operation.who), operation.action);
            append_company_act(connection, &CompanyAct { company: None, at, actor, action, details })
        })
        .await
    }
}
