//! Where tests may interfere: named steps that can end the process, and port calls that can fail.
//!
//! * [`reached`] marks an instant between two effects ("the blob is durable, the row is not"). The torture harness
//!   kills the process there, at a chosen hit. Without the feature `torture` it is an empty function.
//! * [`clock_offset_ms`] is by how much the torture harness has stepped the clock of this process: nothing in any other build.
//! * [`Faults`] counts the calls through a port and says which one fails: before it did anything, or after it did
//!   everything (the outcome is then unknown to the caller, as after a lost reply). After a *crash* every later call
//!   fails too, until the test builds a new process on the same stores.
//!
//! Guarantees: nothing here changes behaviour unless a test asked for it.

mod faults;

pub use faults::{Aftermath, Fault, Faults, Moment};

#[cfg(feature = "torture")]
mod hook;

#[cfg(feature = "torture")]
pub use hook::{Plan, install};

/// An instant between two effects.
#[cfg(feature = "torture")]
#[inline]
pub fn reached(step: &'static str) {
    hook::reached(step);
}

/// By how much the clock is wrong.
#[cfg(feature = "torture")]
pub fn clock_offset_ms() -> i64 {
    hook::clock_offset_ms()
}

/// By how much the clock is wrong: not at all in this build.
#[cfg(not(feature = "torture"))]
#[inline(always)]
pub const fn clock_offset_ms() -> i64 {
    0
}

/// An instant between two effects. Does nothing in this build.
#[cfg(not(feature = "torture"))]
#[inline(always)]
pub const fn reached(_step: &'static str) {}
