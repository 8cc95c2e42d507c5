//! Workbooks: the cells of the sheets.
//!
//! Guarantees: an untouched cell stays byte for byte; a touched one keeps its style and becomes a number, a
//! formula or an inline string; rows and cells stay in order. A formula that is overwritten takes the calculation
//! chain with it (it would point to nothing, and is optional).
//!
//! Does not calculate: a new formula has no value until a spreadsheet opens it.

use std::collections::BTreeMap;
use std::ops::Range;

use quick_xml::events::BytesStart;

use super::OfficeError;
use super::edit::Edit;
use super::package::{Package, Rewrite, relationships_of};
use super::shape::{Shape, Sheet};
use super::xml::{self, Step};

/// Sheets with more cells than this are shown and edited only up to it.
const CELLS_MAX: usize = 200_000;

/// A sheet's part with its name.
struct Part {
    name: String,
    part: String,
}

/// A cell in the source.
struct Cell {
    column: u32,
    whole: Range<usize>,
    style: Option<String>,
    value: String,
    is_formula: bool,
}

/// A row in the source.
struct Line {
    number: u32,
    whole: Range<usize>,
    start_tag: Range<usize>,
    empty: bool,
    cells: Vec<Cell>,
}

/// The rows of a sheet.
struct Grid {
    lines: Vec<Line>,
    /// The element that holds the rows.
    data: Range<usize>,
    data_tag: Range<usize>,
    data_empty: bool,
    prefix: String,
    dimension: Option<Range<usize>>,
}

pub(super) fn read(bytes: &[u8]) -> Result<Shape, OfficeError> {
    let mut package = Package::read(bytes)?;
    let (parts, strings) = outline(&mut package)?;
    let mut sheets = Vec::new();
    for part in parts {
        let source = package.text(&part.part)?;
        let grid = find_cells(&source, &strings).map_err(|_| OfficeError::Xml { part: part.part })?;
        sheets.push(Sheet { name: part.name, cells: values(&grid), touched: BTreeMap::new() });
    }
    Ok(Shape::Sheets { sheets })
}

pub(super) fn write(base: &[u8], edits: &[Edit], kept: &[String]) -> Result<Vec<u8>, OfficeError> {
    let mut package = Package::read(base)?;
    let (parts, strings) = outline(&mut package)?;
    let mut grids = Vec::new();
    for part in &parts {
        let source = package.text(&part.part)?;
        let grid = find_cells(&source, &strings).map_err(|_| OfficeError::Xml { part: part.part.clone() })?;
        grids.push((source, grid));
    }
    let sheet = |(part, (_, grid)): (&Part, &(String, Grid))| Sheet {
        name: part.name.clone(),
        cells: values(grid),
        touched: BTreeMap::new(),
    };
    let mut shape = Shape::Sheets { sheets: parts.iter().zip(&grids).map(sheet).collect() };
    shape.apply(edits);
    let mut rewrite = Rewrite::default();
    let mut formula_lost = false;
    if let Shape::Sheets { sheets } = &shape {
        for ((part, (source, grid)), sheet) in parts.iter().zip(&grids).zip(sheets) {
            if !sheet.touched.is_empty() {
                formula_lost |= overwrites_formula(grid, sheet);
                rewrite.parts.insert(part.part.clone(), render(source, grid, sheet).into_bytes());
            }
        }
    }
    if formula_lost {
        drop_calculation_chain(&mut package, &mut rewrite);
    }
    package.add_notes(&mut rewrite, kept);
    package.rewrite(&rewrite)
}

