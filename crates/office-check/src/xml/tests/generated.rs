//! Documents made by chance: whole ones pass, damaged ones never panic and are found the same way however they are cut.

use proptest::prelude::*;

use super::*;

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z_éà漢\u{10000}][a-z0-9._\u{B7}-]{0,6}"
        .prop_filter("not reserved", |name| !name.to_ascii_lowercase().starts_with("xml"))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -%'-;=-\\\\^-~\t\r\n]{0,40}",
        "[é漢\u{10FFFF}\u{7F}a-z ]{0,20}",
        Just("&amp;&#x20AC;&#65;".to_owned()),
        Just("] ]] >".to_owned()),
    ]
}

fn attributes() -> impl Strategy<Value = String> {
    proptest::collection::btree_map(name(), "[a-z éà漢>\t\n]{0,12}(&lt;)?", 0..5).prop_map(|attributes| {
        attributes.iter().map(|(name, value)| format!(" {name} = '{value}'")).collect()
    })
}

fn element() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        text(),
        "[ -,.-~é]{0,20}".prop_map(|text| format!("<!--{text}-->")),
        "[ -\\\\^-~é]{0,20}".prop_map(|text| format!("<![CDATA[{text}]]>")),
        (name(), "[ ->@-~é]{0,20}").prop_map(|(name, text)| format!("<?{name} {text}?>")),
        (name(), attributes()).prop_map(|(name, attributes)| format!("<{name}{attributes}/>")),
    ];
    let content = leaf.prop_recursive(4, 40, 6, |inner| {
        (name(), attributes(), proptest::collection::vec(inner, 0..6)).prop_map(
            |(name, attributes, inner)| {
                format!("<{name}{attributes} xmlns:p='u'><p:{name} p:a=''/>{}</{name} >", inner.concat())
            },
        )
    });
    (name(), content)
        .prop_map(|(name, content)| format!("<?xml version='1.0'?>\n<{name}>{content}</{name}>\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_generated_document_is_accepted(document in element()) {
        prop_assert_eq!(check_every_way(document.as_bytes()), Ok(()));
    }

    #[test]
    fn a_damaged_document_never_panics_and_has_one_answer(
        document in element(),
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut document = document.into_bytes();
        for (place, byte) in places {
            let length = document.len();
            document[place.index(length)] = byte;
        }
        let _ = check_every_way(&document);
    }

    #[test]
    fn any_bytes_have_one_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = check_every_way(&bytes);
        let _ = check_every_way(&[b"<a>", &bytes[..]].concat());
        let _ = check_every_way(&[b"<a x='", &bytes[..]].concat());
        let _ = check_every_way(&[b"\xFF\xFE<\0a\0>\0", &bytes[..]].concat());
    }
}
