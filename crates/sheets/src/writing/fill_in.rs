//! The workbook that people fill in: markers that they do not see, headings, an example, formats, and lists to choose from.
//!
//! Guarantees: what is written is read again by the same template without a problem, but for what only people can fill in.

use std::fmt::Write as _;
use std::io::Write;

use jiff::civil::Date;

use super::WriteError;
use super::markup::{Cells, escaped};
use super::package::{Package, Shown};
use super::styles::{Fill, Font, Styles};
use crate::expressions::{Cell, Facts};
use crate::reading::{letters, typed_text};
use crate::{Column, ColumnKind, DayBound, Decimal, Meta, ScopeFacts, SkipRow, Table, Template, days};

/// The sheet with the lists to choose from.
const LISTS: &str = "Lists";
/// The last row of a sheet.
const LAST_ROW: u32 = 1_048_576;

/// Writes the workbook that people of a scope fill in.
pub fn write_workbook(template: &Template, scope: &ScopeFacts, out: impl Write) -> Result<(), WriteError> {
    let mut styles = Styles::new();
    let mut package = Package::new(out);
    write_cover(template, scope, (&mut package, &mut styles))?;
    for table in &template.tables {
        write_table(template, table, (&mut package, &mut styles))?;
    }
    if !template.lists.is_empty() {
        write_lists(template, &mut package)?;
    }
    package.finish(&styles)
}

fn write_cover<W: Write>(
    template: &Template,
    scope: &ScopeFacts,
    (package, styles): (&mut Package<W>, &mut Styles),
) -> Result<(), WriteError> {
    let title = styles.style(Font::Large, Fill::None, None);
    let label = styles.style(Font::Bold, Fill::None, None);
    let given = styles.style(Font::Plain, Fill::Given, Some("@"));
    let open = styles.style(Font::Plain, Fill::None, Some("@"));
    let is_taken = template.tables.iter().any(|table| table.sheet.eq_ignore_ascii_case("Cover"));
    let name = if is_taken { "Cover sheet" } else { "Cover" };
    let before = r#"<cols><col min="1" max="1" width="32" customWidth="1"/><col min="2" max="2" width="4" hidden="1" customWidth="1"/><col min="3" max="3" width="36" customWidth="1"/></cols>"#;
    package.start_sheet(name, Shown::Yes, before)?;
    let mut cells = Cells::default();
    cells.start(1, "");
    cells.text(0, title, &template.title);
    cells.end();
    for (row, meta) in (3..).zip(&template.meta) {
        let value = prefilled(template, scope, meta);
        cells.start(row, "");
        cells.text(0, label, &meta.label);
        cells.text(1, 0, &format!("{}_META_{}", template.marker_prefix, meta.name));
        cells.text(2, if value.is_empty() { open } else { given }, &value);
        cells.end();
    }
    package.write(&cells.markup)?;
    package.end_sheet("")
}

/// What a single value must be, if that is known already.
fn prefilled(template: &Template, scope: &ScopeFacts, meta: &Meta) -> String {
    if meta.is_accepted_version {
        return template.version.to_string();
    }
    // No expression of a single value asks for the day.
    let today = Date::default();
    let facts =
        Facts { cells: &[], scope, template_id: &template.id, today, tolerance: Decimal::ZERO, scale: None };
    let expected = meta.equals.as_ref().map(|equals| equals.texts(&facts)).unwrap_or_default();
    expected.last().map(|text| (*text).to_owned()).unwrap_or_default()
}

/// How the rows above the data are kept apart from it.
struct Above<'a> {
    heading: Option<&'a str>,
    example: Option<&'a str>,
    has_skip_column: bool,
}

