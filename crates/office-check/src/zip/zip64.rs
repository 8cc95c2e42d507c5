//! The extra field that holds sizes and offsets too large for 32 bits.
//!
//! Guarantees: extra fields of any other kind, and padding that is none, are passed over.
//! Does not do: insist on the field. Without it 0xFFFF_FFFF stands for itself, and reading finds out that it
//! lies.

use super::{
    fault::ZipFaultKind,
    little_endian::{u16_at, u32_at, u64_at},
};

/// Stands in a 32-bit field whose value is in the extra field.
pub(super) const ELSEWHERE: u32 = u32::MAX;

const KIND_ZIP64: u16 = 1;

/// Sizes and offset of an entry, from the 32-bit fields and, where those say so, from the extra field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wide {
    pub(super) size_bytes: u64,
    pub(super) deflated_bytes: u64,
    pub(super) offset: u64,
}

/// Reads `narrow`, the 32-bit inflated size, deflated size and offset, in the order of the extra field. A
/// local header has no offset and passes zero.
pub(super) fn widen(narrow: [u32; 3], extra: &[u8]) -> Result<Wide, ZipFaultKind> {
    let needed = narrow.iter().filter(|value| **value == ELSEWHERE).count();
    let mut wide = narrow.map(u64::from);
    if let Some(field) = find(extra).filter(|_| needed > 0) {
        let given = field.len() / 8;
        let mut turn = 0;
        for (position, value) in wide.iter_mut().enumerate() {
            if *value != u64::from(ELSEWHERE) {
                continue;
            }
            // The rule is to give only what is needed. Some writers give all, and then each has its fixed
            // place.
            let place = if given == needed || position >= given { turn } else { position };
            if place >= given {
                return Err(ZipFaultKind::BadDirectory);
            }
            *value = u64_at(field, place * 8);
            turn += 1;
        }
    }
    let [size_bytes, deflated_bytes, offset] = wide;
    Ok(Wide { size_bytes, deflated_bytes, offset })
}

fn find(mut extra: &[u8]) -> Option<&[u8]> {
    while extra.len() >= 4 {
        let kind = u16_at(extra, 0);
        let (field, rest) = extra.get(4..)?.split_at_checked(usize::from(u16_at(extra, 2)))?;
        if kind == KIND_ZIP64 {
            return Some(field);
        }
        extra = rest;
    }
    None
}

/// The locator in front of the end record: where the zip64 end record is said to be.
pub(super) struct Locator {
    pub(super) record_at: u64,
    pub(super) is_one_disk: bool,
}

impl Locator {
    pub(super) const BYTES: usize = 20;
    const SIGNATURE: &[u8] = b"PK\x06\x07";

    pub(super) fn parse(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        // The number of disks is one; some writers say none.
        let is_one_disk = u32_at(bytes, 4) == 0 && u32_at(bytes, 16) <= 1;
        bytes.starts_with(Self::SIGNATURE).then(|| Self { record_at: u64_at(bytes, 8), is_one_disk })
    }
}
