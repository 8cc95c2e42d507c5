//! Compares the entries of a directory with each other.
//!
//! Guarantees: records are sorted by their place in the file, do not overlap as far as the directory tells
//! (local headers tell the rest when an entry is read), and all lie before the directory.
//! Does not do: read entries.

use std::io::{Read, Seek};

use super::{
    directory::Record,
    end_record::{self, EndRecord},
    fault::{ZipFault, ZipFaultKind},
    local_header,
    source::Source,
};

/// So many archives may stand in a row. One more than somebody appended by mistake is plenty.
const ARCHIVES_IN_A_ROW_MAX: usize = 4;

/// Sorts by place and checks that nobody's bytes are another's. Answers with the record at fault, to be
/// named.
pub(super) fn arrange(records: &mut [Record], end: &EndRecord) -> Result<(), (Record, ZipFaultKind)> {
    records.sort_unstable_by_key(|record| (record.offset, record.name_at));
    let mut following = records.iter().skip(1);
    for record in records.iter() {
        let next_at = following.next().map(|next| next.offset);
        if record.offset >= end.directory_at {
            return Err((*record, ZipFaultKind::BadDirectory));
        }
        let ends_at = least_end(record).ok_or((*record, ZipFaultKind::SizeMismatch))?;
        // One that would reach into the directory has not the size it says; one that reaches into another,
        // either.
        if ends_at > end.directory_at {
            return Err((*record, ZipFaultKind::SizeMismatch));
        }
        if next_at.is_some_and(|next_at| ends_at > next_at) {
            return Err((*record, ZipFaultKind::OverlappingEntries));
        }
    }
    Ok(())
}

/// Where the entry ends at the earliest. Name and extra fields of its local header are not known yet.
fn least_end(record: &Record) -> Option<u64> {
    record.offset.checked_add(local_header::FIXED_BYTES as u64)?.checked_add(record.deflated_bytes)
}

/// The places of the records in the order of their names' hashes: names that are one to Office stand
/// together, and among those the ones of equal bytes.
pub(super) fn by_part(records: &[Record]) -> Vec<u32> {
    let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_unstable_by_key(|at| {
        record_at(records, *at).map(|record| (record.part_hash, record.name_hash, *at))
    });
    order
}

/// Marks each record whose name an earlier one in the file has already. Hashes differ from run to run; the
/// marks do not.
pub(super) fn mark_alike(records: &mut [Record], by_part: &[u32]) {
    let mut rest = by_part;
    while let Some(first) = rest.first() {
        let hash = record_at(records, *first).map(|record| record.part_hash);
        let is_alike = |at: &&u32| record_at(records, **at).map(|record| record.part_hash) == hash;
        let count = rest.iter().take_while(is_alike).count().max(1);
        let (alike, others) = rest.split_at_checked(count).unwrap_or_default();
        mark(records, alike);
        rest = others;
    }
}

fn mark(records: &mut [Record], alike: &[u32]) {
    let first = alike.iter().min();
    let mut previous_hash = None;
    for at in alike {
        let Some(record) = usize::try_from(*at).ok().and_then(|at| records.get_mut(at)) else { continue };
        let is_again = previous_hash.replace(record.name_hash) == Some(record.name_hash);
        record.trait_bits |= match is_again {
            // Folders are named for their own sake; twice the same says nothing.
            _ if record.has(Record::FOLDER) => 0,
            true => Record::DUPLICATE,
            false if first == Some(at) => 0,
            false => Record::SIMILAR,
        };
    }
}

/// The record at a place.
pub(super) fn record_at(records: &[Record], at: u32) -> Option<&Record> {
    records.get(usize::try_from(at).ok()?)
}

/// Where the first entry is, if something stands before it. A beginning that is itself a part of an archive
/// is a fault: then the end we found belongs to a package that was stored inside one whose own end is
/// missing.
pub(super) fn prepended<R: Read + Seek>(
    source: &mut Source<R>,
    records: &[Record],
    end: &EndRecord,
) -> Result<Option<u64>, ZipFault> {
    let starts_at = records.first().map_or(end.directory_at, |record| record.offset);
    if starts_at == 0 {
        return Ok(None);
    }
    if end.shift_bytes > 0 && local_header::begins_at(source, 0)? && !is_archives(source, end.shift_bytes)? {
        return Err(ZipFault::at(ZipFaultKind::Truncated, source.file_bytes()));
    }
    Ok(Some(starts_at))
}

/// Where the archive ends, if something stands behind it. The beginning of another archive, whose end is
/// missing, is a fault: its end would have ruled.
pub(super) fn trailing<R: Read + Seek>(
    source: &mut Source<R>,
    end: &EndRecord,
) -> Result<Option<u64>, ZipFault> {
    match end.trailing_at {
        Some(at) if local_header::begins_at(source, at)? => {
            Err(ZipFault::at(ZipFaultKind::Truncated, source.file_bytes()))
        }
        trailing_at => Ok(trailing_at),
    }
}

/// Whether the file up to there is nothing but whole archives.
fn is_archives<R: Read + Seek>(source: &mut Source<R>, mut end: u64) -> Result<bool, ZipFault> {
    for _ in 1..ARCHIVES_IN_A_ROW_MAX {
        match end_record::find(source, end) {
            Ok(found) if found.trailing_at.is_some() => return Ok(false),
            Ok(found) if found.shift_bytes == 0 => return Ok(true),
            Ok(found) => end = found.shift_bytes,
            Err(fault) if matches!(fault.kind, ZipFaultKind::Unreadable(_)) => return Err(fault),
            Err(_) => return Ok(false),
        }
    }
    Ok(false)
}
