//! Numbered, forward-only changes of the schema, each in a transaction of its own.
//!
//! Guarantees: a database is at some whole number; one that is newer than this program is refused, not guessed at.
//! The numbers and names are the same for every engine (tidy checks that).

use rusqlite::Connection;

use crate::{LedgerError, Result};

/// Add the next one at the end; never edit one that was released.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_documents", include_str!("../../migrations/sqlite/0001_documents.sql")),
    ("0002_extents", include_str!("../../migrations/sqlite/0002_extents.sql")),
    ("0003_confirmed_keys", include_str!("../../migrations/sqlite/0003_confirmed_keys.sql")),
    ("0004_changes", include_str!("../../migrations/sqlite/0004_changes.sql")),
    ("0005_audit", include_str!("../../migrations/sqlite/0005_audit.sql")),
    ("0006_callers", include_str!("../../migrations/sqlite/0006_callers.sql")),
    ("0007_shares", include_str!("../../migrations/sqlite/0007_shares.sql")),
    ("0008_sessions", include_str!("../../migrations/sqlite/0008_sessions.sql")),
    ("0009_operations", include_str!("../../migrations/sqlite/0009_operations.sql")),
    ("0010_history", include_str!("../../migrations/sqlite/0010_history.sql")),
    ("0011_scopes", include_str!("../../migrations/sqlite/0011_scopes.sql")),
    ("0012_submissions", include_str!("../../migrations/sqlite/0012_submissions.sql")),
    ("0013_console", include_str!("../../migrations/sqlite/0013_console.sql")),
    ("0014_finding", include_str!("../../migrations/sqlite/0014_finding.sql")),
    ("0015_reports", include_str!("../../migrations/sqlite/0015_reports.sql")),
];

pub(super) fn migrate(connection: &Connection) -> Result<()> {
    let done: usize = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if done > MIGRATIONS.len() {
        return Err(LedgerError::damaged(format!(
            "its schema has number {done}, this program knows {}: a newer Saveguard wrote it",
            MIGRATIONS.len()
        )));
    }
    for (number, (name, statements)) in (1..).zip(MIGRATIONS).skip(done) {
        connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {statements}; PRAGMA user_version = {number}; COMMIT"
        ))?;
        tracing::info!(migration = name, "the ledger's schema moved to {number}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrating_twice_changes_nothing() {
        let connection = Connection::open_in_memory().unwrap();

        migrate(&connection).unwrap();
        migrate(&connection).unwrap();

        let version: usize = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(version, MIGRATIONS.len());
    }

    #[test]
    fn what_companies_have_is_counted_when_the_counting_begins() {
        let connection = Connection::open_in_memory().unwrap();
        for (_, statements) in &MIGRATIONS[..3] {
            connection.execute_batch(statements).unwrap();
        }
        let old = "PRAGMA user_version = 3;
            INSERT INTO companies (id, name, created_ms) VALUES ('acme', 'Acme', 0), ('empty', 'Empty', 0);
            INSERT INTO projects (company, id, name, created_ms) VALUES ('acme', 'plans', 'Plans', 0);
            INSERT INTO blobs (digest, size_bytes, named_ms) VALUES (zeroblob(32), 7, 0);
            INSERT INTO documents (id, company, project, name, created_ms, head_version, head_checkpoint, head_digest,
              head_moved_ms, last_version) VALUES ('a', 'acme', 'plans', 'a.txt', 0, 1, 0, zeroblob(32), 0, 1),
              ('b', 'acme', 'plans', 'b.txt', 0, 1, 0, zeroblob(32), 0, 1);";
        connection.execute_batch(old).unwrap();

        migrate(&connection).unwrap();

        let count = |id: &str| -> (u64, u64) {
            let query = "SELECT documents, head_bytes FROM companies WHERE id = ?1";
            connection.query_row(query, [id], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
        };
        assert_eq!((count("acme"), count("empty")), ((2, 14), (0, 0)));
        connection.execute("DELETE FROM documents WHERE id = 'b'", []).unwrap();
        assert_eq!(count("acme"), (1, 7));
    }

    #[test]
    fn a_database_of_a_newer_program_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("PRAGMA user_version = 999").unwrap();

        assert!(matches!(migrate(&connection), Err(LedgerError::Damaged { .. })));
    }
}
