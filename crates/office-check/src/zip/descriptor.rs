//! Sizes and checksum behind an entry whose writer did not know them before.
//!
//! Guarantees: all four forms that exist are known: with and without a signature, with sizes of 32 and of 64
//! bits.
//! Does not do: take anything from it. The directory rules; a descriptor only has to agree.

use std::io::{Read, Seek};

use super::{
    directory::Record,
    fault::{ZipFault, ZipFaultKind},
    source::Source,
};

const SIGNATURE: &[u8] = b"PK\x07\x08";
/// Signature, checksum and two sizes of 64 bits.
const BYTES_MAX: u64 = 4 + 4 + 8 + 8;

/// Moves behind the descriptor where the source stands, if it agrees and ends before `room_ends_at`. A form
/// with a signature is tried first, and the longer before the shorter: a short form never is the beginning of
/// a long one of the same sizes, but for sizes of zero.
pub(super) fn pass<R: Read + Seek>(
    source: &mut Source<R>,
    record: &Record,
    room_ends_at: u64,
) -> Result<bool, ZipFault> {
    let at = source.position();
    let room_bytes = room_ends_at.saturating_sub(at).min(BYTES_MAX);
    let bytes = source.take(usize::try_from(room_bytes).unwrap_or_default())?;
    let passed =
        forms(record).into_iter().flatten().find(|form| bytes.starts_with(form)).map(|form| form.len());
    source.goto(at.saturating_add(passed.unwrap_or_default() as u64));
    Ok(passed.is_some())
}

/// A descriptor must be there.
pub(super) fn missing(record: &Record) -> ZipFault {
    ZipFault::at(ZipFaultKind::BadDescriptor, record.offset)
}

fn forms(record: &Record) -> [Option<Vec<u8>>; 4] {
    let crc = record.crc.to_le_bytes();
    let long = [record.deflated_bytes, record.size_bytes].map(u64::to_le_bytes).concat();
    let short = match [record.deflated_bytes, record.size_bytes].map(u32::try_from) {
        [Ok(deflated), Ok(size)] => Some([deflated, size].map(u32::to_le_bytes).concat()),
        _ => None,
    };
    let signed = |sizes: &[u8]| [SIGNATURE, &crc, sizes].concat();
    let plain = |sizes: &[u8]| [&crc, sizes].concat();
    [Some(signed(&long)), short.as_deref().map(signed), Some(plain(&long)), short.as_deref().map(plain)]
}
