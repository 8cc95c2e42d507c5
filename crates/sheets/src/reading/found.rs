//! A table where it was found: which column of the sheet is which of the template, and the text of its rows.
//!
//! Guarantees: the text of a row is that of `model::submissions::canonical_values`, written without building a map first.

use std::fmt::Write as _;
use std::sync::Arc;

use super::cells::letters;
use super::keys::Keys;
use crate::expressions::Cell;
use crate::{FoundTable, Table, TableTotals};

/// What a column of the sheet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A column of the template, by index.
    Column(usize),
    /// One it does not know, by index into `unknown`.
    Unknown(usize),
    /// One that tells which rows are no data.
    Skip,
    /// One that is not looked at.
    Nothing,
}

/// A table that was found.
pub(crate) struct Found {
    pub(crate) kind: Arc<str>,
    pub(crate) sheet: Arc<str>,
    pub(crate) header_row: u32,
    /// The column of the marker.
    pub(crate) first: u32,
    /// What the columns behind it are.
    pub(crate) slots: Vec<Slot>,
    /// For each column of the template, where it is.
    pub(crate) places: Vec<Option<u32>>,
    /// Headers of columns the template does not know, and where they are.
    pub(crate) unknown: Vec<(String, u32)>,
    pub(crate) keys: Keys,
    pub(crate) totals: TableTotals,
    pub(crate) used: Runs,
    /// Whether it ended already, on this sheet.
    pub(crate) is_over: bool,
    pub(crate) rows: u64,
    order: Vec<(String, Slot)>,
}

impl Found {
    pub(crate) fn new((sheet, header_row, first): (&str, u32, u32), table: &Table, slots: Vec<Slot>) -> Self {
        let mut places = vec![None; table.columns.len()];
        for (column, slot) in (first + 1..).zip(&slots) {
            if let Slot::Column(index) = slot
                && let Some(place) = places.get_mut(*index)
            {
                *place = Some(column);
            }
        }
        Self {
            kind: table.kind.as_str().into(),
            sheet: sheet.into(),
            header_row,
            first,
            slots,
            places,
            unknown: Vec::new(),
            keys: Keys::default(),
            totals: TableTotals::default(),
            used: Runs::default(),
            is_over: false,
            rows: 0,
            order: Vec::new(),
        }
    }

    /// The last column of it.
    pub(crate) fn last(&self) -> u32 {
        self.first + u32::try_from(self.slots.len()).unwrap_or(0)
    }

    /// Fixes the order in which values are written.
    pub(crate) fn arrange(&mut self, table: &Table) {
        let columns =
            table.columns.iter().enumerate().map(|(at, each)| (each.name.clone(), Slot::Column(at)));
        let unknown =
            self.unknown.iter().enumerate().map(|(at, (name, _))| (name.clone(), Slot::Unknown(at)));
        self.order = columns.chain(unknown).collect();
        self.order.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        for (name, _) in &mut self.order {
            *name = serde_json::to_string(name.as_str()).unwrap_or_default() + ":";
        }
    }

    /// The canonical text of a row.
    pub(crate) fn canonical(&self, cells: &[Cell], unknown: &[String]) -> String {
        let mut out = String::with_capacity(32 * self.order.len());
        out.push('{');
        for (name, slot) in &self.order {
            let length = out.len();
            if length > 1 {
                out.push(',');
            }
            out.push_str(name);
            let is_written = match slot {
                Slot::Column(index) => cells.get(*index).is_some_and(|cell| write_cell(cell, &mut out)),
                Slot::Unknown(index) => unknown.get(*index).is_some_and(|text| write_text(text, &mut out)),
                Slot::Skip | Slot::Nothing => false,
            };
            if !is_written {
                out.truncate(length);
            }
        }
        out.push('}');
        out
    }

    pub(crate) fn described(&self, table: &Table) -> FoundTable {
        let known = table.columns.iter().zip(&self.places);
        let known = known.filter_map(|(column, place)| Some((column.name.clone(), letters((*place)?))));
        let unknown = self.unknown.iter().map(|(name, column)| (name.clone(), letters(*column)));
        FoundTable {
            name: table.name.clone(),
            kind: table.kind.clone(),
            sheet: self.sheet.to_string(),
            header_row: self.header_row,
            columns: known.chain(unknown).collect(),
            totals: self.totals.clone(),
        }
    }
}

fn write_cell(cell: &Cell, out: &mut String) -> bool {
    match cell {
        Cell::Blank => false,
        Cell::Wrong(text) | Cell::Text(text) => write_text(text, out),
        Cell::Number(number) => {
            out.push('"');
            number.write_to(out);
            out.push('"');
            true
        }
        Cell::Day(day) => write!(out, "\"{day}\"").is_ok(),
    }
}

fn write_text(text: &str, out: &mut String) -> bool {
    if text.is_empty() {
        return false;
    }
    let is_plain = !text.bytes().any(|byte| byte < 0x20 || matches!(byte, b'"' | b'\\' | 0x7F));
    if is_plain {
        out.push('"');
        out.push_str(text);
        out.push('"');
        return true;
    }
    serde_json::to_string(text).map(|text| out.push_str(&text)).is_ok()
}

/// The canonical text of one value; empty if it is blank.
pub(crate) fn text_of(cell: &Cell) -> String {
    match cell {
        Cell::Blank => String::new(),
        Cell::Wrong(text) | Cell::Text(text) => text.clone(),
        Cell::Number(number) => number.to_string(),
        Cell::Day(day) => day.to_string(),
    }
}

/// Numbers of rows, as runs: rows that are in use mostly follow each other.
#[derive(Debug, Default)]
pub(crate) struct Runs(Vec<(u32, u32)>);

impl Runs {
    /// Adds a row behind all others.
    pub(crate) fn push(&mut self, row: u32) {
        match self.0.last_mut() {
            Some((_, last)) if *last + 1 == row => *last = row,
            _ => self.0.push((row, row)),
        }
    }

    /// Whether one of these rows is among them.
    pub(crate) fn touches(&self, first: u32, last: u32) -> bool {
        let at = self.0.partition_point(|(_, end)| *end < first);
        self.0.get(at).is_some_and(|(start, _)| *start <= last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_know_their_rows() {
        let mut runs = Runs::default();
        for row in [3, 4, 5, 9, 20, 21] {
            runs.push(row);
        }
        assert_eq!(runs.0.len(), 3);
        assert!(runs.touches(1, 3) && runs.touches(5, 5) && runs.touches(6, 100) && runs.touches(21, 21));
        assert!(!runs.touches(1, 2) && !runs.touches(6, 8) && !runs.touches(22, 99));
    }
}
