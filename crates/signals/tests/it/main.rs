//! Signals against real Redis servers, which each test starts for itself.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod contract;
mod failures;
mod places;
mod server;
mod shown;
