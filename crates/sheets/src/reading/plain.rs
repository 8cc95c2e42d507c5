//! The cells that nearly all cells are: `<c r="B7" s="3" t="s"><v>12</v></c>`, read at one go.
//!
//! Guarantees: what it reads, [`SheetReader`](super::cells::SheetReader) would read the same way, token by token; anything written
//! otherwise (formulas, prefixes, single quotes, entities, a cell that the buffer cuts) it leaves to that one.

/// An attribute of a cell is shorter: a place, a style, a kind.
const ATTRIBUTE_BYTES_MAX: usize = 16;

/// A cell with nothing but a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PlainCell<'a> {
    /// `r`, where it is.
    pub(super) place: Option<&'a [u8]>,
    /// `s`.
    pub(super) style: Option<&'a [u8]>,
    /// `t`.
    pub(super) kind: Option<&'a [u8]>,
    /// What stands between `<v>` and `</v>`: neither markup nor entities.
    pub(super) value: &'a [u8],
}

/// The cell that begins with the first byte, and its length; `None` if it is not that plain.
pub(super) fn plain_cell(bytes: &[u8]) -> Option<(PlainCell<'_>, usize)> {
    let mut cell = PlainCell::default();
    let mut rest = bytes.strip_prefix(b"<c")?;
    loop {
        let (name, value, behind) = match rest {
            [b' ', name, b'=', b'"', behind @ ..] => {
                let end = behind.iter().take(ATTRIBUTE_BYTES_MAX).position(|byte| *byte == b'"')?;
                (*name, behind.get(..end)?, behind.get(end + 1..)?)
            }
            [b'>', b'<', b'v', b'>', behind @ ..] => {
                rest = behind;
                break;
            }
            _ => return None,
        };
        let place = match name {
            b'r' => &mut cell.place,
            b's' => &mut cell.style,
            b't' => &mut cell.kind,
            _ => return None,
        };
        // Written twice, the first or the last would count: somebody else may decide.
        if place.replace(value).is_some() {
            return None;
        }
        rest = behind;
    }
    let end = rest.iter().position(|byte| matches!(byte, b'<' | b'&' | b'_'))?;
    cell.value = rest.get(..end)?;
    let behind = rest.get(end..)?.strip_prefix(b"</v></c>")?;
    Some((cell, bytes.len() - behind.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_cells_are_read_whole() {
        let (cell, length) = plain_cell(b"<c r=\"B7\" s=\"3\" t=\"s\"><v>12</v></c><c").unwrap();

        assert_eq!(length, "<c r=\"B7\" s=\"3\" t=\"s\"><v>12</v></c>".len());
        let expected =
            (Some(b"B7".as_slice()), Some(b"3".as_slice()), Some(b"s".as_slice()), b"12".as_slice());
        assert_eq!((cell.place, cell.style, cell.kind, cell.value), expected);
        assert_eq!(plain_cell(b"<c><v></v></c>").map(|(cell, _)| cell.value), Some(b"".as_slice()));
    }

    #[test]
    fn anything_else_is_left_to_the_scanner() {
        for text in [
            "<c r=\"B7\"><f>A1</f><v>12</v></c>",
            "<c r=\"B7\"/>",
            "<c r='B7'><v>1</v></c>",
            "<c r=\"B7\" cm=\"1\"><v>1</v></c>",
            "<c  r=\"B7\"><v>1</v></c>",
            "<c r=\"B7\" r=\"B8\"><v>1</v></c>",
            "<c r=\"B7\"><v>a&amp;b</v></c>",
            "<c r=\"B7\"><v>a_x000D_</v></c>",
            "<c r=\"B7\"><v>1</v ></c>",
            "<c r=\"B7\"><v>1</v><f/></c>",
            "<x:c><x:v>1</x:v></x:c>",
            "<col/>",
            "<c r=\"B7\"><v>1</v></",
            "",
        ] {
            assert_eq!(plain_cell(text.as_bytes()), None, "{text}");
        }
    }
}
