//! A workbook given back with its problems: offending cells in red, a note at each, and a sheet that lists them all.
//!
//! 1. **Plan**: which cells of which sheets, which parts exist already, which are new.
//! 2. **Copy**: every part as it is, byte by byte, but for those that must name something new.
//! 3. **Add**: the new parts.
//!
//! Guarantees: no cell is touched: the red is a conditional format, the notes and the list are parts of their own, so everything else
//! is what was uploaded. The list is a plain sheet; a marked workbook can be corrected and uploaded again.
//! Does not do: taking away marks of an earlier round, which stay until somebody removes them.

mod edits;
mod new_parts;

use std::collections::BTreeMap;
use std::io::{Read, Seek, Write};

use model::submissions::Problem;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::WriteError;
use crate::reading::{Container, Fault, cell_of};
use crate::{Limits, Unreadable};
use edits::Edit;

/// Bounds for a workbook that is marked; it was read within tighter ones before.
const LIMITS: Limits = Limits {
    file_bytes: 2 << 30,
    inflated_bytes: 16 << 30,
    inflate_ratio: 1032,
    shared_string_bytes: 1 << 30,
    sheets: 1_000,
    rows_per_table: 1_048_576,
    columns: 16_384,
    cell_chars: 32_767,
    problems: 20_000,
    value_chars: 2_000,
};
/// A drawing of notes that exists already is read as a whole.
const DRAWING_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Why a workbook could not be marked.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// The workbook is none that we can add to.
    #[error("the workbook cannot be marked: {0}")]
    Workbook(String),
    /// Its bytes could not be read.
    #[error("the workbook's bytes could not be read")]
    Read(#[source] std::io::Error),
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<Fault> for MarkError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Broken(what) | Fault::Refused(_, what) => Self::Workbook(what),
            Fault::Read(cause) | Fault::Ours(Unreadable::Io(cause)) => Self::Read(cause),
            Fault::Ours(cause) => Self::Workbook(cause.to_string()),
        }
    }
}

impl From<zip::result::ZipError> for MarkError {
    fn from(cause: zip::result::ZipError) -> Self {
        Self::Write(WriteError::Pack(cause))
    }
}

impl From<std::io::Error> for MarkError {
    fn from(cause: std::io::Error) -> Self {
        Self::Write(WriteError::Io(cause))
    }
}

/// Cells and what is wrong in each: row from 1, column from 0.
type Marks = BTreeMap<(u32, u32), String>;

/// What is to be done with a workbook.
struct Plan {
    /// Parts that are written differently.
    edits: BTreeMap<String, Edit>,
    /// Parts that are added.
    new_parts: Vec<(String, String)>,
}

type Out<W> = ZipWriter<W>;

/// Writes a workbook again with its problems marked.
pub fn mark_workbook(
    original: &mut (impl Read + Seek),
    problems: &[Problem],
    out: impl Write + Seek,
) -> Result<(), MarkError> {
    let mut container = Container::open(original, &LIMITS)?;
    let plan = plan(&mut container, problems)?;
    let mut zip = ZipWriter::new(out);
    for index in 0..container.archive().len() {
        let entry = container.archive().by_index_raw(index)?;
        let name = entry.name()?.into_owned();
        match plan.edits.get(&name) {
            None => zip.raw_copy_file(entry)?,
            Some(edit) => {
                drop(entry);
                zip.start_file(name.as_str(), SimpleFileOptions::default())?;
                edit.apply(&mut container, &name, &mut zip)?;
            }
        }
    }
    for (name, text) in plan.new_parts {
        zip.start_file(name, SimpleFileOptions::default())?;
        zip.write_all(text.as_bytes())?;
    }
    zip.finish()?.flush()?;
    Ok(())
}

fn plan<R: Read + Seek>(container: &mut Container<R>, problems: &[Problem]) -> Result<Plan, MarkError> {
    let mut planner = Planner::new(container)?;
    for (number, sheet) in (1..).zip(planner.container.sheets.clone()) {
        let marks = marks_of(problems, &sheet.name);
        if !marks.is_empty() {
            planner.mark_sheet(number, &sheet.part, marks)?;
        }
    }
    planner.add_list(problems)?;
    Ok(planner.finish())
}

/// The cells of a sheet that have problems, with everything that is wrong in each.
fn marks_of(problems: &[Problem], sheet: &str) -> Marks {
    let mut marks = Marks::new();
    for problem in problems.iter().filter(|problem| problem.sheet.as_deref() == Some(sheet)) {
        if let Some(cell) = problem.cell.as_deref().and_then(cell_of) {
            let text = marks.entry(cell).or_default();
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&problem.sentence);
        }
    }
    marks
}

/// Puts a plan together.
struct Planner<'c, R> {
    container: &'c mut Container<R>,
    names: Vec<String>,
    edits: BTreeMap<String, Edit>,
    new_parts: Vec<(String, String)>,
    /// What `[Content_Types].xml` gets.
    types: String,
    /// What the workbook's relations get.
    relations: String,
    /// The number of our format among the conditional ones.
    format: usize,
    is_strict: bool,
}

