//! Documents that end too early, and chunks that end anywhere.

use super::*;

#[test]
fn every_cut_of_a_document_is_found() {
    let document = RICH.as_bytes();
    // Behind the root element the document may end, but not within the comment and the instruction there.
    let root_end = RICH.find("</ä:root>").unwrap() + "</ä:root>".len();

    for length in 0..document.len() {
        let rest = &RICH.as_bytes()[root_end.min(length)..length];
        let may_end = length >= root_end
            && [&b""[..], b"\n", b"\n<!-- after -->", b"\n<!-- after --><?end ?>"].contains(&rest);
        let found = check_every_way(&document[..length]);
        assert_eq!(found.is_ok(), may_end, "cut at {length}: {found:?}");
    }
}

#[test]
fn every_pair_of_chunks_makes_the_same_document() {
    let document = RICH.as_bytes();

    for first in 0..document.len() {
        for second in [first, first + 1, first + 2, first + 3, first + 70, document.len()] {
            let second = second.min(document.len());
            let chunks = [&document[..first], &document[first..second], &document[second..]];
            assert_eq!(check_in(chunks), Ok(()), "cut at {first} and {second}");
        }
    }
}

#[test]
fn a_fault_stays() {
    let mut checker = XmlChecker::new(&XmlLimits::default(), ());
    let first = checker.feed(b"<a><b></a>");

    assert_eq!(checker.feed(b"</b></a>"), first);
    assert_eq!(checker.finish(), first);
}

#[test]
fn utf16_that_ends_anywhere_is_cut_off() {
    let document = utf16(
        "\u{FEFF}<?xml version='1.0' encoding='UTF-16'?><a b='\u{10FFFF}'>é\u{10000}</a>",
        u16::to_be_bytes,
    );

    for length in 0..document.len() {
        assert!(check_every_way(&document[..length]).is_err(), "cut at {length}");
    }
}
