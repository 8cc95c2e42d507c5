//! The XML declaration: `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`.
//!
//! Guarantees: what is returned follows the grammar of XML 1.0, fifth edition, which takes any version 1.x.
//! Not its business: whether the encoding is one we read.

use super::characters::{is_space, spaces};

/// How a declaration begins.
pub(crate) const MARK: &[u8] = b"<?xml";

/// Whether a document that begins like this has a declaration; unknown while there are too few bytes.
pub(crate) fn begins_with_declaration(start: &[u8]) -> Option<bool> {
    if !start.iter().zip(MARK).all(|(left, right)| left == right) {
        return Some(false);
    }
    // `<?xml-stylesheet` is another instruction.
    start
        .get(MARK.len())
        .map(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':' | 0x80..)))
}

/// The label of the encoding in a declaration that ends with its `>`, or the index of what is wrong with it.
pub(crate) fn encoding_label(declaration: &[u8]) -> Result<Option<&[u8]>, usize> {
    let body = declaration.strip_suffix(b"?>").ok_or(declaration.len())?;
    let mut label = None;
    let mut last = Field::None;
    let mut at = MARK.len();
    loop {
        let start = spaces(body, at);
        if start == body.len() && last != Field::None {
            return Ok(label);
        }
        let (name, value, end) = pair(body, start).filter(|_| start > at).ok_or(start)?;
        let field = Field::of(name, value).filter(|field| *field > last).ok_or(start)?;
        // The version must be the first.
        if (last == Field::None) != (field == Field::Version) {
            return Err(start);
        }
        if field == Field::Encoding {
            label = Some(value);
        }
        last = field;
        at = end;
    }
}

/// The fields in the only order they may have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    None,
    Version,
    Encoding,
    Standalone,
}

impl Field {
    fn of(name: &[u8], value: &[u8]) -> Option<Self> {
        let (field, is_valid) = match name {
            b"version" => (Self::Version, is_version(value)),
            b"encoding" => (Self::Encoding, is_label(value)),
            b"standalone" => (Self::Standalone, matches!(value, b"yes" | b"no")),
            _ => return None,
        };
        is_valid.then_some(field)
    }
}

fn is_version(value: &[u8]) -> bool {
    let minor = value.strip_prefix(b"1.").unwrap_or_default();
    !minor.is_empty() && minor.iter().all(u8::is_ascii_digit)
}

fn is_label(value: &[u8]) -> bool {
    value.first().is_some_and(u8::is_ascii_alphabetic)
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// `name = "value"`: both, and the index behind it.
fn pair(body: &[u8], start: usize) -> Option<(&[u8], &[u8], usize)> {
    let rest = body.get(start..)?;
    let name_end = start + rest.iter().position(|byte| is_space(*byte) || *byte == b'=')?;
    let equals = spaces(body, name_end);
    body.get(equals).filter(|byte| **byte == b'=')?;
    let open = spaces(body, equals + 1);
    let quote = body.get(open).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let close = open + 1 + body.get(open + 1..)?.iter().position(|byte| byte == quote)?;
    Some((body.get(start..name_end)?, body.get(open + 1..close)?, close + 1))
}
