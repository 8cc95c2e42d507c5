//! The lock and the flag the state is kept under.
//!
//! They stand here by themselves so that a test can put `shuttle`'s in their place and run the same code through
//! many interleavings.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};
