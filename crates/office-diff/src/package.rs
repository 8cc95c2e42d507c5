//! From a file to what it says: finds the parts that hold text and hands them to their readers.

use std::io::{Read, Seek, SeekFrom};

use zip::ZipArchive;

use crate::budget::Budget;
use crate::cells::{self, Sheet};
use crate::markup::{Tag, Then, Visitor, walk};
use crate::paragraphs::{self, Paragraph};
use crate::{Cut, Limits, Place, Subject, open_document};

/// What a file says.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) subject: Subject,
    pub(crate) paragraphs: Vec<Paragraph>,
    pub(crate) sheets: Vec<Sheet>,
    /// Why this is not everything.
    pub(crate) cut: Option<Cut>,
}

/// Reads a file; `None` if there is no text in it that we understand.
pub(crate) fn read(mut file: impl Read + Seek, limits: &Limits) -> Option<Said> {
    let mut magic = [0; 4];
    let mut budget = Budget::new(limits);
    let is_package = file.read_exact(&mut magic).is_ok() && magic == *b"PK\x03\x04";
    file.seek(SeekFrom::Start(0)).ok()?;
    if !is_package {
        return read_lines(file, budget);
    }
    let mut package = Package { zip: ZipArchive::new(file).ok()? };
    let said = match package.main_part(&mut budget) {
        Some(main) => package.read_office(&main, &mut budget)?,
        None => open_document::read(&mut package, &mut budget)?,
    };
    Some(Said { cut: budget.cut, ..said })
}

impl Said {
    pub(crate) fn paragraphs(subject: Subject, paragraphs: Vec<Paragraph>) -> Self {
        Self { subject, paragraphs, sheets: Vec::new(), cut: None }
    }

    pub(crate) fn sheets(sheets: Vec<Sheet>) -> Self {
        Self { subject: Subject::Workbook, paragraphs: Vec::new(), sheets, cut: None }
    }
}

/// Plain text; bytes that are none are no text.
fn read_lines(file: impl Read, mut budget: Budget) -> Option<Said> {
    let mut bytes = Vec::new();
    let limit = budget.text_bytes() as u64;
    file.take(limit + 1).read_to_end(&mut bytes).ok()?;
    let is_cut = bytes.len() as u64 > limit;
    bytes.truncate(budget.text_bytes());
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // Where the file was cut off, half a character may be left.
        Err(cause) if is_cut && cause.utf8_error().error_len().is_none() => {
            let whole = cause.utf8_error().valid_up_to();
            String::from_utf8(cause.into_bytes()[..whole].to_vec()).ok()?
        }
        Err(_) => return None,
    };
    if text.contains('\0') {
        return None;
    }
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if !budget.takes(line.len()) {
            break;
        }
        lines.push(Paragraph { place: Place::Line { number }, text: line.to_owned() });
    }
    let cut = budget.cut.or(is_cut.then_some(Cut::Read));
    Some(Said { cut, ..Said::paragraphs(Subject::Text, lines) })
}

/// A package that is being read.
pub(crate) struct Package<R> {
    zip: ZipArchive<R>,
}

/// A part that another one names.
#[derive(Debug, Clone)]
pub(crate) struct Related {
    id: String,
    kind: String,
    pub(crate) part: String,
}

impl<R: Read + Seek> Package<R> {
    /// Walks through a part. One that is missing says nothing.
    pub(crate) fn walk(&mut self, part: &str, budget: &mut Budget, visitor: &mut impl Visitor) -> bool {
        match self.zip.by_name(part) {
            Ok(entry) if budget.is_open() => {
                walk(entry, budget, visitor);
                true
            }
            _ => false,
        }
    }

    fn main_part(&mut self, budget: &mut Budget) -> Option<String> {
        let related = self.related("", budget);
        related.into_iter().find(|each| each.is("officeDocument")).map(|each| each.part)
    }

    /// The parts a part names; those of the package itself for the empty name.
    fn related(&mut self, part: &str, budget: &mut Budget) -> Vec<Related> {
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let relations = resolve(folder, &format!("_rels/{name}.rels"));
        let mut found = Relations { folder, found: Vec::new() };
        self.walk(&relations, budget, &mut found);
        found.found
    }

    fn read_office(&mut self, main: &str, budget: &mut Budget) -> Option<Said> {
        let related = self.related(main, budget);
        let mut root = Root::default();
        self.walk(main, budget, &mut root);
        match root.name.as_str() {
            "document" => Some(self.read_document(main, &related, budget)),
            "workbook" => {
                let sheets = self.named_sheets(main, &related, budget);
                let strings = related.iter().find(|each| each.is("sharedStrings"));
                let strings = strings.map(|strings| strings.part.clone());
                Some(Said::sheets(cells::read(self, (&sheets, strings.as_deref()), budget)))
            }
            "presentation" => Some(self.read_slides(main, &related, budget)),
            _ => None,
        }
    }

