//! Every cut and every flipped bit is noticed.

use super::{
    builder::{Part, Sizes, Zip, package, text},
    *,
};

fn good() -> [Vec<u8>; 5] {
    let streamed = package().into_iter().map(|part| part.streamed(b"PK\x07\x08", Sizes::Short)).collect();
    [
        Zip::of(package()).bytes(),
        Zip::of(streamed).bytes(),
        Zip::of(package()).with(|zip| zip.is_zip64 = true).bytes(),
        Zip::of(vec![Part::stored("mimetype", b"application/x"), Part::stored("content.xml", &text(9))])
            .bytes(),
        Zip::of(package()).with(|zip| zip.comment = b"a comment, PK\x05\x06 inside".to_vec()).bytes(),
    ]
}

#[test]
fn a_cut_at_any_byte_is_a_fault() {
    for bytes in good() {
        assert!(see(&bytes).is_ok());
        for cut_at in 0..bytes.len() {
            assert!(see(&bytes[..cut_at]).is_err(), "cut at {cut_at} of {}", bytes.len());
        }
    }
}

#[test]
fn a_byte_missing_in_the_middle_is_a_fault() {
    for bytes in good() {
        // Of the comment's letters only the number is known.
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged.remove(at);
            assert!(see(&damaged).is_err(), "without byte {at} of {}", bytes.len());
        }
    }
}

#[test]
fn a_flipped_bit_in_an_entry_is_a_fault() {
    for part in package() {
        let whole = see(&Zip::of(vec![part.clone()]).bytes()).unwrap();
        let bits = part.body.len() * 8;
        for bit in 0..bits {
            let mut damaged = part.clone();
            damaged.body[bit / 8] ^= 1 << (bit % 8);
            match see(&Zip::of(vec![damaged]).bytes()) {
                Err(_) => {}
                // Deflate ends within a byte; the bits that fill it up say nothing.
                Ok(seen) if bits - bit < 8 && part.local.method == 8 => assert_eq!(seen.bodies, whole.bodies),
                Ok(_) => panic!("bit {bit} of {bits}"),
            }
        }
    }
}

/// Everything but what means nothing: versions, times, attributes, hints of the compressor, comments.
#[test]
fn a_flipped_bit_never_changes_a_name_or_a_body_unnoticed() {
    for bytes in good() {
        let whole = see(&bytes).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok(seen) = see(&damaged) {
                assert_eq!(
                    (seen.names, seen.bodies),
                    (whole.names.clone(), whole.bodies.clone()),
                    "bit {bit}"
                );
            }
        }
    }
}

#[test]
fn a_block_of_zeros_in_the_entries_is_a_fault() {
    let zip = Zip::of(vec![Part::deflated("a.xml", &text(20_000)), Part::stored("b.png", &text(20_000))]);
    let bytes = zip.bytes();
    let directory_at = bytes.len() - 22 - 2 * (46 + 5 + 12);

    for at in (0..directory_at - 4096).step_by(4096) {
        let mut damaged = bytes.clone();
        damaged[at..at + 4096].fill(0);
        assert!(see(&damaged).is_err(), "zeros at {at}");
    }
}
