//! The workbooks of the bench, and the template they are read by: 12 columns of shared texts, 3 of days, 2 of yes and no, 13 of
//! numbers, beside a marker.
//!
//! Guarantees: written row by row, so that half a million rows need no memory; the same size and edition give the same cells. Of a later
//! edition one row in ten differs in one number.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

pub(super) const COLUMNS: u32 = 30;
const TEXTS: u32 = 12;
const DAYS: u32 = 3;
const FLAGS: u32 = 2;
/// Texts that many rows share, those that some share, and one of each row's own.
const WORDS: u32 = 200;
const PHRASES: u32 = 5_000;
/// Columns that draw from the words, and that draw from the phrases.
const WORD_COLUMNS: u32 = 8;
const PHRASE_COLUMNS: u32 = 3;
/// Every so many rows differ from one edition to the next.
const CHANGED_EVERY: u32 = 10;
/// The first id.
const FIRST_ID: u32 = 1_000_000;
/// 1 January 2026, as workbooks count.
const FIRST_DAY: u32 = 46_023;

const NAMESPACE: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Id,
    Text(u32),
    Day,
    Flag,
    Number,
}

fn kind(column: u32) -> Kind {
    match column {
        0 => Kind::Id,
        column if column <= TEXTS => Kind::Text(column - 1),
        column if column <= TEXTS + DAYS => Kind::Day,
        column if column <= TEXTS + DAYS + FLAGS => Kind::Flag,
        _ => Kind::Number,
    }
}

/// The template.
pub(super) fn template() -> String {
    let mut text = String::from(
        "[template]\nid = \"bench\"\ntitle = \"Bench\"\nversion = \"1.0.0\"\naccepts = [\"1.0.0\"]\nmarker_prefix = \"__SG\"\n\
         [limits]\nfile_bytes = 400_000_000\ninflated_bytes = 4_000_000_000\nrows_per_table = 600_000\n\
         [[meta]]\nname = \"REGISTRATION\"\nrequired = true\nequals = \"scope.registration.number\"\n\
         [[meta]]\nname = \"VERSION\"\ntype = \"version\"\nrequired = true\none_of = \"template.accepts\"\n\
         [[table]]\nname = \"LOADS\"\nrecord_kind = \"load\"\nsheet = \"Loads\"\nkey = \"C0\"\nremoved_row = \"fatal\"\n",
    );
    for column in 0..COLUMNS {
        let kind = match kind(column) {
            Kind::Id => "type = \"integer\"",
            Kind::Text(0) => "type = \"text\"\nrequired = true",
            Kind::Text(_) => "type = \"text\"",
            Kind::Day => "type = \"date\"",
            Kind::Flag => "type = \"yes-no\"",
            Kind::Number => "type = \"decimal\"\nscale = 3\nmin = 0",
        };
        let _ = write!(text, "[[table.column]]\nname = \"C{column}\"\n{kind}\n");
    }
    text.push_str("[table.measure]\nname = \"tonnes\"\nvalue = \"C29\"\nscale = 3\n");
    text
}

/// Writes a workbook.
pub(crate) fn write(file: &Path, rows: u32, edition: u32) -> Result<()> {
    let mut zip = ZipWriter::new(BufWriter::new(File::create(file)?));
    let options = SimpleFileOptions::default().large_file(true);
    for (name, body) in FRAME {
        zip.start_file(name, options)?;
        zip.write_all(body.as_bytes())?;
    }
    zip.start_file("xl/worksheets/sheet1.xml", options)?;
    write_sheet(&mut BufWriter::with_capacity(1 << 16, &mut zip), rows, edition)?;
    zip.start_file("xl/sharedStrings.xml", options)?;
    write_strings(&mut BufWriter::with_capacity(1 << 16, &mut zip), rows)?;
    zip.finish()?.flush()?;
    Ok(())
}

const FRAME: [(&str, &str); 5] = [
    (
        "[Content_Types].xml",
        "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\
         <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
         <Default Extension=\"xml\" ContentType=\"application/xml\"/>\
         <Override PartName=\"/xl/workbook.xml\" ContentType=\
         \"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml\"/>\
         <Override PartName=\"/xl/worksheets/sheet1.xml\" ContentType=\
         \"application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml\"/>\
         <Override PartName=\"/xl/styles.xml\" ContentType=\
         \"application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml\"/>\
         <Override PartName=\"/xl/sharedStrings.xml\" ContentType=\
         \"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml\"/></Types>",
    ),
    (
        "_rels/.rels",
        "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\
         <Relationship Id=\"rId1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument\" \
         Target=\"xl/workbook.xml\"/></Relationships>",
    ),
    (
        "xl/workbook.xml",
        "<workbook xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" \
         xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\">\
         <sheets><sheet name=\"Loads\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>",
    ),
    (
        "xl/_rels/workbook.xml.rels",
        "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\
         <Relationship Id=\"rId1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet\" \
         Target=\"worksheets/sheet1.xml\"/>\
         <Relationship Id=\"rId2\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles\" \
         Target=\"styles.xml\"/>\
         <Relationship Id=\"rId3\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings\" \
         Target=\"sharedStrings.xml\"/></Relationships>",
    ),
    (
        "xl/styles.xml",
        "<styleSheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\">\
         <fonts count=\"1\"><font/></fonts><fills count=\"1\"><fill><patternFill patternType=\"none\"/></fill></fills>\
         <borders count=\"1\"><border/></borders>\
         <cellStyleXfs count=\"1\"><xf/></cellStyleXfs>\
         <cellXfs count=\"2\"><xf/><xf numFmtId=\"14\" applyNumberFormat=\"1\"/></cellXfs>\
         <cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" builtinId=\"0\"/></cellStyles></styleSheet>",
    ),
];

