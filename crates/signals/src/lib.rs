//! Signals: hints from one part of the service to another, and later from one instance to another.
//!
//! Guarantees: none that data may rest on. A signal may be lost, late or repeated; whoever waits for one also looks by
//! itself after a while, so that losing every signal costs time and nothing else.
//! Does not do: locks that decide anything. The ledger decides.

pub mod local;

use async_trait::async_trait;
use model::{DocumentId, EditorKey};

/// Something others may want to hear of at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// A save of this document was committed, kept aside or given up.
    Settled(DocumentId),
    /// Somebody came into this document or left it.
    Presence(DocumentId),
    /// Somebody waits to open a document whose live key is finished: its forgotten file should be collected, and the
    /// key retired, now rather than with the next round.
    FinishWanted(EditorKey),
    /// A share link was revoked: its guests should be asked to leave now rather than with the next round.
    GuestsLeave,
    /// The Document Server answered a question (`info`) that carried this nonce.
    Answered {
        /// The nonce.
        nonce: String,
        /// The status it sent: 1 or 4.
        status: u8,
    },
}

/// Hints.
#[async_trait]
pub trait Signals: Send + Sync {
    /// Tells everybody who listens.
    async fn announce(&self, signal: Signal);
    /// Listens from now on.
    fn listen(&self) -> Box<dyn Listener>;
}

/// Hears signals announced after it began to listen.
#[async_trait]
pub trait Listener: Send {
    /// The next signal; `None` if some may have been missed, so that the listener looks for itself.
    async fn next(&mut self) -> Option<Signal>;
}
