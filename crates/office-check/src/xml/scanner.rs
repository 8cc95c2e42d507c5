//! The grammar of a document, over whatever part of it is at hand.
//!
//! Guarantees: what was consumed is well-formed so far; only a tag, a reference or a few bytes of anything else are left
//! over for the next time; the first fault is the same however the document was cut.
//! Not its business: encodings, the XML declaration, and keeping what was left over.

use super::attributes::Attributes;
use super::characters::{byte, is_space, ncname, skip, spaces};
use super::fault::{Stop, XmlFault, XmlFaultKind};
use super::limits::XmlLimits;
use super::namespaces::Namespaces;
use super::open::OpenElements;
use super::reference::reference;
use super::tag::{StartTag, start_tag};
use super::visitor::{Element, Visitor};

/// What the next byte is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Before or after the root element.
    Outside,
    Content,
    Comment,
    Cdata,
    Instruction,
}

/// A document as far as it was read.
#[derive(Debug)]
pub(crate) struct Scanner {
    within: Within,
    has_root: bool,
    position: u64,
    open: OpenElements,
    attributes: Attributes,
    namespaces: Namespaces,
    attributes_max: usize,
    tag_bytes_max: usize,
}

impl Scanner {
    pub(crate) fn new(limits: &XmlLimits) -> Self {
        Self {
            within: Within::Outside,
            has_root: false,
            position: 0,
            open: OpenElements::new(limits),
            attributes: Attributes::default(),
            namespaces: Namespaces::new(limits),
            attributes_max: limits.attributes_max,
            tag_bytes_max: limits.tag_bytes_max,
        }
    }

    /// How many bytes were consumed.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Counts bytes that somebody else consumed.
    pub(crate) fn pass(&mut self, bytes: usize) {
        self.position = self.position.saturating_add(bytes as u64);
    }

    /// Consumes as much as possible; says how much. The rest must come again, with more behind it.
    pub(crate) fn scan<V: Visitor>(&mut self, data: &[u8], visitor: &mut V) -> Result<usize, XmlFault> {
        let mut at = 0;
        loop {
            let stop = match self.within {
                Within::Content => self.content(data, &mut at, visitor),
                Within::Outside => self.outside(data, &mut at, visitor),
                Within::Comment => self.comment(data, &mut at),
                Within::Cdata => self.cdata(data, &mut at, visitor),
                Within::Instruction => self.instruction(data, &mut at),
            };
            match stop {
                Ok(()) => {}
                Err(Stop::Wait) => {
                    self.pass(at);
                    return Ok(at);
                }
                Err(Stop::Fault(kind, at)) => {
                    return Err(XmlFault { kind, offset: self.position.saturating_add(at as u64) });
                }
            }
        }
    }

    /// What is missing if the document ends here.
    pub(crate) fn missing(&self) -> Option<XmlFaultKind> {
        match self.within {
            Within::Outside if self.has_root => None,
            Within::Outside => Some(XmlFaultKind::Empty),
            Within::Content => Some(XmlFaultKind::UnclosedTag),
            Within::Comment | Within::Cdata | Within::Instruction => Some(XmlFaultKind::Truncated),
        }
    }

    fn outside<V: Visitor>(&mut self, data: &[u8], at: &mut usize, visitor: &mut V) -> Result<(), Stop> {
        *at = spaces(data, *at);
        if byte(data, *at)? != b'<' {
            return Err(Stop::Fault(XmlFaultKind::TextOutsideRoot, *at));
        }
        self.markup(data, at, visitor)
    }

    /// Text, references and tags, until something else begins.
    fn content<V: Visitor>(&mut self, data: &[u8], at: &mut usize, visitor: &mut V) -> Result<(), Stop> {
        while self.within == Within::Content {
            // Most tags follow another at once.
            if data.get(*at) == Some(&b'<') {
                self.markup(data, at, visitor)?;
                continue;
            }
            let end = skip::<b'<', b'&', b']'>(data, *at)?;
            if end != *at {
                visitor.text(data.get(*at..end).unwrap_or_default());
                *at = end;
            }
            match byte(data, *at)? {
                b'<' => {}
                b'&' => {
                    let (character, end) = self.bounded(data, *at, reference)?;
                    visitor.text(character.encode_utf8(&mut [0; 4]).as_bytes());
                    *at = end;
                }
                b']' if is_section_end(data, *at)? => {
                    return Err(Stop::Fault(XmlFaultKind::BadCdata, *at));
                }
                b']' => {
                    visitor.text(b"]");
                    *at += 1;
                }
                // A character that the data cuts.
                _ => return Err(Stop::Wait),
            }
        }
        Ok(())
    }

