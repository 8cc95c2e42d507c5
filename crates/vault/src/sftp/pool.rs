//! Connections, so many and no more; who waits longest is next.
//!
//! Guarantees: never more than the limit in use; waiting ends with an error after its deadline; a connection that was idle is
//! asked whether it lives before it is relied on; work that lost its connection is done once more over a new one, told that it is
//! not the first attempt; work that was given up takes its connection with it, so nobody inherits open files.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::connection::Connection;
use super::dial::Dialer;
use super::failure::{Failure, Outcome};
use super::settings::Settings;
use crate::local::Flushing;

/// Idle for longer, a connection is asked before it is used.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// Idle for longer, it is not worth asking: firewalls forget.
const KEPT_FOR: Duration = Duration::from_secs(120);
/// How long it may take to say that it lives.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// Which attempt it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    /// Nobody knows how far the first one came, and some of it may still be about to happen.
    Again,
}

pub(crate) struct Pool {
    dialer: Dialer,
    flushing: Flushing,
    permits: Semaphore,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(dialer: Dialer, flushing: Flushing) -> Self {
        let permits = Semaphore::new(dialer.settings.connections_max);
        Self { dialer, flushing, permits, idle: Mutex::default() }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.dialer.settings
    }

    /// Does work over a connection; once more over a new one if the first was lost. The work must bear that.
    pub(crate) async fn run<T, W>(
        &self,
        work: impl Fn(Arc<Connection>, Attempt) -> W + Send + Sync,
    ) -> Outcome<T>
    where
        W: Future<Output = Outcome<T>> + Send,
    {
        let _permit = self.wait().await?;
        let connection = self.connection().await?;
        match self.attempt(connection, |connection| work(connection, Attempt::First)).await {
            Err(Failure::Lost { request, cause }) => {
                tracing::warn!(request, cause, "a connection to the SFTP server was lost; trying once more");
                let connection = self.dial().await?;
                self.attempt(connection, |connection| work(connection, Attempt::Again)).await
            }
            outcome => outcome,
        }
    }

    /// Only a connection whose work came to an end and left nothing open goes back.
    async fn attempt<T, W>(
        &self,
        connection: Connection,
        work: impl FnOnce(Arc<Connection>) -> W + Send,
    ) -> Outcome<T>
    where
        W: Future<Output = Outcome<T>> + Send,
    {
        let connection = Arc::new(connection);
        let outcome = work(Arc::clone(&connection)).await;
        if !matches!(outcome, Err(Failure::Lost { .. }))
            && let Some(connection) = Arc::into_inner(connection)
            && !connection.has_open_files()
        {
            let idle = Idle { connection, since: Instant::now() };
            // The newest is used first: what lies below it may not have been used for long.
            self.forget_idle(KEPT_FOR);
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(idle);
        }
        outcome
    }

    async fn wait(&self) -> Outcome<SemaphorePermit<'_>> {
        let limit = self.settings().timeouts.wait;
        match timeout(limit, self.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(closed)) => Err(Failure::Ours(io::Error::other(closed))),
            Err(_) => Err(Failure::Ours(io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "all {} connections to the SFTP server were in use for {} s",
                    self.settings().connections_max,
                    limit.as_secs()
                ),
            ))),
        }
    }

    /// One that is idle and lives, or a new one.
    async fn connection(&self) -> Outcome<Connection> {
        loop {
            let newest = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(Idle { connection, since }) = newest else { return self.dial().await };
            let idle_for = since.elapsed();
            if connection.is_closed() || idle_for > KEPT_FOR {
                continue;
            }
            if idle_for < TRUSTED_FOR || is_alive(&connection).await {
                return Ok(connection);
            }
            // Those that were idle for longer are no better, and each would take its time to say so.
            self.forget_idle(idle_for);
        }
    }

    /// Lets go of connections that have been idle for longer.
    fn forget_idle(&self, idle_for: Duration) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|each| each.since.elapsed() < idle_for);
    }

    async fn dial(&self) -> Outcome<Connection> {
        let connection = self.dialer.dial().await.map_err(Failure::Ours)?;
        Ok(connection.with_flushing(self.flushing))
    }
}

async fn is_alive(connection: &Connection) -> bool {
    matches!(timeout(CHECK_TIMEOUT, connection.check()).await, Ok(Ok(())))
}