impl<'c, R: Read + Seek> Planner<'c, R> {
    fn new(container: &'c mut Container<R>) -> Result<Self, MarkError> {
        let names: Result<Vec<String>, _> =
            container.archive().file_names().map(|name| name.map(|name| name.into_owned())).collect();
        let is_strict = edits::is_strict(container)?;
        let format = edits::count_formats(container)?;
        let mut planner = Self {
            container,
            names: names?,
            edits: BTreeMap::new(),
            new_parts: Vec::new(),
            types: String::new(),
            relations: String::new(),
            format,
            is_strict,
        };
        planner.plan_styles();
        Ok(planner)
    }

    fn plan_styles(&mut self) {
        match self.container.styles.clone() {
            Some(part) => drop(self.edits.insert(part, Edit::Styles)),
            None => {
                let part = self.unused("xl/styles_marks.xml");
                self.types.push_str(&new_parts::override_of(&part, "styles"));
                self.relations.push_str(&new_parts::relation(
                    "rIdMarkStyles",
                    "styles",
                    (&part, self.is_strict),
                ));
                self.new_parts.push((part, new_parts::styles(self.is_strict)));
            }
        }
    }

    /// A name that no part has.
    fn unused(&self, name: &str) -> String {
        let (stem, end) = name.rsplit_once('.').unwrap_or((name, "xml"));
        let is_taken = |name: &str| {
            self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
                || self.new_parts.iter().any(|(known, _)| known == name)
        };
        let mut numbered = (1..).map(|number| format!("{stem}{number}.{end}"));
        numbered.find(|name| !is_taken(name)).unwrap_or_default()
    }

    fn mark_sheet(&mut self, number: u32, part: &str, marks: Marks) -> Result<(), MarkError> {
        let related = self.container.relations(part)?;
        let comments = related.iter().find(|each| each.kind == "comments").map(|each| each.part.clone());
        let drawing_id = edits::legacy_drawing(self.container, part)?;
        let drawing = related.iter().find(|each| Some(&each.id) == drawing_id.as_ref());
        let drawing = drawing.map(|each| each.part.clone()).filter(|part| self.names.contains(part));
        let mut relations = String::new();
        // Cells that have a note already have its shape as well.
        let noted = match &comments {
            Some(comments) => edits::noted_cells(self.container, comments)?,
            None => Vec::new(),
        };
        match comments {
            Some(comments) => drop(self.edits.insert(comments, Edit::Notes(marks.clone()))),
            None => {
                let name = self.unused("xl/comments_marks.xml");
                relations.push_str(&new_parts::relation("rIdMarkNotes", "comments", (&name, self.is_strict)));
                self.types.push_str(&new_parts::override_of(&name, "comments"));
                self.new_parts.push((name, new_parts::notes(&marks, self.is_strict)));
            }
        }
        let shapes = new_parts::shapes(number, marks.keys().filter(|cell| !noted.contains(cell)));
        let has_drawing = drawing.is_some();
        match drawing {
            Some(drawing) => drop(self.edits.insert(drawing, Edit::Drawing(shapes))),
            None => {
                let name = self.unused("xl/drawings/vmlDrawing_marks.vml");
                relations.push_str(&new_parts::relation(
                    "rIdMarkShapes",
                    "vmlDrawing",
                    (&name, self.is_strict),
                ));
                self.new_parts.push((name, new_parts::drawing(&shapes)));
            }
        }
        let edit = Edit::Sheet { marks, format: self.format, has_drawing, is_strict: self.is_strict };
        self.edits.insert(part.to_owned(), edit);
        self.add_relations(part, relations);
        Ok(())
    }

    fn add_relations(&mut self, part: &str, relations: String) {
        if relations.is_empty() {
            return;
        }
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let at = format!("{folder}/_rels/{name}.rels");
        if self.names.contains(&at) {
            self.edits.insert(at, Edit::Insert { before_end_of: "Relationships", markup: relations });
        } else {
            self.new_parts.push((at, new_parts::relations(&relations)));
        }
    }

    fn add_list(&mut self, problems: &[Problem]) -> Result<(), MarkError> {
        let part = self.unused("xl/worksheets/sheet_marks.xml");
        let taken: Vec<&str> = self.container.sheets.iter().map(|sheet| sheet.name.as_str()).collect();
        let numbered =
            (1..).map(|number| if number == 1 { "Problems".into() } else { format!("Problems {number}") });
        let mut free =
            numbered.filter(|name: &String| !taken.iter().any(|known| known.eq_ignore_ascii_case(name)));
        let name = free.next().unwrap_or_default();
        self.types.push_str(&new_parts::override_of(&part, "worksheet"));
        self.relations.push_str(&new_parts::relation("rIdMarkList", "worksheet", (&part, self.is_strict)));
        self.new_parts.push((part, new_parts::list(problems, self.is_strict)));
        let workbook = self.container.workbook.clone();
        self.edits.insert(workbook.clone(), Edit::Workbook { name, is_strict: self.is_strict });
        let relations = std::mem::take(&mut self.relations);
        self.add_relations(&workbook, relations);
        Ok(())
    }

    fn finish(mut self) -> Plan {
        self.edits.insert("[Content_Types].xml".into(), Edit::Types(self.types));
        Plan { edits: self.edits, new_parts: self.new_parts }
    }
}
