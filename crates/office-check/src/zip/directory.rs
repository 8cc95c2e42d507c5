//! Reads the central directory, once and forwards.
//!
//! Guarantees: 56 bytes are kept of each entry, and no name; the directory has exactly the entries and the
//! bytes that the end record says.
//! Does not do: compare entries with each other ([`layout`](super::layout)) or look at their local headers.

use std::io::{Read, Seek};

use super::{
    end_record::EndRecord,
    fault::{ZipFault, ZipFaultKind},
    limits::ZipLimits,
    little_endian::{u16_at, u32_at},
    name::{self, NameHasher},
    source::Source,
    zip64,
};

const SIGNATURE: &[u8] = b"PK\x01\x02";
const RECORD_BYTES: usize = 46;
/// A signature of the directory, which old tools write behind its records.
const SIGNED_SIGNATURE: &[u8] = b"PK\x05\x05";

/// Systems whose upper half of the attributes is a Unix mode: Unix and macOS.
const UNIX_HOSTS: [u8; 2] = [3, 19];
const UNIX_TYPE_MASK: u32 = 0o170_000;
const UNIX_TYPE_LINK: u32 = 0o120_000;

/// What is kept of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    /// Where its local header is in the file, whatever stands before the archive.
    pub(super) offset: u64,
    pub(super) deflated_bytes: u64,
    pub(super) size_bytes: u64,
    /// Equal for names that are one part to Office.
    pub(super) part_hash: u64,
    pub(super) name_at: u64,
    pub(super) crc: u32,
    /// Equal for equal bytes of names.
    pub(super) name_hash: u32,
    pub(super) name_bytes: u16,
    pub(super) method: u16,
    pub(super) flags: u16,
    pub(super) trait_bits: u8,
}

impl Record {
    pub(super) const FOLDER: u8 = 1;
    pub(super) const UNSAFE: u8 = 2;
    pub(super) const DUPLICATE: u8 = 4;
    pub(super) const SIMILAR: u8 = 8;

    pub(super) fn has(&self, trait_bit: u8) -> bool {
        self.trait_bits & trait_bit != 0
    }
}

/// Whether a directory begins there.
pub(super) fn begins_at<R: Read + Seek>(source: &mut Source<R>, offset: u64) -> Result<bool, ZipFault> {
    source.has_at(offset, SIGNATURE)
}

/// Reads all records, in the order of the directory.
pub(super) fn read<R: Read + Seek>(
    source: &mut Source<R>,
    end: &EndRecord,
    limits: &ZipLimits,
    hasher: &NameHasher,
) -> Result<Vec<Record>, ZipFault> {
    // Before the limit: a number that cannot be true is damage, and no matter of limits.
    if end.entries > end.directory_bytes / RECORD_BYTES as u64 {
        return Err(ZipFault::at(ZipFaultKind::EntryCountMismatch, end.directory_at));
    }
    let entries = match usize::try_from(end.entries) {
        Ok(entries) if entries <= limits.entries_max => entries,
        _ => return Err(ZipFault::at(ZipFaultKind::TooManyEntries, end.directory_at)),
    };
    let mut reading = Reading { source, end, limits, hasher, left_bytes: end.directory_bytes };
    reading.source.goto(end.directory_at);
    let mut records = Vec::new();
    records.reserve_exact(entries);
    for _ in 0..entries {
        records.push(reading.next()?);
    }
    reading.finish()?;
    Ok(records)
}

struct Reading<'a, R> {
    source: &'a mut Source<R>,
    end: &'a EndRecord,
    limits: &'a ZipLimits,
    hasher: &'a NameHasher,
    left_bytes: u64,
}

impl<R: Read + Seek> Reading<'_, R> {
    fn next(&mut self) -> Result<Record, ZipFault> {
        let at = self.source.position();
        let fault = |kind| ZipFault::at(kind, at);
        if self.left_bytes == 0 {
            return Err(fault(ZipFaultKind::EntryCountMismatch));
        }
        self.spend(RECORD_BYTES as u64)?;
        let Some(header) = self.source.take(RECORD_BYTES)?.first_chunk::<RECORD_BYTES>().copied() else {
            return Err(fault(ZipFaultKind::TruncatedDirectory));
        };
        if !header.starts_with(SIGNATURE) {
            return Err(fault(ZipFaultKind::BadDirectory));
        }
        let [name_bytes, extra_bytes, comment_bytes, disk] = [28, 30, 32, 34].map(|at| u16_at(&header, at));
        self.spend(u64::from(name_bytes) + u64::from(extra_bytes) + u64::from(comment_bytes))?;
        if usize::from(name_bytes) > self.limits.name_bytes_max {
            return Err(fault(ZipFaultKind::NameTooLong));
        }
        if disk != 0 && disk != u16::MAX {
            return Err(fault(ZipFaultKind::MultiDisk));
        }
        let name_at = self.source.position();
        let name = self.source.take(usize::from(name_bytes))?;
        let (part_hash, name_hash) = (self.hasher.of_part(name), self.hasher.of_bytes(name));
        let trait_bits = trait_bits(name, &header);
        let extra = self.source.take(usize::from(extra_bytes))?;
        let wide = zip64::widen([24, 20, 42].map(|at| u32_at(&header, at)), extra).map_err(fault)?;
        self.source.skip(u64::from(comment_bytes));
        Ok(Record {
            offset: wide.offset.checked_add(self.end.shift_bytes).ok_or(fault(ZipFaultKind::BadDirectory))?,
            deflated_bytes: wide.deflated_bytes,
            size_bytes: wide.size_bytes,
            part_hash,
            name_at,
            crc: u32_at(&header, 16),
            name_hash,
            name_bytes,
            method: u16_at(&header, 10),
            flags: u16_at(&header, 8),
            trait_bits,
        })
    }

    fn spend(&mut self, bytes: u64) -> Result<(), ZipFault> {
        let cut = ZipFault::at(ZipFaultKind::TruncatedDirectory, self.source.position());
        self.left_bytes = self.left_bytes.checked_sub(bytes).ok_or(cut)?;
        Ok(())
    }

    /// Nothing may be left but the signature of the directory.
    fn finish(&mut self) -> Result<(), ZipFault> {
        let at = self.source.position();
        if self.left_bytes == 0 {
            return Ok(());
        }
        self.spend(6)?;
        let start = self.source.take(6)?;
        if start.starts_with(SIGNATURE) {
            return Err(ZipFault::at(ZipFaultKind::EntryCountMismatch, at));
        }
        if start.starts_with(SIGNED_SIGNATURE) && u64::from(u16_at(start, 4)) == self.left_bytes {
            return Ok(());
        }
        Err(ZipFault::at(ZipFaultKind::BadDirectory, at))
    }
}

fn trait_bits(name: &[u8], header: &[u8; RECORD_BYTES]) -> u8 {
    let [_, _, _, _, _, host, ..] = *header;
    let unix_mode = u32_at(header, 38) >> 16;
    let is_link = UNIX_HOSTS.contains(&host) && unix_mode & UNIX_TYPE_MASK == UNIX_TYPE_LINK;
    let mut bits = 0;
    if name::is_folder(name) {
        bits |= Record::FOLDER;
    }
    if is_link || name::is_unsafe(name) {
        bits |= Record::UNSAFE;
    }
    bits
}