impl<'a> Above<'a> {
    fn of(table: &'a Table) -> Self {
        let marked = |rule: &&'a SkipRow| rule.column.is_none();
        let texts: Vec<&str> = table.skip_rows.iter().filter(marked).map(|rule| rule.text.as_str()).collect();
        let like = |word: &str| texts.iter().copied().find(|text| text.eq_ignore_ascii_case(word));
        let any = texts.first().copied();
        let has_examples = table.columns.iter().any(|column| column.example.is_some());
        let is_heading_skipped = table.skip_rows.iter().any(|rule| {
            let column = rule.column.and_then(|index| table.columns.get(index));
            column.is_some_and(|column| {
                if rule.is_prefix { column.label.starts_with(&rule.text) } else { column.label == rule.text }
            })
        });
        Self {
            heading: like("Heading").or(any).or(is_heading_skipped.then_some("")),
            example: like("Example").or(any).filter(|_| has_examples),
            has_skip_column: any.is_some(),
        }
    }
}

fn write_table<W: Write>(
    template: &Template,
    table: &Table,
    (package, styles): (&mut Package<W>, &mut Styles),
) -> Result<(), WriteError> {
    let above = Above::of(table);
    let first = if above.has_skip_column { 2 } else { 1 };
    let data_row = 2 + u32::from(above.heading.is_some()) + u32::from(above.example.is_some());
    package.start_sheet(&table.sheet, Shown::Yes, &views_and_columns(table, (first, data_row), styles))?;
    let mut cells = Cells::default();
    let heading = styles.style(Font::Bold, Fill::Heading, None);
    let pale = styles.style(Font::Pale, Fill::None, None);
    let is_hidden = above.heading.is_some();
    cells.start(1, if is_hidden { " hidden=\"1\"" } else { "" });
    cells.text(0, 0, &format!("{}_TABLE_{}", template.marker_prefix, table.name));
    if above.has_skip_column {
        cells.text(1, 0, &format!("{}_SKIP", template.marker_prefix));
    }
    for (at, column) in (first..).zip(&table.columns) {
        let (style, name) = if is_hidden { (0, &column.name) } else { (heading, &column.label) };
        cells.text(at, style, name);
    }
    cells.end();
    if let Some(word) = above.heading {
        cells.start(2, "");
        if above.has_skip_column {
            cells.text(1, pale, word);
        }
        for (at, column) in (first..).zip(&table.columns) {
            cells.text(at, heading, &column.label);
        }
        cells.end();
    }
    if let Some(word) = above.example {
        cells.start(data_row - 1, "");
        cells.text(1, pale, word);
        for (at, column) in (first..).zip(&table.columns) {
            write_example(&mut cells, (at, column), styles);
        }
        cells.end();
    }
    package.write(&cells.markup)?;
    package.end_sheet(&validations(template, table, (first, data_row)))
}

