//! A small entry, inflated at once by libdeflate: nearly all entries are small, and it is the fastest there is.
//!
//! Guarantees: what it hands out has the declared size and checksum, and came of exactly the declared deflated
//! bytes; at most 1 MiB in and 4 MiB out, kept from entry to entry.
//! Does not do: say what is wrong. Whatever is not plainly right is read again the long way, which knows.

use std::io::{Read, Seek};

use libdeflater::Decompressor;

use super::{directory::Record, fault::ZipFault, source::Source};

const DEFLATED_BYTES_MAX: u64 = 1024 * 1024;
const SIZE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The shortest header a gzip member has: deflate, no name, no time.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// What inflating at once needs, kept from entry to entry.
pub(super) struct Whole {
    inflate: Decompressor,
    member: Vec<u8>,
    output: Vec<u8>,
}

impl Whole {
    pub(super) fn new() -> Self {
        Self { inflate: Decompressor::new(), member: Vec::new(), output: Vec::new() }
    }

    /// Whether an entry is small enough, by what is declared of it.
    pub(super) fn is_for(record: &Record) -> bool {
        record.deflated_bytes <= DEFLATED_BYTES_MAX && record.size_bytes <= SIZE_BYTES_MAX
    }

    /// The entry's bytes, and the source stands behind it; or nothing, and the source stands where it stood.
    ///
    /// The entry is dressed as a gzip member: then libdeflate itself compares size and checksum, and finds them only
    /// if the deflated bytes end where they should.
    pub(super) fn inflate<R: Read + Seek>(
        &mut self,
        source: &mut Source<R>,
        record: &Record,
    ) -> Result<Option<&[u8]>, ZipFault> {
        let began_at = source.position();
        self.member.clear();
        self.member.extend_from_slice(&GZIP_HEADER);
        let mut left_bytes = record.deflated_bytes;
        while left_bytes > 0 {
            let piece = source.peek(left_bytes)?;
            let count = piece.len();
            self.member.extend_from_slice(piece);
            source.consume(count);
            left_bytes = left_bytes.saturating_sub(count as u64);
        }
        let (Ok(size), Ok(size_in_footer)) =
            (usize::try_from(record.size_bytes), u32::try_from(record.size_bytes))
        else {
            source.goto(began_at);
            return Ok(None);
        };
        self.member.extend_from_slice(&record.crc.to_le_bytes());
        self.member.extend_from_slice(&size_in_footer.to_le_bytes());
        if self.output.len() < size {
            self.output.resize(size, 0);
        }
        let output = self.output.get_mut(..size).unwrap_or_default();
        match self.inflate.gzip_decompress(&self.member, output) {
            Ok(made) if made == size => Ok(Some(output)),
            _ => {
                source.goto(began_at);
                Ok(None)
            }
        }
    }
}
