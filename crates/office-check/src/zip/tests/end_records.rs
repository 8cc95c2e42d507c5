//! Which end record rules, if several seem to be there.

use super::{
    builder::{Part, Zip, package, text},
    *,
};

fn other() -> Zip {
    Zip::of(vec![Part::stored("other.xml", &text(3))])
}

#[test]
fn a_record_inside_the_comment_fools_nobody() {
    let empty = Zip::of(Vec::new()).bytes();
    let lying = [&b"PK\x05\x06\0\0\0\0\x01\0\x01\0\x2E\0\0\0\x10\0\0\0"[..], &[0, 0]].concat();
    let followed = [&empty[..], b" and on"].concat();

    for comment in [empty, lying, followed, other().bytes(), b"PK\x05\x06".to_vec()] {
        let seen = see(&Zip::of(package()).with(|zip| zip.comment = comment).bytes()).unwrap();
        assert_eq!(seen.names.len(), 3);
        assert_eq!(seen.notices, []);
    }
}

#[test]
fn of_two_archives_the_last_one_rules() {
    let twice = [other().bytes(), Zip::of(package()).bytes()].concat();
    let same = [other().bytes(), other().bytes()].concat();
    let thrice = [&same[..], &Zip::of(package()).with(|zip| zip.is_zip64 = true).bytes()].concat();

    for (bytes, names) in [(twice, 3), (same, 1), (thrice, 3)] {
        let seen = see(&bytes).unwrap();
        assert_eq!(seen.notices, [ZipFaultKind::PrependedBytes]);
        assert_eq!(seen.names.len(), names);
    }
}

#[test]
fn an_archive_does_not_stand_in_for_one_behind_it_that_was_damaged() {
    let first = other().bytes();
    let mut bytes = [&first[..], &Zip::of(package()).bytes()].concat();

    for cut_at in first.len() + 4..bytes.len() {
        assert!(see(&bytes[..cut_at]).is_err(), "{cut_at}");
    }
    let directory_size_at = bytes.len() - 10;
    bytes[directory_size_at] ^= 1;
    assert_eq!(fault_of(&bytes), ZipFaultKind::BadDirectory);
}

#[test]
fn a_stored_package_does_not_stand_in_for_the_one_that_was_cut() {
    let zip = Zip::of(vec![
        Part::stored("word/document.xml", &text(3)),
        Part::stored("word/embeddings/book.xlsx", &other().bytes()),
        Part::stored("word/embeddings/more.xlsx", &other().bytes()),
        Part::stored("word/last.xml", b"x"),
    ]);
    let bytes = zip.bytes();

    assert_eq!(see(&bytes).unwrap().notices, []);
    for cut_at in 0..bytes.len() {
        assert!(see(&bytes[..cut_at]).is_err(), "{cut_at}");
    }
}

#[test]
fn a_comment_that_is_cut_is_a_cut() {
    let mut bytes = Zip::of(package()).with(|zip| zip.comment = b"comment".to_vec()).bytes();
    bytes.pop();

    assert_eq!(fault_of(&bytes), ZipFaultKind::Truncated);
}

#[test]
fn a_beginning_that_is_missing_is_a_cut() {
    let bytes = Zip::of(package()).bytes();

    for from in 1..bytes.len() {
        assert!(see(&bytes[from..]).is_err(), "{from}");
    }
    assert_eq!(fault_of(&bytes[1..]), ZipFaultKind::TruncatedDirectory);
}

#[test]
fn a_wide_record_must_agree() {
    let bytes = Zip::of(package()).with(|zip| zip.is_zip64 = true).bytes();
    let end_at = bytes.len() - 22;
    let with = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        fault_of(&bytes)
    };

    assert_eq!(with(end_at - 20, 0), ZipFaultKind::TruncatedDirectory, "no locator where one is needed");
    assert_eq!(with(end_at - 76, 0), ZipFaultKind::BadDirectory, "no record where the locator says");
    assert_eq!(with(end_at - 76 + 4, 45), ZipFaultKind::BadDirectory, "a record of another length");
    assert_eq!(with(end_at - 76 + 16, 1), ZipFaultKind::MultiDisk);
    assert_eq!(with(end_at - 76 + 24, 4), ZipFaultKind::EntryCountMismatch);
    assert_eq!(with(end_at - 16, 1), ZipFaultKind::MultiDisk, "the locator's disks");
}
