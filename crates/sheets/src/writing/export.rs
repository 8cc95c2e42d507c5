//! Records as a workbook.
//!
//! Guarantees: a value that begins with `=` or `+` is a text and no formula; a number is written as one only if a spreadsheet can
//! hold it exactly; rows beyond what a sheet can hold go on on the next.

use std::io::Write;

use super::WriteError;
use super::markup::Cells;
use super::package::{Package, Shown};
use super::styles::{Fill, Font, Styles};
use crate::{Decimal, days};

/// Rows of a sheet, without its header.
const ROWS_MAX: u32 = 1_048_575;
/// Digits a spreadsheet keeps of a number.
const DIGITS_MAX: usize = 15;
/// Markup that is put together before it is packed.
const PIECE_BYTES: usize = 64 * 1024;

/// A column of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportColumn {
    /// Its header.
    pub header: String,
    /// How its values are written.
    pub kind: ExportKind,
}

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportKind {
    /// As texts.
    Text,
    /// As numbers, where they are numbers that a spreadsheet can hold.
    Number,
    /// As days, where they are days.
    Day,
}

/// Writes records as a workbook, from its first byte to its last. An empty text is an empty cell.
pub fn export_xlsx(
    (sheet, columns): (&str, &[ExportColumn]),
    rows: impl IntoIterator<Item = std::io::Result<Vec<String>>>,
    out: impl Write,
) -> Result<(), WriteError> {
    let mut styles = Styles::new();
    let heading = styles.style(Font::Bold, Fill::Heading, None);
    let day = styles.style(Font::Plain, Fill::None, Some("yyyy-mm-dd"));
    let mut package = Package::new(out);
    let mut cells = Cells::default();
    let mut count: u32 = 0;
    let mut sheets = 0;
    for row in rows {
        if sheets == 0 || count == ROWS_MAX {
            if sheets > 0 {
                package.write(&std::mem::take(&mut cells.markup))?;
                package.end_sheet("")?;
            }
            sheets += 1;
            begin(&mut package, &mut cells, (&numbered(sheet, sheets), columns, heading))?;
            count = 0;
        }
        count += 1;
        cells.start(count + 1, "");
        for ((column, value), kind) in (0..).zip(row?).zip(columns.iter().map(|column| column.kind)) {
            write_value(&mut cells, (column, kind, day), &value);
        }
        cells.end();
        if cells.markup.len() > PIECE_BYTES {
            package.write(&cells.markup)?;
            cells.markup.clear();
        }
    }
    if sheets == 0 {
        begin(&mut package, &mut cells, (&numbered(sheet, 1), columns, heading))?;
    }
    package.write(&cells.markup)?;
    package.end_sheet("")?;
    package.finish(&styles)
}

fn begin<W: Write>(
    package: &mut Package<W>,
    cells: &mut Cells,
    (sheet, columns, heading): (&str, &[ExportColumn], usize),
) -> Result<(), WriteError> {
    let before = format!(
        r#"<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols><col min="1" max="{}" width="18" customWidth="1"/></cols>"#,
        columns.len().clamp(1, 16_384)
    );
    package.start_sheet(sheet, Shown::Yes, &before)?;
    cells.start(1, "");
    for (column, each) in (0..).zip(columns) {
        cells.text(column, heading, &each.header);
    }
    cells.end();
    Ok(())
}

/// The name of a sheet: what may stand in one, and not too long.
fn numbered(sheet: &str, number: u32) -> String {
    let plain = sheet.chars().filter(|letter| !"[]:*?/\\'".contains(*letter) && !letter.is_control());
    let name: String = plain.take(24).collect();
    match (name.trim(), number) {
        ("", number) => format!("Sheet {number}"),
        (name, 1) => name.to_owned(),
        (name, number) => format!("{name} {number}"),
    }
}

fn write_value(cells: &mut Cells, (column, kind, day): (u32, ExportKind, usize), value: &str) {
    if value.is_empty() {
        return;
    }
    match kind {
        ExportKind::Number if Decimal::parse(value).is_some_and(|_| is_exact(value)) => {
            cells.number(column, 0, value)
        }
        ExportKind::Day => match days::from_iso(value).filter(|_| value.len() == 10) {
            Some(date) => cells.number(column, day, &days::to_serial(date).to_string()),
            None => cells.text(column, 0, value),
        },
        ExportKind::Number | ExportKind::Text => cells.text(column, 0, value),
    }
}

fn is_exact(number: &str) -> bool {
    let digits = number.trim_start_matches(['-', '0', '.']);
    digits.bytes().filter(u8::is_ascii_digit).count() <= DIGITS_MAX
}
