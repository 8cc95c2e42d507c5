//! Small files made by hand; the judged corpus comes with the next layer.

use std::io::{Cursor, Write as _};

use super::*;
use zip::write::SimpleFileOptions;

fn docx(text: &str) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let types = "<Types><Override ContentType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml\"/></Types>";
    for (name, body) in [("[Content_Types].xml", types), ("word/document.xml", text)] {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(body.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn verdict(bytes: &[u8], extension: &str) -> (Verdict, Kind, Vec<&'static str>) {
    let report = check(Cursor::new(bytes), Hint::from_extension(extension), &Limits::default());
    (report.verdict, report.kind, report.findings.iter().map(|finding| finding.code.as_str()).collect())
}

#[test]
fn a_whole_package_is_accepted_whatever_its_size() {
    assert_eq!(verdict(&docx(""), "docx"), (Verdict::Accept, Kind::Docx, vec![]));
    assert_eq!(verdict(&docx(&"text ".repeat(100_000)), "docx").0, Verdict::Accept);
}

#[test]
fn an_empty_file_is_refused_unless_it_is_text() {
    assert_eq!(verdict(b"", "docx"), (Verdict::Refuse, Kind::Unknown, vec!["empty"]));
    assert_eq!(verdict(b"", "csv"), (Verdict::Flag, Kind::Unknown, vec!["empty-text"]));
}

#[test]
fn an_error_page_is_no_document() {
    for page in [&b"<html>502</html>"[..], b"<!DOCTYPE html><p>sign in", b"{\"error\":1}"] {
        assert_eq!(verdict(page, "docx").0, Verdict::Refuse);
        assert_eq!(verdict(page, "txt").0, Verdict::Accept);
    }
}

#[test]
fn password_protected_and_legacy_files_are_accepted() {
    let ole = [&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1][..], &[0; 600]].concat();

    assert_eq!(verdict(&ole, "docx"), (Verdict::Accept, Kind::Ole, vec![]));
    assert_eq!(verdict(b"{\\rtf1 x}", "doc").0, Verdict::Accept);
}

#[test]
fn a_package_cut_anywhere_is_refused() {
    let whole = docx(&"some text that does not compress to nothing 0123456789 ".repeat(50));

    for part in 1..64 {
        let cut = whole.len() * part / 64;
        assert_eq!(verdict(&whole[..cut], "docx").0, Verdict::Refuse, "cut at {cut} of {}", whole.len());
    }
}

#[test]
fn a_flipped_bit_in_compressed_data_is_found() {
    let whole = docx(&(0..2000).map(|number| format!("{number} ")).collect::<String>());
    let data = whole.windows(17).position(|window| window == b"word/document.xml").unwrap() + 17;

    for step in 0..100 {
        let mut flipped = whole.clone();
        flipped[data + 10 + step * 7] ^= 1 << (step % 8);
        assert_eq!(verdict(&flipped, "docx").0, Verdict::Refuse, "step {step}");
    }
}

#[test]
fn a_bomb_costs_no_more_than_its_limit_and_is_flagged() {
    let bomb = docx(&"0".repeat(5_000_000));
    let limits = Limits { inflated_bytes_max: 1_000_000, ..Limits::default() };

    let report = check(Cursor::new(bomb), Hint::from_extension("docx"), &limits);

    assert_eq!((report.verdict, report.findings[0].code), (Verdict::Flag, Code::OverLimit));
}
