//! A walk through the XML of a part that knows where everything stands.
//!
//! Guarantees: every event comes with its place in the source, so a writer can copy untouched stretches byte for
//! byte; names come without prefix; text comes with its references resolved.
//!
//! Does not validate beyond matching tags, and expands no entities but the five predefined and numbered ones.

use std::ops::Range;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// One step of the walk.
pub(super) enum Step<'a> {
    /// A start tag; `empty` if it is also the end.
    Start {
        tag: &'a BytesStart<'a>,
        empty: bool,
    },
    End,
    Text(String),
}

/// Something is wrong with the XML.
#[derive(Debug)]
pub(super) struct Broken;

/// Walks through `xml`. The visitor gets the local names from the root to here (including the element itself,
/// for its start and end), the step, and where it stands.
pub(super) fn walk(
    xml: &str,
    mut visit: impl FnMut(&[String], Step<'_>, Range<usize>),
) -> Result<(), Broken> {
    let mut reader = Reader::from_str(xml);
    let mut path: Vec<String> = Vec::new();
    loop {
        let from = place(&reader);
        let event = reader.read_event().map_err(|_| Broken)?;
        let span = from..place(&reader);
        match event {
            Event::Start(tag) => {
                path.push(tag.local_name().as_ref().to_owned());
                visit(&path, Step::Start { tag: &tag, empty: false }, span);
            }
            Event::Empty(tag) => {
                path.push(tag.local_name().as_ref().to_owned());
                visit(&path, Step::Start { tag: &tag, empty: true }, span);
                path.pop();
            }
            Event::End(_) => {
                visit(&path, Step::End, span);
                path.pop();
            }
            Event::Text(text) => visit(&path, Step::Text(text.xml10_content().into_owned()), span),
            Event::CData(text) => visit(&path, Step::Text(text.into_inner().into_owned()), span),
            Event::GeneralRef(name) => {
                let text = match name.resolve_char_ref() {
                    Ok(Some(letter)) => letter.to_string(),
                    _ => predefined(&name.into_inner()).to_owned(),
                };
                visit(&path, Step::Text(text), span);
            }
            Event::Eof => return if path.is_empty() { Ok(()) } else { Err(Broken) },
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

fn place(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

fn predefined(name: &str) -> &'static str {
    match name {
        "lt" => "<",
        "gt" => ">",
        "amp" => "&",
        "apos" => "'",
        "quot" => "\"",
        _ => "",
    }
}

/// The value of an attribute, by its local name.
pub(super) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.attributes().flatten().find(|attribute| attribute.key.local_name().as_ref() == name)?;
    let raw = found.value.into_owned();
    Some(quick_xml::escape::unescape(&raw).map(|value| value.into_owned()).unwrap_or(raw))
}

/// Text as XML content. Characters that XML cannot hold are left out.
pub(super) fn escape(text: &str) -> String {
    let allowed = |letter: &char| matches!(letter, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let text: String = text.chars().filter(allowed).collect();
    quick_xml::escape::escape(text.as_str()).into_owned()
}

/// Replaces stretches of a text; they must be in order and must not overlap.
pub(super) fn splice(source: &str, replacements: Vec<(Range<usize>, String)>) -> String {
    let mut out = String::with_capacity(source.len() + 1024);
    let mut at = 0;
    for (span, new) in replacements {
        out.push_str(source.get(at..span.start).unwrap_or_default());
        out.push_str(&new);
        at = span.end;
    }
    out.push_str(source.get(at..).unwrap_or_default());
    out
}
