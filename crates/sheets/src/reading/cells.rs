//! The cells of a sheet, row by row.
//!
//! Guarantees: rows and cells come in their order, or the part is damaged; cells that only have a format are not seen; no more than
//! one row is in memory. A formula is its last result; one without a result says so.

use std::io::Read;
use std::ops::Range;

use super::fault::Fault;
use super::plain::plain_cell;
use super::scan::{Scanner, Tag, Token};
use super::strings::{Place, Strings, spoken};

/// The last row and the last column there are.
const ROWS_MAX: u32 = 1_048_576;
const COLUMNS_MAX: u32 = 16_384;
/// Texts of one row, without shared ones.
const ROW_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Merged ranges that are looked at.
const MERGES_MAX: usize = 100_000;

/// A row that is being read.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// Its number, from 1.
    pub(crate) number: u32,
    pub(crate) cells: Vec<RawCell>,
    text: String,
}

/// A cell as the file has it.
#[derive(Debug, Clone)]
pub(crate) struct RawCell {
    /// Its column, from 0.
    pub(crate) column: u32,
    pub(crate) kind: RawKind,
    pub(crate) style: u32,
    text: RawText,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RawKind {
    Number,
    Text,
    Flag,
    Error,
    /// A day in words of ISO 8601.
    Day,
    /// A formula that nobody has computed.
    NoResult,
}

#[derive(Debug, Clone)]
enum RawText {
    Shared(u32),
    Own(Range<usize>),
}

impl Row {
    /// What stands in a cell.
    pub(crate) fn text<'a>(&'a self, cell: &RawCell, strings: &'a Strings) -> &'a str {
        match &cell.text {
            RawText::Shared(number) => strings.get(*number).unwrap_or_default(),
            RawText::Own(range) => self.text.get(range.clone()).unwrap_or_default(),
        }
    }

    pub(crate) fn is_marker(&self, cell: &RawCell, strings: &Strings, prefix: &str) -> bool {
        match &cell.text {
            RawText::Shared(number) => strings.is_marker(*number),
            RawText::Own(range) => {
                cell.kind == RawKind::Text
                    && self.text.get(range.clone()).is_some_and(|text| text.starts_with(prefix))
            }
        }
    }
}

/// A range of cells that are merged: first row, first column, last row, last column; rows from 1, columns from 0.
pub(crate) type Merge = (u32, u32, u32, u32);

/// Walks through a sheet.
pub(crate) struct SheetReader<'a, R> {
    scanner: Scanner<R>,
    strings: &'a Strings,
    row: u32,
    is_inside: bool,
}

impl<'a, R: Read> SheetReader<'a, R> {
    pub(crate) fn new(scanner: Scanner<R>, strings: &'a Strings) -> Self {
        Self { scanner, strings, row: 0, is_inside: false }
    }

    /// Reads the next row that has something in it; `false` behind the last one.
    pub(crate) fn next_row(&mut self, row: &mut Row) -> Result<bool, Fault> {
        loop {
            match self.scanner.next()? {
                Token::Start(tag) if tag.name == b"sheetData" => self.is_inside = true,
                Token::End(b"sheetData", _) | Token::Over => return Ok(false),
                Token::Empty(tag) if tag.name == b"sheetData" => return Ok(false),
                Token::Empty(tag) if self.is_inside && tag.name == b"row" => {
                    self.row = numbered(tag, self.row)?;
                }
                Token::Start(tag) if self.is_inside && tag.name == b"row" => {
                    self.row = numbered(tag, self.row)?;
                    row.number = self.row;
                    self.read_cells(row)?;
                    if !row.cells.is_empty() {
                        return Ok(true);
                    }
                }
                _ => {}
            }
        }
    }

    fn read_cells(&mut self, row: &mut Row) -> Result<(), Fault> {
        row.cells.clear();
        row.text.clear();
        let mut next = 0;
        loop {
            while let Some(column) = self.read_plain_cell(next, row)? {
                next = column + 1;
            }
            match self.scanner.next()? {
                Token::Start(tag) if tag.name == b"c" => {
                    let cell = CellTag::read(tag, next)?;
                    next = cell.column + 1;
                    self.read_cell(&cell, row)?;
                }
                Token::Empty(tag) if tag.name == b"c" => next = CellTag::read(tag, next)?.column + 1,
                Token::End(b"row", _) => return Ok(()),
                Token::Over => return Err(Fault::broken("a sheet ends too early")),
                _ => {}
            }
        }
    }

