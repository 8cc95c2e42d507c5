//! One sheet: markers are found, tables begin and end, rows are handed on.
//!
//! Guarantees: a marker is found wherever it stands; a second one is a problem; tables may stand below and beside each other. A table
//! ends where the next marker stands in one of its columns, or with the sheet, and never at a blank row.

use std::io::Read;

use super::cells::{RawCell, Row, SheetReader, letters};
use super::fault::Fault;
use super::found::{Found, Slot};
use super::metas::FoundMeta;
use super::rows::{RowReader, TableRow};
use super::values::Workbook;
use crate::{MissingColumns, Place, Table, UnknownColumns, code};

/// What was found so far, on all sheets.
pub(crate) struct Findings {
    /// One for each table of the template.
    pub(crate) tables: Vec<Option<Found>>,
    /// One for each single value of the template.
    pub(crate) metas: Vec<Option<FoundMeta>>,
}

/// A sheet that is being read.
pub(crate) struct Sheet<'s, 'a> {
    pub(crate) name: &'s str,
    pub(crate) workbook: &'s Workbook<'s>,
    pub(crate) reader: &'s mut RowReader<'a>,
    pub(crate) findings: &'s mut Findings,
}

impl<'a> Sheet<'_, 'a> {
    pub(crate) fn read<R: Read>(&mut self, mut cells: SheetReader<'_, R>) -> Result<(), Fault> {
        let mut row = Row::default();
        let mut picks = Vec::new();
        while cells.next_row(&mut row)? {
            self.reader.looked_at_a_row()?;
            let prefix = &self.reader.template.marker_prefix;
            if row.cells.iter().any(|cell| row.is_marker(cell, self.workbook.strings, prefix)) {
                self.read_markers(&row);
            }
            self.read_tables(&row, &mut picks)?;
        }
        for merge in cells.finish()? {
            self.tell_merged(merge);
        }
        Ok(())
    }

    /// Hands the row to each table it belongs to.
    fn read_tables(&mut self, row: &Row, picks: &mut Vec<Option<usize>>) -> Result<(), Fault> {
        for (at, found) in self.findings.tables.iter_mut().enumerate() {
            let Some(found) = found else { continue };
            let is_here = !found.is_over && *found.sheet == *self.name && row.number > found.header_row;
            if !is_here {
                continue;
            }
            picks.clear();
            picks.resize(found.slots.len(), None);
            let mut has_any = false;
            for (number, cell) in row.cells.iter().enumerate() {
                let slot =
                    cell.column.checked_sub(found.first + 1).and_then(|slot| usize::try_from(slot).ok());
                if let Some(pick) = slot.and_then(|slot| picks.get_mut(slot)) {
                    *pick = Some(number);
                    has_any = true;
                }
            }
            if has_any {
                self.reader.read(at, found, TableRow { row, picks, workbook: self.workbook })?;
            }
        }
        Ok(())
    }

    fn read_markers(&mut self, row: &Row) {
        let prefix = self.reader.template.marker_prefix.as_str();
        for (number, cell) in row.cells.iter().enumerate() {
            if !row.is_marker(cell, self.workbook.strings, prefix) {
                continue;
            }
            let text = row.text(cell, self.workbook.strings).trim().to_owned();
            let name = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')).unwrap_or_default();
            if name == "SKIP" {
                continue;
            }
            self.end_tables(cell.column, cell.column);
            let template = self.reader.template;
            let meta = name
                .strip_prefix("META_")
                .and_then(|name| template.meta.iter().position(|each| each.name == name));
            let table = name
                .strip_prefix("TABLE_")
                .and_then(|name| template.tables.iter().position(|each| each.name == name));
            match (meta, table) {
                (Some(at), _) => self.meta(at, (row, number), &text),
                (_, Some(at)) => self.table(at, (row, number), &text),
                _ => self.tell_marker(code::MARKER_UNKNOWN, (row, cell), (&text, String::new())),
            }
        }
    }

    fn tell_marker(&mut self, code: &str, (row, cell): (&Row, &RawCell), (text, detail): (&str, String)) {
        let place = Place {
            sheet: Some(self.name.to_owned()),
            cell: Some(format!("{}{}", letters(cell.column), row.number)),
            value: Some(text.to_owned()),
            ..Place::default()
        };
        self.reader.problems.add((code, 0), || (place, detail));
    }

    fn meta(&mut self, at: usize, (row, number): (&Row, usize), text: &str) {
        let Some(marker) = row.cells.get(number) else { return };
        if let Some(Some(first)) = self.findings.metas.get(at) {
            let first = format!("{} of {}", first.marker, first.sheet);
            self.tell_marker(code::MARKER_TWICE, (row, marker), (text, first));
            return;
        }
        let cell = row.cells.get(number + 1).filter(|cell| cell.column == marker.column + 1);
        let prefix = &self.reader.template.marker_prefix;
        if cell.is_some_and(|cell| row.is_marker(cell, self.workbook.strings, prefix)) {
            self.tell_marker(code::MARKER_INSTEAD_OF_VALUE, (row, marker), (text, String::new()));
        }
        let (shown, is_unusable) = FoundMeta::read(self.workbook, (row, cell));
        let found = FoundMeta {
            sheet: self.name.to_owned(),
            marker: format!("{}{}", letters(marker.column), row.number),
            cell: format!("{}{}", letters(marker.column + 1), row.number),
            shown,
            is_unusable,
        };
        if let Some(place) = self.findings.metas.get_mut(at) {
            *place = Some(found);
        }
    }

    fn table(&mut self, at: usize, (row, number): (&Row, usize), text: &str) {
        let template = self.reader.template;
        let (Some(marker), Some(table)) = (row.cells.get(number), template.tables.get(at)) else { return };
        if let Some(Some(first)) = self.findings.tables.get(at) {
            let first = format!("{}{} of {}", letters(first.first), first.header_row, first.sheet);
            self.tell_marker(code::MARKER_TWICE, (row, marker), (text, first));
            return;
        }
        let headers = self.headers(row, number);
        if headers.len() as u64 > template.limits.columns {
            let detail = format!("at most {}", template.limits.columns);
            self.tell_header(code::TOO_MANY_COLUMNS, (row.number, marker.column + 1), ("", detail));
        }
        let (slots, unknown, is_right) = self.slots(table, row.number, (marker.column, &headers));
        let mut found = Found::new((self.name, row.number, marker.column), table, slots);
        found.unknown = unknown;
        found.arrange(table);
        found.is_over = !is_right || headers.len() as u64 > template.limits.columns;
        self.end_tables(found.first, found.last());
        if let Some(place) = self.findings.tables.get_mut(at) {
            *place = Some(found);
        }
    }

    /// The texts to the right of a marker, up to the first gap or the next marker.
    fn headers(&self, row: &Row, number: usize) -> Vec<String> {
        let prefix = &self.reader.template.marker_prefix;
        let skip = format!("{prefix}_SKIP");
        let mut headers = Vec::new();
        let first = row.cells.get(number).map_or(0, |marker| marker.column + 1);
        for (next, cell) in (first..).zip(row.cells.iter().skip(number + 1)) {
            let text = self.workbook.shown(row, cell);
            let is_marker = row.is_marker(cell, self.workbook.strings, prefix) && text != skip;
            if cell.column != next || is_marker || text.is_empty() {
                break;
            }
            headers.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        headers
    }

    /// What the columns are, the headers that are kept though the template does not know them, and whether the table can be read.
    fn slots(
        &mut self,
        table: &Table,
        row: u32,
        (first, headers): (u32, &[String]),
    ) -> (Vec<Slot>, Vec<(String, u32)>, bool) {
        let skip = format!("{}_SKIP", self.reader.template.marker_prefix);
        let (mut slots, mut unknown, mut is_right) = (Vec::new(), Vec::<(String, u32)>::new(), true);
        for (column, header) in (first + 1..).zip(headers) {
            let known = table.columns.iter().position(|each| each.name == *header);
            let known = known.or_else(|| table.columns.iter().position(|each| each.label == *header));
            let is_twice = known.is_some_and(|index| slots.contains(&Slot::Column(index)))
                || unknown.iter().any(|(name, _)| name == header);
            let slot = match (known, table.unknown_columns) {
                _ if *header == skip => Slot::Skip,
                _ if is_twice => {
                    self.tell_header(code::HEADER_TWICE, (row, column), (header, String::new()));
                    is_right = false;
                    Slot::Nothing
                }
                (Some(index), _) => Slot::Column(index),
                (None, UnknownColumns::Keep) => {
                    unknown.push((header.clone(), column));
                    Slot::Unknown(unknown.len() - 1)
                }
                (None, UnknownColumns::Ignore) => Slot::Nothing,
                (None, UnknownColumns::Refuse) => {
                    self.tell_header(code::HEADER_UNKNOWN, (row, column), (header, String::new()));
                    Slot::Nothing
                }
            };
            slots.push(slot);
        }
        for (index, column) in table.columns.iter().enumerate() {
            let is_missing = !slots.contains(&Slot::Column(index));
            let is_needed = table.missing_columns == MissingColumns::Fatal || table.key.contains(&index);
            if is_missing && is_needed {
                self.tell_header(code::HEADER_MISSING, (row, first), (&column.label, String::new()));
                is_right = false;
            }
        }
        (slots, unknown, is_right)
    }

    fn tell_header(&mut self, code: &str, (row, column): (u32, u32), (header, detail): (&str, String)) {
        let place = Place {
            sheet: Some(self.name.to_owned()),
            cell: Some(format!("{}{row}", letters(column))),
            header: Some(header.to_owned()),
            ..Place::default()
        };
        self.reader.problems.add((code, 3), || (place, detail));
    }

    /// Tables of this sheet end where something else begins in their columns.
    fn end_tables(&mut self, first: u32, last: u32) {
        for found in self.findings.tables.iter_mut().flatten() {
            if *found.sheet == *self.name && found.first <= last && first <= found.last() {
                found.is_over = true;
            }
        }
    }

    /// A merge hides values: nobody knows whether the cells below it are empty or the same.
    fn tell_merged(&mut self, (top, left, bottom, right): (u32, u32, u32, u32)) {
        for (table, found) in self.reader.template.tables.iter().zip(&self.findings.tables) {
            let Some(found) = found else { continue };
            let is_touched = *found.sheet == *self.name
                && left <= found.last()
                && right > found.first
                && found.used.touches(top, bottom);
            if !is_touched {
                continue;
            }
            let column = left.max(found.first + 1);
            let header = found.places.iter().position(|place| *place == Some(column));
            let header = header.and_then(|index| table.columns.get(index)).map(|column| column.label.clone());
            let covered = if right > left { (top, left + 1) } else { (top + 1, left) };
            let place = Place {
                sheet: Some(self.name.to_owned()),
                cell: Some(format!("{}{}", letters(covered.1), covered.0)),
                header,
                row_id: None,
                value: Some(format!("{}{top}:{}{bottom}", letters(left), letters(right))),
            };
            self.reader.problems.add((code::MERGED_CELLS, 3), || (place, String::new()));
        }
    }
}
