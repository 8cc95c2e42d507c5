//! The right to hear how a task ended.
//!
//! Guarantees: waiting is always bounded; giving up waiting, or dropping the ticket, never stops the task.
//! Does not start or stop anything.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, timeout};

use crate::outcome::{Failed, WaitError};

/// Stands for one submitted task.
///
/// A wait that ends with [`WaitError::NotYet`], or whose future is dropped, leaves the ticket usable.
#[derive(Debug)]
#[must_use = "the task runs anyway, but nobody will hear how it ended"]
pub struct Ticket<T> {
    task: Option<JoinHandle<Option<T>>>,
    wait: Duration,
}

impl<T> Ticket<T> {
    /// For a task whose outcome is `None` when it was stopped.
    pub(crate) fn new(task: JoinHandle<Option<T>>, wait: Duration) -> Self {
        Self { task: Some(task), wait }
    }

    /// Waits for the task's value, as long as [`Settings::wait`](crate::Settings::wait) says.
    pub async fn wait(&mut self) -> Result<T, WaitError> {
        self.wait_for(self.wait).await
    }

    /// Waits for the task's value for at most this long.
    pub async fn wait_for(&mut self, duration: Duration) -> Result<T, WaitError> {
        let task = self.task.as_mut().ok_or(WaitError::Taken)?;
        let joined = match finished_soon(task).await {
            Some(joined) => joined,
            None => timeout(duration, task).await.map_err(|_| WaitError::NotYet)?,
        };
        self.task = None;
        match joined {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(Failed::Stopped.into()),
            Err(error) => Err(failure_of(error).into()),
        }
    }

    /// Waits for the task's value until this instant. A value that is there already is always handed out.
    pub async fn wait_until(&mut self, deadline: Instant) -> Result<T, WaitError> {
        self.wait_for(deadline.saturating_duration_since(Instant::now())).await
    }
}

/// Lets everything else that is ready run once before it gives up. Setting a timer costs as much as a small task,
/// and most tasks need none.
async fn finished_soon<T>(task: &mut JoinHandle<T>) -> Option<Result<T, JoinError>> {
    let mut has_yielded = false;
    poll_fn(|context| {
        if let Poll::Ready(joined) = Pin::new(&mut *task).poll(context) {
            return Poll::Ready(Some(joined));
        }
        if has_yielded {
            return Poll::Ready(None);
        }
        has_yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

fn failure_of(error: JoinError) -> Failed {
    // The one other reason is that the runtime shut down.
    let Ok(panic) = error.try_into_panic() else { return Failed::Stopped };
    let message = match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => other.downcast_ref::<&str>().map_or("no message", |text| text).to_owned(),
    };
    Failed::Panicked { message }
}
