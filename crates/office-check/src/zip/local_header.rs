//! The header in front of an entry's bytes.
//!
//! Guarantees: whatever changes how the bytes are read, and the name, is as in the directory.
//! Does not do: compare what changes nothing (version, time, extra fields, how hard the writer tried to
//! compress, the character set of the name). Whether a descriptor follows is taken from here: writers that
//! differ mean this one.

use std::io::{Read, Seek};

use super::{
    directory::Record,
    fault::{HeaderField, ZipFault, ZipFaultKind},
    little_endian::{u16_at, u32_at},
    name::NameHasher,
    source::Source,
    zip64,
};

const SIGNATURE: &[u8] = b"PK\x03\x04";
pub(super) const FIXED_BYTES: usize = 30;

/// Encrypted, strongly encrypted, headers masked.
pub(super) const FLAGS_ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
/// The bytes are a patch for some other file.
pub(super) const FLAG_PATCH: u16 = 1 << 5;
const FLAG_DESCRIPTOR: u16 = 1 << 3;

/// What follows the entry's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    /// Nothing: the header has sizes and checksum.
    Nothing,
    /// A descriptor with sizes and checksum, which the header has as well.
    DescriptorOrNothing,
    /// A descriptor with sizes and checksum.
    Descriptor,
}

/// Whether a local header begins there.
pub(super) fn begins_at<R: Read + Seek>(source: &mut Source<R>, offset: u64) -> Result<bool, ZipFault> {
    source.has_at(offset, SIGNATURE)
}

/// Reads the header where the source stands and compares it with the directory. The source then stands at the
/// data.
pub(super) fn check<R: Read + Seek>(
    source: &mut Source<R>,
    record: &Record,
    hasher: &NameHasher,
) -> Result<Behind, ZipFault> {
    let fault = |kind| ZipFault::at(kind, record.offset);
    let disagrees = |field| Err(fault(ZipFaultKind::LocalHeaderDisagrees(field)));
    let header = source.take(FIXED_BYTES)?.first_chunk::<FIXED_BYTES>().copied();
    let Some(header) = header.filter(|header| header.starts_with(SIGNATURE)) else {
        return Err(fault(ZipFaultKind::BadLocalHeader));
    };
    let [flags, method, name_bytes, extra_bytes] = [6, 8, 26, 28].map(|at| u16_at(&header, at));
    if method != record.method {
        return disagrees(HeaderField::Method);
    }
    if (flags ^ record.flags) & (FLAGS_ENCRYPTED | FLAG_PATCH) != 0 {
        return disagrees(HeaderField::Flags);
    }
    if name_bytes != record.name_bytes
        || hasher.of_bytes(source.take(usize::from(name_bytes))?) != record.name_hash
    {
        return disagrees(HeaderField::Name);
    }
    let extra = source.take(usize::from(extra_bytes))?;
    let wide = zip64::widen([u32_at(&header, 22), u32_at(&header, 18), 0], extra);
    let has_sizes = wide.is_ok_and(|wide| {
        (wide.size_bytes, wide.deflated_bytes) == (record.size_bytes, record.deflated_bytes)
    });
    let has_checksum = u32_at(&header, 14) == record.crc;
    match (flags & FLAG_DESCRIPTOR != 0, has_sizes, has_checksum) {
        (true, true, true) => Ok(Behind::DescriptorOrNothing),
        (true, _, _) => Ok(Behind::Descriptor),
        (false, false, _) => disagrees(HeaderField::Sizes),
        (false, true, false) => disagrees(HeaderField::Checksum),
        (false, true, true) => Ok(Behind::Nothing),
    }
}
