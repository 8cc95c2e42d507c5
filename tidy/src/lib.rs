//! Rules about the source text, run as a test: what neither the compiler nor clippy can see.
//!
//! Each module is one rule or a family of them; each rule returns sentences, one per violation, so that all are seen at
//! once. The rules themselves are tested on bad examples.

pub mod directions;
pub mod documents;
pub mod manifests;
pub mod migrations;
pub mod sources;
mod tree;

pub use tree::{Source, Tree};
