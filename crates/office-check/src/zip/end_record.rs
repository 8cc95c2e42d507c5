//! Finds the end record, and through it the directory.
//!
//! Guarantees: looks at no more than the last 64 KiB + 22 bytes for it; a record counts only if a directory
//! is where it says. Of several the best is taken: first one that ends with the file, then one whose offsets
//! count from the start of the file, then the last. So neither a record inside a comment nor one inside a
//! stored package wins over the real one, and of two archives in a row the last one rules.
//! Does not do: read the directory.

use std::io::{Read, Seek};

use super::{
    directory,
    fault::{ZipFault, ZipFaultKind},
    little_endian::{u16_at, u32_at, u64_at},
    source::Source,
    zip64::{ELSEWHERE, Locator},
};

const SIGNATURE: &[u8] = b"PK\x05\x06";
const RECORD_BYTES: usize = 22;
/// The longest comment behind a record.
const TAIL_BYTES_MAX: usize = RECORD_BYTES + 0xFFFF;

const WIDE_SIGNATURE: &[u8] = b"PK\x06\x06";
const WIDE_RECORD_BYTES: usize = 56;
/// The size a wide record declares leaves out its first two fields.
const WIDE_UNCOUNTED_BYTES: u64 = 12;

/// Where the directory is.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndRecord {
    pub(super) entries: u64,
    pub(super) directory_at: u64,
    pub(super) directory_bytes: u64,
    /// What has to be added to the offsets of the directory.
    pub(super) shift_bytes: u64,
    /// Where the archive ends, if the file goes on.
    pub(super) trailing_at: Option<u64>,
}

/// How good a record is; the smallest is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_followed: bool,
    is_shifted: bool,
}

/// Searches backwards from `end`, which is the end of the file, or of what stands before an archive.
pub(super) fn find<R: Read + Seek>(source: &mut Source<R>, end: u64) -> Result<EndRecord, ZipFault> {
    let tail_bytes = usize::try_from(end).unwrap_or(usize::MAX).min(TAIL_BYTES_MAX);
    let tail_at = end - tail_bytes as u64;
    let mut tail = vec![0; tail_bytes];
    source.read_at(tail_at, &mut tail)?;

    let mut best: Option<(Rank, EndRecord)> = None;
    // With it: whether no record that ends with the file was at fault.
    let mut worst = (true, ZipFault::at(ZipFaultKind::NoEndRecord, end));
    for at in (0..tail_bytes.saturating_sub(RECORD_BYTES - 1)).rev() {
        let Some(record) = tail.get(at..).filter(|rest| rest.starts_with(SIGNATURE)) else { continue };
        let record_at = tail_at + at as u64;
        let ends_at = record_at + RECORD_BYTES as u64 + u64::from(u16_at(record, 20));
        if ends_at > end {
            // Its comment is cut off, unless a better record comes.
            if worst.1.kind == ZipFaultKind::NoEndRecord {
                worst.1 = ZipFault::at(ZipFaultKind::Truncated, end);
            }
            continue;
        }
        let is_followed = ends_at < end;
        match locate(source, record, record_at) {
            Ok(found) => {
                let found = EndRecord { trailing_at: is_followed.then_some(ends_at), ..found };
                let rank = Rank { is_followed, is_shifted: found.shift_bytes > 0 };
                if best.is_none_or(|(other, _)| rank < other) {
                    best = Some((rank, found));
                }
                if rank == (Rank { is_followed: false, is_shifted: false }) {
                    break;
                }
            }
            Err(fault) if matches!(fault.kind, ZipFaultKind::Unreadable(_)) => return Err(fault),
            // Bytes that look like a record and do not end with the file are most likely none: say so only
            // for one that does.
            Err(fault) if !is_followed && worst.0 => worst = (false, fault),
            Err(_) => {}
        }
    }
    let (is_only_alike, fault) = worst;
    // A damaged record at the very end is not made up for by an older one before it.
    best.filter(|(rank, _)| is_only_alike || !rank.is_followed).map(|(_, found)| found).ok_or(fault)
}

/// What the record says, if a directory is there.
fn locate<R: Read + Seek>(
    source: &mut Source<R>,
    record: &[u8],
    record_at: u64,
) -> Result<EndRecord, ZipFault> {
    let claim = Claim::read(source, record, record_at)?;
    let fault = |kind| Err(ZipFault::at(kind, record_at));
    let Some(adjacent_at) = claim.ends_at.checked_sub(claim.directory_bytes) else {
        return fault(ZipFaultKind::TruncatedDirectory);
    };
    let Some(shift_bytes) = adjacent_at.checked_sub(claim.directory_at) else {
        return fault(ZipFaultKind::TruncatedDirectory);
    };
    let found = EndRecord {
        entries: claim.entries,
        directory_at: adjacent_at,
        directory_bytes: claim.directory_bytes,
        shift_bytes,
        trailing_at: None,
    };
    if claim.directory_bytes == 0 && claim.entries == 0 {
        return Ok(found);
    }
    if directory::begins_at(source, adjacent_at)? {
        return Ok(found);
    }
    // Something may stand between the directory and its end record; then the offset is right as it is.
    if shift_bytes > 0 && directory::begins_at(source, claim.directory_at)? {
        return Ok(EndRecord { directory_at: claim.directory_at, shift_bytes: 0, ..found });
    }
    fault(ZipFaultKind::BadDirectory)
}

