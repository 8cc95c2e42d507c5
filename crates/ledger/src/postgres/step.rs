//! One transaction: a step of the port, or a read of several statements.
//!
//! A step is begun, done and ended:
//!
//! ```text
//! let step = self.write().await?;
//! let done = create(&step, company).await;
//! step.end(done).await
//! ```
//!
//! Statements that do not need each other's answers are asked for together, with `tokio::try_join!(biased; …)`: they are sent in the
//! order in which they stand there, the server does one after the other, and all answers come in one round trip.
//!
//! Guarantees: [`Step::end`] commits what went well and undoes everything else; a step whose future is dropped on the way is
//! undone, because its connection is closed. A statement that failed dooms its step: it cannot be committed by accident. If
//! the connection breaks while the commit is on its way, the server is asked on another one whether it happened: what is
//! reported as done was done, and what is reported as not done was not done, unless the server itself went down in that
//! very moment. Then nobody can tell, and it is reported as not done: every step may be repeated. Does not do: repeat a step.
//! Only beginning is repeated, because nothing was done yet.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use deadpool_postgres::{Object, Pool};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::errors::unavailable;
use super::{Shared, pool};
use crate::{LedgerError, Result};

/// Values of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Connections that are tried until one can begin: after a restart of the server all idle ones are dead.
const BEGIN_ATTEMPTS: usize = 3;
/// How often the fate of a commit is asked for, and how long in between: longer than a server takes to restart.
const FATE_ATTEMPTS: u32 = 20;
const FATE_INTERVAL: Duration = Duration::from_millis(250);

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A step that changes something: `READ COMMITTED`, with locks. See [`super::locks`].
    Write,
    /// Several statements that must see one state: a snapshot.
    Read,
    /// A single statement, which is a transaction by itself.
    Glance,
}

/// The number of a transaction, and in which life of the server it was given: after a crash numbers are given again.
const MARK: &str = "SELECT pg_current_xact_id()::text AS number, pg_postmaster_start_time() AS started,
                    pg_stat_get_bgwriter_stat_reset_time() AS recovered";
/// What became of a number, and in which life of the server that is said.
const FATE: &str = "SELECT pg_xact_status($1::text::xid8) AS fate, pg_postmaster_start_time() AS started,
                    pg_stat_get_bgwriter_stat_reset_time() AS recovered";

/// A life of the server: since when it runs, and since when it counts what it does. It begins to count anew when it had to
/// recover, also if only one of its processes died and the rest was begun again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Life {
    started: SystemTime,
    recovered: Option<SystemTime>,
}

impl Life {
    fn of(row: &Row) -> std::result::Result<Self, tokio_postgres::Error> {
        Ok(Self { started: row.try_get("started")?, recovered: row.try_get("recovered")? })
    }
}

/// By which a transaction can be asked about.
#[derive(Debug)]
struct Mark {
    number: String,
    life: Life,
}

/// A transaction on a connection of its own.
pub(super) struct Step {
    /// Gone when it is given back.
    connection: Option<Object>,
    purpose: Purpose,
    /// What it is known by, if it writes.
    mark: Option<Mark>,
    /// Whose statement is sent next.
    sending: Mutex<()>,
    /// Statements that were sent and whose answers were not awaited to their end.
    unanswered: AtomicUsize,
    is_doomed: AtomicBool,
    pool: Pool,
    pub(super) shared: Arc<Shared>,
}

impl Step {
    pub(super) async fn begin(pool: &Pool, shared: &Arc<Shared>, purpose: Purpose) -> Result<Self> {
        let mut attempt = 1;
        loop {
            let connection = pool::connection(pool).await?;
            let mut step = Self {
                connection: Some(connection),
                purpose,
                mark: None,
                sending: Mutex::new(()),
                unanswered: AtomicUsize::new(0),
                is_doomed: AtomicBool::new(false),
                pool: pool.clone(),
                shared: Arc::clone(shared),
            };
            match step.start().await {
                Ok(()) => return Ok(step),
                Err(cause) if cause.is_closed() && attempt < BEGIN_ATTEMPTS => attempt += 1,
                Err(cause) => return Err(cause.into()),
            }
        }
    }

