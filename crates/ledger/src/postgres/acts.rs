//! Finding entries of the audit trail on PostgreSQL.

use model::Digest;
use model::audit::Entry;
use tokio_postgres::Row;

use super::rows::get;
use crate::Result;

pub(super) fn entry(row: &Row) -> Result<(Entry, Digest)> {
    let entry = Entry {
        chain: get(row, "chain")?,
        sequence: get(row, "sequence")?,
        at: get(row, "at_ms")?,
        actor: get(row, "actor")?,
        from: get(row, "came_from")?,
        action: get(row, "action")?,
        outcome: get(row, "outcome")?,
        details: get(row, "details")?,
    };
    Ok((entry, get(row, "hash")?))
}
