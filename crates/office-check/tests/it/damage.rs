//! Good files, cut and changed: what is damaged is refused, wherever the damage is.
//!
//! Guarantees: the same places in every run. Does not do: flip bits of headers, some of which mean nothing to anybody;
//! the tests of the ZIP layer do.

use std::io::{Cursor, Read as _};

use office_check::Verdict;

use crate::corpus::{named, report};

const PACKAGES: [&str; 20] = [
    "whole/report.docx",
    "whole/report.dotx",
    "whole/python-docx.docx",
    "whole/python-docx-picture.docx",
    "whole/infozip-stored-piped.docx",
    "whole/costs.xlsx",
    "whole/costs.xlsm",
    "whole/openpyxl.xlsx",
    "whole/xlsxwriter-zip64.xlsx",
    "whole/rust-xlsxwriter.xlsx",
    "whole/slides.pptx",
    "whole/python-pptx.pptx",
    "whole/report.odt",
    "whole/report-locked.odt",
    "whole/costs.ods",
    "whole/slides.odp",
    "whole/shapes.odg",
    "whole/report.epub",
    "odd/zip64-everywhere.docx",
    "odd/descriptor-unsigned-wide.docx",
];

/// One of each program and each family; every flip costs a whole check.
const FLIPPED: [&str; 10] = [
    "whole/report.docx",
    "whole/python-docx.docx",
    "whole/infozip-stored-piped.docx",
    "whole/openpyxl.xlsx",
    "whole/xlsxwriter.xlsx",
    "whole/rust-xlsxwriter.xlsx",
    "whole/slides.pptx",
    "whole/odfpy.odt",
    "whole/costs.ods",
    "whole/report.epub",
];
const FLIPS: usize = 200;

#[test]
fn a_package_cut_at_any_64th_is_refused() {
    for row in named(PACKAGES) {
        let whole = row.bytes();
        assert_eq!(report(&whole, &row.hint).verdict, Verdict::Accept, "{}", row.file);
        for part in 0..64 {
            let cut_at = whole.len() * part / 64;
            let report = report(&whole[..cut_at], &row.hint);
            assert_eq!(report.verdict, Verdict::Refuse, "{} cut at {cut_at} of {}", row.file, whole.len());
        }
    }
}

#[test]
fn a_flipped_bit_in_the_data_of_any_part_is_refused() {
    let mut places = Places(2026);
    for row in named(FLIPPED) {
        let whole = row.bytes();
        let spans = spans(&whole);
        let data_bytes: usize = spans.iter().map(|span| span.deflated_bytes).sum();
        let mut refused = 0;
        for _ in 0..FLIPS * 2 {
            let (span, bit) = place(&spans, places.below(data_bytes), places.below(8));
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if report(&flipped, &row.hint).verdict == Verdict::Refuse {
                refused += 1;
            } else {
                // Deflate has bits that say nothing, and more than one way to say the same.
                assert_eq!(span.data(&flipped), span.data(&whole), "{} bit {bit}", row.file);
            }
            if refused == FLIPS {
                break;
            }
        }
        assert_eq!(refused, FLIPS, "{}", row.file);
    }
}

/// Where the data of an entry is.
struct Span {
    start: usize,
    deflated_bytes: usize,
    is_deflated: bool,
}

impl Span {
    /// What the entry says, as another program reads it.
    fn data(&self, file: &[u8]) -> Vec<u8> {
        let stored = &file[self.start..self.start + self.deflated_bytes];
        let mut data = Vec::new();
        match self.is_deflated {
            true => drop(flate2::read::DeflateDecoder::new(stored).read_to_end(&mut data)),
            false => data.extend_from_slice(stored),
        }
        data
    }
}

fn spans(file: &[u8]) -> Vec<Span> {
    let mut archive = zip::ZipArchive::new(Cursor::new(file)).unwrap();
    let entries = archive.len();
    let span = |at| {
        let entry = archive.by_index_raw(at).unwrap();
        Span {
            start: usize::try_from(entry.data_start().unwrap()).unwrap(),
            deflated_bytes: usize::try_from(entry.compressed_size()).unwrap(),
            is_deflated: entry.compression() == zip::CompressionMethod::Deflated,
        }
    };
    (0..entries).map(span).collect()
}

/// The entry and the bit of the file behind a place in the data of all entries.
fn place(spans: &[Span], mut byte: usize, bit: usize) -> (&Span, usize) {
    for span in spans {
        if byte < span.deflated_bytes {
            return (span, (span.start + byte) * 8 + bit);
        }
        byte -= span.deflated_bytes;
    }
    unreachable!("the place is below the sum")
}

/// Numbers that look like chance and are the same each time.
struct Places(u64);

impl Places {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}