/// The sheets in their order, and the shared strings.
fn outline(package: &mut Package<'_>) -> Result<(Vec<Part>, Vec<String>), OfficeError> {
    let main = package.main_part()?;
    let (folder, relationships_part) = relationships_of(&main);
    let relationships = package.relationships(&relationships_part, &folder);
    let workbook = package.text(&main)?;
    let mut parts = Vec::new();
    let walked = xml::walk(&workbook, |path, step, _| {
        let Step::Start { tag, .. } = step else { return };
        if path.len() == 3 && path.ends_with(&["sheets".to_owned(), "sheet".to_owned()]) {
            let id = xml::attribute(tag, "id").unwrap_or_default();
            // Chart sheets and the like have no cells.
            let is_grid = |kind: &str| kind.ends_with("/worksheet");
            let target = relationships.iter().find(|target| target.id == id && is_grid(&target.kind));
            if let (Some(name), Some(target)) = (xml::attribute(tag, "name"), target) {
                parts.push(Part { name, part: target.target.clone() });
            }
        }
    });
    walked.map_err(|_| OfficeError::Xml { part: main })?;
    parts.retain(|part| package.has(&part.part));
    if parts.is_empty() {
        return Err(OfficeError::NoMainPart);
    }
    let strings = relationships.iter().find(|relationship| relationship.kind.ends_with("/sharedStrings"));
    let strings =
        strings.and_then(|strings| package.text(&strings.target).ok()).map(|text| shared_strings(&text));
    Ok((parts, strings.unwrap_or_default()))
}

fn shared_strings(source: &str) -> Vec<String> {
    let mut strings: Vec<String> = Vec::new();
    let walked = xml::walk(source, |path, step, _| match (path.last().map(String::as_str), step) {
        (Some("si"), Step::Start { .. }) => strings.push(String::new()),
        // Phonetic hints repeat the text in another script.
        (Some("t"), Step::Text(text)) if !path.iter().any(|step| step == "rPh") => {
            if let Some(string) = strings.last_mut() {
                string.push_str(&text);
            }
        }
        _ => {}
    });
    walked.map(|()| strings).unwrap_or_default()
}

fn values(grid: &Grid) -> BTreeMap<String, String> {
    let cells = grid.lines.iter().flat_map(|line| line.cells.iter().map(move |cell| (line.number, cell)));
    let filled = cells.filter(|(_, cell)| !cell.value.is_empty()).take(CELLS_MAX);
    filled.map(|(row, cell)| (format!("{}{row}", letters(cell.column)), cell.value.clone())).collect()
}

fn overwrites_formula(grid: &Grid, sheet: &Sheet) -> bool {
    let touched: Vec<(u32, u32)> = sheet.touched.keys().filter_map(|place| position(place)).collect();
    grid.lines.iter().any(|line| {
        line.cells.iter().any(|cell| cell.is_formula && touched.contains(&(line.number, cell.column)))
    })
}

fn drop_calculation_chain(package: &mut Package<'_>, rewrite: &mut Rewrite) {
    let Ok(main) = package.main_part() else { return };
    let (folder, relationships_part) = relationships_of(&main);
    let chain = package.relationships(&relationships_part, &folder);
    let Some(chain) = chain.into_iter().find(|relationship| relationship.kind.ends_with("/calcChain")) else {
        return;
    };
    rewrite.without.push(chain.target.clone());
    for (part, attribute, value) in [
        (relationships_part.as_str(), "Id", chain.id.clone()),
        ("[Content_Types].xml", "PartName", format!("/{}", chain.target)),
    ] {
        let Ok(text) = package.text(part) else { continue };
        let mut found = None;
        let walked = xml::walk(&text, |_, step, span| {
            if let Step::Start { tag, empty: true } = step
                && xml::attribute(tag, attribute).as_ref() == Some(&value)
            {
                found = Some(span);
            }
        });
        if let (Ok(()), Some(span)) = (walked, found) {
            rewrite
                .parts
                .insert(part.to_owned(), xml::splice(&text, vec![(span, String::new())]).into_bytes());
        }
    }
}

