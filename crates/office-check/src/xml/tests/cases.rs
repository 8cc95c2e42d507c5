//! One line for each rule: what must be taken and what must be refused, under which kind and where.

use super::*;
use XmlFaultKind::*;

#[test]
fn what_is_legal_is_accepted() {
    let documents = [
        "<a/>",
        "<a></a>",
        "<a >\n</a >",
        "<?xml version=\"1.0\"?><a/>",
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\r\n<a b=\"1\"><c/>t&amp;&#65;</a>",
        "<?xml version='1.7'?><a/>",
        "\u{FEFF}<?xml version=\"1.0\" encoding='utf-8'?><a/>",
        "\u{FEFF}<a/>",
        "<a><![CDATA[<<&&]]></a>",
        "<a><![CDATA[]]><![CDATA[]]]]></a>",
        "<a><![CDATA[ ]]]]]]> ]] > ]]</a>",
        "<x:a xmlns:x=\"u\"><x:b/></x:a>",
        "<x:a xmlns:x='u' xmlns:y='v' x:q='' y:q='' q=''/>",
        "<a xmlns='u'><b xmlns=''/></a>",
        "<a xmlns:x='u' x:b='1'><c xmlns:x='v' x:b='2'/></a>",
        "<a xmlns:xml='http://www.w3.org/XML/1998/namespace' xml:lang='de' xml:id='1'><b xml:id='1'/></a>",
        "<xml:a/>",
        "<a x='>' y=\">'\" z='\"'>></a>",
        "<a\tb = '1'\r\nc='2'/>",
        "<a b='\n\t&#10;&#x9;&#xD;'/>",
        "<!-- - -> --><?p?><?xml-stylesheet x?><a/>\n<!---->\n<?p ??>",
        "<a><?p <&>?><!-- <&> ]]> --></a>",
        "<a>&#x10FFFF;&#xE000;&#xFFFD;&#00000000000000000000000065;</a>",
        "<_ä·-.1 é='\u{300}'/>",
        "<\u{10000}\u{EFFFF}\u{370}\u{200C}/>",
        "<a>\u{7F}\u{85}\u{FEFF}\u{FFFD}\u{10FFFF}\u{1FFFE}\u{FDD0}</a>",
        RICH,
    ];
    for document in documents {
        assert_eq!(check_every_way(document.as_bytes()), Ok(()), "{document}");
    }
}

fn assert_refused(documents: &[(&[u8], XmlFaultKind, u64)]) {
    for (document, kind, offset) in documents {
        let fault = XmlFault { kind: *kind, offset: *offset };
        assert_eq!(check_every_way(document), Err(fault), "{}", document.escape_ascii());
    }
}

#[test]
fn a_document_without_its_one_root_element_is_refused() {
    assert_refused(&[
        (b"", Empty, 0),
        (b" \t\n", Empty, 3),
        (b"<?xml version='1.0'?>", Empty, 21),
        (b"<!-- only -->", Empty, 13),
        (b"\xEF\xBB\xBF", Empty, 3),
        (b"words<a/>", TextOutsideRoot, 0),
        (b"<a/> words", TextOutsideRoot, 5),
        (b"<a/>\0\0\0\0\0\0\0\0\0\0", TextOutsideRoot, 4),
        (b"<a/>&#32;", TextOutsideRoot, 4),
        (b"<a/><![CDATA[]]>", BadCdata, 4),
        (b"<a/><b/>", TwoRoots, 4),
        (b"<a/></b>", MismatchedTag, 4),
        (b"</a>", MismatchedTag, 0),
        (b"<a>", UnclosedTag, 3),
        (b"<a><b>words", UnclosedTag, 11),
        (b"<a><b x=\"w", Truncated, 10),
        (b"<a><!-- </a>", Truncated, 12),
        (b"<a><![CDATA[ </a>", Truncated, 17),
        (b"<a/><?p ", Truncated, 8),
        (b"<a/><", Truncated, 5),
        (b"<a>\xC3", Truncated, 4),
        (b"<?xml version='1.0'", Truncated, 19),
    ]);
}

