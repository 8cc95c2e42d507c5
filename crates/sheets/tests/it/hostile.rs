//! Files that mean harm, or are what a bad day makes of good ones.

use std::cell::Cell;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

use model::submissions::StagedRow;
use sheets::{Assessment, Sink, SinkError, Template, Unreadable, assess, code};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::book::{Book, TODAY, cover, headers, load, right, row, scope, template, told};

fn assess_bytes(bytes: &[u8]) -> Assessment {
    let mut rows: Vec<StagedRow> = Vec::new();
    assess(&template(), (&scope(), TODAY), &mut Cursor::new(bytes), &mut rows).unwrap()
}

fn code_of(bytes: &[u8]) -> String {
    let assessment = assess_bytes(bytes);
    assert_eq!((assessment.fatal, assessment.problems.len()), (1, 1), "{:?}", assessment.problems);
    assert_eq!(assessment.problems[0].level, 0);
    assessment.problems[0].code.clone()
}

#[test]
fn behaviour_20_what_is_no_workbook_is_the_users_to_correct() {
    assert_eq!(code_of(b""), code::FILE_NOT_A_WORKBOOK);
    assert_eq!(code_of(b"a;b;c\n1;2;3"), code::FILE_NOT_A_WORKBOOK);
    assert_eq!(code_of(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1rest"), code::FILE_PROTECTED);
    assert_eq!(code_of(b"PK\x03\x04 and nothing"), code::FILE_BROKEN);
    let right = Book::of_loads(&[right(2, 1000)]);
    let mut macros = right.clone();
    macros.parts.push(("xl/vbaProject.bin".into(), b"x".to_vec()));
    assert_eq!(code_of(&macros.bytes()), code::FILE_HAS_MACROS);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("mimetype", SimpleFileOptions::default()).unwrap();
    zip.write_all(b"application/vnd.oasis.opendocument.spreadsheet").unwrap();
    assert_eq!(code_of(&zip.finish().unwrap().into_inner()), code::FILE_NOT_A_WORKBOOK);
    let mut writing = right.clone();
    writing.parts.push(("xl/workbook.xml".into(), b"<document/>".to_vec()));
    assert_eq!(code_of(&writing.bytes()), code::FILE_NOT_A_WORKBOOK);
    let bytes = right.bytes();
    assert_eq!(code_of(&bytes[..bytes.len() - 30]), code::FILE_BROKEN);
}

#[test]
fn behaviour_20_damaged_markup_is_told_as_damage() {
    for sheet in [
        "<worksheet><sheetData><row r=\"1\">",
        "<worksheet><sheetData><row r=\"5\"><c r=\"A5\"><v>1</v></c></row><row r=\"4\"><c r=\"A4\"><v>1</v></c></row></sheetData></worksheet>",
        "<worksheet><sheetData><row r=\"5\"><c r=\"B5\"><v>1</v></c><c r=\"A5\"><v>1</v></c></row></sheetData></worksheet>",
        "<worksheet><sheetData><row r=\"5\"><c r=\"A5\" t=\"s\"><v>7</v></c></row></sheetData></worksheet>",
        "<worksheet><sheetData><row r=\"99999999\"><c><v>1</v></c></row></sheetData></worksheet>",
        "<!DOCTYPE x [<!ENTITY a \"b\">]><worksheet/>",
        "\u{FEFF}<worksheet><sheetData><row><c t=\"inlineStr\"><is><t>&unknown;</t></is></c></row></sheetData></worksheet>",
        "",
    ] {
        let mut book = Book::of_loads(&[]);
        book.parts.push(("xl/worksheets/sheet1.xml".into(), sheet.into()));
        assert_eq!(code_of(&book.bytes()), code::FILE_BROKEN, "{sheet}");
    }
}

#[test]
fn behaviour_20_limits_hold_while_reading() {
    let limited = |limits: &str| {
        let text = include_str!("loads.toml").replace("[limits]", &format!("[limits]\n{limits}"));
        let text = limits.split(' ').next().map_or(text.clone(), |name| {
            let lines = text.lines().scan(0, |seen, line| {
                *seen += usize::from(line.starts_with(name));
                Some(if *seen == 2 && line.starts_with(name) { "" } else { line })
            });
            lines.collect::<Vec<_>>().join("\n")
        });
        Template::parse(&text).unwrap()
    };
    let rows: Vec<String> = (2..30).map(|n| right(n, 1000 + n)).collect();
    let book = Book::of_loads(&rows);
    let code_by = |template: &Template, book: &Book| told(&book.assess_by(template).0.problems);

    assert_eq!(code_by(&limited("file_bytes = 1000"), &book), ["FILE_TOO_LARGE -"]);
    assert_eq!(code_by(&limited("inflated_bytes = 5000"), &book), ["FILE_TOO_LARGE -"]);
    assert_eq!(code_by(&limited("sheets = 1"), &book), ["FILE_TOO_LARGE -"]);
    assert_eq!(code_by(&limited("rows_per_table = 10"), &book), ["TOO_MANY_ROWS B12"]);
    assert_eq!(code_by(&limited("columns = 10"), &book), ["TOO_MANY_COLUMNS B1"]);
    let mut texts = book.clone();
    texts.strings = Some(format!("<si><t>{}</t></si>", "x".repeat(2_000)));
    assert_eq!(code_by(&limited("shared_string_bytes = 1000"), &texts), ["FILE_TOO_LARGE -"]);
}

#[test]
fn behaviour_20_a_bomb_is_refused_before_it_is_unpacked() {
    let mut book = Book::of_loads(&[]);
    book.parts.push(("xl/media/bomb".into(), vec![0; 64 * 1024 * 1024]));
    let bytes = book.bytes();
    assert!(bytes.len() < 200_000);
    assert_eq!(code_of(&bytes), code::FILE_TOO_LARGE);
}

#[test]
fn behaviour_20_a_bomb_that_lies_about_its_size_is_refused_while_it_is_unpacked() {
    let mut book = Book::of_loads(&[]);
    let bomb = format!("<worksheet><sheetData>{}</sheetData></worksheet>", "<row/>".repeat(5_000_000));
    book.parts.push(("xl/worksheets/sheet1.xml".into(), bomb.into_bytes()));
    let mut bytes = book.bytes();
    // The directory at the end claims a small size for the part.
    let name = b"xl/worksheets/sheet1.xml";
    let entries: Vec<usize> =
        (0..bytes.len() - name.len()).filter(|at| bytes[*at..].starts_with(name)).collect();
    let directory = *entries.last().unwrap();
    bytes[directory - 46 + 24..directory - 46 + 28].copy_from_slice(&1000_u32.to_le_bytes());
    let found = code_of(&bytes);
    assert!([code::FILE_TOO_LARGE, code::FILE_BROKEN].contains(&found.as_str()), "{found}");
}

#[test]
fn a_cell_far_away_costs_nothing() {
    let far = "<row r=\"1048576\"><c r=\"XFD1048576\"><v>1</v></c></row>";
    let (assessment, rows) = Book::of_loads(&[right(2, 1000), far.into()]).assess();
    assert_eq!((assessment.problems, rows.len()), (vec![], 1));
}

#[test]
fn formulas_and_markers_in_values_are_values_or_problems_but_never_more() {
    let rows = [load(2, &["n:1000", "d:46092", "", "", "n:1", "", "", "", "t:=cmd|'/c calc'!A1"])];
    let (_, staged) = Book::of_loads(&rows).assess();
    assert!(staged[0].values.contains("=cmd|'/c calc'!A1"));
    let rows =
        [load(2, &["n:1000", "d:46092", "", "", "n:1", "", "", "", "t:__T_TABLE_OUT"]), right(3, 1001)];
    let (assessment, _) = Book::of_loads(&rows).assess();
    assert!(!assessment.is_valid(), "a table must not end unseen");
}

struct Counting {
    rows: u64,
    told: Cell<u64>,
    stop_at: u64,
    refuse_at: u64,
}

impl Sink for Counting {
    fn row(&mut self, _: StagedRow) -> Result<(), SinkError> {
        self.rows += 1;
        if self.rows == self.refuse_at {
            return Err(SinkError("full".into()));
        }
        Ok(())
    }

    fn progress(&mut self, rows: u64) {
        self.told.set(rows);
    }

    fn is_cancelled(&self) -> bool {
        self.told.get() >= self.stop_at
    }
}

#[test]
fn reading_tells_how_far_it_is_and_stops_when_asked() {
    let bytes = Book::of_loads(&(2..6_000).map(|n| right(n, 1000 + n)).collect::<Vec<_>>()).bytes();
    let mut sink = Counting { rows: 0, told: Cell::new(0), stop_at: 3_000, refuse_at: u64::MAX };
    let ended = assess(&template(), (&scope(), TODAY), &mut Cursor::new(&bytes), &mut sink);
    assert!(matches!(ended, Err(Unreadable::Cancelled)));
    assert!((2_000..3_000).contains(&sink.rows), "{}", sink.rows);

    let mut sink = Counting { rows: 0, told: Cell::new(0), stop_at: u64::MAX, refuse_at: 7 };
    let ended = assess(&template(), (&scope(), TODAY), &mut Cursor::new(&bytes), &mut sink);
    assert!(matches!(ended, Err(Unreadable::Sink(_))));
}

/// Fails after so many reads.
struct Failing {
    inner: Cursor<Vec<u8>>,
    left: usize,
}

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other("the disk is gone"));
        }
        self.left -= 1;
        self.inner.read(buffer)
    }
}

