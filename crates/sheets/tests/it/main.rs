//! Everything that is tested from outside of the crate.

mod behaviours;
mod book;
mod hostile;
mod properties;
mod writing;