    async fn start(&mut self) -> std::result::Result<(), tokio_postgres::Error> {
        let Some(connection) = &self.connection else { return Ok(()) };
        match self.purpose {
            Purpose::Glance => Ok(()),
            Purpose::Read => {
                connection.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
            }
            Purpose::Write => {
                let mark = connection.prepare_cached(MARK).await?;
                let (begun, told) =
                    tokio::join!(biased; connection.batch_execute("BEGIN"), connection.query_one(&mark, &[]));
                begun?;
                let told = told?;
                self.mark = Some(Mark { number: told.try_get("number")?, life: Life::of(&told)? });
                Ok(())
            }
        }
    }

    /// For the rare step that waits for something else between its statements, and that nobody else waits for.
    pub(super) async fn may_pause(&self) -> Result<()> {
        self.execute("SET LOCAL idle_in_transaction_session_timeout = '10min'", &[]).await.map(drop)
    }

    fn connection(&self) -> Result<&Object> {
        self.connection.as_ref().ok_or_else(|| unavailable("the step has ended"))
    }

    /// All rows of a query.
    pub(super) async fn query(&self, text: &str, values: Values<'_>) -> Result<Vec<Row>> {
        let connection = self.connection()?;
        let rows = self.answered(async {
            let first = self.sending.lock().await;
            let statement = connection.prepare_cached(text).await?;
            sent(first, connection.query(&statement, values)).await
        });
        self.dooming(rows.await)
    }

    /// The only row of a query that finds one or none.
    pub(super) async fn query_optional(&self, text: &str, values: Values<'_>) -> Result<Option<Row>> {
        Ok(self.query(text, values).await?.into_iter().next())
    }

    /// The row of a query that cannot but find one.
    pub(super) async fn query_one(&self, text: &str, values: Values<'_>) -> Result<Row> {
        let found = self.query_optional(text, values).await?;
        found.ok_or_else(|| LedgerError::damaged("a row that must be there is missing"))
    }

    /// Whether a query finds anything.
    pub(super) async fn exists(&self, text: &str, values: Values<'_>) -> Result<bool> {
        Ok(self.query_optional(text, values).await?.is_some())
    }

    /// Changes rows; says how many.
    pub(super) async fn execute(&self, text: &str, values: Values<'_>) -> Result<u64> {
        let connection = self.connection()?;
        let changed = self.answered(async {
            let first = self.sending.lock().await;
            let statement = connection.prepare_cached(text).await?;
            sent(first, connection.execute(&statement, values)).await
        });
        self.dooming(changed.await)
    }

    /// Counts a statement until its answer is there; one whose future is dropped before goes on being counted.
    async fn answered<T>(&self, work: impl Future<Output = T>) -> T {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let done = work.await;
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        done
    }

    /// A statement that the server refused ends its transaction: `COMMIT` would undo it and say nothing.
    fn dooming<T>(&self, result: std::result::Result<T, tokio_postgres::Error>) -> Result<T> {
        result.map_err(|cause| {
            self.is_doomed.store(true, Ordering::Relaxed);
            LedgerError::from(cause)
        })
    }

    /// Commits what went well, undoes everything else, and gives the connection back.
    pub(super) async fn end<T>(mut self, result: Result<T>) -> Result<T> {
        let result = match result {
            Ok(_) if self.is_doomed.load(Ordering::Relaxed) => {
                Err(unavailable("a statement of the step failed and was passed over"))
            }
            other => other,
        };
        let ended = match &result {
            Ok(_) => self.commit().await,
            Err(_) => self.undo().await,
        };
        let result = ended.and(result);
        self.shared.notice(&result);
        result
    }

    /// Ends a step that took locks and changed nothing: what was found is right, and there is nothing to commit.
    pub(super) async fn leave<T>(mut self, found: Result<T>) -> Result<T> {
        let result = self.undo().await.and(found);
        self.shared.notice(&result);
        result
    }

    async fn commit(&mut self) -> Result<()> {
        if self.purpose == Purpose::Glance {
            self.give_back();
            return Ok(());
        }
        let committed = self.connection()?.batch_execute("COMMIT").await;
        match committed {
            Ok(()) => {
                self.give_back();
                Ok(())
            }
            Err(cause) if may_have_arrived(&cause) => {
                // Its place is needed: whoever asks about the fate asks on another connection of the same pool.
                drop(self.connection.take().map(Object::take));
                self.fate(cause).await
            }
            Err(cause) => Err(cause.into()),
        }
    }

