//! The markup of a part, token by token, as it comes out of the archive.
//!
//! Guarantees: tags are nested rightly, or it is a fault; a token is handed out whole and with the very bytes it was made of, so
//! that a part can be written again as it was; no token is larger than [`TOKEN_BYTES_MAX`], no nesting deeper than [`DEPTH_MAX`].
//! Does not do: document types (a fault: no office program writes them), other encodings than UTF-8, checking of attributes.

use std::borrow::Cow;
use std::io::Read;

use super::fault::Fault;

/// A cell holds 32,767 characters, each of which can be written with at most a dozen bytes.
const TOKEN_BYTES_MAX: usize = 1024 * 1024;
/// Office nests below a hundred.
const DEPTH_MAX: usize = 1_000;
/// Read from the archive at once.
const READ_BYTES: usize = 64 * 1024;

/// A piece of markup.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Token<'a> {
    /// `<row r="1">`.
    Start(Tag<'a>),
    /// `<row r="1"/>`.
    Empty(Tag<'a>),
    /// `</row>`: its name, and the bytes.
    End(&'a [u8], &'a [u8]),
    /// Text, as it is written.
    Text(&'a [u8]),
    /// Text in which nothing is written differently, and the bytes with their frame.
    Raw(&'a [u8], &'a [u8]),
    /// Comments and instructions.
    Other(&'a [u8]),
    /// Nothing more.
    Over,
}

impl<'a> Token<'a> {
    /// The bytes it was made of.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Start(tag) | Self::Empty(tag) => tag.bytes,
            Self::End(_, bytes) | Self::Raw(_, bytes) | Self::Text(bytes) | Self::Other(bytes) => bytes,
            Self::Over => &[],
        }
    }
}

/// A start tag.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag<'a> {
    /// Its name without prefix.
    pub(crate) name: &'a [u8],
    attributes: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Tag<'a> {
    /// The attributes, as they are written: names with prefix, values without quotes.
    pub(crate) fn attributes(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut rest = self.attributes;
        std::iter::from_fn(move || {
            rest = rest.trim_ascii_start();
            let equals = rest.iter().position(|byte| *byte == b'=')?;
            let name = rest.get(..equals)?.trim_ascii_end();
            let value = rest.get(equals + 1..)?.trim_ascii_start();
            let quote = *value.first().filter(|byte| matches!(byte, b'"' | b'\''))?;
            let end = value.iter().skip(1).position(|byte| *byte == quote)?;
            rest = value.get(end + 2..)?;
            Some((name, value.get(1..=end)?))
        })
    }

    /// The value of an attribute, by its name without prefix.
    pub(crate) fn attribute(self, name: &str) -> Option<Cow<'a, str>> {
        let found = self.attributes().find(|(key, _)| local(key) == name.as_bytes())?;
        unescape(found.1)
    }

    /// The id of a relation: `r:id`, beside which a plain `id` may stand.
    pub(crate) fn relation(self) -> Option<Cow<'a, str>> {
        let found = self.attributes().find(|(key, _)| key.contains(&b':') && local(key) == b"id")?;
        unescape(found.1)
    }
}

/// A name without its prefix.
fn local(name: &[u8]) -> &[u8] {
    match name.iter().position(|byte| *byte == b':') {
        Some(at) => name.get(at + 1..).unwrap_or_default(),
        None => name,
    }
}

/// Walks through a part.
pub(crate) struct Scanner<R> {
    source: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    is_over: bool,
    /// The names of the open elements, one behind the other, and where each begins.
    names: Vec<u8>,
    begins: Vec<usize>,
    has_root: bool,
}

impl<R: Read> Scanner<R> {
    pub(crate) fn new(source: R) -> Result<Self, Fault> {
        let mut scanner = Self {
            source,
            buffer: vec![0; 2 * READ_BYTES],
            at: 0,
            end: 0,
            is_over: false,
            names: Vec::new(),
            begins: Vec::new(),
            has_root: false,
        };
        scanner.more()?;
        let start = scanner.buffer.get(..scanner.end).unwrap_or_default();
        if start.starts_with(b"\xFF\xFE") || start.starts_with(b"\xFE\xFF") {
            return Err(Fault::broken("a part is not written in UTF-8"));
        }
        scanner.at = if start.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        Ok(scanner)
    }

    /// What is in memory of the rest of the part.
    pub(crate) fn ahead(&self) -> &[u8] {
        self.buffer.get(self.at..self.end).unwrap_or_default()
    }

