//! Saveguard: the safe place ONLYOFFICE saves to.
//!
//! Edges (`http`, `console`, `cli`) call flows; flows ([`opening`], [`saving`], [`changing`], [`pruning`], `sharing`, `registering`, [`recovering`]) call ports and the rules
//! of `model`; flows never call each other, one starts another by writing unfinished work into the ledger or by a
//! signal. Only [`app`] names an adapter. ARCHITECTURE.md has the map and a walk through a save.

pub mod announcing;
pub mod app;
mod arrived;
pub mod auditing;
mod awake;
mod callers;
pub mod changing;
pub mod cli;
pub mod clock;
pub mod comparing;
pub mod config;
mod console;
pub mod counting;
mod delivering;
pub mod draining;
pub mod editors;
pub mod examining;
pub mod forgotten_files;
pub mod http;
pub mod incoming;
pub mod instances;
mod metered;
pub mod opening;
mod patience;
pub mod preserving;
mod progress;
pub mod pruning;
mod pulse;
pub mod read_backs;
pub mod recording;
pub mod recovering;
mod registering;
pub mod room;
pub mod saving;
pub mod service;
mod sharing;
mod starting;
pub mod submitting;
pub mod telemetry;
#[cfg(test)]
mod testing;
mod traces;
mod transitions;
pub mod verifying;
mod wanted;
pub mod watching;
