//! Signals: hints from one part of the service to another, and from one instance to another.
//!
//! Guarantees: none that data may rest on. A signal may be lost, late or repeated; whoever waits for one also looks by
//! itself after a while, so that losing every signal costs time and nothing else. Leases and counts save work; they may
//! be wrong. No method waits longer than a moment, whatever the engine does.
//! Does not do: locks that decide anything. The ledger decides.

mod counters;
mod leases;
pub mod local;
pub mod redis;

use std::time::Duration;

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

/// Whose turn a document's transition is, as far as anybody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// Ours, for [`LEASE_LIFE`].
    Ours,
    /// Somebody else's: the work is probably being done.
    Elsewhere,
    /// Nobody could say. Go on as if there were no leases.
    Unknown,
}

/// A lease that nobody renews ends after this time.
pub const LEASE_LIFE: Duration = Duration::from_secs(120);

/// Hints.
#[async_trait]
pub trait Signals: Send + Sync {
    /// Tells everybody who listens, here at once and elsewhere soon.
    async fn announce(&self, signal: Signal);
    /// Listens from now on.
    fn listen(&self) -> Box<dyn Listener>;
    /// Listens from now on to what is announced by this instance alone, for work that each instance does for itself.
    fn listen_here(&self) -> Box<dyn Listener>;
    /// Shows operators and other programs who is in a document. Nothing of ours reads it.
    async fn show_users(&self, document: &DocumentId, users: &[String]);
    /// Asks for the turn at a document's transition (its key is retired, its next one issued), for this holder.
    async fn take_lease(&self, document: &DocumentId, holder: &str) -> Lease;
    /// Keeps a lease for another [`LEASE_LIFE`], if it is still this holder's.
    async fn renew_lease(&self, document: &DocumentId, holder: &str) -> Lease;
    /// Gives a lease back, if it is still this holder's.
    async fn release_lease(&self, document: &DocumentId, holder: &str);
    /// Counts one more of these, and says how many there were within the window that began with the first, on all
    /// instances that can be asked and at least on this one.
    async fn count(&self, what: &str, window: Duration) -> u64;
    /// Takes one back that was counted and should not have been.
    async fn uncount(&self, what: &str);
}

/// Hears signals announced after it began to listen.
#[async_trait]
pub trait Listener: Send {
    /// The next signal; `None` if some may have been missed, so that the listener looks for itself.
    async fn next(&mut self) -> Option<Signal>;
}
