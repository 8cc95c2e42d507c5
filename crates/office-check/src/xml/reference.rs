//! References: `&lt;`, `&#65;`, `&#x41;`.
//!
//! Guarantees: only the five entities of XML and characters that XML allows; nothing is ever expanded further.
//! Not its business: entities of a document type, because documents with one are not read.

use std::borrow::Cow;

use super::characters::{byte, is_allowed, ncname};
use super::fault::{Stop, XmlFaultKind};

/// Reads the reference that begins at the `&` at an index: the character, and the index behind it.
pub(crate) fn reference(data: &[u8], start: usize) -> Result<(char, usize), Stop> {
    if byte(data, start + 1)? == b'#' {
        return character_reference(data, start);
    }
    let bad = Stop::Fault(XmlFaultKind::BadReference, start);
    let end = match ncname(data, start + 1) {
        Err(Stop::Fault(..)) => return Err(bad),
        end => end?,
    };
    if byte(data, end)? != b';' {
        return Err(bad);
    }
    let character = match data.get(start + 1..end).unwrap_or_default() {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        _ => return Err(Stop::Fault(XmlFaultKind::UndefinedEntity, start)),
    };
    Ok((character, end + 1))
}

fn character_reference(data: &[u8], start: usize) -> Result<(char, usize), Stop> {
    let bad = Stop::Fault(XmlFaultKind::BadReference, start);
    let (radix, first) = if byte(data, start + 2)? == b'x' { (16, start + 3) } else { (10, start + 2) };
    let mut code = 0_u32;
    let mut at = first;
    while let Some(digit) = char::from(byte(data, at)?).to_digit(radix) {
        // Codes beyond Unicode stay beyond it: zeros may follow, digits that make it small again may not.
        code = code.saturating_mul(radix).saturating_add(digit);
        at += 1;
    }
    if at == first || byte(data, at)? != b';' || !is_allowed(code) {
        return Err(bad);
    }
    char::from_u32(code).map(|character| (character, at + 1)).ok_or(bad)
}

/// The value an attribute stands for: references resolved, white space made spaces. The value was read before.
pub(crate) fn resolved(value: &[u8]) -> Cow<'_, [u8]> {
    let is_special = |byte: &u8| matches!(byte, b'&' | b'\t' | b'\n' | b'\r');
    let Some(first) = value.iter().position(is_special) else {
        return Cow::Borrowed(value);
    };
    let mut out = value.get(..first).unwrap_or_default().to_vec();
    let mut at = first;
    while let Some(byte) = value.get(at).copied() {
        at += 1;
        match byte {
            b'&' => {
                if let Ok((character, next)) = reference(value, at - 1) {
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    at = next;
                }
            }
            // A line end of two characters is one space.
            b'\r' if value.get(at) == Some(&b'\n') => {}
            b'\t' | b'\n' | b'\r' => out.push(b' '),
            _ => out.push(byte),
        }
    }
    Cow::Owned(out)
}
