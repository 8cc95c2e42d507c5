//! The whole server over HTTP, with the understudy as its Document Server. One binary.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests stop at the first surprise and read the real clock"
)]

mod access;
mod audit;
mod callers;
mod changing;
mod cli;
mod company_cli;
mod comparing;
mod content;
mod demo;
mod history;
mod hostile;
mod matrix;
mod operations;
mod quotas;
mod recorded;
mod recovering;
mod retention;
mod saving;
mod support;
