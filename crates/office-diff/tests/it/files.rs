//! The smallest files of every kind.

use std::io::{Cursor, Write as _};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A package with these parts.
pub(crate) fn package(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

const KINDS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

fn relations(targets: &[(String, &str, String)]) -> String {
    let relation = |(id, kind, target): &(String, &str, String)| {
        format!("<Relationship Id=\"{id}\" Type=\"{KINDS}/{kind}\" Target=\"{target}\"/>")
    };
    format!("<Relationships>{}</Relationships>", targets.iter().map(relation).collect::<String>())
}

fn main_relation(target: &str) -> String {
    relations(&[("r".to_owned(), "officeDocument", target.to_owned())])
}

pub(crate) fn docx<S: AsRef<str>>(paragraphs: &[S]) -> Vec<u8> {
    let body: String =
        paragraphs.iter().map(|text| format!("<w:p><w:r><w:t>{}</w:t></w:r></w:p>", text.as_ref())).collect();
    docx_with(&body, &[])
}

/// A document with other parts: their kinds, names and markup.
pub(crate) fn docx_with(body: &str, others: &[(&str, &str, String)]) -> Vec<u8> {
    let main = format!("<?xml version=\"1.0\"?><w:document><w:body>{body}</w:body></w:document>");
    let targets: Vec<_> =
        others.iter().map(|(kind, name, _)| (format!("id-{name}"), *kind, (*name).to_owned())).collect();
    let relations = relations(&targets);
    let root = main_relation("word/document.xml");
    let mut parts = vec![
        ("_rels/.rels", root.as_str()),
        ("word/document.xml", &main),
        ("word/_rels/document.xml.rels", &relations),
    ];
    let names: Vec<String> = others.iter().map(|(_, name, _)| format!("word/{name}")).collect();
    parts.extend(names.iter().map(String::as_str).zip(others.iter().map(|(_, _, text)| text.as_str())));
    package(&parts)
}

pub(crate) fn xlsx(sheets: &[(&str, &str)], strings: &[&str]) -> Vec<u8> {
    let numbered = || (1..).zip(sheets);
    let listed: String = numbered()
        .map(|(at, (name, _))| format!("<sheet name=\"{name}\" sheetId=\"{at}\" r:id=\"s{at}\"/>"))
        .collect();
    let main = format!("<workbook><sheets>{listed}</sheets></workbook>");
    let mut targets: Vec<_> = numbered()
        .map(|(at, _)| (format!("s{at}"), "worksheet", format!("worksheets/sheet{at}.xml")))
        .collect();
    targets.push(("strings".to_owned(), "sharedStrings", "/xl/sharedStrings.xml".to_owned()));
    let shared: String = strings.iter().map(|text| format!("<si><r><t>{text}</t></r></si>")).collect();
    let shared = format!("<sst>{shared}</sst>");
    let (relations, root) = (relations(&targets), main_relation("xl/workbook.xml"));
    let parts: Vec<(String, String)> = numbered()
        .map(|(at, (_, rows))| {
            let text =
                format!("<worksheet><sheetData>{rows}</sheetData><legacy><v>9</v></legacy></worksheet>");
            (format!("xl/worksheets/sheet{at}.xml"), text)
        })
        .collect();
    let mut all = vec![
        ("_rels/.rels", root.as_str()),
        ("xl/workbook.xml", &main),
        ("xl/_rels/workbook.xml.rels", &relations),
        ("xl/sharedStrings.xml", &shared),
    ];
    all.extend(parts.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    package(&all)
}

/// Slides whose parts are not in the order in which they are shown.
pub(crate) fn pptx(slides: &[&[&str]]) -> Vec<u8> {
    let numbered = || (1..).zip(slides);
    let count = slides.len();
    let listed: String =
        numbered().map(|(at, _)| format!("<p:sldId id=\"{}\" r:id=\"s{at}\"/>", 255 + at)).collect();
    let main = format!("<p:presentation><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>");
    let name = |at: usize| format!("slides/slide{}.xml", 1 + count - at);
    let targets: Vec<_> = numbered().map(|(at, _)| (format!("s{at}"), "slide", name(at))).collect();
    let (relations, root) = (relations(&targets), main_relation("ppt/presentation.xml"));
    let parts: Vec<(String, String)> = numbered()
        .map(|(at, texts)| {
            let texts: String =
                texts.iter().map(|text| format!("<a:p><a:r><a:t>{text}</a:t></a:r></a:p>")).collect();
            (format!("ppt/{}", name(at)), format!("<p:sld>{texts}</p:sld>"))
        })
        .collect();
    let mut all = vec![
        ("_rels/.rels", root.as_str()),
        ("ppt/presentation.xml", &main),
        ("ppt/_rels/presentation.xml.rels", &relations),
    ];
    all.extend(parts.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    package(&all)
}

pub(crate) fn odf(kind: &str, body: &str) -> Vec<u8> {
    let content = format!(
        "<office:document-content><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    );
    package(&[("mimetype", "application/vnd.oasis.opendocument"), ("content.xml", &content)])
}