impl Seek for Failing {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

#[test]
fn a_disk_that_fails_is_our_fault_and_not_a_problem_of_the_file() {
    let bytes = Book::of_loads(&(2..500).map(|n| right(n, 1000 + n)).collect::<Vec<_>>()).bytes();
    let mut is_done = false;
    for left in 0..200 {
        let mut file = Failing { inner: Cursor::new(bytes.clone()), left };
        let mut rows: Vec<StagedRow> = Vec::new();
        match assess(&template(), (&scope(), TODAY), &mut file, &mut rows) {
            Ok(assessment) => {
                assert_eq!(assessment.problems, [], "after {left} reads");
                is_done = true;
            }
            Err(Unreadable::Io(_)) => assert!(!is_done),
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(is_done);
}

#[test]
fn damaged_files_never_make_trouble() {
    let mut book =
        Book::of_loads(&[right(2, 1000), right(3, 1001), load(4, &["s:0", "d:46092", "s:1", "b:1", "f:1"])]);
    book.strings = Some("<si><t>1005</t></si><si><r><t>15 01 01</t></r></si>".into());
    let parts = [
        ("xl/worksheets/sheet2.xml", headers(1) + &right(2, 1000) + &right(3, 1001)),
        (
            "xl/worksheets/sheet1.xml",
            cover(&["t:loads", "t:2.1", "t:R-1", "t:ACC-1"]) + &row(9, &["e:#N/A", "F:", "g:x"]),
        ),
    ];
    let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).unwrap()
    };
    for round in 0..3_000 {
        let mut mutated = book.clone();
        let (name, rows) = &parts[round % 2];
        let mut text = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>").into_bytes();
        for _ in 0..=next(4) {
            let at = next(text.len());
            match next(5) {
                0 => text[at] = u8::try_from(next(256)).unwrap(),
                1 => drop(text.remove(at)),
                2 => text.insert(at, b"<>\"'=/&0A:"[next(10)]),
                3 => text.truncate(at.max(1)),
                _ => {
                    let end = (at + next(40)).min(text.len());
                    let copy = text[at..end].to_vec();
                    text.splice(at..at, copy);
                }
            }
        }
        mutated.parts.push(((*name).to_owned(), text));
        assess_bytes(&mutated.bytes());
    }
    let bytes = book.bytes();
    for _ in 0..3_000 {
        let mut mutated = bytes.clone();
        for _ in 0..=next(3) {
            let at = next(mutated.len());
            mutated[at] = u8::try_from(next(256)).unwrap();
        }
        assess_bytes(&mutated);
    }
}