#[test]
fn malformed_tags_and_names_are_refused() {
    assert_refused(&[
        (b"<a><b></a></b>", MismatchedTag, 6),
        (b"<a></ a>", BadName, 5),
        (b"<a></>", BadName, 5),
        (b"<a></a b='1'>", BadAttribute, 7),
        (b"<a></a/>", MismatchedTag, 3),
        (b"<a></A>", MismatchedTag, 3),
        (b"<1a/>", BadName, 1),
        (b"< a/>", BadName, 1),
        (b"<-a/>", BadName, 1),
        (b"<a\xC3\x97b/>", BadName, 2),
        (b"<\xC2\xB7/>", BadName, 1),
        (b"<a$/>", BadName, 2),
        (b"<a/ >", BadAttribute, 2),
        (b"<a / >", BadAttribute, 3),
        (b"<a><b<c/></b></a>", BadName, 5),
        (b"<:a/>", BadName, 1),
        (b"<a:/>", BadName, 3),
        (b"<a:b:c xmlns:a='u'/>", BadName, 4),
        (b"<a:1 xmlns:a='u'/>", BadName, 3),
    ]);
}

#[test]
fn malformed_and_repeated_attributes_are_refused() {
    assert_refused(&[
        (b"<a x=1/>", BadAttribute, 5),
        (b"<a x/>", BadAttribute, 4),
        (b"<a x=/>", BadAttribute, 5),
        (b"<a x='1'y='2'/>", BadAttribute, 8),
        (b"<a x='a<b'/>", BadAttribute, 7),
        (b"<a x='a & b'/>", BadReference, 8),
        (b"<a x='\x01'/>", BadCharacter, 6),
        (b"<a x='\xC3('/>", NotUtf8, 6),
        (b"<a 'x'/>", BadName, 3),
        (b"<a x='1' x='2'/>", DuplicateAttribute, 9),
        (b"<a xmlns:p='u' xmlns:q='u' p:x='1' q:x='2'/>", DuplicateAttribute, 35),
        (b"<a xmlns:p='&#117;' p:x='1'><b xmlns:q='u' p:x='1' q:x='2'/></a>", DuplicateAttribute, 51),
        (b"<a xmlns='u' xmlns='u'/>", DuplicateAttribute, 13),
    ]);
}

#[test]
fn namespaces_that_are_unbound_or_reserved_are_refused() {
    assert_refused(&[
        (b"<x:a/>", UnboundPrefix, 1),
        (b"<a x:b=''/>", UnboundPrefix, 3),
        (b"<a><b xmlns:x='u'/><x:c/></a>", UnboundPrefix, 20),
        (b"<xmlns:a/>", UnboundPrefix, 1),
        (b"<a xmlns:x=''/>", BadNamespace, 3),
        (b"<a xmlns:xmlns='u'/>", BadNamespace, 3),
        (b"<a xmlns:xml='u'/>", BadNamespace, 3),
        (b"<a xmlns:x='http://www.w3.org/XML/1998/namespace'/>", BadNamespace, 3),
        (b"<a xmlns='http://www.w3.org/XML/1998/namespac&#101;'/>", BadNamespace, 3),
        (b"<a xmlns:x='http://www.w3.org/2000/xmlns/'/>", BadNamespace, 3),
    ]);
}

#[test]
fn malformed_text_and_references_are_refused() {
    assert_refused(&[
        (b"<a>a & b</a>", BadReference, 5),
        (b"<a>&</a>", BadReference, 3),
        (b"<a>&amp</a>", BadReference, 3),
        (b"<a>&;</a>", BadReference, 3),
        (b"<a>&#;</a>", BadReference, 3),
        (b"<a>&#x;</a>", BadReference, 3),
        (b"<a>&#X41;</a>", BadReference, 3),
        (b"<a>&#0;</a>", BadReference, 3),
        (b"<a>&#xFFFE;</a>", BadReference, 3),
        (b"<a>&#xD800;</a>", BadReference, 3),
        (b"<a>&#x110000;</a>", BadReference, 3),
        (b"<a>&#4294967361;</a>", BadReference, 3),
        (b"<a>&#-1;</a>", BadReference, 3),
        (b"<a>&nbsp;</a>", UndefinedEntity, 3),
        (b"<a>&AMP;</a>", UndefinedEntity, 3),
        (b"<a>w ]]> w</a>", BadCdata, 5),
        (b"<a>]]]></a>", BadCdata, 4),
        (b"<a>\x01</a>", BadCharacter, 3),
        (b"<a>\0</a>", BadCharacter, 3),
        (b"<a>0123456789\x0B</a>", BadCharacter, 13),
        (b"<a>\xEF\xBF\xBE</a>", BadCharacter, 3),
        (b"<a>\xEF\xBF\xBF</a>", BadCharacter, 3),
        (b"<a>\xFF\xFE\xC3</a>", NotUtf8, 3),
        (b"<a>\xC0\x80</a>", NotUtf8, 3),
        (b"<a>\xE0\x80\x80</a>", NotUtf8, 3),
        (b"<a>\xED\xA0\x80</a>", NotUtf8, 3),
        (b"<a>\xF4\x90\x80\x80</a>", NotUtf8, 3),
        (b"<a>\xF0\x80\x80\x80</a>", NotUtf8, 3),
        (b"<a>\x80</a>", NotUtf8, 3),
        (b"<a>\xE2\x82<", NotUtf8, 3),
    ]);
}

