//! Characters: which are allowed where, and how to run over them quickly.
//!
//! Guarantees: what was skipped is valid UTF-8 made of characters that XML 1.0 allows; an index that is returned never
//! lies within a character.
//! Not its business: what a delimiter means where it was found.

use super::fault::{Stop, XmlFaultKind};

const NAME_START: u8 = 1;
const NAME: u8 = 2;
const SPACE: u8 = 4;

/// What an ASCII character may be part of. The colon is missing on purpose: it is what ends a prefix.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => NAME_START | NAME,
            b'0'..=b'9' | b'-' | b'.' => NAME,
            b' ' | b'\t' | b'\n' | b'\r' => SPACE,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

#[inline(always)]
fn is_class(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

#[inline(always)]
pub(crate) fn is_space(byte: u8) -> bool {
    is_class(byte, SPACE)
}

/// The byte at an index, or a wait for it.
#[inline(always)]
pub(crate) fn byte(data: &[u8], at: usize) -> Result<u8, Stop> {
    data.get(at).copied().ok_or(Stop::Wait)
}

/// Skips white space.
#[inline(always)]
pub(crate) fn spaces(data: &[u8], mut at: usize) -> usize {
    while data.get(at).is_some_and(|byte| is_space(*byte)) {
        at += 1;
    }
    at
}

/// Skips a name without a colon, and waits for the byte that ends it.
#[inline(always)]
pub(crate) fn ncname(data: &[u8], start: usize) -> Result<usize, Stop> {
    if !is_class(byte(data, start)?, NAME_START) {
        return ncname_beyond_ascii(data, start, start);
    }
    let mut at = start + 1;
    while is_class(byte(data, at)?, NAME) {
        at += 1;
    }
    if byte(data, at)? < 0x80 { Ok(at) } else { ncname_beyond_ascii(data, start, at) }
}

#[cold]
fn ncname_beyond_ascii(data: &[u8], start: usize, mut at: usize) -> Result<usize, Stop> {
    loop {
        let first = byte(data, at)?;
        let is_allowed = if first < 0x80 {
            is_class(first, if at == start { NAME_START } else { NAME })
        } else {
            let (code, _) = beyond_ascii(data, at)?;
            is_name_start(code) || (at != start && is_name_only(code))
        };
        match (is_allowed, first) {
            (true, 0x00..0x80) => at += 1,
            (true, _) => at += beyond_ascii(data, at)?.1,
            (false, 0x80..) => return Err(Stop::Fault(XmlFaultKind::BadName, at)),
            (false, _) if at == start => return Err(Stop::Fault(XmlFaultKind::BadName, at)),
            (false, _) => return Ok(at),
        }
    }
}

/// The characters beyond ASCII that may begin a name (XML 1.0, fifth edition, production 4).
fn is_name_start(code: u32) -> bool {
    matches!(code,
        0xC0..=0xD6 | 0xD8..=0xF6 | 0xF8..=0x2FF | 0x370..=0x37D | 0x37F..=0x1FFF | 0x200C..=0x200D
        | 0x2070..=0x218F | 0x2C00..=0x2FEF | 0x3001..=0xD7FF | 0xF900..=0xFDCF | 0xFDF0..=0xFFFD
        | 0x10000..=0xEFFFF)
}

/// The characters beyond ASCII that names have elsewhere (production 4a).
fn is_name_only(code: u32) -> bool {
    matches!(code, 0xB7 | 0x300..=0x36F | 0x203F..=0x2040)
}

/// Whether a document may contain this character (production 2).
pub(crate) fn is_allowed(code: u32) -> bool {
    matches!(code, 0x9 | 0xA | 0xD | 0x20..=0xD7FF | 0xE000..=0xFFFD | 0x10000..=0x10FFFF)
}

/// The character beyond ASCII at an index, and its length.
#[inline]
pub(crate) fn beyond_ascii(data: &[u8], at: usize) -> Result<(u32, usize), Stop> {
    let first = byte(data, at)?;
    // The second byte's range is what tells overlong forms, surrogates and codes beyond Unicode (table 3-7 of Unicode).
    let (length, low, high) = match first {
        0xC2..=0xDF => (2, 0x80, 0xBF),
        0xE0 => (3, 0xA0, 0xBF),
        0xED => (3, 0x80, 0x9F),
        0xE1..=0xEF => (3, 0x80, 0xBF),
        0xF0 => (4, 0x90, 0xBF),
        0xF1..=0xF3 => (4, 0x80, 0xBF),
        0xF4 => (4, 0x80, 0x8F),
        _ => return Err(Stop::Fault(XmlFaultKind::NotUtf8, at)),
    };
    let second = byte(data, at + 1)?;
    if second < low || second > high {
        return Err(Stop::Fault(XmlFaultKind::NotUtf8, at));
    }
    let mut code = (u32::from(first) & (0x7F >> length)) << 6 | u32::from(second & 0x3F);
    for next in 2..length {
        let more = byte(data, at + next)?;
        if more & 0xC0 != 0x80 {
            return Err(Stop::Fault(XmlFaultKind::NotUtf8, at));
        }
        code = code << 6 | u32::from(more & 0x3F);
    }
    if matches!(code, 0xFFFE | 0xFFFF) {
        return Err(Stop::Fault(XmlFaultKind::BadCharacter, at));
    }
    Ok((code, length))
}

/// Skips allowed characters up to one of three delimiters, the end of the data, or a character that the data cuts.
#[inline(always)]
pub(crate) fn skip<const A: u8, const B: u8, const C: u8>(data: &[u8], mut at: usize) -> Result<usize, Stop> {
    loop {
        at = skip_ascii::<A, B, C>(data, at);
        match data.get(at).copied() {
            Some(delimiter) if delimiter == A || delimiter == B || delimiter == C => return Ok(at),
            Some(b'\t' | b'\n' | b'\r') => at += 1,
            Some(0x80..) => {
                at = skip_beyond_ascii(data, at)?;
                if data.get(at).is_some_and(|byte| *byte >= 0x80) {
                    return Ok(at);
                }
            }
            Some(0x00..0x20) => return Err(Stop::Fault(XmlFaultKind::BadCharacter, at)),
            _ => return Ok(at),
        }
    }
}

/// Skips characters beyond ASCII, up to one within it, the end of the data, or one that the data cuts.
#[inline(never)]
fn skip_beyond_ascii(data: &[u8], mut at: usize) -> Result<usize, Stop> {
    while let Some(first) = data.get(at) {
        // Nearly all characters of three bytes, where only the last two need a look: not 0xE0, 0xED and 0xEF.
        if let 0xE1..=0xEC | 0xEE = *first
            && let Some([second, third]) = data.get(at + 1..).and_then(|rest| rest.first_chunk::<2>())
            && second & 0xC0 == 0x80
            && third & 0xC0 == 0x80
        {
            at += 3;
        } else if *first < 0x80 {
            break;
        } else {
            match beyond_ascii(data, at) {
                Ok((_, length)) => at += length,
                Err(Stop::Wait) => break,
                Err(fault) => return Err(fault),
            }
        }
    }
    Ok(at)
}

const ONES: u64 = u64::MAX / 255;
const HIGH_BITS: u64 = ONES * 128;

/// Skips ASCII characters that are neither delimiters nor controls, eight at a time.
#[inline(always)]
fn skip_ascii<const A: u8, const B: u8, const C: u8>(data: &[u8], mut at: usize) -> usize {
    while let Some(bytes) = data.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let found = special::<A, B, C>(u64::from_le_bytes(*bytes));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while data.get(at).is_some_and(|byte| !matches!(*byte, 0x00..0x20 | 0x80..) && ![A, B, C].contains(byte))
    {
        at += 1;
    }
    at
}

/// Sets the high bit of bytes that are a delimiter, a control or beyond ASCII. A borrow or a carry can set the bit of a
/// byte too much, but only above one that is right, so the lowest is always exact. The delimiters are looked for in
/// three different ways, because the compiler packs equal ones into vector registers, and the way there and back
/// takes longer than all the rest.
#[inline(always)]
fn special<const A: u8, const B: u8, const C: u8>(word: u64) -> u64 {
    let is_a = (word ^ (ONES * u64::from(A))).wrapping_sub(ONES);
    let is_not_b = (word ^ (ONES * u64::from(B))).wrapping_add(ONES * 0x7F);
    let is_not_c = ((word ^ (ONES * u64::from(C))) | HIGH_BITS).wrapping_sub(ONES);
    let is_control = word.wrapping_sub(ONES * 0x20);
    (is_a | !(is_not_b & is_not_c) | is_control | word) & HIGH_BITS
}
