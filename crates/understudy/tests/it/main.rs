//! Tests of the whole server against a host that records.
//!
//! Time is a clock moved by hand wherever the test decides about time, so nothing here waits for a while.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say so and stop")]

mod answers;
mod crashes;
mod dropping;
mod faults;
mod fidelity;
mod forcing;
mod host;
mod info;
mod keys;
mod links;
mod loading;
mod processes;
mod races;
mod revival;
mod sockets;
mod sources;
mod stage;
mod tokens;