/// Puts touched cells into the grid.
fn render(source: &str, grid: &Grid, sheet: &Sheet) -> String {
    let mut by_row: BTreeMap<u32, BTreeMap<u32, &str>> = BTreeMap::new();
    for (place, value) in &sheet.touched {
        if let Some((row, column)) = position(place) {
            by_row.entry(row).or_default().insert(column, value);
        }
    }
    let prefix = &grid.prefix;
    let mut replacements: Vec<(Range<usize>, String)> = Vec::new();
    if let Some(dimension) = &grid.dimension {
        // Optional, and no longer true.
        replacements.push((dimension.clone(), String::new()));
    }
    let mut new_rows: BTreeMap<usize, String> = BTreeMap::new();
    for (row, cells) in &by_row {
        if let Some(line) = grid.lines.iter().find(|line| line.number == *row) {
            replacements.push((line.whole.clone(), render_line(source, grid, line, cells)));
        } else {
            let after = grid.lines.iter().find(|line| line.number > *row);
            let place = after.map_or(grid.data.end, |line| line.whole.start);
            let inner: String =
                cells.iter().map(|(column, value)| cell(prefix, (*row, *column), None, value)).collect();
            let row_text = format!("<{prefix}row r=\"{row}\">{inner}</{prefix}row>");
            new_rows.entry(place).or_default().push_str(&row_text);
        }
    }
    for (place, rows) in new_rows {
        replacements.push((place..place, rows));
    }
    if grid.data_empty {
        let rows: String =
            replacements.iter().filter(|(span, _)| span.is_empty()).map(|(_, rows)| rows.as_str()).collect();
        replacements.retain(|(span, _)| !span.is_empty());
        let tag = source.get(grid.data_tag.clone()).unwrap_or_default().replace("/>", ">");
        replacements.push((grid.data_tag.clone(), format!("{tag}{rows}</{prefix}sheetData>")));
    }
    replacements.sort_by_key(|(span, _)| (span.start, span.end));
    xml::splice(source, replacements)
}

fn render_line(source: &str, grid: &Grid, line: &Line, touched: &BTreeMap<u32, &str>) -> String {
    let prefix = &grid.prefix;
    let start_tag = source.get(line.start_tag.clone()).unwrap_or_default();
    let start_tag = if line.empty { start_tag.replace("/>", ">") } else { start_tag.to_owned() };
    // An attribute that names the used columns would no longer be true.
    let start_tag = without_attribute(&start_tag, "spans");
    let mut cells: BTreeMap<u32, String> = BTreeMap::new();
    for old in &line.cells {
        let text = source.get(old.whole.clone()).unwrap_or_default();
        cells.insert(old.column, text.to_owned());
    }
    for (column, value) in touched {
        let style = line.cells.iter().find(|old| old.column == *column).and_then(|old| old.style.as_deref());
        cells.insert(*column, cell(prefix, (line.number, *column), style, value));
    }
    let cells: String = cells.into_values().collect();
    format!("{start_tag}{cells}</{prefix}row>")
}

fn cell(prefix: &str, (row, column): (u32, u32), style: Option<&str>, value: &str) -> String {
    let place = format!("{}{row}", letters(column));
    let style = style.map(|style| format!(" s=\"{}\"", xml::escape(style))).unwrap_or_default();
    if value.is_empty() {
        return format!("<{prefix}c r=\"{place}\"{style}/>");
    }
    if let Some(formula) = value.strip_prefix('=').filter(|formula| !formula.is_empty()) {
        return format!(
            "<{prefix}c r=\"{place}\"{style}><{prefix}f>{}</{prefix}f></{prefix}c>",
            xml::escape(formula)
        );
    }
    if is_plain_number(value) {
        return format!("<{prefix}c r=\"{place}\"{style}><{prefix}v>{value}</{prefix}v></{prefix}c>");
    }
    let text = xml::escape(value);
    format!(
        "<{prefix}c r=\"{place}\"{style} t=\"inlineStr\"><{prefix}is><{prefix}t xml:space=\"preserve\">{text}</{prefix}t></{prefix}is></{prefix}c>"
    )
}

/// A number that keeps its face as a number: `007` or `1e5` stay text.
fn is_plain_number(value: &str) -> bool {
    value.parse::<f64>().is_ok_and(|number| number.is_finite() && number.to_string() == value)
}

