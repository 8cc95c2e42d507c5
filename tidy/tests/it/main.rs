//! The rules, held against this repository and its deployment files.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod deployment;
mod repository;
