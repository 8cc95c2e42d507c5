//! The one thread that writes, with group commit.
//!
//! Steps wait in two bounded lines: those somebody waits for, and those of bulk work, such as the rows of a workbook. The thread takes
//! all that wait in the first (up to [`BATCH_MAX`]), runs each in its own savepoint inside one transaction, commits once, and only then
//! tells every step's caller. One flush thus serves many saves. Bulk steps are small; several share a transaction as long as nobody
//! else waits.
//!
//! Guarantees: a caller hears `Ok` only after the commit that holds its step; a step whose caller is gone still
//! happens; a step that panics or fails is rolled back alone; if the commit fails, all of its steps failed. Whoever saves waits for
//! one bulk step and one commit, however much bulk work there is; and bulk work goes on, however many save.
//! Does not do: retry.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::journal::Wake;
use super::unavailable;
use crate::{LedgerError, Result};

/// Steps in one transaction: enough to share a flush widely, few enough to stay in milliseconds.
const BATCH_MAX: usize = 128;
/// Steps that may wait; more than this many means the disk cannot keep up and callers should try again later.
const LINE_MAX: usize = 4096;
/// Bulk work in one transaction: what is flushed at once makes the next save wait.
const BULK_TIME_MAX: Duration = Duration::from_millis(8);

#[derive(Debug)]
pub(super) struct Writer {
    line: Arc<Line>,
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

/// Who waits for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Somebody who saves, opens, confirms.
    Awaited,
    /// Work on many rows, of which this is a small part.
    Bulk,
}