    /// Goes on behind an element of [`Self::ahead`] that somebody read whole.
    pub(crate) fn pass(&mut self, length: usize) {
        self.at = self.end.min(self.at + length);
    }

    /// How many elements are open.
    pub(crate) fn depth(&self) -> usize {
        self.begins.len()
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Result<Token<'_>, Fault> {
        if self.at == self.end && !self.fill()? {
            return match (self.depth(), self.has_root) {
                (0, true) => Ok(Token::Over),
                _ => Err(Fault::broken("a part ends too early")),
            };
        }
        if self.buffer.get(self.at) != Some(&b'<') {
            return self.text();
        }
        let length = self.length()?;
        let at = self.at;
        self.at += length;
        let bytes = self.buffer.get(at..at + length).unwrap_or_default();
        match bytes {
            [b'<', b'?', ..] | [b'<', b'!', b'-', ..] => Ok(Token::Other(bytes)),
            [b'<', b'!', b'[', ..] => Ok(Token::Raw(bytes.get(9..length - 3).unwrap_or_default(), bytes)),
            [b'<', b'!', ..] => Err(Fault::broken("a part has a document type")),
            [b'<', b'/', name @ .., b'>'] => {
                let name = name.trim_ascii_end();
                let begin = self.begins.pop().unwrap_or(usize::MAX);
                if self.names.get(begin..) != Some(name) {
                    return Err(Fault::broken("the tags of a part do not fit together"));
                }
                self.names.truncate(begin);
                Ok(Token::End(local(name), bytes))
            }
            [b'<', inside @ .., b'/', b'>'] => {
                self.has_root = true;
                Ok(Token::Empty(tag(inside, bytes).1))
            }
            [b'<', inside @ .., b'>'] => {
                let (name, tag) = tag(inside, bytes);
                self.begins.push(self.names.len());
                self.names.extend_from_slice(name);
                self.has_root = true;
                if self.begins.len() > DEPTH_MAX || name.is_empty() {
                    return Err(Fault::broken("the tags of a part do not fit together"));
                }
                Ok(Token::Start(tag))
            }
            _ => Err(Fault::broken("a part is no XML")),
        }
    }

    /// Reads on until the element that was just opened is closed.
    pub(crate) fn skip(&mut self) -> Result<(), Fault> {
        let depth = self.depth();
        while self.depth() >= depth {
            if matches!(self.next()?, Token::Over) {
                break;
            }
        }
        Ok(())
    }

    fn text(&mut self) -> Result<Token<'_>, Fault> {
        let mut looked = 0;
        let length = loop {
            let rest = self.buffer.get(self.at + looked..self.end).unwrap_or_default();
            if let Some(found) = rest.iter().position(|byte| *byte == b'<') {
                break looked + found;
            }
            looked = self.end - self.at;
            if !self.fill()? {
                break looked;
            }
        };
        let at = self.at;
        self.at += length;
        let bytes = self.buffer.get(at..at + length).unwrap_or_default();
        if self.begins.is_empty() && !bytes.trim_ascii().is_empty() {
            return Err(Fault::broken("a part is no XML"));
        }
        Ok(Token::Text(bytes))
    }

    /// How long the markup is that begins here.
    fn length(&mut self) -> Result<usize, Fault> {
        let mut looked = 0;
        loop {
            let rest = self.buffer.get(self.at..self.end).unwrap_or_default();
            if let Some(length) = end_of_markup(rest, &mut looked) {
                return Ok(length);
            }
            if !self.fill()? {
                return Err(Fault::broken("a part ends in the middle of a tag"));
            }
        }
    }

    /// Reads more behind what is there; `false` if nothing is left.
    fn fill(&mut self) -> Result<bool, Fault> {
        if self.at > 0 {
            self.buffer.copy_within(self.at..self.end, 0);
            self.end -= self.at;
            self.at = 0;
        }
        if self.end + READ_BYTES > self.buffer.len() {
            if self.buffer.len() >= TOKEN_BYTES_MAX {
                return Err(Fault::broken("a part has a text or a tag beyond all measure"));
            }
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let before = self.end;
        self.more()?;
        Ok(self.end > before)
    }

    fn more(&mut self) -> Result<(), Fault> {
        let end = self.end;
        let wanted = end + READ_BYTES;
        while self.end < wanted && !self.is_over {
            let Some(room) = self.buffer.get_mut(self.end..wanted) else { break };
            match self.source.read(room) {
                Ok(0) => self.is_over = true,
                Ok(count) => self.end += count,
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(Fault::Read(cause)),
            }
        }
        Ok(())
    }
}

