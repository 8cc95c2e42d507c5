//! The quick ways over characters, against slow ones that are plainly right.

use proptest::prelude::*;

use super::super::characters::{beyond_ascii, is_allowed, ncname, skip};
use super::super::fault::Stop;
use super::XmlFaultKind;

/// One character at a time, by the standard library.
fn skip_slowly(data: &[u8], delimiters: [u8; 3]) -> Result<usize, Stop> {
    let mut at = 0;
    while let Some(first) = data.get(at) {
        let length = data[at..].len().min(4);
        let (text, cause) = match std::str::from_utf8(&data[at..at + length]) {
            Ok(text) => (text, None),
            Err(cause) => (std::str::from_utf8(&data[at..at + cause.valid_up_to()]).unwrap(), Some(cause)),
        };
        match (text.chars().next(), cause) {
            (Some(_), _) if delimiters.contains(first) => return Ok(at),
            (Some(character), _) if is_allowed(u32::from(character)) => at += character.len_utf8(),
            (Some(_), _) => return Err(Stop::Fault(XmlFaultKind::BadCharacter, at)),
            (None, Some(cause)) if cause.error_len().is_none() => return Ok(at),
            (None, _) => return Err(Stop::Fault(XmlFaultKind::NotUtf8, at)),
        }
    }
    Ok(at)
}

#[test]
fn every_character_is_read_as_itself() {
    for character in ('\u{80}'..=char::MAX).filter(|character| !matches!(character, '\u{FFFE}' | '\u{FFFF}'))
    {
        let mut bytes = [0; 4];
        let text = character.encode_utf8(&mut bytes).as_bytes();

        assert_eq!(beyond_ascii(text, 0), Ok((u32::from(character), text.len())));
        assert_eq!(skip::<b'<', b'&', b']'>(text, 0), Ok(text.len()));
    }
}

#[test]
fn every_sequence_of_bytes_is_judged_like_the_standard_library_does() {
    let later = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBE, 0xBF, 0xC0, 0xFF];
    for (first, second) in (0x80..=0xFF).flat_map(|first| (0..=0xFF).map(move |second| (first, second))) {
        for (third, fourth) in later.into_iter().flat_map(|third| later.map(|fourth| (third, fourth))) {
            let bytes = [first, second, third, fourth];
            for length in 1..=4 {
                let data = &bytes[..length];
                assert_eq!(skip::<b'<', b'&', b']'>(data, 0), skip_slowly(data, *b"<&]"), "{data:x?}");
            }
        }
    }
}

#[test]
fn every_ascii_character_is_told_at_every_place_of_a_word() {
    for byte in 0..0x80 {
        for place in 0..24 {
            let mut data = [b'x'; 24];
            data[place] = byte;
            assert_eq!(skip::<b'"', b'<', b'&'>(&data, 0), skip_slowly(&data, *b"\"<&"), "{byte} at {place}");
        }
    }
}

#[test]
fn names_follow_the_tables_of_the_fifth_edition() {
    let is_name = |text: &str| {
        let data = format!("{text}>");
        ncname(data.as_bytes(), 0) == Ok(text.len())
    };

    for start in "aZ_\u{C0}\u{D6}\u{D8}\u{F6}\u{F8}\u{2FF}\u{370}\u{37D}\u{37F}\u{1FFF}\u{200C}\u{200D}\u{2070}\u{218F}\u{2C00}\u{2FEF}\u{3001}\u{D7FF}\u{F900}\u{FDCF}\u{FDF0}\u{FFFD}\u{10000}\u{EFFFF}".chars() {
        assert!(is_name(&format!("{start}")) && is_name(&format!("a{start}")), "{start:?}");
    }
    for later in "-.09\u{B7}\u{300}\u{36F}\u{203F}\u{2040}".chars() {
        assert!(!is_name(&format!("{later}")) && is_name(&format!("a{later}")), "{later:?}");
    }
    for never in ":@[`{/;\u{7F}\u{80}\u{B6}\u{B8}\u{BF}\u{D7}\u{F7}\u{37E}\u{2000}\u{200B}\u{200E}\u{203E}\u{2041}\u{206F}\u{2190}\u{2BFF}\u{2FF0}\u{3000}\u{E000}\u{F8FF}\u{FDD0}\u{FDEF}\u{F0000}\u{10FFFF}".chars() {
        assert!(!is_name(&format!("{never}")) && !is_name(&format!("a{never}")), "{never:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn quick_and_slow_agree_on_any_bytes(
        bytes in proptest::collection::vec(
            prop_oneof![20 => 0x20..0x7F_u8, 1 => Just(b'<'), 1 => Just(b']'), 1 => any::<u8>(), 4 => 0x80..=0xBF_u8, 2 => 0xE0..=0xEF_u8],
            0..60,
        ),
        text in "[a-zé漢\u{FEFF}\u{10FFFF}\t\n]{0,30}",
    ) {
        let mixed = [text.as_bytes(), &bytes[..]].concat();
        for data in [&bytes, &mixed] {
            prop_assert_eq!(skip::<b'<', b'&', b']'>(data, 0), skip_slowly(data, *b"<&]"));
            prop_assert_eq!(skip::<b'-', b'-', b'-'>(data, 0), skip_slowly(data, *b"---"));
        }
    }
}