    /// Reads a cell at one go, if it is as plain as nearly all are; its column.
    fn read_plain_cell(&mut self, next: u32, row: &mut Row) -> Result<Option<u32>, Fault> {
        let Some((plain, length)) = plain_cell(self.scanner.ahead()) else { return Ok(None) };
        let mut cell = CellTag { column: next, style: 0, kind: CellKind::Number };
        let said = [(b"r", plain.place), (b"s", plain.style), (b"t", plain.kind)];
        for (name, value) in said {
            value.map_or(Ok(()), |value| cell.take(name, value))?;
        }
        let cell = cell.placed(next)?;
        let own = row.text.len();
        row.text.push_str(
            std::str::from_utf8(plain.value).map_err(|_| Fault::broken("a text is not written in UTF-8"))?,
        );
        self.scanner.pass(length);
        let own = own..row.text.len();
        self.keep(&cell, row, (own, true, false))?;
        Ok(Some(cell.column))
    }

    fn read_cell(&mut self, cell: &CellTag, row: &mut Row) -> Result<(), Fault> {
        let start = row.text.len();
        let (mut is_value, mut has_value, mut has_formula) = (false, false, false);
        let mut place = Place::default();
        loop {
            match self.scanner.next()? {
                Token::Start(tag) => match tag.name {
                    b"v" => (is_value, has_value) = (true, true),
                    b"f" => {
                        has_formula = true;
                        self.scanner.skip()?;
                    }
                    name => place.enter(name),
                },
                Token::Empty(tag) => match tag.name {
                    b"v" => has_value = true,
                    b"f" => has_formula = true,
                    _ => {}
                },
                Token::End(b"c", _) => break,
                Token::End(name, _) => {
                    is_value = is_value && name != b"v";
                    place.leave(name);
                }
                Token::Over => return Err(Fault::broken("a sheet ends too early")),
                token if is_value => row.text.push_str(&spoken(token)?),
                token => place.say(token, &mut row.text)?,
            }
        }
        if row.text.len() > ROW_BYTES_MAX {
            return Err(Fault::broken("a row has texts beyond all measure"));
        }
        let own = start..row.text.len();
        self.keep(cell, row, (own, has_value, has_formula))
    }

    fn keep(
        &self,
        cell: &CellTag,
        row: &mut Row,
        (own, has_value, has_formula): (Range<usize>, bool, bool),
    ) -> Result<(), Fault> {
        let is_empty = own.is_empty();
        let has_no_result = has_formula && is_empty && !(has_value && cell.kind == CellKind::Formula);
        let kind = match cell.kind {
            _ if has_no_result => RawKind::NoResult,
            CellKind::Number => RawKind::Number,
            CellKind::Shared | CellKind::Formula | CellKind::Inline => RawKind::Text,
            CellKind::Flag => RawKind::Flag,
            CellKind::Error => RawKind::Error,
            CellKind::Day => RawKind::Day,
        };
        if is_empty && !has_no_result {
            return Ok(());
        }
        let text = match cell.kind {
            CellKind::Shared if !has_no_result => {
                let number = row.text.get(own.clone()).and_then(|digits| digits.trim().parse().ok());
                let number = number.filter(|number| self.strings.has(*number));
                row.text.truncate(own.start);
                RawText::Shared(number.ok_or_else(|| Fault::broken("a cell names a text that is not there"))?)
            }
            _ => RawText::Own(own),
        };
        row.cells.push(RawCell { column: cell.column, kind, style: cell.style, text });
        Ok(())
    }

    /// Reads what is behind the rows, to its end: which cells are merged.
    pub(crate) fn finish(mut self) -> Result<Vec<Merge>, Fault> {
        let mut merges = Vec::new();
        loop {
            match self.scanner.next()? {
                Token::Start(tag) | Token::Empty(tag) if tag.name == b"mergeCell" => {
                    let range = tag.attribute("ref");
                    merges.extend(
                        range.and_then(|range| range_of(&range)).filter(|_| merges.len() < MERGES_MAX),
                    );
                }
                Token::Over => return Ok(merges),
                _ => {}
            }
        }
    }
}

