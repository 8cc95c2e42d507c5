//! ONLYOFFICE Document Server (and Euro-Office): tokens, callbacks, commands, downloads, editor configurations.

mod callback;
mod client;
mod configuration;
mod link;
mod tokens;

#[cfg(test)]
mod tests;

pub use callback::{CallbackRefused, read_callback};
pub use client::OnlyOffice;
pub use configuration::{EditorConfiguration, Opened, document_type};
pub use tokens::{TokenRefused, Tokens};
