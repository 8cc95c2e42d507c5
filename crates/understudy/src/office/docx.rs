//! Word documents: the paragraphs of the main part.
//!
//! Guarantees: an untouched paragraph stays byte for byte; a touched one keeps its paragraph properties and the
//! properties of its first run; a removed one vanishes, except where the format needs a paragraph (the last of a
//! table cell, one that ends a section), where it becomes empty. Text boxes, headers and notes are not touched.
//!
//! Does not show tracked deletions, and does not keep formatting changes inside a touched paragraph.

use std::ops::Range;

use quick_xml::events::BytesStart;

use super::OfficeError;
use super::edit::Edit;
use super::package::{Package, Rewrite};
use super::shape::{Paragraph, Shape};
use super::xml::{self, Step};

/// Where a paragraph stands in the source.
#[derive(Default)]
struct Place {
    whole: Range<usize>,
    start_tag: Range<usize>,
    empty: bool,
    properties: Option<Range<usize>>,
    run_properties: Option<Range<usize>>,
    text: String,
    style: String,
    /// The format needs a paragraph here.
    needed: bool,
}

/// The paragraphs of a main part, and where new ones go.
#[derive(Default)]
struct Body {
    paragraphs: Vec<Place>,
    /// Before the section properties at the end of the body.
    end: usize,
    /// The prefix of the main namespace, with its colon.
    prefix: String,
    /// The body's own tag, if it is empty and closes itself.
    empty_tag: Option<Range<usize>>,
}

pub(super) fn read(bytes: &[u8]) -> Result<Shape, OfficeError> {
    let mut package = Package::read(bytes)?;
    let main = package.main_part()?;
    let text = package.text(&main)?;
    let body = find_paragraphs(&text).map_err(|_| OfficeError::Xml { part: main })?;
    Ok(Shape::of_texts(body.paragraphs.into_iter().map(|place| (place.text, place.style))))
}

pub(super) fn write(base: &[u8], edits: &[Edit], kept: &[String]) -> Result<Vec<u8>, OfficeError> {
    let mut package = Package::read(base)?;
    let main = package.main_part()?;
    let source = package.text(&main)?;
    let body = find_paragraphs(&source).map_err(|_| OfficeError::Xml { part: main.clone() })?;
    let texts = body.paragraphs.iter().map(|place| (place.text.clone(), place.style.clone()));
    let mut shape = Shape::of_texts(texts);
    shape.apply(edits);
    let mut rewrite = Rewrite::default();
    if let Shape::Text { paragraphs } = &shape
        && !edits.is_empty()
    {
        rewrite.parts.insert(main, render(&source, &body, paragraphs).into_bytes());
    }
    package.add_notes(&mut rewrite, kept);
    package.rewrite(&rewrite)
}

/// Puts touched and new paragraphs in their places.
fn render(source: &str, body: &Body, paragraphs: &[Paragraph]) -> String {
    let mut replacements: Vec<(Range<usize>, String)> = Vec::new();
    // New paragraphs follow the base paragraph before them; those before the first go to its front.
    let first = body.paragraphs.first().map_or(body.end, |place| place.whole.start);
    let mut at = first;
    for paragraph in paragraphs {
        match paragraph.origin.and_then(|origin| body.paragraphs.get(origin)) {
            Some(place) => {
                if paragraph.touched {
                    replacements.push((place.whole.clone(), touched(source, body, place, paragraph)));
                }
                at = place.whole.end;
            }
            None if paragraph.removed => {}
            None => {
                let is_last = !paragraphs.iter().any(|other| {
                    other.origin.is_some_and(|origin| {
                        body.paragraphs.get(origin).is_some_and(|place| place.whole.start >= at)
                    })
                });
                let place = if is_last { body.end.max(at) } else { at };
                replacements.push((place..place, new_paragraph(body, &paragraph.text)));
            }
        }
    }
    if let Some(tag) = &body.empty_tag {
        let inside: String = replacements.drain(..).map(|(_, new)| new).collect();
        let opened = source.get(tag.clone()).unwrap_or_default().replace("/>", ">");
        replacements.push((tag.clone(), format!("{opened}{inside}</{}body>", body.prefix)));
    }
    // Insertions at one place keep their order; the sort is stable.
    replacements.sort_by_key(|(span, _)| span.start);
    xml::splice(source, replacements)
}