impl Writer {
    pub(super) fn start(connection: Connection, wait_max: Duration, wake: Wake) -> Result<Self> {
        let line = Arc::new(Line::default());
        let jobs = Arc::clone(&line);
        let thread = std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || work(&connection, &jobs, &wake))
            .map_err(unavailable)?;
        Ok(Self { line, thread: Some(thread), wait_max })
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        urgency: Urgency,
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
        self.line.push(urgency, Job { step, give_up_at: Instant::now() + self.wait_max })?;
        // A job that is dropped unrun waited too long, or its step panicked and was undone.
        told.await.unwrap_or(Err(LedgerError::Busy))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Closing the line lets the thread finish what waits and stop.
        self.line.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The two lines, and whether more may come.
#[derive(Default)]
struct Line {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    awaited: VecDeque<Job>,
    bulk: VecDeque<Job>,
    is_closed: bool,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Line {
    fn push(&self, urgency: Urgency, job: Job) -> Result<()> {
        let mut waiting = self.waiting();
        let is_closed = waiting.is_closed;
        let line = match urgency {
            Urgency::Awaited => &mut waiting.awaited,
            Urgency::Bulk => &mut waiting.bulk,
        };
        if is_closed || line.len() >= LINE_MAX {
            return Err(LedgerError::Busy);
        }
        line.push_back(job);
        self.arrived.notify_one();
        Ok(())
    }

    fn close(&self) {
        self.waiting().is_closed = true;
        self.arrived.notify_one();
    }

    /// Waits until there is something to do; what somebody waits for, which is nothing if only bulk work is there. None at the end.
    fn awaited(&self) -> Option<Vec<Job>> {
        let mut waiting = self.waiting();
        while waiting.awaited.is_empty() && waiting.bulk.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let count = waiting.awaited.len().min(BATCH_MAX);
        Some(waiting.awaited.drain(..count).collect())
    }

    /// A bulk step, if there is one.
    fn bulk(&self) -> Option<Job> {
        self.waiting().bulk.pop_front()
    }

    /// A bulk step, if there is one and nobody else waits.
    fn bulk_if_alone(&self) -> Option<Job> {
        let mut waiting = self.waiting();
        if waiting.awaited.is_empty() { waiting.bulk.pop_front() } else { None }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the last transaction left bulk work waiting for those who save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    Nothing,
    Bulk,
}

fn work(connection: &Connection, line: &Line, wake: &Wake) {
    let mut owed = Owed::Nothing;
    while let Some(awaited) = line.awaited() {
        owed = commit_together(connection, line, (awaited, owed));
        wake.look();
    }
}

fn commit_together(connection: &Connection, line: &Line, (awaited, owed): (Vec<Job>, Owed)) -> Owed {
    if let Err(cause) = connection.execute_batch("BEGIN IMMEDIATE") {
        // Dropping the jobs tells every caller that nothing happened. If nobody else waits, a bulk step is what failed.
        tracing::warn!(error = %cause, "the ledger could not begin a transaction");
        if awaited.is_empty() {
            drop(line.bulk());
        }
        return owed;
    }
    let began = Instant::now();
    let is_bulk_due = awaited.is_empty() || owed == Owed::Bulk;
    let mut tells: Vec<Tell> = awaited.into_iter().filter_map(|job| run(connection, job)).collect();
    let mut next = if is_bulk_due { line.bulk() } else { None };
    while let Some(job) = next {
        tells.extend(run(connection, job));
        next = if began.elapsed() < BULK_TIME_MAX { line.bulk_if_alone() } else { None };
    }
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
    if is_bulk_due { Owed::Nothing } else { Owed::Bulk }
}

/// Runs a step in a savepoint of its own, unless it waited too long.
fn run(connection: &Connection, job: Job) -> Option<Tell> {
    if job.give_up_at <= Instant::now() {
        return None;
    }
    connection.execute_batch("SAVEPOINT step").ok()?;
    let outcome = catch_unwind(AssertUnwindSafe(|| (job.step)(connection)));
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
            .run(Urgency::Awaited, |c| {
                Ok(c.query_row("SELECT coalesce(sum(n), 0) FROM t", [], |row| row.get(0))?)
            })
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_failing_step_is_undone_alone() {
        let (_folder, _journal, writer) = writer();

        let (first, second, third) = tokio::join!(
            writer.run(Urgency::Awaited, |c| insert(c, 1)),
            writer.run(Urgency::Awaited, |c| {
                insert(c, 10)?;
                Err::<(), _>(LedgerError::BlobGoing)
            }),
            writer.run(Urgency::Awaited, |c| insert(c, 100)),
        );

        assert!(first.is_ok() && third.is_ok() && matches!(second, Err(LedgerError::BlobGoing)));
        assert_eq!(sum(&writer).await, 101);
    }

    #[tokio::test]
    async fn a_panicking_step_harms_no_other() {
        let (_folder, _journal, writer) = writer();

        let (first, second) = tokio::join!(
            writer.run(Urgency::Awaited, |c| {
                insert(c, 1)?;
                if c.is_autocommit() { Ok(()) } else { panic!("a bug") }
            }),
            writer.run(Urgency::Awaited, |c| insert(c, 10)),
        );

        assert!(first.is_err() && second.is_ok());
        assert_eq!(sum(&writer).await, 10);
    }

    #[tokio::test]
    async fn a_step_that_waited_too_long_is_refused_and_never_happens() {
        let (_folder, _journal, mut writer) = writer();
        writer.wait_max = Duration::ZERO;

        let refused = writer.run(Urgency::Awaited, |c| insert(c, 1)).await;

        writer.wait_max = Duration::from_secs(3);
        assert!(matches!(refused, Err(LedgerError::Busy)));
        assert_eq!(sum(&writer).await, 0);
    }

    #[tokio::test]
    async fn a_step_whose_caller_is_gone_still_happens() {
        let (_folder, _journal, writer) = writer();

        let mut abandoned = Box::pin(writer.run(Urgency::Awaited, |c| insert(c, 7)));
        let polled = futures_poll_once(&mut abandoned).await;
        drop(abandoned);

        assert!(!polled || sum(&writer).await == 7);
        assert_eq!(sum(&writer).await, 7);
    }

    /// Occupies the writer until it is told to go on, so that what comes next waits together.
    fn hold(writer: &Writer) -> (std::sync::mpsc::Sender<()>, impl Future<Output = Result<()>> + '_) {
        let (go_on, held) = std::sync::mpsc::channel::<()>();
        let step = writer.run(Urgency::Awaited, move |_| {
            let _ = held.recv();
            Ok(())
        });
        (go_on, step)
    }

    /// What each of these steps finds in the table when it runs: how many ran before it.
    async fn order(writer: &Writer, urgencies: &[Urgency]) -> Vec<i64> {
        let (go_on, held) = hold(writer);
        let steps = urgencies.iter().map(|urgency| {
            writer.run(*urgency, |c| {
                insert(c, 1)?;
                Ok(c.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?)
            })
        });
        let mut waiting = Box::pin(futures_util::future::join(held, futures_util::future::join_all(steps)));
        futures_poll_once(&mut waiting).await;
        go_on.send(()).unwrap();
        waiting.await.1.into_iter().map(Result::unwrap).collect()
    }

    #[tokio::test]
    async fn whoever_saves_goes_before_bulk_work_that_waits_longer() {
        let (_folder, _journal, writer) = writer();

        let order = order(&writer, &[Urgency::Bulk, Urgency::Bulk, Urgency::Awaited, Urgency::Awaited]).await;

        assert_eq!(order, [3, 4, 1, 2]);
    }

    #[tokio::test]
    async fn bulk_work_goes_on_however_many_save() {
        let (_folder, _journal, writer) = writer();
        let mut urgencies = vec![Urgency::Awaited; 3 * BATCH_MAX];
        urgencies.push(Urgency::Bulk);

        let order = order(&writer, &urgencies).await;

        assert!(order[3 * BATCH_MAX] <= 2 * BATCH_MAX as i64 + 1, "{}", order[3 * BATCH_MAX]);
    }

    async fn futures_poll_once<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_ready())
        })
        .await
    }
}
