//! What is made to be expensive is answered by a limit, soon.

use super::*;
use XmlFaultKind::*;

fn kind(document: &str) -> Option<XmlFaultKind> {
    let found = check_in(document.as_bytes().chunks(64 * 1024));
    assert_eq!(check(document.as_bytes()), found);
    found.err().map(|fault| fault.kind)
}

fn attributes(count: usize) -> String {
    let list: String = (0..count).map(|number| format!(" a{number}='{number}'")).collect();
    format!("<a{list}/>")
}

#[test]
fn depth_is_bounded_by_levels_and_by_names() {
    let nested = |depth: usize, name: &str| {
        format!("{}{}", format!("<{name}>").repeat(depth), format!("</{name}>").repeat(depth))
    };

    assert_eq!(kind(&nested(10_000, "a")), None);
    assert_eq!(kind(&nested(10_001, "a")), Some(TooDeep));
    assert_eq!(kind(&"<a>".repeat(1_000_000)), Some(TooDeep));
    assert_eq!(kind(&nested(30, &"n".repeat(10_000))), Some(TooDeep));
    assert!(TooDeep.is_limit());
}

#[test]
fn attributes_are_bounded_and_the_last_that_fits_is_still_compared() {
    assert_eq!(kind(&attributes(1_000)), None);
    assert_eq!(kind(&attributes(1_001)), Some(TooManyAttributes));
    assert_eq!(kind(&attributes(80_000)), Some(TooManyAttributes));
    assert_eq!(kind(&attributes(900).replace("a777=", "a0=")), Some(DuplicateAttribute));
    assert!(TooManyAttributes.is_limit());
}

#[test]
fn the_first_repeated_attribute_is_reported_however_many_there_are() {
    for count in [3, 12, 13, 500] {
        let document = format!("{} a1='' a0=''/>", attributes(count).trim_end_matches("/>"));
        let offset = document.rfind(" a1=").unwrap() as u64 + 1;

        assert_eq!(check(document.as_bytes()), Err(XmlFault { kind: DuplicateAttribute, offset }));
    }
}

#[test]
fn namespaces_are_bounded_on_one_element_and_over_many() {
    let one: String = (0..900).map(|number| format!(" xmlns:p{number}='u{}'", number / 2)).collect();
    let many: String = (0..100_000).map(|number| format!(" xmlns:p{number}='u'")).collect();
    let nested: String = (0..2_000).map(|number| format!("<a xmlns:p{number}='u'>")).collect();
    let neighbours = "<a xmlns:p='u'/>".repeat(5_000);
    let long = format!("<a xmlns:p='{}'/>", "u".repeat(300_000));

    assert_eq!(kind(&format!("<a{one}/>")), None);
    assert_eq!(kind(&format!("<a{one} p1:x='' p2:x=''/>")), None);
    assert_eq!(kind(&format!("<a{one} p2:x='' p3:x=''/>")), Some(DuplicateAttribute));
    assert_eq!(kind(&format!("<a{many}/>")), Some(TooManyAttributes));
    assert_eq!(kind(&nested), Some(TooManyNamespaces));
    assert_eq!(kind(&format!("<r>{neighbours}</r>")), None);
    assert_eq!(kind(&long), Some(TooManyNamespaces));
}

#[test]
fn a_tag_is_bounded_and_text_is_not() {
    let limits = XmlLimits { tag_bytes_max: 100, ..XmlLimits::default() };
    let kind = |document: &str, chunk: usize| {
        let mut checker = XmlChecker::new(&limits, ());
        let fed = document.as_bytes().chunks(chunk).try_for_each(|chunk| checker.feed(chunk));
        fed.and_then(|()| checker.finish()).err().map(|fault| fault.kind)
    };
    let long = |count: usize| "x".repeat(count);

    for chunk in [1, 7, 99, 100, 101, 150, 10_000] {
        assert_eq!(kind(&format!("<a b='{}'/>", long(91)), chunk), None);
        assert_eq!(kind(&format!("<a b='{}'/>", long(92)), chunk), Some(TagTooLong));
        assert_eq!(kind(&format!("<a b=x '{}'/>", long(200)), chunk), Some(BadAttribute));
        assert_eq!(kind(&format!("<a b='{}' c=x/>", long(200)), chunk), Some(TagTooLong));
        assert_eq!(kind(&format!("<a></a{}>", " ".repeat(97)), chunk), Some(TagTooLong));
        assert_eq!(kind(&format!("<a>&#{}65;</a>", "0".repeat(97)), chunk), Some(TagTooLong));
        assert_eq!(kind(&format!("<?{}?><a/>", long(97)), chunk), Some(TagTooLong));
        assert_eq!(kind(&format!("<?xml version='1.0'{}?><a/>", " ".repeat(97)), chunk), Some(TagTooLong));
        let text = long(1_000);
        let free = format!("<?p {text}?><a>{text}<!--{text}--><![CDATA[{text}]]></a>");
        assert_eq!(kind(&free, chunk), None);
    }
}

#[test]
fn memory_stays_bounded_when_a_tag_comes_in_small_chunks() {
    let mut checker = XmlChecker::new(&XmlLimits::default(), ());
    let mut fed = checker.feed(b"<a b='");
    let mut kept_bytes_max = 0;
    for _ in 0..10_000 {
        fed = fed.and_then(|()| checker.feed(&[b'x'; 1_000]));
        kept_bytes_max = kept_bytes_max.max(checker.kept.capacity());
    }

    assert_eq!(fed.unwrap_err().kind, TagTooLong);
    assert!(kept_bytes_max <= 4 * 1024 * 1024, "{kept_bytes_max}");
}
