//! All rows of another engine, on their way in.
//!
//! Guarantees: one transaction; into a ledger without a row only; what was written is read back and compared before it is committed.
//! Triggers that look at single steps (a log begins as `preprocessing`) do not fire meanwhile and are there again afterwards; references
//! between tables are checked all the time.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::sync::mpsc::Receiver;

use super::PostgresLedger;
use super::rows::get;
use super::snapshots::{ROWS_AT_ONCE, TABLES};
use super::step::Step;
use crate::moving::{Copied, Part, Row, Sum, Told};
use crate::{LedgerError, Result};

impl PostgresLedger {
    /// Takes in everything, or nothing.
    pub(crate) async fn receive_everything(
        &self,
        parts: Receiver<Part>,
        told: &(dyn Fn(Told) + Sync),
    ) -> Result<Copied> {
        let step = self.write().await?;
        let done = receive(&step, parts, told).await;
        step.end(done).await
    }
}

async fn receive(step: &Step, mut parts: Receiver<Part>, told: &(dyn Fn(Told) + Sync)) -> Result<Copied> {
    // Between two statements the other engine reads.
    step.may_pause().await?;
    for table in TABLES {
        // Nobody writes to it any more until the end.
        step.execute(&format!("ALTER TABLE {table} DISABLE TRIGGER USER"), &[]).await?;
        if step.exists(&format!("SELECT 1 AS one FROM {table} LIMIT 1"), &[]).await? {
            return Err(LedgerError::AlreadyExists { what: format!("a row in `{table}` of the target") });
        }
    }
    let mut sums: Vec<(&'static str, Sum)> = Vec::new();
    let mut promised = Vec::new();
    let mut numbers = BTreeMap::new();
    while let Some(part) = parts.recv().await {
        match part {
            Part::Table { name, rows } => {
                told(Told::Table(name, rows));
                promised.push(rows);
                sums.push((name, Sum::default()));
            }
            Part::Rows(rows) => {
                let Some((table, sum)) = sums.last_mut() else { continue };
                for row in &rows {
                    sum.add(row)?;
                    told(Told::Row);
                }
                insert(step, table, rows).await?;
            }
            Part::Number { table, last } => {
                numbers.insert(table, last);
            }
        }
    }
    let received: Vec<u64> = sums.iter().map(|(_, sum)| sum.rows).collect();
    if sums.len() != TABLES.len() || received != promised {
        return Err(LedgerError::damaged("the source was not read to its end"));
    }
    for (table, sum) in &sums {
        if read_back(step, table).await? != *sum {
            return Err(LedgerError::damaged(format!("`{table}` does not hold what was written")));
        }
        step.execute(&format!("ALTER TABLE {table} ENABLE TRIGGER USER"), &[]).await?;
    }
    for table in numbered(step).await? {
        go_on_after(step, &table, numbers.get(&table).copied().unwrap_or(0)).await?;
    }
    let tables = sums.iter().filter(|(_, sum)| sum.rows > 0).count();
    Ok(Copied { tables: u64::try_from(tables).unwrap_or(u64::MAX), rows: received.iter().sum() })
}

/// Tables whose rows are numbered by the server, as the schema says.
async fn numbered(step: &Step) -> Result<Vec<String>> {
    let query = "SELECT table_name::text AS name FROM information_schema.columns
                 WHERE table_schema = current_schema() AND column_name = 'number' AND is_identity = 'YES'";
    step.query(query, &[]).await?.iter().map(|row| get(row, "name")).collect()
}

async fn insert(step: &Step, table: &str, rows: Vec<Row>) -> Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let columns: Vec<String> = first.keys().map(|name| format!("\"{name}\"")).collect();
    let columns = columns.join(", ");
    let rows = Value::Array(rows.into_iter().map(Value::Object).collect()).to_string();
    let insert = format!(
        "INSERT INTO {table} ({columns}) SELECT {columns} FROM json_populate_recordset(NULL::{table}, $1::text::json)"
    );
    step.execute(&insert, &[&rows]).await.map(drop)
}

/// The next number is one that was never given.
async fn go_on_after(step: &Step, table: &str, last: i64) -> Result<()> {
    let query = format!(
        "SELECT setval(pg_get_serial_sequence('{table}', 'number'), newest.number) AS number FROM
         (SELECT greatest($1::bigint, max(number)) AS number FROM {table}) newest WHERE newest.number > 0"
    );
    step.query(&query, &[&last]).await.map(drop)
}

/// What a table holds, with a column that the source did not name standing out by its value.
async fn read_back(step: &Step, table: &str) -> Result<Sum> {
    let rows =
        format!("DECLARE copied NO SCROLL CURSOR FOR SELECT row_to_json(t)::text AS row FROM {table} t");
    step.execute(&rows, &[]).await?;
    let mut sum = Sum::default();
    loop {
        let rows = step.query(ROWS_AT_ONCE, &[]).await?;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            let row: Row = serde_json::from_str(&get::<String>(row, "row")?).map_err(LedgerError::damaged)?;
            sum.add(&row)?;
        }
    }
    step.execute("CLOSE copied", &[]).await?;
    Ok(sum)
}