    /// The connection broke while the commit was on its way: perhaps it arrived.
    async fn fate(&self, cause: tokio_postgres::Error) -> Result<()> {
        let Some(mark) = &self.mark else { return Err(cause.into()) };
        for _ in 0..FATE_ATTEMPTS {
            match self.ask_for_fate(mark).await {
                Ok(Fate::Committed) => return Ok(()),
                Ok(Fate::Undone) => return Err(cause.into()),
                Ok(Fate::OfAnotherLife) => {
                    tracing::warn!(
                        "the ledger's server went down while a step was committed; it counts as not done"
                    );
                    return Err(cause.into());
                }
                Ok(Fate::Open) => {}
                Err(asking) => tracing::debug!(error = %asking, "the fate of a commit is not known yet"),
            }
            // waits on purpose: the server may be starting again.
            tokio::time::sleep(FATE_INTERVAL).await;
        }
        tracing::error!(
            transaction = mark.number,
            "it could not be told whether a step of the ledger happened"
        );
        Err(cause.into())
    }

    async fn ask_for_fate(&self, mark: &Mark) -> Result<Fate> {
        let connection = pool::connection(&self.pool).await?;
        let row = match connection.query_one(FATE, &[&mark.number]).await {
            Ok(row) => row,
            // The server that answers never heard of such a transaction.
            Err(cause) if cause.code() == Some(&tokio_postgres::error::SqlState::INVALID_PARAMETER_VALUE) => {
                return Ok(Fate::OfAnotherLife);
            }
            Err(cause) => return Err(cause.into()),
        };
        if Life::of(&row)? != mark.life {
            return Ok(Fate::OfAnotherLife);
        }
        Ok(match row.try_get::<_, Option<&str>>("fate")? {
            Some("committed") => Fate::Committed,
            Some("in progress") => Fate::Open,
            _ => Fate::Undone,
        })
    }

    async fn undo(&mut self) -> Result<()> {
        if self.purpose == Purpose::Glance {
            self.give_back();
            return Ok(());
        }
        if self.connection()?.batch_execute("ROLLBACK").await.is_ok() {
            self.give_back();
        }
        // Otherwise the connection goes, and the server undoes the rest by itself.
        Ok(())
    }

    fn give_back(&mut self) {
        drop(self.connection.take());
    }
}

/// What became of a commit whose answer was not heard.
enum Fate {
    Committed,
    Undone,
    Open,
    /// The server went down meanwhile, or another took its place: the number may be somebody else's by now.
    OfAnotherLife,
}

/// Work that is sent when it is first polled: the next may be sent then, before this one's answer is there.
async fn sent<T>(first: MutexGuard<'_, ()>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let begun = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    drop(first);
    match begun {
        Poll::Ready(done) => done,
        Poll::Pending => work.await,
    }
}

/// Whether a commit that failed so may have happened: the connection broke, or the server was on its way down.
fn may_have_arrived(cause: &tokio_postgres::Error) -> bool {
    cause.code().is_none_or(|code| code.code().starts_with("57P") || code.code().starts_with("08"))
}

