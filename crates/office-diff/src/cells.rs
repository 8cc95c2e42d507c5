//! Cells out of the markup of workbooks.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use crate::budget::Budget;
use crate::markup::{Tag, Then, Visitor};
use crate::package::Package;

/// Row and column, counted from 0.
pub(crate) type Position = (u32, u32);

/// A sheet with its cells.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) name: String,
    pub(crate) cells: BTreeMap<Position, Cell>,
    /// Whether it was read to its end.
    pub(crate) is_whole: bool,
}

/// A cell that says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) value: String,
    pub(crate) formula: Option<String>,
}

/// `B7` for row 6, column 1.
pub fn address(row: u32, column: u32) -> String {
    let mut letters = Vec::new();
    let mut rest = u64::from(column) + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(char::from(b'A' + u8::try_from(rest % 26).unwrap_or(0)));
        rest /= 26;
    }
    letters.iter().rev().chain((u64::from(row) + 1).to_string().chars().collect::<Vec<_>>().iter()).collect()
}

fn position(address: &str) -> Option<Position> {
    let digits = address.find(|letter: char| letter.is_ascii_digit())?;
    let (letters, row) = address.split_at(digits);
    let mut column: u32 = 0;
    for letter in letters.bytes() {
        let letter = letter.to_ascii_uppercase().checked_sub(b'A').filter(|letter| *letter < 26)?;
        column = column.checked_mul(26)?.checked_add(u32::from(letter) + 1)?;
    }
    Some((row.parse::<u32>().ok()?.checked_sub(1)?, column.checked_sub(1)?))
}

/// Reads sheets, named with their parts, and the strings they share.
pub(crate) fn read<R: Read + Seek>(
    package: &mut Package<R>,
    (sheets, strings): (&[(String, String)], Option<&str>),
    budget: &mut Budget,
) -> Vec<Sheet> {
    let mut shared = Strings::default();
    if let Some(part) = strings {
        package.walk(part, budget, &mut shared);
    }
    let mut found = Vec::new();
    for (name, part) in sheets {
        let mut reader = CellReader { strings: &shared.found, ..CellReader::new() };
        package.walk(part, budget, &mut reader);
        found.push(Sheet { name: name.clone(), cells: reader.cells, is_whole: budget.is_open() });
    }
    found
}

/// Reads the strings that cells share.
#[derive(Default)]
struct Strings {
    found: Vec<String>,
    said: String,
    texts: u32,
}

impl Visitor for Strings {
    /// How to pronounce it.
    const SKIPPED: &'static [&'static str] = &["rPh"];

    fn start(&mut self, name: &str, _: &Tag<'_>, _: &mut Budget) -> Then {
        if name == "t" {
            self.texts += 1;
        }
        Then::GoOn
    }

    fn end(&mut self, name: &str, budget: &mut Budget) -> Then {
        match name {
            "t" => self.texts = self.texts.saturating_sub(1),
            "si" if budget.takes(self.said.len()) => self.found.push(std::mem::take(&mut self.said)),
            _ => {}
        }
        Then::GoOn
    }

    fn text(&mut self, text: &str, budget: &Budget) {
        if self.texts > 0 && self.said.len() <= budget.text_bytes() {
            self.said.push_str(text);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Value,
    Formula,
    Text,
}

/// Reads the cells of a sheet.
struct CellReader<'a> {
    strings: &'a [String],
    cells: BTreeMap<Position, Cell>,
    row: u32,
    next: Position,
    at: Position,
    kind: String,
    inside: Inside,
    value: String,
    formula: String,
}

impl CellReader<'_> {
    fn new() -> Self {
        Self {
            strings: &[],
            cells: BTreeMap::new(),
            row: 0,
            next: (0, 0),
            at: (0, 0),
            kind: String::new(),
            inside: Inside::Nothing,
            value: String::new(),
            formula: String::new(),
        }
    }

    /// What a cell shows.
    fn shown(&mut self) -> String {
        let value = std::mem::take(&mut self.value);
        match self.kind.as_str() {
            "s" => value
                .trim()
                .parse::<usize>()
                .ok()
                .and_then(|at| self.strings.get(at))
                .cloned()
                .unwrap_or_default(),
            "b" => if value.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned(),
            _ => value,
        }
    }

    fn close(&mut self, budget: &mut Budget) {
        let value = self.shown();
        let formula = std::mem::take(&mut self.formula);
        let formula = (!formula.is_empty()).then_some(formula);
        let bytes = value.len() + formula.as_ref().map_or(0, String::len);
        if bytes > 0 && budget.takes(bytes) {
            self.cells.insert(self.at, Cell { value, formula });
        }
        self.next = (self.at.0, self.at.1.saturating_add(1));
    }
}

impl Visitor for CellReader<'_> {
    const SKIPPED: &'static [&'static str] = &["rPh"];

    fn start(&mut self, name: &str, tag: &Tag<'_>, _: &mut Budget) -> Then {
        match name {
            "row" => {
                let row = tag.number("r").and_then(|row| row.checked_sub(1));
                self.row = row.unwrap_or(self.row);
                self.next = (self.row, 0);
            }
            "c" => {
                self.at = tag.attribute("r").and_then(|at| position(&at)).unwrap_or(self.next);
                self.kind = tag.attribute("t").unwrap_or_default();
                self.value.clear();
                self.formula.clear();
            }
            "v" => self.inside = Inside::Value,
            "f" => self.inside = Inside::Formula,
            "t" => self.inside = Inside::Text,
            _ => {}
        }
        Then::GoOn
    }

    fn end(&mut self, name: &str, budget: &mut Budget) -> Then {
        match name {
            "row" => self.row = self.row.saturating_add(1),
            "c" => self.close(budget),
            "v" | "f" | "t" => self.inside = Inside::Nothing,
            // Comments, drawings and conditions stand behind the cells.
            "sheetData" => return Then::Stop,
            _ => {}
        }
        Then::GoOn
    }

    fn text(&mut self, text: &str, budget: &Budget) {
        let into = match self.inside {
            Inside::Nothing => return,
            Inside::Value | Inside::Text => &mut self.value,
            Inside::Formula => &mut self.formula,
        };
        if into.len() <= budget.text_bytes() {
            into.push_str(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_what_they_show() {
        for (at, text) in [
            ((0, 0), "A1"),
            ((6, 1), "B7"),
            ((0, 25), "Z1"),
            ((0, 26), "AA1"),
            ((1_048_575, 16_383), "XFD1048576"),
        ] {
            assert_eq!(address(at.0, at.1), text);
            assert_eq!(position(text), Some(at));
        }
        for strange in ["", "A", "7", "A0", "Ä1", "A-1", "AAAAAAAAAAAAAAAA1", "A99999999999"] {
            assert_eq!(position(strange), None, "{strange}");
        }
    }
}
