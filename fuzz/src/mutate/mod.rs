//! How one input becomes another, from bytes of any kind up to packages that are packed again.

pub(crate) mod bytes;
mod dictionary;
pub(crate) mod markup;
pub(crate) mod package;
