//! What a visitor is told.

use super::super::Element;
use super::*;

#[derive(Default)]
struct Notes(Vec<String>);

impl Visitor for Notes {
    fn start(&mut self, element: &Element<'_>) {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let namespace = element.namespace().map(text).unwrap_or_default();
        let mut note = format!("{}+{} {{{namespace}}}", element.depth(), text(element.local_name()));
        for name in ["a", "b"] {
            note += &element
                .attribute(name.as_bytes())
                .map(|value| format!(" {name}={value}"))
                .unwrap_or_default();
        }
        note +=
            &element.attribute_in(b"urn:x", b"a").map(|value| format!(" x:a={value}")).unwrap_or_default();
        self.0.push(note);
    }

    fn end(&mut self, name: &[u8]) {
        self.0.push(format!("-{}", String::from_utf8(name.to_vec()).unwrap()));
    }

    fn text(&mut self, text: &[u8]) {
        let text = std::str::from_utf8(text).unwrap();
        match self.0.last_mut() {
            Some(last) if last.starts_with('=') => last.push_str(text),
            _ => self.0.push(format!("={text}")),
        }
    }
}

fn notes(document: &str, chunk: usize) -> Vec<String> {
    let mut checker = XmlChecker::new(&XmlLimits::default(), Notes::default());
    for chunk in document.as_bytes().chunks(chunk) {
        checker.feed(chunk).unwrap();
    }
    checker.finish().unwrap().0
}

#[test]
fn a_visitor_sees_names_namespaces_values_and_text_whatever_the_chunks() {
    let document = "<r xmlns='urn:d' xmlns:x='urn:&#120;' a='1 &lt;\r\n\t&#10;é' x:a='2'>one &amp; \
        <x:e b='&quot;'/><!-- no -->é]<![CDATA[<two>]]>&#x20AC;<n xmlns=''>3</n></r>";
    let expected = [
        "0+r {urn:d} a=1 <  \né x:a=2",
        "=one & ",
        "1+e {urn:x} b=\"",
        "-x:e",
        "=é]<two>€",
        "1+n {}",
        "=3",
        "-n",
        "-r",
    ];

    for chunk in [1, 2, 3, 5, 64, 1_000] {
        assert_eq!(notes(document, chunk), expected, "chunks of {chunk}");
    }
}
