//! Files that are made to cost much cost a bounded amount, and end in an answer.

use std::io::Cursor;

use office_diff::{Cut, Limits, compare};

use crate::files::{docx, docx_with, odf, package, xlsx};

/// Small enough that a test is quick, and far smaller than what the files want.
fn limits() -> Limits {
    Limits {
        unpacked_bytes_max: 8 * 1024 * 1024,
        text_bytes_max: 1024 * 1024,
        pieces_max: 10_000,
        ..Limits::default()
    }
}

fn cut_of(from: &[u8], to: &[u8]) -> Vec<Cut> {
    compare(Cursor::new(from), Cursor::new(to), &limits()).unwrap().cut
}

#[test]
fn a_file_that_unpacks_to_very_much_is_cut() {
    let bomb = docx_with(&"<w:p><w:r><w:t>again and again</w:t></w:r></w:p>".repeat(500_000), &[]);
    assert!(bomb.len() < 200_000, "{} bytes are few", bomb.len());

    assert_eq!(cut_of(&bomb, &docx(&["a"])), [Cut::Read, Cut::Rough]);
}

#[test]
fn one_endless_text_attribute_or_name_is_cut() {
    let long = "x".repeat(6 * 1024 * 1024);
    for body in [
        format!("<w:p><w:r><w:t>{long}</w:t></w:r></w:p>"),
        format!("<w:p w:a=\"{long}\"/>"),
        format!("<w:{long}/>"),
        format!("<!--{long}-->"),
    ] {
        assert_eq!(cut_of(&docx(&["a"]), &docx_with(&body, &[])), [Cut::Read]);
    }
}

#[test]
fn deep_nesting_is_no_trouble() {
    let deep = "<w:p>".repeat(200_000);

    assert_eq!(cut_of(&docx(&["a"]), &docx_with(&deep, &[])), [Cut::Damaged]);
}

#[test]
fn entities_are_not_expanded() {
    let body = "<w:p><w:r><w:t>a&lol;b</w:t></w:r></w:p>";
    let main =
        format!("<!DOCTYPE x [<!ENTITY lol \"lollol\">]><w:document><w:body>{body}</w:body></w:document>");
    let relations =
        "<Relationships><Relationship Id=\"r\" Type=\"x/officeDocument\" Target=\"d.xml\"/></Relationships>";
    let file = package(&[("_rels/.rels", relations), ("d.xml", &main)]);

    let comparison = compare(Cursor::new(docx(&["a"])), Cursor::new(file), &limits()).unwrap();

    assert_eq!(comparison.changes[0].new.as_ref().unwrap().text, "ab");
}

#[test]
fn one_string_in_all_cells_is_cut() {
    let long = "x".repeat(10_000);
    let rows: String =
        (1..=5000).map(|at| format!("<row r=\"{at}\"><c t=\"s\"><v>0</v></c></row>")).collect();

    assert_eq!(
        cut_of(&xlsx(&[("Plan", &rows)], &[&long]), &xlsx(&[("Plan", "")], &[])),
        [Cut::Read, Cut::Shown]
    );
}

#[test]
fn a_cell_that_stands_for_billions_is_cut() {
    let cells = "<table:table table:name=\"a\"><table:table-row table:number-rows-repeated=\"4000000000\">
        <table:table-cell table:number-columns-repeated=\"4000000000\"><text:p>x</text:p></table:table-cell></table:table-row></table:table>";

    assert_eq!(cut_of(&odf("spreadsheet", cells), &odf("spreadsheet", "")), [Cut::Read]);
}

#[test]
fn every_damaged_byte_ends_in_an_answer() {
    let whole = docx(&["One.", "Two.", "Three."]);
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        let _ = compare(Cursor::new(&whole), Cursor::new(&damaged), &limits());
        let _ = compare(Cursor::new(&damaged[..at]), Cursor::new(&whole), &limits());
    }
}
