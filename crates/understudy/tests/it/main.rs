//! Tests of the whole server against a host that records.
//!
//! Time is a clock moved by hand wherever the test decides about time, so nothing here waits for a while.

mod behaviour;
mod fidelity;
mod host;
mod stage;
