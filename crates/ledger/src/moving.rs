//! The whole ledger moves from the embedded engine to PostgreSQL.
//!
//! Both engines have the same tables with the same columns, so rows travel as they are: read from one snapshot, written in one
//! transaction, read back, and compared by count and hash before anything is committed.
//!
//! Guarantees: the target has every row as it was, or nothing. Memory is bounded by [`CHUNK_ROWS`] and [`CHUNK_BYTES`]. Numbers go on
//! after the last one that was ever given. Does not do: bytes (the vault), keeping anybody from writing to the source, which is the
//! caller's; the way back.

use model::Digest;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::postgres::PostgresLedger;
use crate::sqlite::SqliteLedger;
use crate::{LedgerError, Result};

/// Rows that travel together, at most.
pub(crate) const CHUNK_ROWS: usize = 1000;
/// A chunk is not made larger when it has so many bytes.
pub(crate) const CHUNK_BYTES: usize = 1024 * 1024;
/// Chunks that wait to be written.
const WAITING: usize = 2;

/// A row, by its columns. Bytes are text: `\x`, then hexadecimal digits.
pub(crate) type Row = Map<String, Value>;

/// What comes out of the source.
pub(crate) enum Part {
    /// A table begins.
    Table { name: &'static str, rows: u64 },
    /// Some of its rows.
    Rows(Vec<Row>),
    /// The last number a table ever gave.
    Number { table: String, last: i64 },
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A table begins, with so many rows.
    Table(&'static str, u64),
    /// One more row is written.
    Row,
}

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Tables that have rows.
    pub tables: u64,
    /// Rows of all of them.
    pub rows: u64,
}

/// Copies everything into an empty ledger. Nobody may write to the source meanwhile.
pub async fn copy(from: &SqliteLedger, to: &PostgresLedger, told: &(dyn Fn(Told) + Sync)) -> Result<Copied> {
    let (sender, parts) = mpsc::channel(WAITING);
    let (read, copied) = tokio::join!(from.send_everything(sender), to.receive_everything(parts, told));
    // Whoever reads only notices that nobody listens any more: the writer knows why.
    match (read, copied) {
        (_, Err(cause)) | (Err(cause), _) => Err(cause),
        (Ok(()), Ok(copied)) => Ok(copied),
    }
}

/// How many rows a table has and what is in them, in whatever order they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    pub(crate) rows: u64,
    hashes: [u8; 32],
}

impl Sum {
    pub(crate) fn add(&mut self, row: &Row) -> Result<()> {
        let mut columns: Vec<(&String, &Value)> = row.iter().collect();
        columns.sort_by_key(|(name, _)| *name);
        let text = serde_json::to_vec(&columns).map_err(LedgerError::damaged)?;
        // No two rows of a table are the same, so none is cancelled out by another.
        for (sum, byte) in self.hashes.iter_mut().zip(Digest::of(&text).as_bytes()) {
            *sum ^= byte;
        }
        self.rows += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(value: Value) -> Row {
        value.as_object().cloned().expect("a row has columns")
    }

    #[test]
    fn a_sum_is_the_same_in_every_order_and_another_for_every_change() {
        let (one, two) = (row(json!({ "a": 1, "b": "x" })), row(json!({ "b": null, "a": 2 })));
        let sum = |rows: &[&Row]| {
            let mut sum = Sum::default();
            rows.iter().for_each(|row| sum.add(row).expect("a row has a hash"));
            sum
        };

        assert_eq!(sum(&[&one, &two]), sum(&[&two, &one]));
        assert_ne!(sum(&[&one, &two]), sum(&[&one]));
        assert_ne!(sum(&[&one]), sum(&[&two]));
        assert_ne!(sum(&[&row(json!({ "a": 1 }))]), sum(&[&row(json!({ "a": "1" }))]));
    }
}
