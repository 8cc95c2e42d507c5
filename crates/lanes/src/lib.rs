#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod drain;
mod lanes;
mod outcome;
mod place;
mod settings;
mod snapshot;
mod state;
mod task;
mod ticket;

#[cfg(test)]
mod log_tests;

pub use drain::Drained;
pub use lanes::Lanes;
pub use outcome::{Failed, Refused, RunError, WaitError};
pub use settings::{InvalidSettings, Settings};
pub use snapshot::LaneSnapshot;
pub use ticket::Ticket;
