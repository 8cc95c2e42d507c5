//! Documents of one size that all differ: a whole docx of which one small stored entry, and its checksum, is patched.
//!
//! Making one costs a copy, so that the driver does not take time from what is measured.

use std::io::{Cursor, Write as _};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

const MARK: &[u8; 20] = b"00000000000000000000";
const MARK_NAME: &str = "docProps/mark.txt";

/// A docx that can be copied with a number in it.
pub(crate) struct Template {
    bytes: Vec<u8>,
    mark_at: usize,
    checksums_at: [usize; 2],
}

impl Template {
    /// A docx of about this size, of text as compressible as people's.
    pub(crate) fn new(size_bytes: usize) -> Result<Self> {
        let mut text_bytes = size_bytes * 3;
        loop {
            let bytes = docx(text_bytes)?;
            if bytes.len().abs_diff(size_bytes) < size_bytes / 50 {
                return Self::of(bytes);
            }
            text_bytes = text_bytes * size_bytes / bytes.len().max(1);
        }
    }

    fn of(bytes: Vec<u8>) -> Result<Self> {
        let mark_at = find(&bytes, MARK).context("the mark is not in the file")?;
        let checksum = crc32fast::hash(MARK).to_le_bytes();
        let first = find(&bytes, &checksum).context("no checksum in the header")?;
        let second =
            first + 4 + find(&bytes[first + 4..], &checksum).context("no checksum in the directory")?;
        Ok(Self { bytes, mark_at, checksums_at: [first, second] })
    }

    /// A copy that differs from every other.
    pub(crate) fn copy(&self, number: u64) -> Bytes {
        let mut bytes = self.bytes.clone();
        let mark = format!("{number:020}");
        bytes[self.mark_at..self.mark_at + MARK.len()].copy_from_slice(mark.as_bytes());
        let checksum = crc32fast::hash(mark.as_bytes()).to_le_bytes();
        for at in self.checksums_at {
            bytes[at..at + 4].copy_from_slice(&checksum);
        }
        Bytes::from(bytes)
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn docx(text_bytes: usize) -> Result<Vec<u8>> {
    let types = "<?xml version=\"1.0\"?><Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\
        <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
        <Override PartName=\"/word/document.xml\" ContentType=\
        \"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml\"/></Types>";
    let relations = "<?xml version=\"1.0\"?><Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\
        <Relationship Id=\"r1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument\" \
        Target=\"word/document.xml\"/></Relationships>";
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let deflated = SimpleFileOptions::default();
    for (name, body) in
        [("[Content_Types].xml", types), ("_rels/.rels", relations), ("word/document.xml", &text(text_bytes))]
    {
        zip.start_file(name, deflated)?;
        zip.write_all(body.as_bytes())?;
    }
    zip.start_file(MARK_NAME, SimpleFileOptions::default().compression_method(CompressionMethod::Stored))?;
    zip.write_all(MARK)?;
    Ok(zip.finish()?.into_inner())
}

/// Words drawn from a small vocabulary by a fixed sequence.
fn text(bytes: usize) -> String {
    let mut body = String::from(
        "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"><w:body>",
    );
    let mut state = 1_u64;
    while body.len() < bytes {
        body.push_str("<w:p><w:r><w:t>");
        for _ in 0..20 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            body.push_str(&format!("{:x} ", state >> 44));
        }
        body.push_str("</w:t></w:r></w:p>");
    }
    body.push_str("</w:body></w:document>");
    body
}