fn touched(source: &str, body: &Body, place: &Place, paragraph: &Paragraph) -> String {
    if paragraph.removed && !place.needed {
        return String::new();
    }
    let piece =
        |span: &Option<Range<usize>>| span.clone().and_then(|span| source.get(span)).unwrap_or_default();
    let start_tag = source.get(place.start_tag.clone()).unwrap_or_default();
    let start_tag = if place.empty { start_tag.replace("/>", ">") } else { start_tag.to_owned() };
    let text = if paragraph.removed { "" } else { paragraph.text.as_str() };
    let run = run(&body.prefix, piece(&place.run_properties), text);
    format!("{start_tag}{}{run}</{}p>", piece(&place.properties), body.prefix)
}

fn new_paragraph(body: &Body, text: &str) -> String {
    let prefix = &body.prefix;
    format!("<{prefix}p>{}</{prefix}p>", run(prefix, "", text))
}

/// One run; tabs and line breaks become their elements.
fn run(prefix: &str, properties: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut out = format!("<{prefix}r>{properties}");
    for (line_number, line) in text.split('\n').enumerate() {
        if line_number > 0 {
            out.push_str(&format!("<{prefix}br/>"));
        }
        for (piece_number, piece) in line.split('\t').enumerate() {
            if piece_number > 0 {
                out.push_str(&format!("<{prefix}tab/>"));
            }
            if !piece.is_empty() {
                let piece = xml::escape(piece);
                out.push_str(&format!("<{prefix}t xml:space=\"preserve\">{piece}</{prefix}t>"));
            }
        }
    }
    out + &format!("</{prefix}r>")
}

/// Finds the paragraphs of the body that do not stand inside another paragraph (a text box).
fn find_paragraphs(source: &str) -> Result<Body, xml::Broken> {
    let mut finder = Finder::default();
    xml::walk(source, |path, step, span| finder.visit(path, step, span))?;
    let Finder { mut body, cell_ends, .. } = finder;
    for pair in 0..body.paragraphs.len() {
        let ends_cell = cell_ends.iter().any(|end| {
            let next = body.paragraphs.get(pair + 1).map_or(usize::MAX, |place| place.whole.start);
            body.paragraphs.get(pair).is_some_and(|place| place.whole.end <= *end && *end < next)
        });
        if let Some(place) = body.paragraphs.get_mut(pair) {
            place.needed |= ends_cell;
        }
    }
    if body.end == 0 { Err(xml::Broken) } else { Ok(body) }
}

#[derive(Default)]
struct Finder {
    body: Body,
    /// The paragraph we are in, and how deep it stands.
    current: Option<(usize, Place)>,
    /// Where properties began, and how deep.
    properties: Option<(usize, usize)>,
    cell_ends: Vec<usize>,
    section_start: Option<usize>,
}

impl Finder {
    fn visit(&mut self, path: &[String], step: Step<'_>, span: Range<usize>) {
        let depth = path.len();
        let name = path.last().map(String::as_str).unwrap_or_default();
        match step {
            Step::Start { tag, empty } => {
                self.start(path, (tag, empty), span.clone());
                if empty {
                    self.end((depth, name), span);
                }
            }
            Step::End => self.end((depth, name), span),
            Step::Text(text) => {
                if let Some((at, place)) = &mut self.current
                    && name == "t"
                    && !path.iter().skip(*at).any(|step| step == "p" || step == "del" || step == "moveFrom")
                {
                    place.text.push_str(&text);
                }
            }
        }
    }

