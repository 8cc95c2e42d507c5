//! Office packages of today: content types, relationships, and the part that is the document.
//!
//! Guarantees: the main part is found through what the package says, never by a name; transitional and strict packages
//! count alike. Does not do: read what the document says.

use std::io::{Read, Seek};

use crate::extent::Measure;
use crate::package::{Package, Part};
use crate::xml::{Element, Visitor};
use crate::{Code, Finding, Kind, Limits, Thoroughness};

const CONTENT_TYPES: &str = "[Content_Types].xml";
const ROOT_RELATIONSHIPS: &str = "_rels/.rels";

/// What the main part can be. The word after the last dot that matters comes first to last in the type's own name.
const MAIN_TYPES: [(&str, Kind); 24] = [
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml", Kind::Docx),
    ("application/vnd.ms-word.document.macroenabled.main+xml", Kind::Docm),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml", Kind::Dotx),
    ("application/vnd.ms-word.template.macroenabledtemplate.main+xml", Kind::Dotm),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml", Kind::Xlsx),
    ("application/vnd.ms-excel.sheet.macroenabled.main+xml", Kind::Xlsm),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.template.main+xml", Kind::Xltx),
    ("application/vnd.ms-excel.template.macroenabled.main+xml", Kind::Xltm),
    ("application/vnd.ms-excel.sheet.binary.macroenabled.main", Kind::Xlsb),
    ("application/vnd.ms-excel.addin.macroenabled.main+xml", Kind::Xlam),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml", Kind::Pptx),
    ("application/vnd.ms-powerpoint.presentation.macroenabled.main+xml", Kind::Pptm),
    ("application/vnd.openxmlformats-officedocument.presentationml.template.main+xml", Kind::Potx),
    ("application/vnd.ms-powerpoint.template.macroenabled.main+xml", Kind::Potm),
    ("application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml", Kind::Ppsx),
    ("application/vnd.ms-powerpoint.slideshow.macroenabled.main+xml", Kind::Ppsm),
    ("application/vnd.ms-powerpoint.addin.macroenabled.main+xml", Kind::Ppam),
    ("application/vnd.ms-visio.drawing.main+xml", Kind::Vsdx),
    ("application/vnd.ms-visio.drawing.macroenabled.main+xml", Kind::Vsdx),
    ("application/vnd.ms-visio.stencil.main+xml", Kind::Vsdx),
    ("application/vnd.ms-visio.template.main+xml", Kind::Vsdx),
    ("application/vnd.openxmlformats-officedocument.oform", Kind::Docx),
    ("application/vnd.openxmlformats-officedocument.docxf", Kind::Docx),
    ("application/vnd.ms-excel.template.main+xml", Kind::Xltx),
];

/// Whether an archive says what its parts are.
pub(crate) fn is_one<R: Read + Seek>(package: &Package<'_, R>) -> bool {
    package.has(CONTENT_TYPES)
}

/// Checks the required parts; says what the package holds.
pub(crate) fn check<R: Read + Seek>(package: &mut Package<'_, R>, limits: &Limits) -> Kind {
    let types = match package.require(CONTENT_TYPES, ContentTypes::default()) {
        Part::Whole(types) => types,
        Part::Missing | Part::Damaged => return Kind::Opc,
    };
    let root = match package.require(ROOT_RELATIONSHIPS, MainPart::default()) {
        Part::Whole(root) => root,
        Part::Damaged => return Kind::Opc,
        Part::Missing => {
            package.tell(Finding::whole(Code::NoMainPart, "the package has no relationships of its own"));
            return Kind::Opc;
        }
    };
    if root.is_pre_standard {
        package.tell(Finding::whole(Code::PreStandard, "the package was written by a beta of Office 2007"));
    }
    let Some(target) = root.target else {
        package.tell(Finding::whole(Code::NoMainPart, "the package does not say which part is the document"));
        return Kind::Opc;
    };
    if root.is_external {
        let message = "the package says that the document is somewhere else";
        package.tell(Finding::of_part(Code::ExternalMainPart, target, message));
        return Kind::Opc;
    }
    let name = part_name("", &target);
    let kind = types.kind_of(&name);
    let name = as_stored(package, name);
    if limits.thoroughness >= Thoroughness::Required || !package.has(&name) {
        require_main(package, &name, kind);
    }
    kind
}

