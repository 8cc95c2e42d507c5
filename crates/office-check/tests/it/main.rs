//! The check from outside, over the files in `corpus/` and over attacks made here.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests stop at the first surprise"
)]

mod corpus;
mod damage;
mod hostile;
mod verdicts;
