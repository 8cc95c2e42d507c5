//! No input makes it panic or go beyond its budget.

use proptest::prelude::*;

use super::{
    builder::{Zip, package},
    *,
};

const BUDGET_BYTES: u64 = 64 * 1024;

/// Reads on after faults, as a caller that wants them all, and counts what comes out.
fn exhaust(bytes: &[u8]) {
    let limits = ZipLimits { inflated_bytes_max: BUDGET_BYTES, entries_max: 100, ..ZipLimits::default() };
    let Ok(mut archive) = Archive::open(Cursor::new(bytes), &limits) else { return };
    let mut budget = Budget::of(&limits);
    let mut handed_bytes = 0;
    for at in 0..archive.len() {
        let entry = archive.entry(at).unwrap();
        let answer = archive.read(&entry, &mut budget, &mut |piece| {
            handed_bytes += piece.len() as u64;
            ControlFlow::Continue(())
        });
        if let Err(fault) = answer {
            assert!(!fault.to_string().is_empty());
        }
        assert!(archive.find("word/document.xml").is_ok() || !archive.notices.is_empty());
    }
    assert!(handed_bytes <= BUDGET_BYTES);
    assert!(archive.kept_bytes() < 512 * 1024);
}

/// Pieces an archive is made of, so that arbitrary bytes come close to one.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"PK\x01\x02".to_vec()),
        Just(b"PK\x03\x04".to_vec()),
        Just(b"PK\x05\x06".to_vec()),
        Just(b"PK\x06\x06".to_vec()),
        Just(b"PK\x06\x07".to_vec()),
        Just(b"PK\x07\x08".to_vec()),
        Just(vec![0xFF; 4]),
        Just(vec![0; 8]),
        Just(Zip::of(package()).bytes()),
        Just(Zip::of(Vec::new()).bytes()),
        prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        exhaust(&bytes);
    }

    #[test]
    fn arbitrary_pieces_do_no_harm(pieces in prop::collection::vec(piece(), 0..12)) {
        exhaust(&pieces.concat());
    }

    #[test]
    fn a_mutated_archive_does_no_harm(
        is_zip64: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut: prop::sample::Index,
    ) {
        let mut bytes = Zip::of(package()).with(|zip| zip.is_zip64 = is_zip64).bytes();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        exhaust(&bytes);
        exhaust(&bytes[cut.index(bytes.len())..]);
        exhaust(&bytes[..cut.index(bytes.len())]);
    }
}
