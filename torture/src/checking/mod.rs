//! Holds what the service has against what the Document Server saw: after each kill what an answer 0 promised, at rest
//! everything.
//!
//! Guarantees: the truth is the understudy's journal, never the service's own word; a copy that was kept aside needs a
//! reason in the journal, else it counts as a fault; what clients were told about a document fits one order of everything
//! (`order`). Does not read the data folder while the service runs.

mod after_kill;
mod at_rest;
mod blobs;
mod facts;
mod history;
mod ledger;
mod order;
mod postgres;
mod stored;

pub(crate) use after_kill::check_after_kill;
pub(crate) use at_rest::check_at_rest;
pub(crate) use facts::{Facts, document_of, lines_about};
pub(crate) use history::{History, check_numbers, check_order};
pub(crate) use ledger::Ledger;
pub(crate) use stored::check_stored;