    fn start(&mut self, path: &[String], (tag, empty): (&BytesStart<'_>, bool), span: Range<usize>) {
        let depth = path.len();
        let name = path.last().map(String::as_str).unwrap_or_default();
        let in_body = path.get(1).is_some_and(|step| step == "body");
        if depth == 2 && name == "body" {
            let full = tag.name();
            self.body.prefix = full.as_ref().strip_suffix("body").unwrap_or_default().to_owned();
            self.body.empty_tag = empty.then(|| span.clone());
        }
        if in_body && depth == 3 && name == "sectPr" {
            self.section_start = Some(span.start);
        }
        if self.current.is_none()
            && in_body
            && name == "p"
            && tag.name().as_ref() == format!("{}p", self.body.prefix)
        {
            let place = Place { start_tag: span.clone(), whole: span, empty, ..Place::default() };
            self.current = Some((depth, place));
            return;
        }
        let Some((at, place)) = &mut self.current else { return };
        let inside = path.get(*at..).unwrap_or_default();
        let nested = inside.iter().any(|step| step == "p");
        match inside.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["pPr"] | ["r", "rPr"] if self.properties.is_none() => {
                self.properties = Some((depth, span.start))
            }
            ["pPr", "pStyle"] => place.style = xml::attribute(tag, "val").unwrap_or_default(),
            ["pPr", "sectPr"] => place.needed = true,
            [.., "r", "tab"] if !nested => place.text.push('\t'),
            [.., "r", "br" | "cr"] if !nested => place.text.push('\n'),
            _ => {}
        }
    }

