//! The files of the bench, made here: a document of 100 KB, workbooks of 8 and 80 MB; and the bare work on their entries.

use std::io::{Cursor, Write as _};

use anyhow::{Context as _, Result, ensure};
use libdeflater::Decompressor;
use zip::write::{SimpleFileOptions, ZipWriter};

const WORD: &str = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";

/// So many that the document has its 100 KB.
const PARAGRAPHS: usize = 700;

/// An entry as it lies in the archive.
pub(crate) struct Deflated<'a> {
    bytes: &'a [u8],
    size_bytes: usize,
    crc: u32,
    is_stored: bool,
}

/// Every file with its name in the rows.
pub(crate) fn all() -> Result<Vec<(&'static str, Vec<u8>)>> {
    Ok(vec![("docx 100 KB", docx()?), ("xlsx 8 MB", xlsx(45_000)?), ("xlsx 80 MB", xlsx(450_000)?)])
}

/// Writing with some formatting, the styles that every program adds, and a picture.
fn docx() -> Result<Vec<u8>> {
    let mut dice = Dice(7);
    let vocabulary: Vec<_> = (0..3_000).map(|_| word(&mut dice)).collect();
    let mut body = format!(r#"<w:document xmlns:w="{WORD}"><w:body>"#);
    for _ in 0..PARAGRAPHS {
        body.push_str(
            r#"<w:p w:rsidR="00A77427"><w:pPr><w:pStyle w:val="Normal"/><w:jc w:val="both"/></w:pPr>"#,
        );
        for _ in 0..4 {
            body.push_str(r#"<w:r><w:rPr><w:lang w:val="en-GB"/></w:rPr><w:t xml:space="preserve">"#);
            for _ in 0..10 {
                body.push_str(said(&vocabulary, &mut dice));
                body.push(' ');
            }
            body.push_str("</w:t></w:r>");
        }
        body.push_str("</w:p>");
    }
    body.push_str("</w:body></w:document>");
    let mut styles = format!(r#"<w:styles xmlns:w="{WORD}">"#);
    for number in 0..150 {
        styles.push_str(&format!(
            r#"<w:style w:type="paragraph" w:styleId="S{number}"><w:name w:val="{}"/><w:basedOn w:val="Normal"/><w:uiPriority w:val="{number}"/></w:style>"#,
            word(&mut dice)
        ));
    }
    styles.push_str("</w:styles>");
    let picture: Vec<u8> = (0..30_000).map(|_| u8::try_from(dice.next() % 256).unwrap_or(0)).collect();
    let parts = [
        ("word/document.xml", body.as_bytes()),
        ("word/styles.xml", styles.as_bytes()),
        ("word/media/image1.png", &picture),
    ];
    package("word/document.xml", "wordprocessingml.document", &parts)
}

/// One of the words. A writer uses few of them often and most of them seldom.
fn said<'a>(vocabulary: &'a [String], dice: &mut Dice) -> &'a str {
    let count = vocabulary.len() as u64;
    let rank = (0..3).map(|_| dice.next() % count).product::<u64>() / (count * count);
    vocabulary.get(usize::try_from(rank).unwrap_or(0)).map_or("a", String::as_str)
}

fn word(dice: &mut Dice) -> String {
    let length = 2 + dice.next() % 9;
    (0..length)
        .map(|_| char::from(b'a' + u8::try_from(dice.next() % 26 * (dice.next() % 26) / 26).unwrap_or(0)))
        .collect()
}

fn xlsx(rows: u32) -> Result<Vec<u8>> {
    let mut dice = Dice(11);
    let mut sheet = String::from(
        r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>"#,
    );
    for row in 1..=rows {
        sheet.push_str(&format!(r#"<row r="{row}" spans="1:20">"#));
        for column in 0..20_u8 {
            let name = char::from(b'A' + column);
            let value = dice.next() % 1_000_000_000;
            sheet.push_str(&format!(r#"<c r="{name}{row}" s="1"><v>{value}</v></c>"#));
        }
        sheet.push_str("</row>");
    }
    sheet.push_str("</sheetData></worksheet>");
    let workbook = r#"<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheets><sheet name="a" sheetId="1"/></sheets></workbook>"#;
    let parts = [("xl/workbook.xml", workbook.as_bytes()), ("xl/worksheets/sheet1.xml", sheet.as_bytes())];
    package("xl/workbook.xml", "spreadsheetml.sheet", &parts)
}

fn package(main: &str, content_type: &str, parts: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    let types = format!(
        r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/{main}" ContentType="application/vnd.openxmlformats-officedocument.{content_type}.main+xml"/></Types>"#
    );
    let root = format!(
        r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="{main}"/></Relationships>"#
    );
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let first = [("[Content_Types].xml", types.as_bytes()), ("_rels/.rels", root.as_bytes())];
    for (name, bytes) in first.iter().chain(parts) {
        zip.start_file(*name, SimpleFileOptions::default().large_file(true))?;
        zip.write_all(bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

/// Finds the entries, so that the limit only does the work on them.
pub(crate) fn entries(bytes: &[u8]) -> Result<Vec<Deflated<'_>>> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes))?;
    let mut entries = Vec::new();
    for at in 0..archive.len() {
        let entry = archive.by_index_raw(at)?;
        let start = usize::try_from(entry.data_start().context("an entry has a place")?)?;
        let end = start + usize::try_from(entry.compressed_size())?;
        entries.push(Deflated {
            bytes: bytes.get(start..end).context("an entry lies in its archive")?,
            size_bytes: usize::try_from(entry.size())?,
            crc: entry.crc32(),
            is_stored: entry.compression() == zip::CompressionMethod::Stored,
        });
    }
    Ok(entries)
}

/// The least that has to be done: inflate and sum, each entry at once.
pub(crate) fn inflate_all(entries: &[Deflated<'_>]) -> Result<()> {
    let mut inflater = Decompressor::new();
    for entry in entries {
        let sum = if entry.is_stored {
            libdeflater::crc32(entry.bytes)
        } else {
            let mut inflated = vec![0; entry.size_bytes];
            inflater.deflate_decompress(entry.bytes, &mut inflated)?;
            libdeflater::crc32(&inflated)
        };
        ensure!(sum == entry.crc, "the limit found a wrong checksum");
    }
    Ok(())
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}