/// Shared texts begin with the words, then the phrases, then the markers and headers, then one of each row's own.
const FIRST_PHRASE: u32 = WORDS;
const FIRST_HEADER: u32 = FIRST_PHRASE + PHRASES;
const MARKERS: [&str; 5] =
    ["__SG_META_REGISTRATION", "R-1", "__SG_META_VERSION", "1.0.0", "__SG_TABLE_LOADS"];
const HEADERS: u32 = COLUMNS + 5;
const FIRST_OWN: u32 = FIRST_HEADER + HEADERS;

fn write_strings(out: &mut impl Write, rows: u32) -> Result<()> {
    write!(out, "<sst xmlns=\"{NAMESPACE}\" uniqueCount=\"{}\">", FIRST_OWN + rows)?;
    for number in 0..WORDS {
        write!(out, "<si><t>Site of carrier {number}</t></si>")?;
    }
    for number in 0..PHRASES {
        write!(out, "<si><t>Weighbridge ticket book {number} &amp; notes</t></si>")?;
    }
    for text in MARKERS {
        write!(out, "<si><t>{text}</t></si>")?;
    }
    for column in 0..COLUMNS {
        write!(out, "<si><t>C{column}</t></si>")?;
    }
    for row in 0..rows {
        write!(out, "<si><t>Transfer note {:07}/A</t></si>", row + 1)?;
    }
    Ok(write!(out, "</sst>")?)
}

fn write_sheet(out: &mut impl Write, rows: u32, edition: u32) -> Result<()> {
    write!(out, "<worksheet xmlns=\"{NAMESPACE}\"><sheetData>")?;
    for (row, marker) in [(1, FIRST_HEADER), (2, FIRST_HEADER + 2)] {
        write!(out, "<row r=\"{row}\"><c r=\"A{row}\" t=\"s\"><v>{marker}</v></c>")?;
        write!(out, "<c r=\"B{row}\" t=\"s\"><v>{}</v></c></row>", marker + 1)?;
    }
    write!(out, "<row r=\"3\"><c r=\"A3\" t=\"s\"><v>{}</v></c>", FIRST_HEADER + 4)?;
    let letters: Vec<String> = (0..COLUMNS).map(|column| letters(column + 1)).collect();
    for (column, letters) in (0..COLUMNS).zip(&letters) {
        write!(out, "<c r=\"{letters}3\" t=\"s\"><v>{}</v></c>", FIRST_HEADER + 5 + column)?;
    }
    write!(out, "</row>")?;
    let mut line = String::new();
    for row in 0..rows {
        line.clear();
        let at = row + 4;
        let _ = write!(line, "<row r=\"{at}\">");
        for (column, letters) in (0..COLUMNS).zip(&letters) {
            write_cell(&mut line, (letters, at), (row, column, edition));
        }
        line.push_str("</row>");
        out.write_all(line.as_bytes())?;
    }
    write!(out, "</sheetData></worksheet>")?;
    Ok(out.flush()?)
}

fn write_cell(line: &mut String, (letters, at): (&str, u32), (row, column, edition): (u32, u32, u32)) {
    let drawn = drawn(row, column);
    let _ = match kind(column) {
        Kind::Id => write!(line, "<c r=\"{letters}{at}\"><v>{}</v></c>", FIRST_ID + row),
        Kind::Text(text) => {
            let number = match text {
                text if text < WORD_COLUMNS => drawn % WORDS,
                text if text < WORD_COLUMNS + PHRASE_COLUMNS => FIRST_PHRASE + drawn % PHRASES,
                _ => FIRST_OWN + row,
            };
            write!(line, "<c r=\"{letters}{at}\" t=\"s\"><v>{number}</v></c>")
        }
        Kind::Day => write!(line, "<c r=\"{letters}{at}\" s=\"1\"><v>{}</v></c>", FIRST_DAY + drawn % 300),
        Kind::Flag => write!(line, "<c r=\"{letters}{at}\" t=\"b\"><v>{}</v></c>", drawn % 2),
        Kind::Number => {
            let is_changed = column + 1 == COLUMNS && row.is_multiple_of(CHANGED_EVERY);
            let whole = drawn % 40 + if is_changed { edition } else { 0 };
            write!(line, "<c r=\"{letters}{at}\"><v>{whole}.{:03}</v></c>", drawn / 40 % 1_000)
        }
    };
}

/// A number that looks like chance and is always the same.
fn drawn(row: u32, column: u32) -> u32 {
    let mixed = (u64::from(row) * u64::from(COLUMNS) + u64::from(column)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    u32::try_from((mixed ^ (mixed >> 29)) >> 33).unwrap_or_default()
}

fn letters(column: u32) -> String {
    let letter = |number: u32| char::from(b'A' + u8::try_from(number % 26).unwrap_or_default());
    if column < 26 {
        letter(column).to_string()
    } else {
        format!("{}{}", letter(column / 26 - 1), letter(column))
    }
}
