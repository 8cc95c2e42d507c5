//! Why reading a part ends early.

use crate::{SinkError, Unreadable};

/// Why reading ended early.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The user's: the file is damaged.
    Broken(String),
    /// The user's: a code of the catalogue, with its detail.
    Refused(&'static str, String),
    /// A read failed: whose fault it is, the container knows.
    Read(std::io::Error),
    /// Ours.
    Ours(Unreadable),
}

impl Fault {
    pub(crate) fn broken(what: &str) -> Self {
        Self::Broken(what.to_owned())
    }
}

impl From<Unreadable> for Fault {
    fn from(cause: Unreadable) -> Self {
        Self::Ours(cause)
    }
}

impl From<SinkError> for Fault {
    fn from(cause: SinkError) -> Self {
        Self::Ours(Unreadable::Sink(cause))
    }
}
