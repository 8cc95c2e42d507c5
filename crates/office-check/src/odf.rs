//! OpenDocument packages and books: their type, their manifest and their content.
//!
//! Guarantees: a package that its program encrypted is taken as it is, for nobody without the password can look inside.
//! Does not do: read what the document says.

use std::io::{Read, Seek};

use crate::extent::Measure;
use crate::package::{Package, Part};
use crate::xml::{Element, Visitor};
use crate::{Code, Finding, Kind, Limits, Thoroughness};

const TYPE: &str = "mimetype";
const MANIFEST: &str = "META-INF/manifest.xml";
const CONTENT: &str = "content.xml";
const BOOK: &str = "META-INF/container.xml";
/// The longest type there is has some 70 characters.
const TYPE_BYTES_MAX: usize = 256;

const TYPES: [(&str, Kind); 10] = [
    ("application/vnd.oasis.opendocument.text", Kind::Odt),
    ("application/vnd.oasis.opendocument.text-template", Kind::Odt),
    ("application/vnd.oasis.opendocument.text-master", Kind::Odt),
    ("application/vnd.oasis.opendocument.spreadsheet", Kind::Ods),
    ("application/vnd.oasis.opendocument.spreadsheet-template", Kind::Ods),
    ("application/vnd.oasis.opendocument.presentation", Kind::Odp),
    ("application/vnd.oasis.opendocument.presentation-template", Kind::Odp),
    ("application/vnd.oasis.opendocument.graphics", Kind::Odg),
    ("application/vnd.oasis.opendocument.graphics-template", Kind::Odg),
    ("application/epub+zip", Kind::Epub),
];

/// OpenOffice.org 1 and StarOffice, before the standard.
const OLDER_TYPES: &[u8] = b"application/vnd.sun.xml.";

/// Whether an archive is an OpenDocument package or a book.
pub(crate) fn is_one<R: Read + Seek>(package: &Package<'_, R>) -> bool {
    package.has(MANIFEST) || package.has(BOOK) || (package.has(TYPE) && package.has(CONTENT))
}

/// Checks the required parts; says what the package holds.
pub(crate) fn check<R: Read + Seek>(package: &mut Package<'_, R>, limits: &Limits) -> Kind {
    package.usual_doctypes();
    let media_type = package.bytes(TYPE, TYPE_BYTES_MAX).unwrap_or_default();
    let declared = kind_of(&media_type);
    // Nothing behind a document type is read, and here every part has one. Checksums are compared with the rest.
    if media_type.starts_with(OLDER_TYPES) && package.has(CONTENT) {
        return Kind::Odf;
    }
    if declared == Some(Kind::Epub) || package.has(BOOK) {
        require(package, BOOK, ());
        return Kind::Epub;
    }
    let mut manifest = Manifest::default();
    if package.has(MANIFEST) {
        match package.require(MANIFEST, manifest) {
            Part::Whole(read) => manifest = read,
            Part::Missing | Part::Damaged => return declared.unwrap_or(Kind::Odf),
        }
    }
    if manifest.is_encrypted || (limits.thoroughness == Thoroughness::Container && package.has(CONTENT)) {
        return declared.or(manifest.kind).unwrap_or(Kind::Odf);
    }
    let body = require(package, CONTENT, Body { repetitions_max: limits.repetitions_max, ..Body::default() });
    if let Some(body) = &body {
        package.main_holds(&body.measure);
    }
    if body.as_ref().is_some_and(|body| body.is_huge) {
        let message = "the sheet repeats rows or cells more often than any program can show";
        package.tell(Finding::of_part(Code::HugeRepetition, CONTENT, message));
    }
    declared.or(manifest.kind).or(body.and_then(|body| body.kind)).unwrap_or(Kind::Odf)
}

fn require<R: Read + Seek, V: Visitor>(package: &mut Package<'_, R>, name: &str, visitor: V) -> Option<V> {
    match package.require(name, visitor) {
        Part::Whole(visitor) => Some(visitor),
        Part::Damaged => None,
        Part::Missing => {
            package.tell(Finding::of_part(
                Code::NoMainPart,
                name,
                "the part that is the document is missing",
            ));
            None
        }
    }
}

fn kind_of(declared: &[u8]) -> Option<Kind> {
    let declared = declared.trim_ascii();
    TYPES.iter().find(|(known, _)| known.as_bytes() == declared).map(|(_, kind)| *kind)
}

/// What the manifest says of the whole.
#[derive(Debug, Default)]
struct Manifest {
    kind: Option<Kind>,
    is_encrypted: bool,
}

impl Visitor for Manifest {
    fn start(&mut self, element: &Element<'_>) {
        match element.local_name() {
            b"encryption-data" | b"encrypted-key" => self.is_encrypted = true,
            b"file-entry" if self.kind.is_none() => {
                let of = |name: &[u8]| {
                    let namespace = element.namespace()?;
                    element.attribute_in(namespace, name)
                };
                if of(b"full-path").as_deref() == Some("/") {
                    self.kind = of(b"media-type").and_then(|declared| kind_of(declared.as_bytes()));
                }
            }
            _ => {}
        }
    }
}

/// What the content is, by its body, and whether it is honest about its size.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) kind: Option<Kind>,
    pub(crate) is_huge: bool,
    pub(crate) repetitions_max: u64,
    pub(crate) measure: Measure,
}

impl Visitor for Body {
    fn start(&mut self, element: &Element<'_>) {
        self.measure.start(element);
        match element.local_name() {
            b"spreadsheet" if element.depth() == 2 => self.kind = Some(Kind::Ods),
            b"text" if element.depth() == 2 => self.kind = Some(Kind::Odt),
            b"presentation" if element.depth() == 2 => self.kind = Some(Kind::Odp),
            b"drawing" if element.depth() == 2 => self.kind = Some(Kind::Odg),
            b"table-row" => self.repeats(element, b"number-rows-repeated"),
            b"table-cell" => self.repeats(element, b"number-columns-repeated"),
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8]) {
        self.measure.end(name);
    }

    fn text(&mut self, text: &[u8]) {
        self.measure.text(text);
    }
}

impl Body {
    fn repeats(&mut self, element: &Element<'_>, name: &[u8]) {
        let times = element.namespace().and_then(|namespace| element.attribute_in(namespace, name));
        let times = times.and_then(|times| times.trim().parse::<u64>().ok());
        self.is_huge |= times.is_some_and(|times| times > self.repetitions_max);
    }
}
