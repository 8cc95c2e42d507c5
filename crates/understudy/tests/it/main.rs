//! Tests of the whole server against a host that records.
//!
//! Time is a clock moved by hand wherever the test decides about time, so nothing here waits for a while.

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
mod revival;
mod sockets;
mod sources;
mod stage;
mod tokens;
