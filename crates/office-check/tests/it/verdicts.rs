//! Every file of the corpus gets the verdict beside it.

use std::collections::BTreeSet;

use crate::corpus::{folder, report, rows};

#[test]
fn the_corpus_gets_the_verdicts_beside_it() {
    let mut wrong = Vec::new();
    for row in rows() {
        let report = report(&row.bytes(), &row.hint);

        let codes: BTreeSet<&str> = report.findings.iter().map(|finding| finding.code.as_str()).collect();
        let codes: Vec<&str> = codes.into_iter().collect();
        let found = (report.kind.as_str(), report.verdict.as_str());
        if found != (row.kind.as_str(), row.verdict.as_str()) || codes != row.findings {
            wrong.push(format!(
                "{}: {} {} {:?} expected, {} {} {codes:?} found",
                row.file, row.kind, row.verdict, row.findings, found.0, found.1
            ));
        }
    }

    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_file_has_a_row_and_every_row_a_file() {
    let listed: BTreeSet<String> = rows().into_iter().map(|row| row.file).collect();
    let mut found = BTreeSet::new();
    for kind in ["whole", "odd", "damaged"] {
        for entry in std::fs::read_dir(folder().join(kind)).unwrap() {
            found.insert(format!("{kind}/{}", entry.unwrap().file_name().to_str().unwrap()));
        }
    }

    assert_eq!(listed, found);
    assert!(listed.len() >= 120);
}