fn without_attribute(tag: &str, name: &str) -> String {
    let Some(start) = tag.find(&format!(" {name}=\"")) else { return tag.to_owned() };
    let value = start + name.len() + 3;
    let Some(end) = tag.get(value..).and_then(|rest| rest.find('"')) else { return tag.to_owned() };
    xml::splice(tag, vec![(start..value + end + 1, String::new())])
}

/// Finds rows and cells. Missing places count on from the one before, as the format says.
fn find_cells(source: &str, strings: &[String]) -> Result<Grid, xml::Broken> {
    let mut grid = Grid {
        lines: Vec::new(),
        data: 0..0,
        data_tag: 0..0,
        data_empty: false,
        prefix: String::new(),
        dimension: None,
    };
    let mut kind = String::new();
    let mut raw = String::new();
    xml::walk(source, |path, step, span| {
        let name = path.last().map(String::as_str).unwrap_or_default();
        let in_data = path.get(1).is_some_and(|step| step == "sheetData");
        match (path.len(), name, step) {
            (2, "dimension", Step::Start { empty: true, .. }) => grid.dimension = Some(span),
            (2, "sheetData", Step::Start { tag, empty }) => {
                grid.prefix = tag.name().as_ref().strip_suffix("sheetData").unwrap_or_default().to_owned();
                grid.data = span.start..span.end;
                grid.data_tag = span;
                grid.data_empty = empty;
            }
            (2, "sheetData", Step::End) => grid.data.end = span.start,
            (3, "row", Step::Start { tag, empty }) if in_data => {
                let number = next_row(&grid, tag);
                grid.lines.push(Line {
                    number,
                    whole: span.clone(),
                    start_tag: span,
                    empty,
                    cells: Vec::new(),
                });
            }
            (3, "row", Step::End) if in_data => close_line(&mut grid, span.end),
            (4, "c", Step::Start { tag, empty }) if in_data => {
                kind = xml::attribute(tag, "t").unwrap_or_default();
                raw.clear();
                start_cell(&mut grid, tag, span.clone());
                if empty {
                    close_cell(&mut grid, span.end, String::new());
                }
            }
            (4, "c", Step::End) if in_data => {
                let value = if kind == "s" {
                    raw.trim().parse::<usize>().ok().and_then(|n| strings.get(n)).cloned().unwrap_or_default()
                } else {
                    std::mem::take(&mut raw)
                };
                close_cell(&mut grid, span.end, value);
            }
            (5, "f", Step::Start { .. }) if in_data => {
                if let Some(cell) = grid.lines.last_mut().and_then(|line| line.cells.last_mut()) {
                    cell.is_formula = true;
                }
            }
            (_, "v" | "t", Step::Text(text)) if in_data => raw.push_str(&text),
            _ => {}
        }
    })?;
    if grid.data_tag.is_empty() { Err(xml::Broken) } else { Ok(grid) }
}

fn next_row(grid: &Grid, tag: &BytesStart<'_>) -> u32 {
    let next = grid.lines.last().map_or(1, |line| line.number + 1);
    xml::attribute(tag, "r").and_then(|row| row.parse().ok()).unwrap_or(next)
}

fn close_line(grid: &mut Grid, end: usize) {
    if let Some(line) = grid.lines.last_mut() {
        line.whole.end = end;
    }
}

fn start_cell(grid: &mut Grid, tag: &BytesStart<'_>, span: Range<usize>) {
    let Some(line) = grid.lines.last_mut() else { return };
    let next = line.cells.last().map_or(1, |cell| cell.column + 1);
    let place = xml::attribute(tag, "r").and_then(|place| position(&place));
    let column = place.map_or(next, |(_, column)| column);
    let style = xml::attribute(tag, "s");
    line.cells.push(Cell { column, whole: span, style, value: String::new(), is_formula: false });
}

fn close_cell(grid: &mut Grid, end: usize, value: String) {
    if let Some(cell) = grid.lines.last_mut().and_then(|line| line.cells.last_mut()) {
        cell.whole.end = end;
        cell.value = value;
    }
}

