//! Who may run next, and nothing else: the part of this crate that decides.
//!
//! It guarantees the order within a key, that finishing parts of one key never overlap, and that a lane nobody
//! needs is gone. It is plain synchronous code: it never polls a future and starts no task, so it can be tested
//! by hand, against a model, and under a scheduler that tries many interleavings
//! (`tests/lanes/interleavings.rs` compiles these very files with other locks).

pub(crate) mod lane;
mod roster;
pub(crate) mod shard;
pub(crate) mod sync;

#[cfg(test)]
mod model;
