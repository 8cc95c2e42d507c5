//! Pages, rendered here and embedded in the binary. They call the same flows as the API, or the API itself by their scripts.
//!
//! Guarantees: all output is escaped by the templates, and scripts only ever write text; configuration reaches scripts as data, never
//! as code; a strict content security policy allows our own scripts and the Document Server's, nothing inline; whoever sees a page has
//! passed the checks of the API ([`crate::http::Session`]); every change that comes with the cookie must come from our own pages.

mod assets;
mod cookies;
mod document;
mod documents;
mod editor;
mod guest;
mod new_document;
mod operations;
mod page;
mod pages;
mod provider;
mod registrations;
mod sign_in;
mod submissions;
mod texts;

pub(crate) use pages::{pages, with_policy};
