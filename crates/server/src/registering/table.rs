//! A file of comma-separated values, as spreadsheet programs write it.
//!
//! Guarantees: values may be quoted and then hold anything, line breaks too; the separator is a comma, or a semicolon as some
//! countries' programs write it; spaces around values do not count; empty lines are skipped. Every value knows the line its row
//! began in. Does not do: say what the values mean.

use super::LineMistake;

/// Lines at most: more would keep the ledger from saves of documents for too long.
const ROWS_MAX: usize = 20_000;

/// A row, with the line it begins in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) line: u32,
    pub(super) cells: Vec<String>,
}

/// The first row, and all others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) header: Row,
    pub(super) rows: Vec<Row>,
}

/// Reads a file.
pub(super) fn read(text: &str) -> Result<Table, Vec<LineMistake>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let separator = separator_of(text);
    let mut reader = Reader { rest: text, line: 1, separator };
    let mut rows = Vec::new();
    while let Some(row) = reader.row().map_err(|mistake| vec![mistake])? {
        if row.cells.iter().any(|cell| !cell.is_empty()) {
            rows.push(row);
        }
        if rows.len() > ROWS_MAX {
            let what = format!("a file has at most {ROWS_MAX} lines: bring it in parts");
            return Err(vec![LineMistake::new(reader.line, None, what)]);
        }
    }
    if rows.is_empty() {
        return Err(vec![LineMistake::new(1, None, "the file is empty: its first line names the columns")]);
    }
    Ok(Table { header: rows.remove(0), rows })
}

/// Names of columns have no separators in them, so the first line tells.
fn separator_of(text: &str) -> char {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if first.contains(';') && !first.contains(',') { ';' } else { ',' }
}

struct Reader<'a> {
    rest: &'a str,
    line: u32,
    separator: char,
}

impl Reader<'_> {
    fn row(&mut self) -> Result<Option<Row>, LineMistake> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut row = Row { line: self.line, cells: Vec::new() };
        loop {
            let cell = self.cell()?;
            row.cells.push(cell);
            match self.take() {
                Some(each) if each == self.separator => {}
                // The end of a line, or of the file.
                _ => return Ok(Some(row)),
            }
        }
    }

    /// A value, up to its separator or the end of its line.
    fn cell(&mut self) -> Result<String, LineMistake> {
        let spaces = self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len();
        if self.rest[spaces..].starts_with('"') {
            self.rest = &self.rest[spaces + 1..];
            return self.quoted();
        }
        let end = self.rest.find([self.separator, '\n']).unwrap_or(self.rest.len());
        let (cell, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(cell.trim().to_owned())
    }

    /// A value in quotation marks; two of them stand for one.
    fn quoted(&mut self) -> Result<String, LineMistake> {
        let began = self.line;
        let mut value = String::new();
        loop {
            match self.take() {
                None => {
                    return Err(LineMistake::new(began, None, "a quotation mark is opened and never closed"));
                }
                Some('"') if self.rest.starts_with('"') => {
                    self.rest = &self.rest[1..];
                    value.push('"');
                }
                Some('"') => break,
                Some(each) => value.push(each),
            }
        }
        let end = self.rest.find([self.separator, '\n']).unwrap_or(self.rest.len());
        let (between, rest) = self.rest.split_at(end);
        if !between.trim().is_empty() {
            return Err(LineMistake::new(began, None, "something stands behind a closing quotation mark"));
        }
        self.rest = rest;
        Ok(value.trim().to_owned())
    }

    fn take(&mut self) -> Option<char> {
        let each = self.rest.chars().next()?;
        self.rest = &self.rest[each.len_utf8()..];
        if each == '\n' {
            self.line += 1;
        }
        Some(each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<(u32, Vec<String>)> {
        let table = read(text).unwrap();
        std::iter::once(table.header).chain(table.rows).map(|row| (row.line, row.cells)).collect()
    }

    #[test]
    fn values_are_read_as_spreadsheet_programs_write_them() {
        let text = "\u{feff}a,b,c\r\n\r\n1, two words ,\"x, \"\"y\"\"\r\nz\"\r\n ,,\r\n4, \"q\" ,é";

        let expected = [
            (1, vec!["a", "b", "c"]),
            (3, vec!["1", "two words", "x, \"y\"\r\nz"]),
            (6, vec!["4", "q", "é"]),
        ];

        let expected = expected.map(|(line, cells)| (line, cells.into_iter().map(str::to_owned).collect()));
        assert_eq!(rows(text), expected);
        assert_eq!(rows("a;b\n1;2,5\n")[1].1, ["1", "2,5"]);
        assert_eq!(rows("a,b\n1,")[1].1, ["1", ""]);
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        for (text, line) in [("", 1), ("\n\n", 1), ("a,b\n1,\"2\n3", 2), ("a\n\"1\"2\n", 2)] {
            assert_eq!(read(text).unwrap_err()[0].line, line, "{text:?}");
        }
        assert!(read(&"a\n".repeat(ROWS_MAX + 1)).is_err() && read(&"a\n".repeat(ROWS_MAX)).is_ok());
    }

    #[test]
    fn no_text_makes_the_reader_fall_over() {
        let signs = ["\"", ",", "\n", ";", "é", " ", "\r", "a", "\u{feff}"];
        for number in 0..signs.len().pow(5) {
            let digits = (0..5).map(|place| signs[number / signs.len().pow(place) % signs.len()]);
            let _ = read(&digits.collect::<String>());
        }
    }
}