/// Where the markup ends that begins at the first byte. `looked` is how far it was searched before.
fn end_of_markup(bytes: &[u8], looked: &mut usize) -> Option<usize> {
    let closing: &[u8] = match bytes {
        [b'<', b'!', b'-', ..] => b"-->",
        [b'<', b'!', b'[', ..] => b"]]>",
        [b'<', b'?', ..] => b"?>",
        [b'<', b'!', _, ..] | [b'<', b'/', ..] => b">",
        [b'<'] | [b'<', b'!'] => return None,
        _ => return end_of_tag(bytes),
    };
    // What opens a comment may not be taken for what closes it.
    let from = (*looked).max(2 + closing.len().min(2)).min(bytes.len());
    let found = bytes.get(from..)?.windows(closing.len()).position(|window| window == closing);
    *looked = bytes.len().saturating_sub(closing.len());
    found.map(|at| from + at + closing.len())
}

/// Attributes may hold `>`.
fn end_of_tag(bytes: &[u8]) -> Option<usize> {
    let mut quote = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'>' if quote == 0 => return Some(at + 1),
            b'"' | b'\'' if quote == 0 => quote = *byte,
            _ if *byte == quote => quote = 0,
            _ => {}
        }
    }
    None
}

fn tag<'a>(inside: &'a [u8], bytes: &'a [u8]) -> (&'a [u8], Tag<'a>) {
    let end = inside.iter().position(u8::is_ascii_whitespace).unwrap_or(inside.len());
    let (name, attributes) = inside.split_at(end);
    (name, Tag { name: local(name), attributes, bytes })
}

/// What a text means: the five predefined references and numbered ones, no others.
pub(crate) fn unescape(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(bytes).ok()?;
    if !bytes.contains(&b'&') {
        return Some(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let (name, behind) = after.split_once(';')?;
        out.push(match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "apos" => '\'',
            "quot" => '"',
            _ => {
                let number = name.strip_prefix('#')?;
                let code = match number.strip_prefix('x') {
                    Some(digits) => u32::from_str_radix(digits, 16),
                    None => number.parse(),
                };
                char::from_u32(code.ok()?)?
            }
        });
        rest = behind;
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte after the other.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn written_again(text: &str) -> Result<String, String> {
        let mut scanner = Scanner::new(Slowly(text.as_bytes())).map_err(|fault| format!("{fault:?}"))?;
        let mut out = Vec::new();
        loop {
            match scanner.next() {
                Ok(Token::Over) => return Ok(String::from_utf8(out).unwrap()),
                Ok(token) => out.extend_from_slice(token.bytes()),
                Err(fault) => return Err(format!("{fault:?}")),
            }
        }
    }

    #[test]
    fn a_part_can_be_written_again_as_it_was() {
        let text = "<?xml version=\"1.0\"?>\n<!-- > --><x:a b='>' c = \"&lt;/a>\"><![CDATA[<b>]]]><d/><e></e ></x:a>\n";
        assert_eq!(written_again(text).as_deref(), Ok(text));
    }

    #[test]
    fn what_is_not_nested_rightly_is_a_fault() {
        for text in [
            "",
            " ",
            "<a>",
            "<a></b>",
            "</a>",
            "<a/>x",
            "<a><b></a></b>",
            "<a",
            "<!DOCTYPE a><a/>",
            "<>x</>",
            "<a b='>",
        ] {
            assert!(written_again(text).is_err(), "{text}");
        }
    }

    #[test]
    fn attributes_are_found_by_their_names() {
        let mut scanner = Scanner::new("<c r:id='1' id=\"&quot;&#65;&#x42;\" s = '3'/>".as_bytes()).unwrap();
        let Ok(Token::Empty(tag)) = scanner.next() else { panic!("an empty element") };
        assert_eq!(tag.relation().as_deref(), Some("1"));
        assert_eq!(tag.attribute("s").as_deref(), Some("3"));
        assert_eq!(tag.attributes().count(), 3);
        assert_eq!(unescape(b"&quot;&#65;&#x42;").as_deref(), Some("\"AB"));
        assert_eq!(unescape(b"&nbsp;"), None);
    }
}
