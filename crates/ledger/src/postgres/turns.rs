//! Turns between instances: advisory locks of one connection that each instance keeps for them.
//!
//! The locks go with the connection, and the connection with the process: who is killed holds nothing. The connection says
//! something every second. If somebody else wants a turn whose holder said nothing for [`SILENT_MAX`] (stopped, cut off), that
//! holder's connection is ended by the server, and the turn is free. All times are the server's own.
//!
//! Guarantees: the port's. Does not do: wait for a turn.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use deadpool_postgres::{ClientWrapper, Object, Pool};
use model::Digest;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::errors::unavailable;
use super::pool::APPLICATION;
use super::{Options, pool};
use crate::turns::{LocalTurns, SILENT_MAX, Turn, Turns};
use crate::{LedgerError, Result};

/// How often a holder is heard of.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long the server may take to answer about a turn.
const ASK_WITHIN: Duration = Duration::from_secs(3);

/// Ends the connections of holders that said nothing for a while, whatever turns they hold.
const END_SILENT: &str = "
    SELECT pg_terminate_backend(pid) FROM (
        SELECT DISTINCT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND l.objsubid = 1 AND a.application_name = $1
        AND a.state = 'idle' AND a.state_change < clock_timestamp() - make_interval(secs => $2)) AS silent";
/// How often one instance looks for them: a look at all locks costs more than the question for one.
const LOOK_FOR_SILENT: Duration = Duration::from_millis(500);

/// Turns between instances.
pub struct PostgresTurns {
    holder: Arc<Holder>,
    heartbeat: JoinHandle<()>,
}

/// The connection that holds our turns, and what they are.
struct Holder {
    pool: Pool,
    /// The locks of one connection can be taken by it more than once: this keeps us from doing so.
    here: LocalTurns,
    connection: Mutex<Option<Arc<ClientWrapper>>>,
    looked_for_silent: std::sync::Mutex<Option<Instant>>,
}

impl PostgresTurns {
    /// Begins to say something now and then. Call it inside a runtime.
    pub fn open(options: &Options) -> Result<Self> {
        let pool = pool::open(&Options { connections: 1, ..options.clone() })?;
        let holder = Holder {
            pool,
            here: LocalTurns::default(),
            connection: Mutex::new(None),
            looked_for_silent: std::sync::Mutex::default(),
        };
        let holder = Arc::new(holder);
        let heartbeat = tokio::spawn(be_heard(Arc::clone(&holder)));
        Ok(Self { holder, heartbeat })
    }
}

impl Holder {
    /// The connection that holds our turns, made if there is none.
    async fn connection(&self) -> Result<Arc<ClientWrapper>> {
        let mut held = self.connection.lock().await;
        match &*held {
            Some(connection) if !connection.is_closed() => Ok(Arc::clone(connection)),
            _ => {
                let made = pool::connection(&self.pool).await?;
                // The server notices in time that this machine is gone.
                made.batch_execute(
                    "SET tcp_keepalives_idle = 2; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3",
                )
                .await?;
                // Not the pool's any more: an old one may be waited for by turns that it no longer holds.
                let made = Arc::new(Object::take(made));
                *held = Some(Arc::clone(&made));
                Ok(made)
            }
        }
    }

    async fn lock(&self, number: i64) -> Result<Option<Arc<ClientWrapper>>> {
        let connection = self.connection().await?;
        if try_lock(&connection, number).await? {
            return Ok(Some(connection));
        }
        if !self.is_look_due() {
            return Ok(None);
        }
        let silent_max = SILENT_MAX.as_secs_f64();
        let ended = connection.query(END_SILENT, &[&APPLICATION, &silent_max]).await?;
        if ended.is_empty() {
            return Ok(None);
        }
        tracing::warn!("an instance that said nothing for a while lost its turns");
        Ok(try_lock(&connection, number).await?.then_some(connection))
    }

    /// Whether it is time to look for holders that fell silent; whoever hears yes does it.
    fn is_look_due(&self) -> bool {
        let mut looked = self.looked_for_silent.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = looked.is_none_or(|looked| looked.elapsed() >= LOOK_FOR_SILENT);
        if is_due {
            *looked = Some(Instant::now());
        }
        is_due
    }

    /// Asks for a turn that is noted as ours here.
    async fn take(self: Arc<Self>, work: String) -> Result<Option<Turn>> {
        let number = number_of(&work);
        match self.lock(number).await {
            Ok(Some(connection)) => {
                let here = self.here.clone();
                Ok(Some(Turn::ending(move || end(here, work, (connection, number)))))
            }
            other => {
                self.here.forget(&work);
                other.map(|_| None)
            }
        }
    }
}

impl Drop for PostgresTurns {
    fn drop(&mut self) {
        self.heartbeat.abort();
    }
}

#[async_trait]
impl Turns for PostgresTurns {
    async fn take(&self, work: &str) -> Result<Option<Turn>> {
        if !self.holder.here.note(work) {
            return Ok(None);
        }
        // A task of its own: should whoever asks go away, or not wait any longer, a turn that is given all the same is dropped
        // with the task, and so given back.
        let asking = tokio::spawn(Arc::clone(&self.holder).take(work.to_owned()));
        match tokio::time::timeout(ASK_WITHIN, asking).await {
            Ok(asked) => asked.map_err(unavailable)?,
            Err(_) => Err(LedgerError::Busy),
        }
    }
}

async fn try_lock(connection: &ClientWrapper, number: i64) -> Result<bool> {
    let statement = connection.prepare_cached("SELECT pg_try_advisory_lock($1)").await?;
    Ok(connection.query_one(&statement, &[&number]).await?.try_get(0)?)
}

/// Gives a turn back. A connection that is gone took it along.
fn end(here: LocalTurns, work: String, (connection, number): (Arc<ClientWrapper>, i64)) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return here.forget(&work) };
    drop(runtime.spawn(async move {
        let unlock = format!("SELECT pg_advisory_unlock({number})");
        let _ = tokio::time::timeout(ASK_WITHIN, connection.batch_execute(&unlock)).await;
        here.forget(&work);
    }));
}

/// Says something every second, so that others know that the holder lives.
async fn be_heard(holder: Arc<Holder>) {
    loop {
        let held = holder.connection.lock().await.clone();
        if let Some(held) = held
            && !matches!(tokio::time::timeout(ASK_WITHIN, held.batch_execute("SELECT 1")).await, Ok(Ok(())))
        {
            tracing::warn!("the connection that holds our turns is gone; they are taken anew");
            let mut now = holder.connection.lock().await;
            // Another may have been made meanwhile, and it must be heard of.
            if now.as_ref().is_some_and(|now| Arc::ptr_eq(now, &held)) {
                *now = None;
            }
        }
        // waits on purpose: this is a heartbeat
        tokio::time::sleep(HEARTBEAT).await;
    }
}

/// Two kinds of work with one number would only wait for each other.
fn number_of(work: &str) -> i64 {
    let digest = Digest::of(work.as_bytes()).to_string();
    let head = digest.get(..16).and_then(|head| u64::from_str_radix(head, 16).ok());
    head.map_or(0, u64::cast_signed)
}

/// For a test: lets the holder fall silent without ending its connection.
impl PostgresTurns {
    /// Says nothing any more, as a stopped process does.
    #[doc(hidden)]
    pub fn fall_silent(&self) {
        self.heartbeat.abort();
    }

    /// Whether turns can be asked for.
    pub async fn probe(&self) -> Result<()> {
        let connection = self.holder.connection().await?;
        connection.batch_execute("SELECT 1").await.map_err(unavailable)
    }
}