fn views_and_columns(table: &Table, (first, data_row): (u32, u32), styles: &mut Styles) -> String {
    let split = data_row - 1;
    let mut out = format!(
        r#"<sheetViews><sheetView workbookViewId="0"><pane ySplit="{split}" topLeftCell="A{data_row}" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols><col min="1" max="1" width="4" hidden="1" customWidth="1"/>"#
    );
    if first > 1 {
        out.push_str(r#"<col min="2" max="2" width="10" customWidth="1"/>"#);
    }
    for (at, column) in (first + 1..).zip(&table.columns) {
        let fill = if column.is_derived { Fill::Given } else { Fill::None };
        let style = styles.style(Font::Plain, fill, Some(&format_of(column)));
        let _ = write!(out, r#"<col min="{at}" max="{at}" width="18" style="{style}" customWidth="1"/>"#);
    }
    out + "</cols>"
}

fn format_of(column: &Column) -> String {
    match &column.kind {
        ColumnKind::Decimal { scale: 0, .. } | ColumnKind::Integer { .. } => "0".into(),
        ColumnKind::Decimal { scale, .. } => format!("0.{}", "0".repeat(usize::from(*scale))),
        ColumnKind::Date { .. } => "yyyy-mm-dd".into(),
        ColumnKind::Text { .. }
        | ColumnKind::Choice { .. }
        | ColumnKind::YesNo
        | ColumnKind::Pattern { .. } => "@".into(),
    }
}

fn write_example(cells: &mut Cells, (at, column): (u32, &Column), styles: &mut Styles) {
    let style = styles.style(Font::Pale, Fill::None, Some(&format_of(column)));
    let Some(example) = &column.example else { return };
    match typed_text(example, column) {
        Ok(Cell::Number(number)) => cells.number(at, style, &number.to_string()),
        Ok(Cell::Day(day)) => cells.number(at, style, &days::to_serial(day).to_string()),
        _ => cells.text(at, style, example),
    }
}

/// What a spreadsheet program refuses by itself, so that fewer problems come up later.
fn validations(template: &Template, table: &Table, (first, data_row): (u32, u32)) -> String {
    let mut out = String::new();
    let mut count = 0;
    for (at, column) in (first..).zip(&table.columns) {
        let Some((kind, formulas)) = validation(template, column) else { continue };
        let letters = letters(at);
        let title = escaped(&crate::template::cut(&column.label, 30));
        let _ = write!(
            out,
            r#"<dataValidation {kind} allowBlank="1" showErrorMessage="1" errorTitle="{title}" sqref="{letters}{data_row}:{letters}{LAST_ROW}">{formulas}</dataValidation>"#
        );
        count += 1;
    }
    if count == 0 {
        String::new()
    } else {
        format!(r#"<dataValidations count="{count}">{out}</dataValidations>"#)
    }
}

/// What kind of validation a column gets, and its formulas.
fn validation(template: &Template, column: &Column) -> Option<(String, String)> {
    let bounds = |kind: &str, min: Option<String>, max: Option<String>| {
        let (operator, formulas) = match (min, max) {
            (Some(min), Some(max)) => {
                ("between", format!("<formula1>{min}</formula1><formula2>{max}</formula2>"))
            }
            (Some(min), None) => ("greaterThanOrEqual", format!("<formula1>{min}</formula1>")),
            (None, Some(max)) => ("lessThanOrEqual", format!("<formula1>{max}</formula1>")),
            (None, None) => return None,
        };
        Some((format!(r#"type="{kind}" operator="{operator}""#), formulas))
    };
    let listed = |formula: String| (r#"type="list""#.to_owned(), format!("<formula1>{formula}</formula1>"));
    let number = |bound: &Option<Decimal>| bound.map(|bound| bound.to_string());
    let day = |bound: &Option<DayBound>| {
        bound.map(|bound| match bound {
            DayBound::Day(day) => days::to_serial(day).to_string(),
            DayBound::FromToday(shift) => format!("TODAY()+{shift}").replace("+-", "-"),
        })
    };
    match &column.kind {
        ColumnKind::Decimal { min, max, .. } => bounds("decimal", number(min), number(max)),
        ColumnKind::Integer { min, max } => bounds("whole", number(min), number(max)),
        ColumnKind::Date { min, max, from_text: false, .. } => bounds("date", day(min), day(max)),
        // A text such as 2026-01-31 would be refused.
        ColumnKind::Date { .. } => None,
        ColumnKind::Text { chars_max } => bounds("textLength", None, chars_max.map(|max| max.to_string())),
        ColumnKind::Choice { list, values } => {
            let at = letters(u32::try_from(template.lists.keys().position(|name| name == list)?).ok()?);
            Some(listed(format!("{LISTS}!${at}$1:${at}${}", values.len())))
        }
        ColumnKind::YesNo => Some(listed("\"Yes,No\"".into())),
        ColumnKind::Pattern { .. } => None,
    }
}

fn write_lists<W: Write>(template: &Template, package: &mut Package<W>) -> Result<(), WriteError> {
    package.start_sheet(LISTS, Shown::No, "")?;
    let mut cells = Cells::default();
    let longest = template.lists.values().map(Vec::len).max().unwrap_or(0);
    for (row, at) in (1..LAST_ROW).zip(0..longest) {
        cells.start(row, "");
        for (column, list) in (0..).zip(template.lists.values()) {
            if let Some(value) = list.get(at) {
                cells.text(column, 0, value);
            }
        }
        cells.end();
    }
    package.write(&cells.markup)?;
    package.end_sheet("")
}
