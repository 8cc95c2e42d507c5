//! Pages, rendered here and embedded in the binary. They call the same flows as the API.
//!
//! Guarantees: all output is escaped by the templates; configuration reaches scripts as data, never as code; a strict
//! content security policy allows our own scripts and the Document Server's, nothing inline.

mod guest;
mod pages;
mod sign_in;

pub(crate) use pages::{pages, with_policy};
