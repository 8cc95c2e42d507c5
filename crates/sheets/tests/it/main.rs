//! Everything that is tested from outside of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

mod behaviours;
mod book;
mod hostile;
mod properties;
mod writing;