    /// What begins with the `<` at an index.
    #[inline(always)]
    fn markup<V: Visitor>(&mut self, data: &[u8], at: &mut usize, visitor: &mut V) -> Result<(), Stop> {
        match byte(data, *at + 1)? {
            b'/' => *at = self.end_tag(data, *at, visitor)?,
            b'!' => *at = self.comment_or_cdata(data, *at)?,
            b'?' => {
                *at = self.bounded(data, *at, instruction_target)?;
                self.within = Within::Instruction;
            }
            _ if self.has_root && self.within == Within::Outside => {
                return Err(Stop::Fault(XmlFaultKind::TwoRoots, *at));
            }
            _ => *at = self.start_tag(data, *at, visitor)?,
        }
        Ok(())
    }

    #[inline(always)]
    fn start_tag<V: Visitor>(&mut self, data: &[u8], start: usize, visitor: &mut V) -> Result<usize, Stop> {
        let window = self.window(data, start);
        let tag = match start_tag(window, start, &mut self.attributes, self.attributes_max) {
            Err(Stop::Wait) => return Err(self.wait(window, start)),
            tag => tag?,
        };
        self.attributes.refuse_repeated(data)?;
        let name = tag.name.whole_in(data);
        self.open.has_room_for(name).map_err(|kind| Stop::Fault(kind, start))?;
        let namespaces = self.namespaces.len();
        if tag.name.has_prefix() || self.attributes.has_namespaces() {
            self.resolve(data, &tag)?;
        }
        visitor.start(&Element {
            data,
            name: tag.name,
            attributes: self.attributes.items(),
            namespaces: &self.namespaces,
            depth: self.open.depth(),
        });
        self.has_root = true;
        if tag.is_empty {
            visitor.end(name);
            self.namespaces.close(namespaces);
        } else {
            self.open.push(data, tag.name, namespaces);
            self.within = Within::Content;
        }
        Ok(tag.end)
    }

    /// Declares the namespaces of a tag and resolves its prefixes.
    fn resolve(&mut self, data: &[u8], tag: &StartTag) -> Result<(), Stop> {
        for attribute in self.attributes.items() {
            if let Some(prefix) = attribute.declares(data) {
                let uri = super::reference::resolved(attribute.value_in(data));
                let declared = self.namespaces.declare(prefix, &uri);
                declared.map_err(|kind| Stop::Fault(kind, attribute.name.start))?;
            }
        }
        // An unbound prefix of the element comes first, because it stands first. `xmlns` is never bound.
        if tag.name.has_prefix() && self.namespaces.resolve(tag.name.prefix_in(data)).is_none() {
            return Err(Stop::Fault(XmlFaultKind::UnboundPrefix, tag.name.start));
        }
        let mut first_prefix = None;
        let mut has_other_prefixes = false;
        for attribute in self.attributes.items_mut() {
            let prefix = attribute.name.prefix_in(data);
            if !attribute.name.has_prefix() || prefix == b"xmlns" {
                continue;
            }
            attribute.namespace = self.namespaces.resolve(prefix);
            if attribute.namespace.is_none() {
                return Err(Stop::Fault(XmlFaultKind::UnboundPrefix, attribute.name.start));
            }
            has_other_prefixes |= *first_prefix.get_or_insert(prefix) != prefix;
        }
        if has_other_prefixes { self.attributes.refuse_repeated_expanded(data) } else { Ok(()) }
    }

    #[inline(always)]
    fn end_tag<V: Visitor>(&mut self, data: &[u8], start: usize, visitor: &mut V) -> Result<usize, Stop> {
        let plain_end = self.open.is_next(data, start + 2).map(|length| start + 2 + length);
        let end = match plain_end.filter(|end| data.get(*end) == Some(&b'>')) {
            Some(end) => end + 1,
            None => self.unusual_end_tag(data, start)?,
        };
        if let Some(name) = self.open.name() {
            visitor.end(name);
        }
        let namespaces = self.open.pop();
        self.namespaces.close(namespaces);
        if self.open.depth() == 0 {
            self.within = Within::Outside;
        }
        Ok(end)
    }

    /// An end tag with white space, of another element, or incomplete.
    #[cold]
    fn unusual_end_tag(&self, data: &[u8], start: usize) -> Result<usize, Stop> {
        if self.open.depth() == 0 {
            return Err(Stop::Fault(XmlFaultKind::MismatchedTag, start));
        }
        self.bounded(data, start, |data, start| {
            let rest = data.get(start + 2..).unwrap_or_default();
            let is_end = |byte: &u8| is_space(*byte) || matches!(byte, b'>' | b'<');
            let length = rest.iter().position(is_end).ok_or(Stop::Wait)?;
            if length == 0 {
                return Err(Stop::Fault(XmlFaultKind::BadName, start + 2));
            }
            // The open element's name was checked, so an equal one needs no check.
            if rest.get(..length) != self.open.name() {
                return Err(Stop::Fault(XmlFaultKind::MismatchedTag, start));
            }
            let end = spaces(data, start + 2 + length);
            match byte(data, end)? {
                b'>' => Ok(end + 1),
                _ => Err(Stop::Fault(XmlFaultKind::BadAttribute, end)),
            }
        })
    }