/// How a cell says what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellKind {
    Number,
    Shared,
    Formula,
    Inline,
    Flag,
    Error,
    Day,
}

struct CellTag {
    column: u32,
    style: u32,
    kind: CellKind,
}

impl CellTag {
    fn read(tag: Tag<'_>, next: u32) -> Result<Self, Fault> {
        let mut cell = Self { column: next, style: 0, kind: CellKind::Number };
        for (name, value) in tag.attributes() {
            cell.take(name, value)?;
        }
        cell.placed(next)
    }

    /// Takes an attribute.
    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        match name {
            b"r" => self.column = column_of(value).ok_or_else(|| Fault::broken("a cell is nowhere"))?.0,
            b"s" => self.style = number_of(value).unwrap_or(0),
            b"t" => {
                self.kind = match value {
                    b"s" => CellKind::Shared,
                    b"str" => CellKind::Formula,
                    b"inlineStr" => CellKind::Inline,
                    b"b" => CellKind::Flag,
                    b"e" => CellKind::Error,
                    b"d" => CellKind::Day,
                    _ => CellKind::Number,
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Itself, if it stands behind the cells before it.
    fn placed(self, next: u32) -> Result<Self, Fault> {
        match self.column < next || self.column >= COLUMNS_MAX {
            true => Err(Fault::broken("the cells of a row are out of order")),
            false => Ok(self),
        }
    }
}

/// The number of a row; without one it follows the row before.
fn numbered(tag: Tag<'_>, before: u32) -> Result<u32, Fault> {
    let said = tag.attributes().find(|(name, _)| *name == b"r").map(|(_, value)| number_of(value));
    let number = said.unwrap_or(Some(before + 1)).filter(|number| *number > before && *number <= ROWS_MAX);
    number.ok_or_else(|| Fault::broken("the rows of a sheet are out of order"))
}

fn number_of(bytes: &[u8]) -> Option<u32> {
    if bytes.is_empty() || bytes.len() > 9 {
        return None;
    }
    bytes
        .iter()
        .try_fold(0, |number: u32, byte| byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0')))
}

/// The column of a cell from its letters, from 0, and what stands behind them.
fn column_of(cell: &[u8]) -> Option<(u32, &[u8])> {
    let letters = cell.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(cell.len());
    if letters == 0 || letters > 3 {
        return None;
    }
    let (letters, rest) = cell.split_at(letters);
    let number = letters
        .iter()
        .fold(0, |number: u32, letter| number * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1);
    Some((number - 1, rest))
}

/// A cell from how people write it: row from 1, column from 0.
pub(crate) fn cell_of(text: &str) -> Option<(u32, u32)> {
    let (column, rest) = column_of(text.as_bytes())?;
    let row = number_of(rest).filter(|row| (1..=ROWS_MAX).contains(row))?;
    (column < COLUMNS_MAX).then_some((row, column))
}

fn range_of(text: &str) -> Option<Merge> {
    let (first, last) = text.split_once(':')?;
    let ((top, left), (bottom, right)) = (cell_of(first)?, cell_of(last)?);
    (top <= bottom && left <= right).then_some((top, left, bottom, right))
}

/// The letters of a column, from 0.
pub(crate) fn letters(column: u32) -> String {
    let mut letters = Vec::new();
    let mut rest = column + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(char::from(b'A' + u8::try_from(rest % 26).unwrap_or(0)));
        rest /= 26;
    }
    letters.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_letters_and_back() {
        for (column, text) in [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA"), (16_383, "XFD")] {
            assert_eq!(letters(column), text);
            assert_eq!(cell_of(&format!("{text}14")), Some((14, column)));
        }
        for text in ["", "A", "1", "A0", "XFE1", "A1048577", "AAAA1", "A-1", "Ä1", "A99999999999"] {
            assert_eq!(cell_of(text), None, "{text}");
        }
        assert_eq!(range_of("B2:C4"), Some((2, 1, 4, 2)));
        assert_eq!(range_of("C4:B2"), None);
    }
}
