//! The files of `corpus/` and what is expected of them, from `verdicts.tsv`.
//!
//! Guarantees: every row is read, and a row that is not as expected stops the tests. Does not do: judge.

use std::path::{Path, PathBuf};

use office_check::{Hint, Limits, Report, check};

/// A row of the table.
pub(crate) struct Row {
    pub(crate) file: String,
    pub(crate) hint: String,
    pub(crate) kind: String,
    pub(crate) verdict: String,
    /// Codes, sorted, each once.
    pub(crate) findings: Vec<String>,
}

impl Row {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(folder().join(&self.file)).unwrap()
    }
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// All rows, in the order of the table.
pub(crate) fn rows() -> Vec<Row> {
    let table = std::fs::read_to_string(folder().join("verdicts.tsv")).unwrap();
    let row = |line: &str| {
        let [file, hint, kind, verdict, findings, _why] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("six columns: {line}");
        };
        let findings = findings.split(',').filter(|code| *code != "-").map(str::to_owned).collect();
        let [file, hint, kind, verdict] = [file, hint, kind, verdict].map(str::to_owned);
        Row { file, hint, kind, verdict, findings }
    };
    table.lines().skip(1).map(row).collect()
}

/// The rows of these files.
pub(crate) fn named<const COUNT: usize>(files: [&str; COUNT]) -> [Row; COUNT] {
    files.map(|file| rows().into_iter().find(|row| row.file == file).unwrap_or_else(|| panic!("{file}")))
}

pub(crate) fn report(bytes: &[u8], hint: &str) -> Report {
    check(std::io::Cursor::new(bytes), Hint::from_extension(hint), &Limits::default())
}
