//! What PostgreSQL says, in the words of the port.
//!
//! Guarantees: what may pass by itself is `Busy` (a lock not had in time, a deadlock, a statement that took too long, no free
//! connection); everything else that the engine refuses is `Unavailable`, with all it said.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::LedgerError;

pub(super) fn unavailable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> LedgerError {
    LedgerError::Unavailable { cause: cause.into() }
}

impl From<tokio_postgres::Error> for LedgerError {
    fn from(cause: tokio_postgres::Error) -> Self {
        let Some(code) = cause.code() else { return unavailable(cause) };
        let passes = [
            &SqlState::LOCK_NOT_AVAILABLE,
            &SqlState::T_R_DEADLOCK_DETECTED,
            &SqlState::T_R_SERIALIZATION_FAILURE,
            &SqlState::QUERY_CANCELED,
            &SqlState::TOO_MANY_CONNECTIONS,
        ];
        if passes.contains(&code) {
            tracing::debug!(code = code.code(), "the ledger was busy");
            return Self::Busy;
        }
        match Refused::of(&cause) {
            Some(refused) => unavailable(refused),
            None => unavailable(cause),
        }
    }
}

/// The driver's own text of a refusal is no more than `db error`.
#[derive(Debug, thiserror::Error)]
#[error("{message} ({code})")]
struct Refused {
    code: String,
    message: String,
}

impl Refused {
    fn of(cause: &tokio_postgres::Error) -> Option<Self> {
        let said = cause.as_db_error()?;
        Some(Self { code: said.code().code().to_owned(), message: said.message().to_owned() })
    }
}

/// Without a connection nothing was done.
pub(super) fn no_connection(cause: PoolError) -> LedgerError {
    match cause {
        PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => LedgerError::Busy,
        PoolError::Backend(cause) => cause.into(),
        other => unavailable(other),
    }
}
