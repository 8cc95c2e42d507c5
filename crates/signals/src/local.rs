//! Signals within one process.

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::{Listener, Signal, Signals};

/// A listener that is this far behind has missed something and looks for itself.
const BACKLOG: usize = 1024;

/// Signals for a single instance.
#[derive(Debug)]
pub struct LocalSignals {
    sender: broadcast::Sender<Signal>,
}

impl Default for LocalSignals {
    fn default() -> Self {
        Self { sender: broadcast::channel(BACKLOG).0 }
    }
}

#[async_trait]
impl Signals for LocalSignals {
    async fn announce(&self, signal: Signal) {
        // Nobody listening is fine.
        let _ = self.sender.send(signal);
    }

    fn listen(&self) -> Box<dyn Listener> {
        Box::new(LocalListener { receiver: self.sender.subscribe() })
    }
}

struct LocalListener {
    receiver: broadcast::Receiver<Signal>,
}

#[async_trait]
impl Listener for LocalListener {
    async fn next(&mut self) -> Option<Signal> {
        match self.receiver.recv().await {
            Ok(signal) => Some(signal),
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            // The service is ending; whoever still waits has a deadline of its own.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
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
