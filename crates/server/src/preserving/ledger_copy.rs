//! The ledger of a data folder moves into the database that the configuration names.
//!
//! Guarantees: the service is stopped meanwhile, because its lock is taken; the target has everything, proven by count and hash, or
//! nothing. Does not do: the vault, whose bytes stay where they are ([`super::copy_vault`] moves them); removing the old ledger.

use ledger::moving::{Told, copy};

use super::PreserveError;
use crate::app::App;
use crate::config::Config;
use crate::progress::Progress;

/// What a copy brought.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct CopiedLedger {
    /// Tables with rows.
    pub tables: u64,
    /// Rows.
    pub rows: u64,
}

/// Copies the embedded ledger into PostgreSQL.
pub async fn copy_ledger(config: &Config, progress: &dyn Progress) -> Result<CopiedLedger, PreserveError> {
    let (_lock, from, to) = App::both_ledgers(config).await?;
    let told = |told: Told| match told {
        Told::Table(name, rows) => progress.begin(name, rows),
        Told::Row => progress.advance(),
    };
    let copied = copy(&from, &to, &told).await?;
    Ok(CopiedLedger { tables: copied.tables, rows: copied.rows })
}
