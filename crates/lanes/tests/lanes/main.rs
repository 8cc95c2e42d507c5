//! What lanes promise, one group of scenarios per file.
//!
//! No scenario sleeps: time is paused and moves only when everybody waits, or tasks wait for signals. The five
//! scenarios of the document this crate answers say so in their comments.

#![allow(clippy::unwrap_used, reason = "a scenario that cannot go on has failed")]

mod draining;
mod failing;
mod idle;
mod in_order;
mod interleavings;
mod mixed;
mod parallel;
mod random;
mod stage;
mod timing_out;