fn require_main<R: Read + Seek>(package: &mut Package<'_, R>, name: &str, kind: Kind) {
    if kind == Kind::Opc {
        let message = "the main part is of a type that no Office program we know writes";
        package.tell(Finding::of_part(Code::UnknownContent, name, message));
    }
    let is_missing = match kind {
        // The parts of a binary workbook are no XML; their checksums are compared with the rest.
        Kind::Xlsb => matches!(package.the_one(name), Part::Missing),
        _ => match package.require(name, Measure::default()) {
            Part::Whole(measure) => {
                package.main_holds(&measure);
                false
            }
            Part::Damaged => false,
            Part::Missing => true,
        },
    };
    if is_missing {
        package.tell(Finding::of_part(Code::NoMainPart, name, "the part that is the document is missing"));
    }
    let (folder, file) = name.rsplit_once('/').map_or(("", name), |(folder, file)| (folder, file));
    let separator = if folder.is_empty() { "" } else { "/" };
    // A document without relationships of its own is a small one.
    let _ = package.require(&format!("{folder}{separator}_rels/{file}.rels"), ());
}

/// A target may be written in letters or in escapes, and so may the name of the entry it means: the standard wants
/// escapes there, and not everybody writes them.
fn as_stored<R: Read + Seek>(package: &Package<'_, R>, name: String) -> String {
    let others = [unescaped(&name), escaped(&name)];
    match package.has(&name) {
        true => name,
        false => others.into_iter().find(|other| package.has(other)).unwrap_or(name),
    }
}

fn escaped(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic();
    name.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

/// Escapes that are none stand for themselves.
fn unescaped(name: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), name.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        let escape = others.get(..2).filter(|two| *first == b'%' && two.iter().all(u8::is_ascii_hexdigit));
        let byte = escape.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { others.get(2..).unwrap_or_default() } else { others };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The name of the part a relationship of a folder leads to.
fn part_name(folder: &str, target: &str) -> String {
    let target = target.replace('\\', "/");
    let whole = if target.starts_with('/') { target } else { format!("{folder}/{target}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// `[Content_Types].xml`: which part is of which type. Only the types of main parts are kept.
#[derive(Debug, Default)]
struct ContentTypes {
    defaults: Vec<(String, Kind)>,
    overrides: Vec<(String, Kind)>,
}

/// More main types than this are rubbish: a package has one.
const TYPES_MAX: usize = 64;

impl ContentTypes {
    fn kind_of(&self, part: &str) -> Kind {
        let lower = unescaped(part).to_ascii_lowercase();
        let extension = lower.rsplit_once('.').map_or("", |(_, extension)| extension);
        let by_name = self.overrides.iter().find(|(name, _)| *name == lower);
        let by_extension = || self.defaults.iter().find(|(known, _)| known == extension);
        by_name.or_else(by_extension).map_or(Kind::Opc, |(_, kind)| *kind)
    }
}

impl Visitor for ContentTypes {
    fn start(&mut self, element: &Element<'_>) {
        let (list, attribute) = match element.local_name() {
            b"Override" => (&mut self.overrides, &b"PartName"[..]),
            b"Default" => (&mut self.defaults, &b"Extension"[..]),
            _ => return,
        };
        let (Some(name), Some(content_type)) =
            (element.attribute(attribute), element.attribute(b"ContentType"))
        else {
            return;
        };
        let content_type = content_type.trim().to_ascii_lowercase();
        if let Some((_, kind)) = MAIN_TYPES.iter().find(|(known, _)| *known == content_type)
            && list.len() < TYPES_MAX
        {
            list.push((unescaped(&part_name("", &name)).to_ascii_lowercase(), *kind));
        }
    }
}

/// `_rels/.rels`: which part is the document.
#[derive(Debug, Default)]
struct MainPart {
    target: Option<String>,
    is_external: bool,
    is_pre_standard: bool,
}

impl Visitor for MainPart {
    fn start(&mut self, element: &Element<'_>) {
        if element.local_name() != b"Relationship" || self.target.is_some() {
            return;
        }
        let Some(relation) = element.attribute(b"Type") else { return };
        let is_known = [
            "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument",
            "http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument",
            "http://schemas.microsoft.com/visio/2010/relationships/document",
        ]
        .contains(&relation.as_ref());
        if is_known || relation.ends_with("/officeDocument") {
            self.target = element.attribute(b"Target").map(std::borrow::Cow::into_owned);
            let mode = element.attribute(b"TargetMode");
            self.is_external = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("external"));
            self.is_pre_standard = !is_known;
        }
    }
}
