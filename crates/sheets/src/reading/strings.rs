//! The texts of a workbook: cells name them by number.
//!
//! Guarantees: all in one piece of memory, within the limit; rich text is joined, what only tells how to pronounce it is left out.

use std::borrow::Cow;
use std::io::{Read, Seek};

use super::container::Container;
use super::fault::Fault;
use super::scan::{Token, unescape};
use crate::code;

/// The texts, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    text: String,
    ends: Vec<u32>,
    /// Those that begin with the marker prefix, by number.
    markers: Vec<u32>,
}

impl Strings {
    pub(crate) fn get(&self, number: u32) -> Option<&str> {
        let number = usize::try_from(number).ok()?;
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.text.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// Whether there is a text with this number.
    pub(crate) fn has(&self, number: u32) -> bool {
        usize::try_from(number).is_ok_and(|number| number < self.ends.len())
    }

    pub(crate) fn is_marker(&self, number: u32) -> bool {
        self.markers.binary_search(&number).is_ok()
    }

    /// Reads them. `prefix` is what markers begin with.
    pub(crate) fn read<R: Read + Seek>(
        container: &mut Container<R>,
        bytes_max: u64,
        prefix: &str,
    ) -> Result<Self, Fault> {
        let mut strings = Self::default();
        let Some(part) = container.strings.clone() else { return Ok(strings) };
        let mut place = Place::default();
        container.walk(&part, |token| {
            match token {
                Token::Start(tag) => place.enter(tag.name),
                Token::Empty(tag) if tag.name == b"si" => strings.end(prefix),
                Token::End(name, _) => {
                    place.leave(name);
                    if name == b"si" {
                        strings.end(prefix);
                    }
                }
                token => place.say(token, &mut strings.text)?,
            }
            if strings.text.len() as u64 > bytes_max || strings.ends.len() > 50_000_000 {
                let detail = format!("its texts have more than {} MB", bytes_max / 1_000_000);
                return Err(Fault::Refused(code::FILE_TOO_LARGE, detail));
            }
            Ok(())
        })?;
        Ok(strings)
    }

    fn end(&mut self, prefix: &str) {
        let start = self.ends.last().copied().unwrap_or(0);
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        let is_marker = usize::try_from(start).ok().and_then(|start| self.text.get(start..));
        if is_marker.is_some_and(|text| text.starts_with(prefix)) {
            self.markers.push(number);
        }
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
    }
}

/// Where we are inside of a text with runs.
#[derive(Debug, Default)]
pub(crate) struct Place {
    is_text: bool,
    is_phonetic: bool,
}

impl Place {
    pub(crate) fn enter(&mut self, name: &[u8]) {
        match name {
            b"t" => self.is_text = true,
            b"rPh" => self.is_phonetic = true,
            _ => {}
        }
    }

    pub(crate) fn leave(&mut self, name: &[u8]) {
        match name {
            b"t" => self.is_text = false,
            b"rPh" => self.is_phonetic = false,
            _ => {}
        }
    }

    pub(crate) fn say(&self, token: Token<'_>, out: &mut String) -> Result<(), Fault> {
        if self.is_text && !self.is_phonetic {
            out.push_str(&spoken(token)?);
        }
        Ok(())
    }
}

/// What a token says.
pub(crate) fn spoken(token: Token<'_>) -> Result<Cow<'_, str>, Fault> {
    let text = match token {
        Token::Text(bytes) => unescape(bytes),
        Token::Raw(bytes, _) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        _ => return Ok(Cow::Borrowed("")),
    };
    let text = text.ok_or_else(|| Fault::broken("a text is not written in UTF-8"))?;
    // Few texts have a low line at all, and one byte is looked for much faster than two.
    let is_folded = text.as_bytes().contains(&b'_') && text.contains("_x");
    Ok(if is_folded { Cow::Owned(unfold(&text)) } else { text })
}

/// Characters that XML cannot hold are written as `_x000D_`.
fn unfold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("_x") {
        out.push_str(before);
        let code = after.get(..4).filter(|_| after.as_bytes().get(4) == Some(&b'_'));
        let letter = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        match letter {
            Some(letter) => {
                out.push(letter);
                rest = after.get(5..).unwrap_or_default();
            }
            None => {
                out.push_str("_x");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_characters_are_unfolded() {
        assert_eq!(unfold("a_x000D_b_x005F_x_xZZ"), "a\rb_x_xZZ");
    }
}
