//! All rows of the embedded ledger, on their way to another engine.
//!
//! Guarantees: they are of one moment, each after those it refers to. Does not do: wait for slow readers in memory; it waits with them.

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use super::{SqliteLedger, unavailable};
use crate::moving::{CHUNK_BYTES, CHUNK_ROWS, Part, Row};
use crate::postgres::TABLES;
use crate::{LedgerError, Result};

/// What SQLite has as 0 and 1, and others as what it is.
const YES_OR_NO: [(&str, &str); 2] = [("contents", "is_filed_beside"), ("shares", "may_download")];

impl SqliteLedger {
    /// Sends every table and its rows, then the last numbers that were given.
    pub(crate) async fn send_everything(&self, to: Sender<Part>) -> Result<()> {
        self.readers.run(move |connection| send(connection, &to)).await
    }
}

fn send(connection: &Connection, to: &Sender<Part>) -> Result<()> {
    for name in TABLES {
        let rows = connection
            .query_row(&format!("SELECT count(*) FROM ({})", select(name)), [], |row| row.get::<_, u64>(0))?;
        to.blocking_send(Part::Table { name, rows }).map_err(unavailable)?;
        send_rows(connection, name, to)?;
    }
    let mut query = connection.prepare("SELECT name, seq FROM sqlite_sequence")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let part = Part::Number { table: row.get(0)?, last: row.get(1)? };
        to.blocking_send(part).map_err(unavailable)?;
    }
    Ok(())
}

/// The rows of a table under the names other engines have for its columns.
fn select(table: &str) -> String {
    match table {
        // Here a company counts for itself.
        "companies" => "SELECT id, name, created_ms, audit_sequence, audit_hash, anchored_ms, documents_max, bytes_max FROM companies"
            .to_owned(),
        "company_usage" => {
            "SELECT id AS company, 0 AS counter, documents, head_bytes FROM companies".to_owned()
        }
        // A log may name a later one that took its place.
        "summary_logs" => "SELECT * FROM summary_logs ORDER BY number DESC".to_owned(),
        _ => format!("SELECT * FROM {table}"),
    }
}

fn send_rows(connection: &Connection, table: &str, to: &Sender<Part>) -> Result<()> {
    let mut query = connection.prepare(&select(table))?;
    let columns: Vec<String> = query.column_names().map(str::to_owned).collect();
    let (mut chunk, mut bytes) = (Vec::new(), 0);
    let mut rows = query.query([])?;
    while let Some(found) = rows.next()? {
        let mut row = Row::new();
        for (at, column) in columns.iter().enumerate() {
            let (value, length) = value((table, column.as_str()), found.get_ref(at)?)?;
            bytes += length;
            row.insert(column.clone(), value);
        }
        chunk.push(row);
        if chunk.len() == CHUNK_ROWS || bytes >= CHUNK_BYTES {
            to.blocking_send(Part::Rows(std::mem::take(&mut chunk))).map_err(unavailable)?;
            bytes = 0;
        }
    }
    if chunk.is_empty() { Ok(()) } else { to.blocking_send(Part::Rows(chunk)).map_err(unavailable) }
}

/// A value, and about how long it is.
fn value(place: (&str, &str), value: ValueRef<'_>) -> Result<(Value, usize)> {
    let (table, column) = place;
    Ok(match value {
        ValueRef::Null => (Value::Null, 0),
        ValueRef::Integer(number) if YES_OR_NO.contains(&place) => (Value::Bool(number != 0), 1),
        ValueRef::Integer(number) => (Value::from(number), 8),
        ValueRef::Blob(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            (Value::String(format!("\\x{digits}")), bytes.len() * 2)
        }
        ValueRef::Text(bytes) => {
            let text = std::str::from_utf8(bytes)
                .map_err(|_| LedgerError::damaged(format!("{table}.{column} holds what is no text")))?;
            // PostgreSQL stores no zero byte; in an entry of the trail another letter would break the chain.
            if text.contains('\0') && table == "audit" {
                return Err(LedgerError::damaged("an entry of the audit trail holds a zero byte"));
            }
            (Value::String(text.replace('\0', "\u{fffd}")), text.len())
        }
        ValueRef::Real(_) => return Err(LedgerError::damaged(format!("{table}.{column} holds a fraction"))),
    })
}
