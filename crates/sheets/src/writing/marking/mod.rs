//! A workbook given back with its problems: offending cells in red, a note at each, and a sheet that lists them all.
//!
//! 1. **Plan**: which cells of which sheets, which parts exist already, which are new.
//! 2. **Copy**: every part as it is, byte by byte, but for those that must name something new.
//! 3. **Add**: the new parts.
//!
//! Guarantees: no cell is touched: the red is a conditional format, the notes and the list are parts of their own, so everything else
//! is what was uploaded. A marked workbook can be corrected, uploaded and marked again: red and list are those of the last round, and
//! a note of ours says so where nothing is wrong any more.

mod edits;
mod new_parts;
mod notes;

use std::collections::BTreeMap;
use std::io::{Read, Seek, Write};

use model::submissions::Problem;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::WriteError;
use crate::reading::{Container, Fault, Relation, cell_of};
use crate::{Limits, Unreadable};
use edits::Edit;
use new_parts::Dialect;

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
    let was_marked = planner.container.sheets.iter().any(|sheet| sheet.name == new_parts::LIST);
    for (number, sheet) in (1..).zip(planner.container.sheets.clone()) {
        let marks = marks_of(problems, &sheet.name);
        let is_list = sheet.name == new_parts::LIST;
        if !is_list && (was_marked || !marks.is_empty()) {
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
    dialect: Dialect,
}

impl<'c, R: Read + Seek> Planner<'c, R> {
    fn new(container: &'c mut Container<R>) -> Result<Self, MarkError> {
        let names: Result<Vec<String>, _> =
            container.archive().file_names().map(|name| name.map(|name| name.into_owned())).collect();
        let dialect = edits::dialect_of(container)?;
        let format = edits::count_formats(container)?;
        let mut planner = Self {
            container,
            names: names?,
            edits: BTreeMap::new(),
            new_parts: Vec::new(),
            types: String::new(),
            relations: String::new(),
            format,
            dialect,
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
                    (&part, self.dialect),
                ));
                self.new_parts.push((part, new_parts::styles(self.dialect)));
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
        let mut relations = String::new();
        let comments = related.iter().find(|each| each.kind == "comments").map(|each| each.part.clone());
        // Cells that have a note already have its shape as well.
        let noted = match &comments {
            Some(comments) => notes::noted_cells(self.container, comments)?,
            None => Vec::new(),
        };
        match comments {
            Some(comments) => drop(self.edits.insert(comments, Edit::Notes(marks.clone()))),
            None if marks.is_empty() => {}
            None => {
                let name = self.unused("xl/comments_marks.xml");
                let id = unused_id(&related, "rIdMarkNotes");
                relations.push_str(&new_parts::relation(&id, "comments", (&name, self.dialect)));
                self.types.push_str(&new_parts::override_of(&name, "comments"));
                self.new_parts.push((name, new_parts::notes(&marks, self.dialect)));
            }
        }
        let unnoted: Vec<_> = marks.keys().filter(|cell| !noted.contains(cell)).copied().collect();
        let adds_drawing = self.plan_drawing((number, part), &unnoted, (&related, &mut relations))?;
        self.edits.insert(part.to_owned(), Edit::Sheet { marks, format: self.format, adds_drawing });
        self.add_relations(part, relations);
        Ok(())
    }

    /// Shapes for notes that have none; the tag that a new drawing needs in its sheet comes back.
    fn plan_drawing(
        &mut self,
        (number, part): (u32, &str),
        unnoted: &[(u32, u32)],
        (related, relations): (&[Relation], &mut String),
    ) -> Result<Option<String>, MarkError> {
        let known = edits::legacy_drawing(self.container, part)?;
        let drawing = related.iter().find(|each| Some(&each.id) == known.as_ref());
        let drawing = drawing.map(|each| each.part.clone()).filter(|part| self.names.contains(part));
        if unnoted.is_empty() {
            return Ok(None);
        }
        if let Some(drawing) = drawing {
            let bytes = edits::drawing_bytes(self.container, &drawing)?;
            let first = new_parts::free_shape(number, &bytes);
            self.edits.insert(drawing, Edit::Drawing(new_parts::shapes(first, unnoted)));
            return Ok(None);
        }
        let name = self.unused("xl/drawings/vmlDrawing_marks.vml");
        let id = unused_id(related, "rIdMarkShapes");
        relations.push_str(&new_parts::relation(&id, "vmlDrawing", (&name, self.dialect)));
        let shapes = new_parts::shapes(new_parts::free_shape(number, &[]), unnoted);
        self.new_parts.push((name, new_parts::drawing(&shapes)));
        let office = new_parts::office(self.dialect);
        Ok(Some(format!(r#"<PREFIXlegacyDrawing xmlns:r="{office}" r:id="{id}"/>"#)))
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

    /// The list of all problems: in place of that of an earlier round, or as the last sheet.
    fn add_list(&mut self, problems: &[Problem]) -> Result<(), MarkError> {
        let list = new_parts::list(problems, self.dialect);
        if let Some(known) = self.container.sheets.iter().find(|sheet| sheet.name == new_parts::LIST) {
            self.edits.insert(known.part.clone(), Edit::Whole(list));
            return Ok(());
        }
        let part = self.unused("xl/worksheets/sheet_marks.xml");
        let workbook = self.container.workbook.clone();
        let id = unused_id(&self.container.relations(&workbook)?, "rIdMarkList");
        self.types.push_str(&new_parts::override_of(&part, "worksheet"));
        self.relations.push_str(&new_parts::relation(&id, "worksheet", (&part, self.dialect)));
        self.new_parts.push((part, list));
        let name = new_parts::LIST.to_owned();
        self.edits.insert(workbook, Edit::Workbook { name, id, dialect: self.dialect });
        Ok(())
    }

    fn finish(mut self) -> Plan {
        let relations = std::mem::take(&mut self.relations);
        self.add_relations(&self.container.workbook.clone(), relations);
        self.edits.insert("[Content_Types].xml".into(), Edit::Types(self.types));
        Plan { edits: self.edits, new_parts: self.new_parts }
    }
}

/// An id that no relation has.
fn unused_id(related: &[Relation], wanted: &str) -> String {
    let numbered =
        (1..).map(|number| if number == 1 { wanted.to_owned() } else { format!("{wanted}{number}") });
    let mut free = numbered.filter(|id| !related.iter().any(|each| each.id == *id));
    free.next().unwrap_or_default()
}
