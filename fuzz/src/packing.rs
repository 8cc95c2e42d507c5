//! Packs parts into an archive, in the ways that writers do it.
//!
//! Guarantees: sizes and checksums are right. Does not do: archives of more than 65,535 entries.

use std::io::Write as _;

use crate::dice::Dice;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;
const FLAG_DESCRIPTOR: u16 = 8;

/// A part of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

/// How an archive is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Style {
    is_deflated: bool,
    has_descriptors: bool,
    is_zip64: bool,
    comment: Vec<u8>,
    behind: Vec<u8>,
}

impl Style {
    /// Mostly plain and stored, which is quick.
    pub(crate) fn by(dice: &mut Dice) -> Self {
        Self {
            is_deflated: dice.once_in(4),
            has_descriptors: dice.once_in(8),
            is_zip64: dice.once_in(16),
            comment: if dice.once_in(16) { vec![b'c'; dice.length(300)] } else { Vec::new() },
            behind: if dice.once_in(32) { vec![0; dice.length(300)] } else { Vec::new() },
        }
    }
}

/// Packs parts, in their order.
pub(crate) fn pack(parts: &[Part], style: &Style) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for part in parts {
        let body = body(part, style);
        let method = if style.is_deflated { DEFLATED } else { STORED };
        let flags = if style.has_descriptors { FLAG_DESCRIPTOR } else { 0 };
        let sums = sums(part, &body);
        let known = if style.has_descriptors { vec![0; sums.len()] } else { sums.clone() };
        let offset = length(&out).to_le_bytes();
        directory.extend([b"PK\x01\x02\x14\0", &header(flags, method, &sums, &part.name)[..]].concat());
        directory.extend([&[0; 10][..], &offset, &part.name].concat());
        out.extend([b"PK\x03\x04", &header(flags, method, &known, &part.name)[..], &part.name].concat());
        out.extend(body);
        if style.has_descriptors {
            out.extend([b"PK\x07\x08", &sums[..]].concat());
        }
    }
    let directory_at = length(&out);
    out.extend(&directory);
    out.extend(end(parts.len(), [directory_at, length(&directory)], style));
    out
}

fn body(part: &Part, style: &Style) -> Vec<u8> {
    if !style.is_deflated {
        return part.data.clone();
    }
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&part.data).and_then(|()| encoder.finish()).unwrap_or_default()
}

/// Checksum and sizes, as they stand in headers and descriptors.
fn sums(part: &Part, body: &[u8]) -> Vec<u8> {
    [crc32fast::hash(&part.data), length(body), length(&part.data)].map(u32::to_le_bytes).concat()
}

/// From the version needed to the length of the extra field.
fn header(flags: u16, method: u16, sums: &[u8], name: &[u8]) -> Vec<u8> {
    let name_bytes = u16::try_from(name.len()).unwrap_or(u16::MAX);
    let front = [20, flags, method, 0, 0x21].map(u16::to_le_bytes).concat();
    [&front[..], sums, &name_bytes.to_le_bytes(), &[0, 0]].concat()
}

fn end(parts: usize, [directory_at, directory_bytes]: [u32; 2], style: &Style) -> Vec<u8> {
    let mut out = Vec::new();
    let mut narrow = (u16::try_from(parts).unwrap_or(u16::MAX), directory_bytes, directory_at);
    if style.is_zip64 {
        let wide_at = u64::from(directory_at) + u64::from(directory_bytes);
        out.extend([b"PK\x06\x06", &44_u64.to_le_bytes()[..], &[45, 0, 45, 0], &[0; 8]].concat());
        let sums = [parts as u64, parts as u64, u64::from(directory_bytes), u64::from(directory_at)];
        out.extend(sums.map(u64::to_le_bytes).concat());
        out.extend([b"PK\x06\x07\0\0\0\0", &wide_at.to_le_bytes()[..], &[1, 0, 0, 0]].concat());
        narrow = (u16::MAX, u32::MAX, u32::MAX);
    }
    let comment_bytes = u16::try_from(style.comment.len()).unwrap_or_default();
    out.extend([b"PK\x05\x06\0\0\0\0", &[narrow.0, narrow.0].map(u16::to_le_bytes).concat()[..]].concat());
    out.extend([narrow.1, narrow.2].map(u32::to_le_bytes).concat());
    out.extend([&comment_bytes.to_le_bytes()[..], &style.comment, &style.behind].concat());
    out
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_in_any_style_is_whole() {
        let parts: Vec<Part> = [("a", "one"), ("b/c", "two and more"), ("d", "")]
            .map(|(name, data)| Part { name: name.into(), data: data.into() })
            .to_vec();
        let mut dice = Dice::of(3);

        for _ in 0..500 {
            let bytes = pack(&parts, &Style::by(&mut dice));
            let entries = office_check::fuzzing::entries(&bytes).unwrap();
            let read: Vec<Part> = entries.into_iter().map(|(name, data)| Part { name, data }).collect();
            assert_eq!(read, parts);
        }
    }
}