#[test]
fn malformed_comments_sections_and_instructions_are_refused() {
    assert_refused(&[
        (b"<a><!-- a -- b --></a>", BadComment, 10),
        (b"<a><!-- a ---></a>", BadComment, 10),
        (b"<a><!-- \x02 --></a>", BadCharacter, 8),
        (b"<a><!- x --></a>", BadMarkup, 3),
        (b"<a><![cdata[]]></a>", BadMarkup, 3),
        (b"<a><!ELEMENT b></a>", BadMarkup, 3),
        (b"<a><![CDATA[\x03]]></a>", BadCharacter, 12),
        (b"<a><?1?></a>", BadName, 5),
        (b"<a><? p?></a>", BadName, 5),
        (b"<a><?p:q ?></a>", BadInstruction, 6),
        (b"<a><?p/?></a>", BadInstruction, 6),
        (b"<a><?p \x04?></a>", BadCharacter, 7),
        (b"<?XML version='1.0'?><a/>", BadInstruction, 0),
    ]);
}

#[test]
fn malformed_declarations_and_any_document_type_are_refused() {
    assert_refused(&[
        (b" <?xml version='1.0'?><a/>", LateDeclaration, 1),
        (b"<a/><?xml version='1.0'?>", LateDeclaration, 4),
        (b"<?xml?><a/>", BadDeclaration, 5),
        (b"<?xml ?><a/>", BadDeclaration, 6),
        (b"<?xml encoding='UTF-8'?><a/>", BadDeclaration, 6),
        (b"<?xml version='2.0'?><a/>", BadDeclaration, 6),
        (b"<?xml version='1.'?><a/>", BadDeclaration, 6),
        (b"<?xml version=1.0?><a/>", BadDeclaration, 6),
        (b"<?xml version='1.0\"?><a/>", BadDeclaration, 6),
        (b"<?xml version='1.0'encoding='UTF-8'?><a/>", BadDeclaration, 19),
        (b"<?xml version='1.0' standalone='yes' encoding='UTF-8'?><a/>", BadDeclaration, 37),
        (b"<?xml version='1.0' standalone='maybe'?><a/>", BadDeclaration, 20),
        (b"<?xml version='1.0' encoding='8'?><a/>", BadDeclaration, 20),
        (b"<?xml version='1.0' version='1.0'?><a/>", BadDeclaration, 20),
        (b"<?xml version='1.0'><a/>", BadDeclaration, 20),
        (b"<?xml version='1.0' encoding='Shift_JIS'?><a/>", UnsupportedEncoding, 0),
        (b"<?xml version='1.0' encoding='UTF-16'?><a/>", UnsupportedEncoding, 0),
        (b"<!DOCTYPE a [<!ENTITY b 'bb'><!ENTITY c '&b;&b;&b;'>]><a>&c;</a>", Doctype, 0),
        (b"<!doctype html><html/>", Doctype, 0),
        (b"<a><!DOCTYPE a></a>", Doctype, 3),
    ]);
}

#[test]
fn an_end_tag_must_have_the_whole_name_whatever_its_length() {
    for length in 1..20 {
        let name = &"abcdefghijklmnopqrst"[..length];
        let mut others = vec![format!("{name}x"), name[1..].to_owned(), name[..length - 1].to_owned()];
        others.extend((0..length).map(|place| format!("{}-{}", &name[..place], &name[place + 1..])));

        assert_eq!(check_every_way(format!("<r><{name}></{name}></r>").as_bytes()), Ok(()));
        assert_eq!(check_every_way(format!("<{name}></{name}>").as_bytes()), Ok(()));
        for other in others {
            let document = format!("<{name}></{other}>");
            let kind = if other.is_empty() { BadName } else { MismatchedTag };
            assert_eq!(check_every_way(document.as_bytes()).unwrap_err().kind, kind, "{document}");
        }
    }
}

