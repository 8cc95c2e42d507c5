//! Recording: what is done with records once they are there. Reading them as they are or were, taking them away, and forgetting
//! what is personal in them.
//!
//! - [`history`]: the versions of one record, with what changed and the cell each value came from.
//! - [`searching`]: a page of records by what they say.
//! - [`exporting`]: all records of one or many registrations, page by page, as CSV, as a workbook or for whoever writes lines.
//! - [`standing`]: who handed in and who did not, across organisations.
//! - [`marking`]: the workbook somebody brought, with its problems marked.
//! - [`erasing`]: personal values go, history stays.
//!
//! Guarantees: nobody looks above the head of a scope; an export of many pages is of one moment of each scope; memory does not grow
//! with the number of records. Does not do: say who may, write records (`submitting`).

mod csv;
mod erasing;
mod exporting;
mod history;
mod marking;
mod piping;
mod searching;
mod standing;
mod workbook;

pub(crate) use csv::csv_line;
pub use erasing::{EraseError, Wish as EraseWish, erase};
pub use exporting::{Filter, Sheet, Walk, sheet_of};
pub use history::{PastVersion, history};
pub use marking::{MarkingError, marked};
pub(crate) use piping::stream_of;
pub(crate) use searching::search;
pub use standing::{Standing, Whose, overdue, standings};
pub use workbook::workbook;

/// Exports at once. Each holds a thread and a connection for as long as its reader takes.
pub const EXPORTS_MAX: usize = 8;