/// What an end record, and the wide one if there is one, claim.
struct Claim {
    entries: u64,
    directory_at: u64,
    directory_bytes: u64,
    /// Where the directory should end: where the first of the end records begins.
    ends_at: u64,
}

impl Claim {
    fn read<R: Read + Seek>(source: &mut Source<R>, record: &[u8], record_at: u64) -> Result<Self, ZipFault> {
        let [disk, directory_disk, entries_here, entries] = [4, 6, 8, 10].map(|at| u16_at(record, at));
        let [directory_bytes, directory_at] = [12, 16].map(|at| u32_at(record, at));
        let is_elsewhere = [disk, directory_disk, entries_here, entries].contains(&u16::MAX)
            || [directory_bytes, directory_at].contains(&ELSEWHERE);
        let wide = match find_wide(source, record_at) {
            // Bytes of a directory can look like a locator. They are one only if somebody needs it.
            Err(fault) if !matches!(fault.kind, ZipFaultKind::Unreadable(_)) && !is_elsewhere => None,
            answer => answer?,
        };
        let fault = |kind| Err(ZipFault::at(kind, record_at));
        let may_be_disk = |disk: u16| disk == 0 || (wide.is_some() && disk == u16::MAX);
        if !may_be_disk(disk) || !may_be_disk(directory_disk) {
            return fault(ZipFaultKind::MultiDisk);
        }
        if entries_here != entries {
            return fault(ZipFaultKind::EntryCountMismatch);
        }
        let narrow = Self {
            entries: u64::from(entries),
            directory_at: u64::from(directory_at),
            directory_bytes: u64::from(directory_bytes),
            ends_at: record_at,
        };
        let Some(wide) = wide else { return Ok(narrow) };
        if entries != u16::MAX && narrow.entries != wide.entries {
            return fault(ZipFaultKind::EntryCountMismatch);
        }
        let has_other_bytes = directory_bytes != ELSEWHERE && narrow.directory_bytes != wide.directory_bytes;
        let has_other_place = directory_at != ELSEWHERE && narrow.directory_at != wide.directory_at;
        if has_other_bytes || has_other_place {
            return fault(ZipFaultKind::BadDirectory);
        }
        Ok(wide)
    }
}

/// The wide end record, if a locator stands in front of the end record.
fn find_wide<R: Read + Seek>(source: &mut Source<R>, record_at: u64) -> Result<Option<Claim>, ZipFault> {
    let Some(locator_at) = record_at.checked_sub(Locator::BYTES as u64) else { return Ok(None) };
    let mut bytes = [0; Locator::BYTES];
    source.read_at(locator_at, &mut bytes)?;
    let Some(locator) = Locator::parse(&bytes) else { return Ok(None) };
    if !locator.is_one_disk {
        return Err(ZipFault::at(ZipFaultKind::MultiDisk, locator_at));
    }
    // With bytes before the archive it is not where it is said to be, but still in front of the locator.
    // Looking there first makes the last of two archives rule.
    let adjacent_at = locator_at.checked_sub(WIDE_RECORD_BYTES as u64);
    for at in adjacent_at.into_iter().chain([locator.record_at]) {
        if let Some(claim) = read_wide(source, at, locator_at)? {
            return Ok(Some(claim));
        }
    }
    Err(ZipFault::at(ZipFaultKind::BadDirectory, locator_at))
}

fn read_wide<R: Read + Seek>(
    source: &mut Source<R>,
    at: u64,
    locator_at: u64,
) -> Result<Option<Claim>, ZipFault> {
    if at.checked_add(WIDE_RECORD_BYTES as u64).is_none_or(|end| end > locator_at) {
        return Ok(None);
    }
    let mut bytes = [0; WIDE_RECORD_BYTES];
    source.read_at(at, &mut bytes)?;
    let ends_at = at.checked_add(WIDE_UNCOUNTED_BYTES).and_then(|at| at.checked_add(u64_at(&bytes, 4)));
    if !bytes.starts_with(WIDE_SIGNATURE) || ends_at != Some(locator_at) {
        return Ok(None);
    }
    if u32_at(&bytes, 16) != 0 || u32_at(&bytes, 20) != 0 {
        return Err(ZipFault::at(ZipFaultKind::MultiDisk, at));
    }
    if u64_at(&bytes, 24) != u64_at(&bytes, 32) {
        return Err(ZipFault::at(ZipFaultKind::EntryCountMismatch, at));
    }
    Ok(Some(Claim {
        entries: u64_at(&bytes, 32),
        directory_bytes: u64_at(&bytes, 40),
        directory_at: u64_at(&bytes, 48),
        ends_at: at,
    }))
}