    fn end(&mut self, (depth, name): (usize, &str), span: Range<usize>) {
        if let (Some((at, start)), Some((_, place))) = (self.properties, &mut self.current)
            && at == depth
        {
            let range = start..span.end;
            match name {
                "pPr" => place.properties = Some(range),
                _ if place.run_properties.is_none() => place.run_properties = Some(range),
                _ => {}
            }
            self.properties = None;
        }
        if self.current.as_ref().is_some_and(|(at, _)| *at == depth)
            && let Some((_, mut place)) = self.current.take()
        {
            place.whole.end = span.end;
            self.body.paragraphs.push(place);
        }
        match (depth, name) {
            (_, "tc") if self.current.is_none() => self.cell_ends.push(span.start),
            (2, "body") => self.body.end = self.section_start.unwrap_or(span.start),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EditKind, blank, build, can_open, changes_in, sample_docx, text_of};
    use super::*;
    use crate::machine::{Author, Change};

    fn change(edit: &Edit) -> Change {
        let author = Author { id: "u1".into(), index: 1, name: "User".into() };
        Change { id: edit.id.as_str().into(), data: edit.to_data(), author, time_s: 1 }
    }

    fn main_of(bytes: &[u8]) -> String {
        let mut package = Package::read(bytes).unwrap();
        let main = package.main_part().unwrap();
        package.text(&main).unwrap()
    }

    #[test]
    fn an_appended_paragraph_is_text_of_a_real_docx() {
        let base = blank("docx");

        let built = build(&base, "docx", &[change(&Edit::append("c1", "Grüße & <more>"))]).unwrap();

        assert!(can_open(&built, "docx"));
        assert!(text_of(&built).contains("Grüße & <more> [#c1]"));
        assert_eq!(changes_in(&built).into_iter().collect::<Vec<_>>(), ["c1"]);
    }

    #[test]
    fn the_same_changes_give_the_same_bytes_and_none_give_the_base() {
        let base = sample_docx("Title", &["one", "two"]);
        let changes = [change(&Edit::append("c1", "x")), change(&Edit::append("c2", "y"))];

        let (first, second) =
            (build(&base, "docx", &changes).unwrap(), build(&base, "docx", &changes).unwrap());

        assert_eq!(first, second);
        assert_eq!(build(&base, "docx", &[]).unwrap(), base);
    }

    #[test]
    fn untouched_paragraphs_and_formatting_of_touched_ones_stay() {
        let source = concat!(
            r#"<w:document xmlns:w="urn:w"><w:body>"#,
            r#"<w:p w:rsidR="1"><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:rPr><w:b/></w:rPr><w:t>Old</w:t></w:r><w:r><w:t> tail</w:t></w:r></w:p>"#,
            r#"<w:p><w:r><w:t>keep</w:t><w:tab/><w:t>me</w:t></w:r></w:p><w:p/>"#,
            r#"<w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"#,
            r#"<w:sectPr/></w:body></w:document>"#
        );
        let body = find_paragraphs(source).ok().unwrap();
        let texts: Vec<_> = body.paragraphs.iter().map(|place| place.text.clone()).collect();
        let mut shape = Shape::of_texts(body.paragraphs.iter().map(|p| (p.text.clone(), p.style.clone())));
        let edit = |kind| Edit { id: "c".into(), kind };

        shape.apply(&[
            edit(EditKind::Text { p: "p0".into(), text: "New\nline".into() }),
            edit(EditKind::Remove { p: "p2".into() }),
            edit(EditKind::Remove { p: "p3".into() }),
            edit(EditKind::Insert { p: "n".into(), after: Some("p0".into()), text: "between".into() }),
            edit(EditKind::Append { p: "m".into(), text: "end".into() }),
        ]);
        let Shape::Text { paragraphs } = &shape else { panic!("text") };
        let written = render(source, &body, paragraphs);

        assert_eq!(texts, ["Old tail", "keep\tme", "", "cell"]);
        assert_eq!(
            written,
            concat!(
                r#"<w:document xmlns:w="urn:w"><w:body>"#,
                r#"<w:p w:rsidR="1"><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">New</w:t><w:br/><w:t xml:space="preserve">line</w:t></w:r></w:p>"#,
                r#"<w:p><w:r><w:t xml:space="preserve">between</w:t></w:r></w:p>"#,
                r#"<w:p><w:r><w:t>keep</w:t><w:tab/><w:t>me</w:t></w:r></w:p>"#,
                r#"<w:tbl><w:tr><w:tc><w:p></w:p></w:tc></w:tr></w:tbl>"#,
                r#"<w:p><w:r><w:t xml:space="preserve">end</w:t></w:r></w:p>"#,
                r#"<w:sectPr/></w:body></w:document>"#
            )
        );
    }

    #[test]
    fn other_parts_keep_their_bytes_and_comments_go_beside_the_text() {
        let base = sample_docx("Title", &["one"]);
        let comment =
            Edit { id: "c9".into(), kind: EditKind::Comment { about: "p0".into(), text: "why?".into() } };

        let built = build(&base, "docx", &[change(&comment)]).unwrap();

        assert_eq!(main_of(&built), main_of(&base));
        assert!(text_of(&built).contains("comment by User on p0: why? [#c9]"));
        assert!(
            Package::read(&built)
                .unwrap()
                .text("[Content_Types].xml")
                .unwrap()
                .contains("understudy/changes.xml")
        );
    }

    #[test]
    fn an_empty_body_takes_paragraphs() {
        let source = r#"<w:document xmlns:w="urn:w"><w:body/></w:document>"#;
        let body = find_paragraphs(source).ok().unwrap();
        let mut shape = Shape::of_texts(std::iter::empty());
        shape.apply(&[Edit::append("c1", "first"), Edit::append("c2", "second")]);
        let Shape::Text { paragraphs } = &shape else { panic!("text") };

        let written = render(source, &body, paragraphs);

        assert!(written.starts_with(r#"<w:document xmlns:w="urn:w"><w:body><w:p>"#), "{written}");
        assert!(written.find("first").unwrap() < written.find("second").unwrap());
        assert!(written.ends_with("</w:p></w:body></w:document>"), "{written}");
    }

    #[test]
    fn text_boxes_and_deletions_are_not_paragraph_text() {
        let source = concat!(
            r#"<w:document xmlns:w="urn:w"><w:body><w:p><w:r><w:t>a</w:t></w:r>"#,
            r#"<w:r><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></w:r>"#,
            r#"<w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p></w:body></w:document>"#
        );

        let body = find_paragraphs(source).ok().unwrap();

        assert_eq!(body.paragraphs.len(), 1);
        assert_eq!(body.paragraphs[0].text, "a");
    }
}
