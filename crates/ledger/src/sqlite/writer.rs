//! The one thread that writes, with group commit.
//!
//! Steps wait in a bounded line. The thread takes all that wait (up to [`BATCH_MAX`]), runs each in its own savepoint
//! inside one transaction, commits once, and only then tells every step's caller. One flush thus serves many saves.
//!
//! Guarantees: a caller hears `Ok` only after the commit that holds its step; a step whose caller is gone still
//! happens; a step that panics or fails is rolled back alone; if the commit fails, all of its steps failed.
//! Does not do: retry.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::journal::Wake;
use super::unavailable;
use crate::{LedgerError, Result};

/// Steps in one transaction: enough to share a flush widely, few enough to stay in milliseconds.
const BATCH_MAX: usize = 128;
/// Steps that may wait; more than this many means the disk cannot keep up and callers should try again later.
const LINE_MAX: usize = 4096;

#[derive(Debug)]
pub(super) struct Writer {
    line: Option<mpsc::Sender<Job>>,
    thread: Option<std::thread::JoinHandle<()>>,
    wait_max: Duration,
}

/// Runs the step; `Ok` keeps its effects. What it returns tells the caller, once the fate of the commit is known.
type Step = Box<dyn FnOnce(&Connection) -> (Effects, Tell) + Send>;
type Tell = Box<dyn FnOnce(Fate) + Send>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effects {
    Keep,
    Undo,
}

#[derive(Debug, Clone)]
enum Fate {
    Committed,
    Failed(String),
}

struct Job {
    step: Step,
    give_up_at: Instant,
}

impl Writer {
    pub(super) fn start(connection: Connection, wait_max: Duration, wake: Wake) -> Result<Self> {
        let (line, jobs) = mpsc::channel(LINE_MAX);
        let thread = std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || work(&connection, jobs, &wake))
            .map_err(unavailable)?;
        Ok(Self { line: Some(line), thread: Some(thread), wait_max })
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tell, told) = oneshot::channel();
        let step: Step = Box::new(move |connection| {
            let result = step(connection);
            let effects = if result.is_ok() { Effects::Keep } else { Effects::Undo };
            let tell: Tell = Box::new(move |fate| {
                let result = match fate {
                    Fate::Failed(cause) if result.is_ok() => Err(unavailable(std::io::Error::other(cause))),
                    _ => result,
                };
                // The caller may be gone; the step happened all the same.
                let _ = tell.send(result);
            });
            (effects, tell)
        });
        let job = Job { step, give_up_at: Instant::now() + self.wait_max };
        let line = self.line.as_ref().ok_or(LedgerError::Busy)?;
        line.try_send(job).map_err(|_full_or_closed| LedgerError::Busy)?;
        // A job that is dropped unrun waited too long, or its step panicked and was undone.
        told.await.unwrap_or(Err(LedgerError::Busy))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Closing the line lets the thread finish what waits and stop.
        self.line = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(connection: &Connection, mut jobs: mpsc::Receiver<Job>, wake: &Wake) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while let Some(first) = jobs.blocking_recv() {
        batch.push(first);
        while batch.len() < BATCH_MAX {
            match jobs.try_recv() {
                Ok(job) => batch.push(job),
                Err(_) => break,
            }
        }
        commit_together(connection, &mut batch);
        wake.look();
    }
}

fn commit_together(connection: &Connection, batch: &mut Vec<Job>) {
    let now = Instant::now();
    batch.retain(|job| job.give_up_at > now);
    if batch.is_empty() {
        return;
    }
    if let Err(cause) = connection.execute_batch("BEGIN IMMEDIATE") {
        // Dropping the jobs tells every caller that nothing happened.
        tracing::warn!(error = %cause, "the ledger could not begin a transaction");
        batch.clear();
        return;
    }
    let tells: Vec<Tell> = batch.drain(..).filter_map(|job| run_in_savepoint(connection, job.step)).collect();
    let fate = match connection.execute_batch("COMMIT") {
        Ok(()) => Fate::Committed,
        Err(cause) => {
            tracing::error!(error = %cause, "the ledger could not commit");
            let _ = connection.execute_batch("ROLLBACK");
            Fate::Failed(cause.to_string())
        }
    };
    for tell in tells {
        tell(fate.clone());
    }
}

