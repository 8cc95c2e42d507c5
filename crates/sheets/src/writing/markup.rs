//! Markup of cells.

use std::fmt::Write as _;

use crate::reading::letters;

/// A text in which nothing is markup. What XML cannot hold at all is written as spreadsheets write it: `_x0001_`.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for (at, letter) in text.char_indices() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(letter),
            '\u{0}'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => {
                let _ = write!(out, "_x{:04X}_", u32::from(letter));
            }
            // What only looks like such a character.
            '_' if looks_folded(text.get(at..).unwrap_or_default()) => out.push_str("_x005F_"),
            letter => out.push(letter),
        }
    }
    out
}

fn looks_folded(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.starts_with(b"_x")
        && bytes.get(6) == Some(&b'_')
        && bytes.get(2..6).is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
}

/// Cells of a row, as they are put together.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    pub(crate) markup: String,
    row: u32,
}

impl Cells {
    /// Begins a row; `attributes` stand in its tag.
    pub(crate) fn start(&mut self, row: u32, attributes: &str) {
        self.row = row;
        let _ = write!(self.markup, "<row r=\"{row}\"{attributes}>");
    }

    pub(crate) fn end(&mut self) {
        self.markup.push_str("</row>");
    }

    /// A text. An empty one leaves only the style.
    pub(crate) fn text(&mut self, column: u32, style: usize, text: &str) {
        let at = letters(column);
        let row = self.row;
        let _ = if text.is_empty() {
            write!(self.markup, "<c r=\"{at}{row}\" s=\"{style}\"/>")
        } else {
            let text = escaped(text);
            write!(
                self.markup,
                "<c r=\"{at}{row}\" s=\"{style}\" t=\"inlineStr\"><is><t xml:space=\"preserve\">{text}</t></is></c>"
            )
        };
    }

    /// A number; it is the caller's that it is one.
    pub(crate) fn number(&mut self, column: u32, style: usize, number: &str) {
        let at = letters(column);
        let row = self.row;
        let _ = write!(self.markup, "<c r=\"{at}{row}\" s=\"{style}\"><v>{number}</v></c>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_folded() {
        assert_eq!(
            escaped("a<b>&\"c\"\r\u{1}_x0041_ _x"),
            "a&lt;b&gt;&amp;&quot;c&quot;_x000D__x0001__x005F_x0041_ _x"
        );
    }
}
