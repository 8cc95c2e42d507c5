//! The whole server over HTTP, with the understudy as its Document Server. One binary.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests stop at the first surprise and read the real clock"
)]

mod access;
mod audit;
mod changing;
mod cli;
mod comparing;
mod content;
mod demo;
mod hostile;
mod operations;
mod recorded;
mod recovering;
mod saving;
mod support;