#[test]
fn a_prefix_means_what_the_nearest_element_around_says() {
    let outer = "<r xmlns:p='u' xmlns:q='v'><p:a/>";

    for (inner, expected) in [
        ("<b xmlns:p='v' p:x='' q:x=''/>", Some(DuplicateAttribute)),
        ("<p:b xmlns:p='v' p:x=''/><b p:x='' q:x=''/>", None),
        ("<b xmlns:q='u'><q:c/><d xmlns:q='v'><q:e/></d><f p:x='' q:x=''/></b>", Some(DuplicateAttribute)),
        ("<b xmlns:s='u'><s:c/></b><s:d/>", Some(UnboundPrefix)),
        ("<b xmlns:s='u'><s:c/></b><b xmlns:t='u'><s:d/></b>", Some(UnboundPrefix)),
        ("<b xmlns:s='u'/><b s:x=''/>", Some(UnboundPrefix)),
    ] {
        let document = format!("{outer}{inner}</r>");
        assert_eq!(
            check_every_way(document.as_bytes()).err().map(|fault| fault.kind),
            expected,
            "{document}"
        );
    }
}

#[test]
fn other_encodings_are_read_if_they_are_declared_and_fit() {
    let declared = |label: &str, body: &[u8]| {
        [format!("<?xml version='1.0' encoding='{label}'?>").as_bytes(), body].concat()
    };
    let long = format!("<?xml version='1.0' encoding='UTF-16'?><ä>€\u{10FFFF}{}</ä>", "x".repeat(20_000));

    for (document, expected) in [
        (declared("ISO-8859-1", b"<\xE4>\xE9\x80</\xE4>"), None),
        (declared("windows-1252", b"<a b='\x80\x9F\x81'/>"), None),
        (declared("us-ascii", b"<a/>"), None),
        (declared("US-ASCII", b"<a>\xE9</a>"), Some(NotUtf8)),
        (declared("us-ascii", b"<a x=1 \xE9 y='2'/>"), Some(BadAttribute)),
        (declared("iso-8859-1", b"<a>\x01</a>"), Some(BadCharacter)),
        (utf16(&format!("\u{FEFF}{long}"), u16::to_le_bytes), None),
        (utf16(&format!("\u{FEFF}{long}"), u16::to_be_bytes), None),
        (utf16(&long, u16::to_le_bytes), None),
        (utf16(&long, u16::to_be_bytes), None),
        (utf16("\u{FEFF}<a/>", u16::to_le_bytes), None),
        (
            utf16("\u{FEFF}<?xml version='1.0' encoding='utf-8'?><a/>", u16::to_le_bytes),
            Some(UnsupportedEncoding),
        ),
        (
            utf16("\u{FEFF}<?xml version='1.0' encoding='UTF-16BE'?><a/>", u16::to_le_bytes),
            Some(UnsupportedEncoding),
        ),
        (utf16("\u{FEFF}<a>\u{FFFE}</a>", u16::to_le_bytes), Some(BadCharacter)),
        ([utf16("\u{FEFF}<a/>", u16::to_le_bytes), vec![32]].concat(), Some(Truncated)),
        ([utf16("\u{FEFF}<a>", u16::to_le_bytes), vec![0, 0xD8, b'<', 0]].concat(), Some(NotUtf8)),
        ([utf16("\u{FEFF}<a>", u16::to_le_bytes), vec![0, 0xDC]].concat(), Some(NotUtf8)),
        (b"\xEF\xBB\xBF<?xml version='1.0' encoding='ISO-8859-1'?><a/>".to_vec(), Some(UnsupportedEncoding)),
        (b"<\0\0\0a\0\0\0/\0\0\0>\0\0\0".to_vec(), Some(UnsupportedEncoding)),
    ] {
        let kind = check_every_way(&document).err().map(|fault| fault.kind);
        assert_eq!(kind, expected, "{}", document.escape_ascii());
    }
}

#[test]
fn a_fault_reads_as_one_sentence() {
    let fault = check(b"<a><b></a>").unwrap_err();

    assert_eq!(fault.to_string(), "an end tag does not match the open element (at byte 6)");
    assert!(!fault.kind.is_limit());
}
