//! What holds for all workbooks: what is written is what is read, however it is written.

use std::collections::BTreeMap;
use std::io::Cursor;

use calamine::{Reader, Xlsx};
use jiff::ToSpan;
use jiff::civil::date;
use model::submissions::canonical_values;
use proptest::prelude::*;
use sheets::{Decimal, ExportColumn, ExportKind, export_xlsx};

use crate::book::{Book, load};

/// One load, and how its cells are written.
#[derive(Debug, Clone)]
struct Load {
    day: i32,
    code: Option<usize>,
    claimed: Option<bool>,
    gross: i64,
    tare: i64,
    note: String,
    forms: [u8; 4],
}

const CODES: [&str; 3] = ["15 01 01", "15 01 02", "170201"];

fn loads() -> impl Strategy<Value = Vec<Load>> {
    let note = "[ -~äöü€=+@_x0-9]{0,40}";
    let values =
        (0..2_400_i32, prop::option::of(0..3_usize), prop::option::of(any::<bool>()), 0..1_000_000_i64);
    let load = (values, 0..1_000_000_i64, note, any::<[u8; 4]>()).prop_map(
        |((day, code, claimed, gross), tare, note, forms)| Load {
            day,
            code,
            claimed,
            gross,
            tare,
            note,
            forms,
        },
    );
    prop::collection::vec(load, 0..20)
}

fn thousandths(number: i64) -> String {
    format!("{}{}.{:03}", if number < 0 { "-" } else { "" }, number.abs() / 1000, number.abs() % 1000)
}

/// A number as programs write it, and as people do.
fn number(thousandth: i64, form: u8) -> String {
    let text = thousandths(thousandth);
    match form % 4 {
        0 => format!("n:{text}"),
        1 => format!("t: {text}  "),
        // What comes out of computing with binary fractions.
        2 => format!("n:{text}0000000000{}", form % 3),
        _ => format!("f:{text}"),
    }
}

impl Load {
    fn row(&self, at: u32) -> String {
        let day = date(2020, 1, 1).saturating_add(self.day.days());
        let day_cell = if self.forms[0].is_multiple_of(2) {
            format!("d:{}", 43831 + self.day)
        } else {
            format!("t:{day}")
        };
        let id = if self.forms[1].is_multiple_of(2) {
            format!("n:{}", 1000 + at)
        } else {
            format!("t: {}", 1000 + at)
        };
        let code = self
            .code
            .map_or("t:Choose option".into(), |code| format!("t:  {} ", CODES[code].replace(' ', "  ")));
        let claimed = match self.claimed {
            None => "",
            Some(true) => "b:1",
            Some(false) => "t:no",
        };
        load(
            at,
            &[
                &id,
                &day_cell,
                &code,
                claimed,
                &number(self.gross, self.forms[2]),
                &number(self.tare, self.forms[3]),
                &number(self.gross - self.tare, self.forms[1]),
                "",
                &format!("t:{}", self.note),
            ],
        )
    }

    fn values(&self, at: u32) -> String {
        let canonical = |number: i64| Decimal::parse(&thousandths(number)).unwrap().to_string();
        let day = date(2020, 1, 1).saturating_add(self.day.days());
        let claimed = self.claimed.map_or("", |claimed| if claimed { "Yes" } else { "No" });
        let pairs = [
            ("ID", (1000 + at).to_string()),
            ("DAY", day.to_string()),
            ("CODE", self.code.map_or(String::new(), |code| CODES[code].into())),
            ("CLAIMED", claimed.into()),
            ("GROSS", canonical(self.gross)),
            ("TARE", canonical(self.tare)),
            ("NET", canonical(self.gross - self.tare)),
            ("NOTE", self.note.trim().into()),
        ];
        canonical_values(
            &pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<BTreeMap<_, _>>(),
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn values_are_the_same_however_they_are_written(loads in loads()) {
        let rows: Vec<String> = (2..).zip(&loads).map(|(at, load)| load.row(at)).collect();
        let (assessment, staged) = Book::of_loads(&rows).assess();

        prop_assert_eq!(assessment.problems, vec![]);
        let expected: Vec<String> = (2..).zip(&loads).map(|(at, load)| load.values(at)).collect();
        let read: Vec<String> = staged.into_iter().map(|row| row.values).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn another_reader_reads_what_we_export(texts in prop::collection::vec("[ -~äöü€\n\t]{1,30}", 1..20)) {
        let columns = [ExportColumn { header: "text".into(), kind: ExportKind::Text }];
        let mut bytes = Vec::new();
        export_xlsx(("x", &columns), texts.iter().map(|text| Ok(vec![text.clone()])), &mut bytes).unwrap();
        let mut book: Xlsx<_> = calamine::open_workbook_from_rs(Cursor::new(bytes)).unwrap();
        let range = book.worksheet_range("x").unwrap();
        for (row, text) in (1..).zip(&texts) {
            prop_assert_eq!(range.get_value((row, 0)).map(ToString::to_string), Some(text.clone()));
        }
    }
}
