//! Documents whole and broken, cut in every way.

mod cases;
mod characters;
mod cutting;
mod generated;
mod limits;
mod visiting;

use super::{Visitor, XmlChecker, XmlFault, XmlFaultKind, XmlLimits};

/// A document that uses everything that is allowed.
const RICH: &str = "\u{FEFF}<?xml version='1.0' encoding=\"utf-8\" standalone = 'yes' ?>\r\n<?go left?><!-- a - b -->\n\
    <ä:root xmlns:ä=\"urn:ä\" xmlns='urn:d' a = '1>\"2' \n\tb=\"&lt;&#x20AC;&#0065;'\" ä:a='\u{10FFFF}é漢' xml:space=\"preserve\">\
    <empty/><empty /><e.m-p_t·y></e.m-p_t·y\t>text ]] > ] &amp;&apos;&quot;&gt; \u{7F}\u{85}\u{FFFD}漢字\
    <![CDATA[<&] ]> ]] é]]]]><?p?><?p  x ? > ?><!----><c xmlns=''><d xmlns:ä='urn:other'><ä:x/></d></c></ä:root>\n<!-- after --><?end ?>\n";

fn check_in<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<(), XmlFault> {
    let mut checker = XmlChecker::new(&XmlLimits::default(), ());
    for chunk in chunks {
        checker.feed(chunk)?;
    }
    checker.finish()
}

fn check(document: &[u8]) -> Result<(), XmlFault> {
    check_in([document])
}

/// What is found must not depend on the cuts: whole, byte by byte, and in pieces of a pseudo-random length.
fn check_every_way(document: &[u8]) -> Result<(), XmlFault> {
    let whole = check(document);
    assert_eq!(check_in(document.chunks(1)), whole, "byte by byte: {}", document.escape_ascii());
    for seed in 1..20_usize {
        let mut pieces = Vec::new();
        let mut rest = document;
        let mut state = seed;
        while !rest.is_empty() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (piece, others) = rest.split_at(rest.len().min((state >> 33) % (seed * 3)));
            pieces.push(piece);
            rest = others;
        }
        assert_eq!(check_in(pieces), whole, "seed {seed}: {}", document.escape_ascii());
    }
    whole
}

fn utf16(text: &str, unit_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(unit_bytes).collect()
}