    fn read_document(&mut self, main: &str, related: &[Related], budget: &mut Budget) -> Said {
        let mut parts = vec![("body".to_owned(), main.to_owned())];
        for kind in ["header", "footer", "footnotes", "endnotes", "comments"] {
            parts.extend(
                related.iter().filter(|each| each.is(kind)).map(|each| (stem(&each.part), each.part.clone())),
            );
        }
        let mut found = Vec::new();
        for (name, part) in parts {
            let mut reader =
                paragraphs::Reader::new(|number| Place::Paragraph { part: name.clone(), number });
            self.walk(&part, budget, &mut reader);
            found.extend(reader.found);
        }
        Said::paragraphs(Subject::Document, found)
    }

    fn read_slides(&mut self, main: &str, related: &[Related], budget: &mut Budget) -> Said {
        let mut listed = Listed { element: "sldId", found: Vec::new() };
        self.walk(main, budget, &mut listed);
        let mut found = Vec::new();
        for (slide, (id, _)) in (1..).zip(&listed.found) {
            let Some(part) = related.iter().find(|each| each.id == *id) else { continue };
            let mut reader = paragraphs::Reader::new(|number| Place::Slide { slide, number });
            self.walk(&part.part, budget, &mut reader);
            found.extend(reader.found);
        }
        Said::paragraphs(Subject::Presentation, found)
    }

    fn named_sheets(
        &mut self,
        main: &str,
        related: &[Related],
        budget: &mut Budget,
    ) -> Vec<(String, String)> {
        let mut listed = Listed { element: "sheet", found: Vec::new() };
        self.walk(main, budget, &mut listed);
        let part = |id: &str| related.iter().find(|each| each.id == id && each.is("worksheet"));
        listed.found.into_iter().filter_map(|(id, name)| Some((name, part(&id)?.part.clone()))).collect()
    }
}

impl Related {
    /// Transitional and strict documents name the same kinds in two ways, with the same end.
    fn is(&self, kind: &str) -> bool {
        self.kind.rsplit('/').next() == Some(kind)
    }
}

fn stem(part: &str) -> String {
    let name = part.rsplit('/').next().unwrap_or(part);
    name.split('.').next().unwrap_or(name).to_owned()
}

fn resolve(folder: &str, target: &str) -> String {
    let (base, target) = match target.strip_prefix('/') {
        Some(absolute) => ("", absolute),
        None => (folder, target),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Reads what a part names.
struct Relations<'a> {
    folder: &'a str,
    found: Vec<Related>,
}

impl Visitor for Relations<'_> {
    fn start(&mut self, name: &str, tag: &Tag<'_>, budget: &mut Budget) -> Then {
        let outside = tag.attribute("TargetMode").is_some_and(|mode| mode == "External");
        if name == "Relationship"
            && !outside
            && let (Some(id), Some(kind), Some(target)) =
                (tag.attribute("Id"), tag.attribute("Type"), tag.attribute("Target"))
            && budget.takes(id.len() + kind.len() + target.len())
        {
            self.found.push(Related { id, kind, part: resolve(self.folder, &target) });
        }
        Then::GoOn
    }

    fn end(&mut self, _: &str, _: &mut Budget) -> Then {
        Then::GoOn
    }

    fn text(&mut self, _: &str, _: &Budget) {}
}

/// Reads the name of the root.
#[derive(Default)]
struct Root {
    name: String,
}

impl Visitor for Root {
    fn start(&mut self, name: &str, _: &Tag<'_>, _: &mut Budget) -> Then {
        self.name = name.to_owned();
        Then::Stop
    }

    fn end(&mut self, _: &str, _: &mut Budget) -> Then {
        Then::GoOn
    }

    fn text(&mut self, _: &str, _: &Budget) {}
}

/// Reads a list of elements with the id of a relation and a name.
struct Listed {
    element: &'static str,
    found: Vec<(String, String)>,
}

impl Visitor for Listed {
    fn start(&mut self, name: &str, tag: &Tag<'_>, budget: &mut Budget) -> Then {
        if name == self.element
            && let Some(id) = tag.relation()
        {
            let name = tag.attribute("name").unwrap_or_default();
            if budget.takes(id.len() + name.len()) {
                self.found.push((id, name));
            }
        }
        Then::GoOn
    }

    fn end(&mut self, _: &str, _: &mut Budget) -> Then {
        Then::GoOn
    }

    fn text(&mut self, _: &str, _: &Budget) {}
}
