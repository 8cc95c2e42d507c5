//! The syntax of one start tag.
//!
//! Guarantees: a tag that is returned follows the grammar of XML and of qualified names, its values contain only allowed
//! characters and references that can be resolved.
//! Not its business: prefixes, repeated attributes and the element around.

use super::attributes::{Attribute, Attributes, Name};
use super::characters::{byte, is_space, ncname, skip, spaces};
use super::fault::{Stop, XmlFaultKind};
use super::reference::reference;

/// A start tag; its attributes are in [`Attributes`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartTag {
    pub(crate) name: Name,
    /// Behind its `>`.
    pub(crate) end: usize,
    /// Whether it is an end tag as well: `<a/>`.
    pub(crate) is_empty: bool,
}

/// Reads the start tag whose `<` is at `start`.
#[inline(always)]
pub(crate) fn start_tag(
    data: &[u8],
    start: usize,
    attributes: &mut Attributes,
    attributes_max: usize,
) -> Result<StartTag, Stop> {
    attributes.clear();
    let name = qualified_name(data, start + 1)?;
    let mut at = name.end;
    loop {
        match byte(data, at)? {
            b'>' => return Ok(StartTag { name, end: at + 1, is_empty: false }),
            b'/' if byte(data, at + 1)? == b'>' => return Ok(StartTag { name, end: at + 2, is_empty: true }),
            b'/' => return Err(Stop::Fault(XmlFaultKind::BadAttribute, at)),
            space if is_space(space) => at = spaces(data, at + 1),
            _ if at == name.end => return Err(Stop::Fault(XmlFaultKind::BadName, at)),
            _ => return Err(Stop::Fault(XmlFaultKind::BadAttribute, at)),
        }
        if matches!(byte(data, at)?, b'>' | b'/') {
            continue;
        }
        let attribute = attribute(data, at)?;
        if attributes.items().len() >= attributes_max {
            return Err(Stop::Fault(XmlFaultKind::TooManyAttributes, at));
        }
        attributes.push(data, attribute);
        at = attribute.value_end + 1;
    }
}

#[inline(always)]
fn qualified_name(data: &[u8], start: usize) -> Result<Name, Stop> {
    let end = ncname(data, start)?;
    if byte(data, end)? != b':' {
        return Ok(Name { start, local: start, end });
    }
    Ok(Name { start, local: end + 1, end: ncname(data, end + 1)? })
}

#[inline(always)]
fn attribute(data: &[u8], start: usize) -> Result<Attribute, Stop> {
    let name = qualified_name(data, start)?;
    let mut at = name.end;
    if byte(data, at)? != b'=' {
        at = spaces(data, at);
        if byte(data, at)? != b'=' {
            return Err(Stop::Fault(XmlFaultKind::BadAttribute, at));
        }
    }
    at += 1;
    if is_space(byte(data, at)?) {
        at = spaces(data, at);
    }
    let value_start = at + 1;
    let value_end = match byte(data, at)? {
        b'"' => value::<b'"'>(data, value_start)?,
        b'\'' => value::<b'\''>(data, value_start)?,
        _ => return Err(Stop::Fault(XmlFaultKind::BadAttribute, at)),
    };
    Ok(Attribute { name, value_start, value_end, namespace: None })
}

#[inline(always)]
fn value<const QUOTE: u8>(data: &[u8], mut at: usize) -> Result<usize, Stop> {
    loop {
        at = skip::<QUOTE, b'<', b'&'>(data, at)?;
        match byte(data, at)? {
            quote if quote == QUOTE => return Ok(at),
            b'&' => at = reference(data, at)?.1,
            b'<' => return Err(Stop::Fault(XmlFaultKind::BadAttribute, at)),
            // A character that the data cuts.
            _ => return Err(Stop::Wait),
        }
    }
}
