//! Signals within one process.
//!
//! Guarantees: who listens here hears at once. Does not do: reach other instances.

use std::time::Duration;

use async_trait::async_trait;
use model::DocumentId;
use tokio::sync::broadcast;

use crate::counters::Counters;
use crate::leases::Leases;
use crate::{Lease, Listener, Signal, Signals};

/// A listener that is this far behind has missed something and looks for itself.
const BACKLOG: usize = 1024;

/// What listeners are told.
#[derive(Debug, Clone)]
enum Told {
    /// Announced by this instance.
    Here(Signal),
    /// Announced by another one.
    Elsewhere(Signal),
    /// Some of another one may have been missed.
    Missed,
}

/// Signals for a single instance.
#[derive(Debug)]
pub struct LocalSignals {
    sender: broadcast::Sender<Told>,
    leases: Leases,
    counters: Counters,
}

impl LocalSignals {
    /// Tells everybody who listens here, and waits for nobody.
    pub(crate) fn tell(&self, signal: Signal) {
        // Nobody listening is fine.
        let _ = self.sender.send(Told::Here(signal));
    }

    /// The same for what another instance announced.
    pub(crate) fn tell_of_elsewhere(&self, signal: Signal) {
        let _ = self.sender.send(Told::Elsewhere(signal));
    }

    /// Lets those who listen to other instances look for themselves.
    pub(crate) fn tell_missed(&self) {
        let _ = self.sender.send(Told::Missed);
    }

    fn listener(&self, reach: Reach) -> Box<dyn Listener> {
        Box::new(LocalListener { receiver: self.sender.subscribe(), reach })
    }

    pub(crate) fn count_here(&self, what: &str, window: Duration) -> u64 {
        self.counters.count(what, window)
    }

    pub(crate) fn uncount_here(&self, what: &str) {
        self.counters.uncount(what);
    }
}

impl Default for LocalSignals {
    fn default() -> Self {
        Self {
            sender: broadcast::channel(BACKLOG).0,
            leases: Leases::default(),
            counters: Counters::default(),
        }
    }
}

#[async_trait]
impl Signals for LocalSignals {
    async fn announce(&self, signal: Signal) {
        self.tell(signal);
    }

    fn listen(&self) -> Box<dyn Listener> {
        self.listener(Reach::Everywhere)
    }

    fn listen_here(&self) -> Box<dyn Listener> {
        self.listener(Reach::Here)
    }

    async fn show_users(&self, _document: &DocumentId, _users: &[String]) {
        // There is nobody outside of this process to show them to.
    }

    async fn take_lease(&self, document: &DocumentId, holder: &str) -> Lease {
        self.leases.take(document, holder)
    }

    async fn renew_lease(&self, document: &DocumentId, holder: &str) -> Lease {
        self.leases.renew(document, holder)
    }

    async fn release_lease(&self, document: &DocumentId, holder: &str) {
        self.leases.release(document, holder);
    }

    async fn count(&self, what: &str, window: Duration) -> u64 {
        self.count_here(what, window)
    }

    async fn uncount(&self, what: &str) {
        self.uncount_here(what);
    }
}

/// Whose signals a listener hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Here,
    Everywhere,
}

struct LocalListener {
    receiver: broadcast::Receiver<Told>,
    reach: Reach,
}

#[async_trait]
impl Listener for LocalListener {
    async fn next(&mut self) -> Option<Signal> {
        loop {
            match self.receiver.recv().await {
                Ok(Told::Here(signal)) => return Some(signal),
                Ok(_) if self.reach == Reach::Here => {}
                Ok(Told::Elsewhere(signal)) => return Some(signal),
                Ok(Told::Missed) | Err(broadcast::error::RecvError::Lagged(_)) => return None,
                // The service is ending; whoever still waits has a deadline of its own.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DocumentId;

    fn settled(id: &str) -> Signal {
        Signal::Settled(DocumentId::parse(id).unwrap())
    }

    #[tokio::test]
    async fn listeners_hear_what_is_announced_after_they_began() {
        let signals = LocalSignals::default();
        signals.announce(settled("before")).await;
        let mut listener = signals.listen();

        signals.announce(settled("after")).await;

        assert_eq!(listener.next().await, Some(settled("after")));
    }

    #[tokio::test]
    async fn who_listens_here_hears_nothing_of_elsewhere() {
        let signals = LocalSignals::default();
        let (mut here, mut everywhere) = (signals.listen_here(), signals.listen());

        signals.tell_of_elsewhere(settled("theirs"));
        signals.tell_missed();
        signals.announce(settled("ours")).await;

        assert_eq!(here.next().await, Some(settled("ours")));
        assert_eq!(everywhere.next().await, Some(settled("theirs")));
        assert_eq!(everywhere.next().await, None, "missed");
        assert_eq!(everywhere.next().await, Some(settled("ours")));
    }

    #[tokio::test]
    async fn a_listener_that_fell_behind_is_told_so() {
        let signals = LocalSignals::default();
        let mut listener = signals.listen();
        for number in 0..=BACKLOG {
            signals.announce(settled(&number.to_string())).await;
        }

        assert_eq!(listener.next().await, None);
        assert!(listener.next().await.is_some());
    }
}
