//! What can happen to a task other than returning its value: refused, not done yet, failed.
//!
//! Guarantees that each case is one a caller can act on. A task's own errors are not here: they are values.

/// A task was not taken in; it did not run and never will.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The line of this key is as long as it may get. Trying again later may work.
    #[error("the lane of `{key}` is full: {depth_max} tasks are in line already")]
    Full {
        /// The key, as text.
        key: String,
        /// The setting that was reached.
        depth_max: usize,
    },
    /// The lanes are being drained and take nothing more. Trying again here will not work.
    #[error("the lane of `{key}` takes no more tasks: the lanes are being drained")]
    Draining {
        /// The key, as text.
        key: String,
    },
}

/// A task was taken in and ended without a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failed {
    /// The task panicked. Other tasks are not harmed.
    #[error("the task panicked: {message}")]
    Panicked {
        /// What the panic said.
        message: String,
    },
    /// The task was stopped before its end: the lanes were drained and time ran out, or the runtime shut down.
    #[error("the task was stopped before its end")]
    Stopped,
}

/// Why waiting for a task gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// Time is up; the task goes on, and the ticket can be waited for again.
    #[error("the task is not done yet; it goes on")]
    NotYet,
    /// There will be no value.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// An earlier wait on this ticket handed the outcome out already.
    #[error("the outcome of this task was handed out already")]
    Taken,
}

/// Why [`Lanes::run`](crate::Lanes::run) gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The task was not taken in.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The task was taken in, but its value did not come in time or will never come.
    #[error(transparent)]
    Wait(#[from] WaitError),
}
