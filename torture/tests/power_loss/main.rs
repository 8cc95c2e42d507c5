//! The power-loss disk keeps what was fsynced, loses everything else, and notices what it cannot see.
//!
//! Each test has a folder of its own and kills a real process in it. Seeds are in the failure message.
#![allow(clippy::unwrap_used, clippy::panic, reason = "all of this is test, also what is not marked as one")]
mod calls;
mod instants;
mod model;
mod promises;
mod stage;
mod storms;
mod torn;
