//! Turns: who does a piece of work that only one should do at a time, in this process or on any instance.
//!
//! Guarantees: while a turn is held, nobody else is given the same one, as far as the engine can tell; it ends when it is
//! dropped, and with the process, however that ends. One whose holder says nothing for [`SILENT_MAX`] may be given to another.
//! Does not do: decide anything. A turn saves work and keeps order where order is nice to have; every step of the ledger is
//! right without it, for a holder that was silent for too long may wake up and go on.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::Result;

/// Nobody waits longer than this for a holder of whom nothing is heard.
pub const SILENT_MAX: Duration = Duration::from_secs(5);

/// Gives turns.
#[async_trait]
pub trait Turns: Send + Sync {
    /// Takes the turn at a piece of work; `None` while somebody else has it. Never waits for them.
    async fn take(&self, work: &str) -> Result<Option<Turn>>;
}

/// A turn; dropping it ends it.
#[must_use = "a turn ends when it is dropped"]
pub struct Turn {
    end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Turn {
    /// A turn that ends so.
    pub(crate) fn ending(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { end: Some(Box::new(end)) }
    }
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Turn")
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

/// Turns of one process.
#[derive(Debug, Clone, Default)]
pub struct LocalTurns {
    taken: Arc<Mutex<HashSet<String>>>,
}

impl LocalTurns {
    /// Whether it was free and is taken now.
    pub(crate) fn note(&self, work: &str) -> bool {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(work.to_owned())
    }

    pub(crate) fn forget(&self, work: &str) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(work);
    }
}

#[async_trait]
impl Turns for LocalTurns {
    async fn take(&self, work: &str) -> Result<Option<Turn>> {
        if !self.note(work) {
            return Ok(None);
        }
        let (turns, work) = (self.clone(), work.to_owned());
        Ok(Some(Turn::ending(move || turns.forget(&work))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_turn_is_given_once_and_again_when_it_ended() {
        let turns = LocalTurns::default();
        let first = turns.take("publish 1").await.unwrap();
        assert!(first.is_some());
        assert!(turns.take("publish 1").await.unwrap().is_none());
        assert!(turns.take("publish 2").await.unwrap().is_some(), "other work");

        drop(first);

        assert!(turns.take("publish 1").await.unwrap().is_some());
    }
}
