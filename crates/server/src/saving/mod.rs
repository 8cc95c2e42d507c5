//! A save: from a callback of the Document Server to a committed version.
//!
//! The steps, each safe to repeat, and what holds if the process ends after it:
//!
//! | step | where | if it ends here |
//! |---|---|---|
//! | verify the token | `http/callbacks.rs` | nothing happened; the server repeats |
//! | write it down | [`accept`] → `ledger.receive` | recovery finds the open row |
//! | fetch, check, store | [`save`] `prepare` | the blob is durable or it is not; recovery fetches again |
//! | commit | [`save`] `commit` → `ledger.commit_save` | version, head, audit and answer are there together |
//! | answer | `http/callbacks.rs` | the server repeats and gets the recorded answer |
//! | publish, wake, notify | [`save`] `announce` | the ledger still owes the publication |
//!
//! Callbacks of one document are written down in the order they arrive ([`App::arrivals`]); their files are fetched,
//! checked and stored side by side, and only their commits happen in order ([`App::saves`]). A repeat joins the work
//! that runs ([`jobs`]) or gets the recorded answer. The handler never does any of this in its own future: a caller
//! who hangs up changes nothing.
//!
//! [`App::arrivals`]: crate::app::App::arrivals
//! [`App::saves`]: crate::app::App::saves

mod accept;
mod claims;
mod entries;
mod fetch;
mod jobs;
mod letting_go;
mod presence;
mod record;
mod save;

#[cfg(test)]
mod tests;

pub use accept::{Reply, accept, names_a_document};
pub(crate) use accept::{Start, start};
pub(crate) use claims::{Claim, Claiming, LEFT_ALONE, claim};
pub use entries::Entries;
pub use jobs::Jobs;
pub(crate) use save::plan_of;

/// Why a save could not be finished now. All of these pass: the row stays open, the server is told to try again.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The result could not be fetched.
    #[error("could not fetch the saved file")]
    Fetch(#[source] crate::editors::FetchError),
    /// The bytes could not be stored.
    #[error("could not store the saved file")]
    Store(#[source] crate::incoming::StoreError),
    /// The commit did not happen, or it is not known whether it did.
    #[error("could not commit the save")]
    Ledger(#[from] ledger::LedgerError),
    /// The bytes could not be checked.
    #[error("could not check the saved file")]
    Check(#[from] crate::incoming::CheckError),
    /// The lane is full or draining.
    #[error("could not take the save's turn")]
    Lane(#[from] lanes::Refused),
    /// There is too little room on the disk to fetch it.
    #[error("there is too little room on the disk")]
    NoRoom,
    /// An earlier final save of the session is still being stored; this one waits for it.
    #[error("an earlier save of the session is still being stored")]
    Overtaking,
    /// A part of the work panicked or was stopped.
    #[error("the work on the save was interrupted")]
    Interrupted,
}
