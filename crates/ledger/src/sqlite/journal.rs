//! Moves what was committed from SQLite's journal into the main file, beside the writer.
//!
//! A commit is durable once it is flushed to the journal. Moving its pages into the main file is left to a thread and a connection of
//! their own: done by the writer, every thousandth page would make somebody's save wait for it.
//!
//! Guarantees: pages are flushed in the same order as the writer would flush them. If this thread stops or falls behind, the journal
//! grows no further than [`JOURNAL_PAGES_MAX`]: then the writer moves them itself. Does not do: decide what is committed.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::Connection;

use super::unavailable;
use crate::Result;

/// Moved when so many wait.
const MOVED_PAGES_MIN: i64 = 1_000;
/// Pages after which the writer does it: 64 MB.
pub(super) const JOURNAL_PAGES_MAX: u32 = 16_000;

/// The thread. It ends when the writer has gone, and is waited for.
#[derive(Debug)]
pub(super) struct Journal {
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Told after every commit.
#[derive(Debug, Clone)]
pub(super) struct Wake(SyncSender<()>);

impl Wake {
    /// Looks soon; one look serves many commits.
    pub(super) fn look(&self) {
        let _ = self.0.try_send(());
    }
}

impl Journal {
    pub(super) fn start(connection: Connection) -> Result<(Self, Wake)> {
        let (wake, woken) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("ledger-journal".to_owned())
            .spawn(move || work(&connection, &woken))
            .map_err(unavailable)?;
        Ok((Self { thread: Some(thread) }, Wake(wake)))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(connection: &Connection, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        if waiting_pages(connection, "NOOP") >= MOVED_PAGES_MIN {
            waiting_pages(connection, "PASSIVE");
        }
    }
}

/// Pages of the journal that are not in the main file yet, after this kind of moving. One that fails is tried after the next commit.
fn waiting_pages(connection: &Connection, kind: &str) -> i64 {
    let found = connection.query_row(&format!("PRAGMA wal_checkpoint({kind})"), [], |row| {
        Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?)
    });
    found.unwrap_or_else(|cause| {
        tracing::warn!(error = %cause, "pages of the ledger's journal could not be moved");
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_moved_once_there_are_many() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("l.sqlite");
        let writer = Connection::open(&file).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (b BLOB)",
            )
            .unwrap();
        let (journal, wake) = Journal::start(Connection::open(&file).unwrap()).unwrap();
        writer.execute("INSERT INTO t VALUES (zeroblob(100))", []).unwrap();
        let few = waiting_pages(&writer, "NOOP");
        writer.execute("INSERT INTO t VALUES (zeroblob(8000000))", []).unwrap();
        let many = waiting_pages(&writer, "NOOP");

        wake.look();
        drop(wake);
        drop(journal);

        assert!(few > 0 && many > MOVED_PAGES_MIN);
        assert_eq!(waiting_pages(&writer, "NOOP"), 0);
    }
}
