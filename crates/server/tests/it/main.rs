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
mod console_documents;
mod console_looks;
mod console_operations;
mod console_provider;
mod console_safety;
mod console_sign_in;
mod console_story;
mod console_strangers;
mod console_submissions;
mod content;
mod demo;
mod deployment;
mod draining;
mod embedding;
mod errors;
mod examples;
mod far_vault;
mod history;
mod hostile;
mod joining;
mod many_instances;
mod matrix;
mod mending;
mod metrics;
mod moving_ledger;
mod operating_many;
mod operations;
mod organisation_matrix;
mod preserving;
mod quotas;
mod recorded;
mod records;
mod recovering;
mod retention;
mod room;
mod saving;
mod scopes;
mod scopes_cli;
mod sequences;
mod sessions;
mod sharing;
mod submission_behaviours;
mod submission_matrix;
mod submitting;
mod support;
mod together;
mod traces;
mod webhooks;

// The save path once more, unchanged, on the far stores (`support::stores`).
#[path = "mending.rs"]
#[allow(clippy::duplicate_mod, reason = "the same tests on another store")]
mod mending_on_s3;
#[path = "mending.rs"]
#[allow(clippy::duplicate_mod, reason = "the same tests on another store")]
mod mending_on_sftp;
#[path = "recovering.rs"]
#[allow(clippy::duplicate_mod, reason = "the same tests on another store")]
mod recovering_on_s3;
#[path = "recovering.rs"]
#[allow(clippy::duplicate_mod, reason = "the same tests on another store")]
mod recovering_on_sftp;
#[path = "saving.rs"]
#[allow(clippy::duplicate_mod, reason = "the same tests on another store")]
mod saving_on_s3;
#[path = "saving.rs"]
#[allow(clippy::duplicate_mod, reason = "the same tests on another store")]
mod saving_on_sftp;
#[path = "sequences.rs"]
#[allow(clippy::duplicate_mod, reason = "the same tests on another store")]
mod sequences_on_s3;
#[path = "sequences.rs"]
#[allow(clippy::duplicate_mod, reason = "the same tests on another store")]
mod sequences_on_sftp;