/// `B7` as row 7, column 2.
fn position(place: &str) -> Option<(u32, u32)> {
    let split = place.find(|letter: char| letter.is_ascii_digit())?;
    let (letters, digits) = place.split_at(split);
    let row: u32 = digits.parse().ok()?;
    let column = letters.bytes().try_fold(0_u32, |column, letter| {
        let value = letter.to_ascii_uppercase().checked_sub(b'A').filter(|value| *value < 26)?;
        column.checked_mul(26)?.checked_add(u32::from(value) + 1)
    })?;
    (1..=16_384).contains(&column).then_some(())?;
    (1..=1_048_576).contains(&row).then_some((row, column))
}

fn letters(mut column: u32) -> String {
    let mut text = Vec::new();
    while column > 0 {
        let digit = u8::try_from((column - 1) % 26).unwrap_or(0);
        text.push(b'A' + digit);
        column = (column - 1) / 26;
    }
    text.reverse();
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{blank, build, can_open, changes_in, sample_xlsx, shape_of, text_of};
    use super::*;
    use crate::machine::{Author, Change};

    fn change(edit: &Edit) -> Change {
        let author = Author { id: "u1".into(), index: 1, name: "User".into() };
        Change { id: edit.id.as_str().into(), data: edit.to_data(), author, time_s: 1 }
    }

    fn set(id: &str, cell: &str, value: &str) -> Change {
        let kind =
            super::super::EditKind::Cell { sheet: "Sheet1".into(), cell: cell.into(), value: value.into() };
        change(&Edit { id: id.into(), kind })
    }

    #[test]
    fn places_and_letters_are_each_others_inverse() {
        for (place, expected) in
            [("A1", (1, 1)), ("Z9", (9, 26)), ("AA10", (10, 27)), ("XFD1048576", (1_048_576, 16_384))]
        {
            assert_eq!(position(place), Some(expected));
            assert_eq!(format!("{}{}", letters(expected.1), expected.0), place);
        }
        assert_eq!(position("XFE1"), None);
        assert_eq!(position("7"), Some((7, 0)).filter(|_| false));
    }

    #[test]
    fn cells_are_set_in_a_real_workbook_and_found_again() {
        let base = blank("xlsx");

        let built =
            build(&base, "xlsx", &[change(&Edit::cell("c1", "Sheet1", "B2", "hi")), set("c2", "A1", "42")]);
        let built = built.unwrap();

        assert!(can_open(&built, "xlsx"));
        let Shape::Sheets { sheets } = shape_of(&built, "xlsx") else { panic!("sheets") };
        assert_eq!(sheets[0].cells["B2"], "hi [#c1]");
        assert_eq!(sheets[0].cells["A1"], "42");
        assert!(changes_in(&built).contains("c1"));
        assert_eq!(
            build(&base, "xlsx", &[set("c2", "A1", "42")]).unwrap(),
            build(&base, "xlsx", &[set("c2", "A1", "42")]).unwrap()
        );
    }

    #[test]
    fn a_second_round_of_edits_finds_rows_in_order() {
        let base = sample_xlsx(&[&["name", "count"], &["apples", "3"]]);
        let first =
            build(&base, "xlsx", &[set("c1", "B2", "4"), set("c2", "A9", "late"), set("c3", "C1", "new")])
                .unwrap();

        let second = build(&first, "xlsx", &[set("c4", "A5", "=B2*2"), set("c5", "A9", "007")]).unwrap();

        let Shape::Sheets { sheets } = shape_of(&second, "xlsx") else { panic!("sheets") };
        let cells = &sheets[0].cells;
        assert_eq!((cells["B2"].as_str(), cells["C1"].as_str(), cells["A9"].as_str()), ("4", "new", "007"));
        assert!(text_of(&second).contains("apples"));
        let source = Package::read(&second).unwrap().text("xl/worksheets/sheet1.xml").unwrap();
        let rows: Vec<_> = source.match_indices("<row r=\"").map(|(at, _)| &source[at + 8..at + 9]).collect();
        assert_eq!(rows, ["1", "2", "5", "9"]);
        assert!(source.contains("<f>B2*2</f>"));
    }
}
