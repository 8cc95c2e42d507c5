//! Our own auditor of ZIP archives: finds the directory, checks it, and hands out the inflated bytes of each
//! entry.
//!
//! The steps, and what holds after each:
//! 1. [`end_record`] finds the end record (zip64 too): the directory's place and its number of entries are
//!    known.
//! 2. [`directory`] reads the directory once: every entry is a [`Record`](directory::Record) of 56 bytes.
//! 3. [`layout`] compares the records with each other: none overlap, all lie before the directory.
//! 4. [`Archive::read`] goes through one entry: its local header agrees, its bytes inflate to the declared
//!    size and checksum, its descriptor agrees.
//!
//! Guarantees: no panic on any input; no recursion; memory is 56 + 4 bytes per entry and at most 5.3 MiB
//! besides; a cut file is a fault, and so is an entry that does not inflate to what was written. (Deflate has
//! bits that say nothing, and two ways to say the same: such a change harms nobody and is not seen.) Entries
//! read in the order of [`Archive::entry`] are one forward pass. What can be read in spite of it (bytes
//! before or behind, a name twice, an unsafe name) is a notice, and the caller decides what it means.
//! Does not do: decrypt, inflate anything but deflate, look at timestamps, attributes (but for symbolic
//! links), comments or extra fields (but for zip64), know what an Office package is.

mod archive;
mod descriptor;
mod directory;
mod end_record;
mod fault;
mod layout;
mod limits;
mod little_endian;
mod local_header;
mod name;
mod source;
mod unpack;
mod whole;
mod zip64;

#[cfg(test)]
mod tests;

#[allow(unused_imports, reason = "the module's face; a caller may get by without naming some of these")]
pub(crate) use self::{
    archive::{Archive, Entry, Inflated},
    fault::{HeaderField, ZipFault, ZipFaultKind},
    limits::{Budget, ZipLimits},
};
