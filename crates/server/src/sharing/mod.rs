//! Sharing: links that open one document for whoever has them.
//!
//! A member makes a link ([`create`]) and revokes it ([`revoke`]). A guest comes with its token: [`visit`] finds the link, [`admit`]
//! checks the password, counts the use and gives the guest a name, the edge asks `opening` for a configuration, and [`seat`]
//! writes down which key the guest got, or takes it back if the link was revoked meanwhile.
//!
//! Guarantees: a token has 256 random bits and is kept as its hash; unknown, revoked and expired ones look alike and cost the
//! same one lookup; misses and wrong passwords are limited ([`Door`]), and nobody's misses keep a good token from working.
//! Revoking leaves it to `recovering` to ask the guests to leave; what they save is taken like every save.
//! Does not do: decide what a link allows (`model::sharing`), hand out keys.

mod door;
mod limits;
mod links;
mod passwords;
mod visits;

pub(crate) use door::Door;
pub(crate) use links::{Wish, create, link_of, revoke};
pub(crate) use visits::{Visited, admit, may_take_away, returning, seat, visit};

use ledger::LedgerError;

/// Why a link was not made, or does not open.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShareError {
    /// The wish cannot be meant.
    #[error("{0}")]
    Invalid(String),
    /// There is no such link, or it does not count any more.
    #[error("there is no such share link")]
    NotFound,
    /// Too many attempts.
    #[error("too many attempts; again in {seconds} s")]
    TooMany {
        /// When to try again.
        seconds: u32,
    },
    /// The password is missing or wrong.
    #[error("the password is missing or wrong")]
    Password,
    /// The link lets nobody take the bytes away.
    #[error("the link does not allow downloads")]
    NoDownload,
    /// Too many passwords are being checked.
    #[error("too many passwords are being checked")]
    Busy,
    /// The ledger failed.
    #[error("the ledger failed")]
    Ledger(#[from] LedgerError),
}