    /// What begins with `<!`: a comment, a section, or a document type.
    #[cold]
    fn comment_or_cdata(&mut self, data: &[u8], start: usize) -> Result<usize, Stop> {
        let rest = data.get(start..).unwrap_or_default();
        let begins = |mark: &[u8]| {
            let length = rest.len().min(mark.len());
            let is_same = rest.iter().zip(mark).all(|(left, right)| left.eq_ignore_ascii_case(right));
            is_same.then_some(length == mark.len())
        };
        // HTML writes it in any case, and an HTML page is the most common impostor.
        if let Some(is_whole) = begins(b"<!DOCTYPE") {
            return Err(if is_whole { Stop::Fault(XmlFaultKind::Doctype, start) } else { Stop::Wait });
        }
        let (mark, within) = match rest.get(2) {
            Some(b'-') => (&b"<!--"[..], Within::Comment),
            _ => (&b"<![CDATA["[..], Within::Cdata),
        };
        if !mark.iter().zip(rest).all(|(left, right)| left == right) {
            return Err(Stop::Fault(XmlFaultKind::BadMarkup, start));
        }
        if rest.len() < mark.len() {
            return Err(Stop::Wait);
        }
        if within == Within::Cdata && self.within == Within::Outside {
            return Err(Stop::Fault(XmlFaultKind::BadCdata, start));
        }
        self.within = within;
        Ok(start + mark.len())
    }

    fn comment(&mut self, data: &[u8], at: &mut usize) -> Result<(), Stop> {
        loop {
            *at = skip::<b'-', b'-', b'-'>(data, *at)?;
            if byte(data, *at)? != b'-' {
                return Err(Stop::Wait);
            }
            if byte(data, *at + 1)? != b'-' {
                *at += 1;
            } else if byte(data, *at + 2)? == b'>' {
                *at += 3;
                self.leave();
                return Ok(());
            } else {
                return Err(Stop::Fault(XmlFaultKind::BadComment, *at));
            }
        }
    }

    fn cdata<V: Visitor>(&mut self, data: &[u8], at: &mut usize, visitor: &mut V) -> Result<(), Stop> {
        loop {
            let end = skip::<b']', b']', b']'>(data, *at)?;
            if end != *at {
                visitor.text(data.get(*at..end).unwrap_or_default());
                *at = end;
            }
            if byte(data, *at)? != b']' {
                return Err(Stop::Wait);
            }
            if is_section_end(data, *at)? {
                *at += 3;
                self.leave();
                return Ok(());
            }
            visitor.text(b"]");
            *at += 1;
        }
    }

    fn instruction(&mut self, data: &[u8], at: &mut usize) -> Result<(), Stop> {
        loop {
            *at = skip::<b'?', b'?', b'?'>(data, *at)?;
            if byte(data, *at)? != b'?' {
                return Err(Stop::Wait);
            }
            if byte(data, *at + 1)? == b'>' {
                *at += 2;
                self.leave();
                return Ok(());
            }
            *at += 1;
        }
    }

    /// A comment, section or instruction is over.
    fn leave(&mut self) {
        self.within = if self.open.depth() == 0 { Within::Outside } else { Within::Content };
    }

    /// Reads a token that must not be longer than a tag.
    fn bounded<T>(
        &self,
        data: &[u8],
        start: usize,
        read: impl Fn(&[u8], usize) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let window = self.window(data, start);
        match read(window, start) {
            Err(Stop::Wait) => Err(self.wait(window, start)),
            result => result,
        }
    }

    #[inline(always)]
    fn window<'a>(&self, data: &'a [u8], start: usize) -> &'a [u8] {
        data.get(..start.saturating_add(self.tag_bytes_max)).unwrap_or(data)
    }

    #[cold]
    fn wait(&self, window: &[u8], start: usize) -> Stop {
        let is_too_long = window.len() - start >= self.tag_bytes_max;
        if is_too_long { Stop::Fault(XmlFaultKind::TagTooLong, start) } else { Stop::Wait }
    }
}

/// Whether the bracket at an index begins `]]>`.
fn is_section_end(data: &[u8], at: usize) -> Result<bool, Stop> {
    Ok(byte(data, at + 1)? == b']' && byte(data, at + 2)? == b'>')
}

/// Skips `<?` and the target, and the space behind it.
fn instruction_target(data: &[u8], start: usize) -> Result<usize, Stop> {
    let end = ncname(data, start + 2)?;
    let target = data.get(start + 2..end).unwrap_or_default();
    if target == b"xml" {
        return Err(Stop::Fault(XmlFaultKind::LateDeclaration, start));
    }
    if target.eq_ignore_ascii_case(b"xml") {
        return Err(Stop::Fault(XmlFaultKind::BadInstruction, start));
    }
    match byte(data, end)? {
        b'?' if byte(data, end + 1)? == b'>' => Ok(end),
        space if is_space(space) => Ok(end + 1),
        _ => Err(Stop::Fault(XmlFaultKind::BadInstruction, end)),
    }
}