impl Drop for Step {
    fn drop(&mut self) {
        let is_busy = self.purpose != Purpose::Glance || self.unanswered.load(Ordering::Relaxed) > 0;
        if let Some(connection) = self.connection.take()
            && is_busy
        {
            // In the middle of a transaction, or of a statement that the next one would have to wait for: nobody may get this
            // connection again.
            drop(Object::take(connection));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::throwaway::{Database, Server};
    use super::super::{Options, PostgresLedger};
    use crate::Result;
    use crate::contract::environment;

    async fn note(ledger: &PostgresLedger, what: &str) -> Result<()> {
        let step = ledger.write().await?;
        // Repeatable, as every step is: one that was done while the server went down is said not to be.
        let insert = "INSERT INTO webhook_events (event, target) VALUES ($1, 'x') ON CONFLICT DO NOTHING";
        let done = step.execute(insert, &[&what]).await.map(drop);
        step.end(done).await
    }

    /// A step is about to be committed when the server goes down. After that it gives the numbers of transactions it lost again.
    async fn is_lost_and_said_to_be(database: &Database, disaster: impl AsyncFnOnce(&str)) {
        let ledger = database.ledger().await.unwrap();
        note(&ledger, "before").await.unwrap();
        let lost = ledger.write().await.unwrap();
        lost.execute("INSERT INTO webhook_events (event, target) VALUES ('lost', 'x')", &[]).await.unwrap();
        let process = lost.query_one("SELECT pg_backend_pid()::text", &[]).await.unwrap();

        disaster(process.get(0)).await;
        for number in 0..20 {
            while note(&ledger, &format!("after {number}")).await.is_err() {
                // waits on purpose: the server begins again.
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
        }
        let ended = lost.end(Ok(())).await;

        let step = ledger.glance().await.unwrap();
        let is_there = step.exists("SELECT 1 FROM webhook_events WHERE event = 'lost'", &[]).await.unwrap();
        assert_eq!((ended.is_ok(), is_there), (false, false));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_commit_that_a_crash_took_is_not_taken_for_another_that_got_its_number() {
        let server = Server::durable().await.unwrap();
        let database = server.database().await.unwrap();

        is_lost_and_said_to_be(&database, async |_| {
            tokio::task::spawn_blocking(move || server.restart()).await.unwrap().unwrap();
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_commit_that_was_lost_with_one_process_of_the_server_is_not_taken_for_another() {
        let database = Server::durable().await.unwrap().database().await.unwrap();

        is_lost_and_said_to_be(&database, async |process| {
            assert!(std::process::Command::new("kill").args(["-9", process]).status().unwrap().success());
        })
        .await;
    }

    async fn of_one_connection() -> (Database, PostgresLedger) {
        let database = Server::shared().await.unwrap().database().await.unwrap();
        let options = Options { connections: 1, ..Options::new(environment(), database.url()) };
        let ledger = PostgresLedger::open(&options).await.unwrap();
        (database, ledger)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn whoever_asks_about_the_fate_of_a_commit_does_not_wait_for_the_place_of_its_own_connection() {
        let (database, ledger) = of_one_connection().await;
        let step = ledger.write().await.unwrap();
        step.execute("INSERT INTO webhook_events (event, target) VALUES ('a', 'x')", &[]).await.unwrap();
        database.cut().await.unwrap();

        let began = Instant::now();
        assert!(step.end(Ok(())).await.is_err());

        // It would have waited 3 s for a place, twenty times.
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        note(&ledger, "after").await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_step_of_somebody_who_was_stopped_in_the_middle_of_it_holds_nobody_up_for_long() {
        let database = Server::shared().await.unwrap().database().await.unwrap();
        let silent_max = Duration::from_millis(300);
        let options = Options { silent_max, ..Options::new(environment(), database.url()) };
        let stopped = PostgresLedger::open(&options).await.unwrap();
        let begun = stopped.write().await.unwrap();
        let lock = "SELECT pg_advisory_xact_lock(1)::text";
        begun.query_one(lock, &[]).await.unwrap();

        let other = database.ledger().await.unwrap().write().await.unwrap();
        other.query_one(lock, &[]).await.unwrap();

        assert!(begun.end(Ok(())).await.is_err(), "and whoever wakes up hears that it did not happen");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nobody_waits_behind_a_question_whose_asker_is_gone() {
        let (_database, ledger) = of_one_connection().await;
        let glance = ledger.glance().await.unwrap();
        let asked = glance.query_one("SELECT pg_sleep(25)::text", &[]);
        assert!(tokio::time::timeout(Duration::from_millis(300), asked).await.is_err());

        drop(glance);
        let began = Instant::now();
        note(&ledger, "after").await.unwrap();

        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn statements_that_are_asked_together_are_done_in_their_order() {
        let database = Server::shared().await.unwrap().database().await.unwrap();
        let ledger = database.ledger().await.unwrap();
        let step = ledger.write().await.unwrap();
        let count = "SELECT count(*) FROM webhook_events WHERE target = 'x'";
        // Known to the connection already, so it could be sent before the other, which is not.
        step.query_one(count, &[]).await.unwrap();

        let told = async {
            tokio::try_join!(
                biased;
                step.execute("INSERT INTO webhook_events (event, target) VALUES ('one', 'x')", &[]),
                step.query_one(count, &[]),
                step.execute("INSERT INTO webhook_events (event, target) VALUES ('two', 'x'), ('three', 'x')", &[]),
                step.query_one(count, &[]),
            )
        };
        let (one, first, two, second) = told.await.unwrap();

        let counts = (first.get::<_, i64>(0), second.get::<_, i64>(0));
        assert_eq!(((one, two), counts), ((1, 2), (1, 3)));
        let refused = async {
            tokio::try_join!(
                biased;
                step.execute("SELECT pg_sleep(0), 1 / (count(*) - 3) FROM webhook_events WHERE target = 'x'", &[]),
                step.query_one(count, &[]),
            )
        };
        let refused = refused.await.unwrap_err();
        assert!(
            format!("{refused:?}").contains("division by zero"),
            "the first failure is told: {refused:?}"
        );
        assert!(step.end(Ok(())).await.is_err(), "and nothing of it is committed");
    }
}
