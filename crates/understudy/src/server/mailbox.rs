//! Where messages to clients go: out through a socket, or into the memory of an in-process session.
//!
//! Guarantees: never blocks the server; a client that does not read its messages is cut off when its box is full.
//!
//! Does not interpret messages, except that an in-process session obeys `drop` unless told otherwise, as the real
//! editor does.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{mpsc, watch};

/// Messages a client may leave unread.
pub(crate) const UNREAD_MAX: usize = 4096;

/// What goes out.
#[derive(Debug)]
pub(crate) enum Mail {
    Message(Value),
    /// The server closes the connection.
    Close,
}

/// One client's box.
#[derive(Clone, Debug)]
pub(crate) enum Mailbox {
    Socket(mpsc::Sender<Mail>),
    Local(Arc<LocalBox>),
}

/// What the server must do about a message it delivered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    None,
    /// The client takes the drop as its word to close.
    Close,
    /// The client does not keep up.
    CutOff,
}

impl Mailbox {
    pub(crate) fn deliver(&self, mail: Mail) -> Reaction {
        match self {
            Mailbox::Socket(out) => match out.try_send(mail) {
                Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Reaction::None,
                Err(mpsc::error::TrySendError::Full(_)) => Reaction::CutOff,
            },
            Mailbox::Local(local) => local.deliver(mail),
        }
    }
}

/// Messages of an in-process session, kept for whoever asks.
#[derive(Debug)]
pub(crate) struct LocalBox {
    letters: Mutex<Letters>,
    count: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Letters {
    kept: VecDeque<(u64, Value)>,
    next: u64,
    closed: bool,
    disobedient: bool,
}

impl LocalBox {
    pub(crate) fn new() -> LocalBox {
        LocalBox { letters: Mutex::default(), count: watch::Sender::new(0) }
    }

    pub(crate) fn disobey(&self) {
        self.letters().disobedient = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.letters().closed
    }

    /// The number the next message will have.
    pub(crate) fn next(&self) -> u64 {
        self.letters().next
    }

    pub(crate) fn messages(&self) -> Vec<Value> {
        self.letters().kept.iter().map(|(_, message)| message.clone()).collect()
    }

    /// Waits for a message from a number on of which `wanted` makes something; `None` if the connection ended.
    pub(crate) async fn wait_for<T>(
        &self,
        from: u64,
        mut wanted: impl FnMut(&Value) -> Option<T>,
    ) -> Option<T> {
        let mut count = self.count.subscribe();
        loop {
            let (found, closed) = {
                let letters = self.letters();
                let later = letters.kept.iter().filter(|(number, _)| *number >= from);
                (later.map(|(_, message)| message).find_map(&mut wanted), letters.closed)
            };
            if found.is_some() || closed {
                return found;
            }
            count.changed().await.ok()?;
        }
    }

    fn deliver(&self, mail: Mail) -> Reaction {
        let reaction = {
            let mut letters = self.letters();
            match mail {
                Mail::Close => {
                    letters.closed = true;
                    Reaction::None
                }
                Mail::Message(message) => {
                    let dropped = message.get("type").and_then(Value::as_str) == Some("drop");
                    let number = letters.next;
                    letters.next += 1;
                    letters.kept.push_back((number, message));
                    if letters.kept.len() > UNREAD_MAX {
                        letters.kept.pop_front();
                    }
                    if dropped && !letters.disobedient { Reaction::Close } else { Reaction::None }
                }
            }
        };
        self.count.send_modify(|count| *count += 1);
        reaction
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