fn run_in_savepoint(connection: &Connection, step: Step) -> Option<Tell> {
    connection.execute_batch("SAVEPOINT step").ok()?;
    let outcome = catch_unwind(AssertUnwindSafe(|| step(connection)));
    let end = match &outcome {
        Ok((Effects::Keep, _)) => "RELEASE step",
        _ => "ROLLBACK TO step; RELEASE step",
    };
    let ended = connection.execute_batch(end);
    match (outcome, ended) {
        (Ok((_, tell)), Ok(())) => Some(tell),
        (Ok((_, tell)), Err(cause)) => {
            tell(Fate::Failed(cause.to_string()));
            None
        }
        (Err(_), _) => {
            tracing::error!("a ledger step panicked and was undone");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::Journal;
    use super::*;

    fn writer() -> (tempfile::TempDir, Journal, Writer) {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("w.sqlite")).unwrap();
        connection.execute_batch("CREATE TABLE t (n INTEGER)").unwrap();
        let (journal, wake) = Journal::start(Connection::open_in_memory().unwrap()).unwrap();
        (folder, journal, Writer::start(connection, Duration::from_secs(3), wake).unwrap())
    }

    fn insert(connection: &Connection, number: i64) -> Result<()> {
        connection.execute("INSERT INTO t VALUES (?1)", [number])?;
        Ok(())
    }

    async fn sum(writer: &Writer) -> i64 {
        writer
            .run(|c| Ok(c.query_row("SELECT coalesce(sum(n), 0) FROM t", [], |row| row.get(0))?))
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_failing_step_is_undone_alone() {
        let (_folder, _journal, writer) = writer();

        let (first, second, third) = tokio::join!(
            writer.run(|c| insert(c, 1)),
            writer.run(|c| {
                insert(c, 10)?;
                Err::<(), _>(LedgerError::BlobGoing)
            }),
            writer.run(|c| insert(c, 100)),
        );

        assert!(first.is_ok() && third.is_ok() && matches!(second, Err(LedgerError::BlobGoing)));
        assert_eq!(sum(&writer).await, 101);
    }

    #[tokio::test]
    async fn a_panicking_step_harms_no_other() {
        let (_folder, _journal, writer) = writer();

        let (first, second) = tokio::join!(
            writer.run(|c| {
                insert(c, 1)?;
                if c.is_autocommit() { Ok(()) } else { panic!("a bug") }
            }),
            writer.run(|c| insert(c, 10)),
        );

        assert!(first.is_err() && second.is_ok());
        assert_eq!(sum(&writer).await, 10);
    }

    #[tokio::test]
    async fn a_step_that_waited_too_long_is_refused_and_never_happens() {
        let (_folder, _journal, mut writer) = writer();
        writer.wait_max = Duration::ZERO;

        let refused = writer.run(|c| insert(c, 1)).await;

        writer.wait_max = Duration::from_secs(3);
        assert!(matches!(refused, Err(LedgerError::Busy)));
        assert_eq!(sum(&writer).await, 0);
    }

    #[tokio::test]
    async fn a_step_whose_caller_is_gone_still_happens() {
        let (_folder, _journal, writer) = writer();

        let mut abandoned = Box::pin(writer.run(|c| insert(c, 7)));
        let polled = futures_poll_once(&mut abandoned).await;
        drop(abandoned);

        assert!(!polled || sum(&writer).await == 7);
        assert_eq!(sum(&writer).await, 7);
    }

    async fn futures_poll_once<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_ready())
        })
        .await
    }
}
