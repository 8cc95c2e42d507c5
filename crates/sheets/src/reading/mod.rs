//! Reading a workbook by a template.
//!
//! 1. **Container**: limits, encryption, macros, the parts there are. Anything wrong ends here.
//! 2. **Sheets**, one after the other, row by row: markers are found wherever they are, single values beside them, tables below them.
//! 3. **Rows**: cells become values, values follow rules, rows get their outcome and go to the sink.
//! 4. **At the end**: what was not found, what was merged, what occurs twice.
//!
//! Guarantees: one pass in bounded memory; every problem is counted and has its cell; a problem of a lower level hides those of
//! higher ones, which may only follow from it. Faults of the file are problems; only faults of ours are errors.
//! Does not do: comparing with earlier submissions (level 4).

mod cells;
mod collector;
mod container;
mod fault;
mod found;
mod keys;
mod metas;
mod plain;
mod rows;
mod scan;
mod sheet;
mod strings;
mod values;

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use jiff::civil::Date;
use model::submissions::{Problem, StagedRow};

use crate::{Decimal, Place, Presence, ScopeFacts, Template, code};
use cells::SheetReader;
use rows::RowReader;
use sheet::{Findings, Sheet};
use strings::Strings;
use values::Workbook;

pub(crate) use cells::{cell_of, letters};
pub(crate) use container::{Container, Relation};
pub(crate) use fault::Fault;
pub(crate) use scan::{Token, unescape};
pub(crate) use values::typed_text;

/// Where rows go, in the order of the workbook.
pub trait Sink {
    /// Takes a row. Rows that cannot be stored because something in them is fatal are not given.
    fn row(&mut self, row: StagedRow) -> Result<(), SinkError>;

    /// So many rows were looked at. Told every thousand rows.
    fn progress(&mut self, _rows: u64) {}

    /// Whether to stop. Asked as often as progress is told.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// The sink could not take a row.
#[derive(Debug, thiserror::Error)]
#[error("a row could not be kept")]
pub struct SinkError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

impl Sink for Vec<StagedRow> {
    fn row(&mut self, row: StagedRow) -> Result<(), SinkError> {
        self.push(row);
        Ok(())
    }
}

/// Why a workbook was not read, though nothing may be wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// Its bytes could not be read.
    #[error("the workbook's bytes could not be read")]
    Io(#[source] std::io::Error),
    /// Somebody asked to stop.
    #[error("reading was cancelled")]
    Cancelled,
    /// Its rows could not be kept.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

/// What a workbook is, read by a template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assessment {
    /// What is wrong, the worst first; no more than the template keeps.
    pub problems: Vec<Problem>,
    /// How many problems there are of each severity: fatal, errors, warnings. Exact.
    pub fatal: u64,
    /// How many rows' problems keep them from counting.
    pub errors: u64,
    /// How many are worth a look.
    pub warnings: u64,
    /// How many there are of each code. Exact.
    pub by_code: BTreeMap<String, u64>,
    /// The tables that were found, in the order of the template.
    pub tables: Vec<FoundTable>,
    /// The single values that were found, by name, in canonical form.
    pub meta: BTreeMap<String, String>,
}

impl Assessment {
    /// Whether it can be submitted.
    pub fn is_valid(&self) -> bool {
        self.fatal == 0
    }
}

/// Where a table is, and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTable {
    /// Its name in the template.
    pub name: String,
    /// The kind of its records.
    pub kind: String,
    /// The sheet.
    pub sheet: String,
    /// The row of its headers, from 1.
    pub header_row: u32,
    /// The letters of each column by its name: `NET_T` is in `F`. Kept unknown columns are among them.
    pub columns: BTreeMap<String, String>,
    /// What is in it.
    pub totals: TableTotals,
}

/// How many rows there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableTotals {
    /// Rows that count.
    pub included: u64,
    /// Rows that are kept and do not count.
    pub excluded: u64,
    /// Rows that are kept and do not concern the scope.
    pub ignored: u64,
    /// Rows with something fatal.
    pub rejected: u64,
    /// Headings and examples.
    pub skipped: u64,
    /// Rows that are not in use.
    pub unused: u64,
    /// The sum of the measure over the included rows.
    pub measure: Option<Decimal>,
}

/// Reads a workbook by a template.
pub fn assess(
    template: &Template,
    (scope, today): (&ScopeFacts, Date),
    workbook: &mut (impl Read + Seek),
    sink: &mut dyn Sink,
) -> Result<Assessment, Unreadable> {
    let choices = values::choices(template);
    let mut reader = RowReader::new(template, (scope, today), &choices, sink);
    let mut findings = Findings {
        tables: template.tables.iter().map(|_| None).collect(),
        metas: template.meta.iter().map(|_| None).collect(),
    };
    let mut assessment = Assessment::default();
    match read_sheets(&mut reader, &mut findings, workbook) {
        Ok(()) => {
            tell_missing_tables(&mut reader, &findings);
            assessment.meta = metas::check(template, (scope, today), &findings.metas, &mut reader.problems);
        }
        Err(fault) => tell_fault(&mut reader, fault)?,
    }
    let tables = template.tables.iter().zip(&findings.tables);
    assessment.tables = tables.filter_map(|(table, found)| Some(found.as_ref()?.described(table))).collect();
    reader.problems.into_assessment(&mut assessment);
    Ok(assessment)
}

fn read_sheets(
    reader: &mut RowReader<'_>,
    findings: &mut Findings,
    workbook: &mut (impl Read + Seek),
) -> Result<(), Fault> {
    let limits = &reader.template.limits;
    let mut container = Container::open(workbook, limits)?;
    let day_styles = container.day_styles()?;
    let prefix = &reader.template.marker_prefix;
    let strings = Strings::read(&mut container, limits.shared_string_bytes, prefix)?;
    let workbook = Workbook {
        strings: &strings,
        day_styles: &day_styles,
        epoch: container.epoch,
        today: reader.today,
        cell_chars: usize::try_from(limits.cell_chars).unwrap_or(usize::MAX),
    };
    for part in container.sheets.clone() {
        let scanner = container.scan(&part.part)?;
        let mut sheet = Sheet { name: &part.name, workbook: &workbook, reader, findings };
        let read = sheet.read(SheetReader::new(scanner, &strings));
        read.map_err(|fault| container.explain(fault))?;
    }
    Ok(())
}

fn tell_missing_tables(reader: &mut RowReader<'_>, findings: &Findings) {
    for (table, found) in reader.template.tables.iter().zip(&findings.tables) {
        if found.is_none() && table.presence == Presence::Required {
            let place = Place { sheet: Some(table.sheet.clone()), ..Place::default() };
            reader.problems.add((code::TABLE_MISSING, 3), || (place, table.label.clone()));
        }
    }
}

/// Whose fault it is decides what it is: the file's is a problem, ours an error.
fn tell_fault(reader: &mut RowReader<'_>, fault: Fault) -> Result<(), Unreadable> {
    let (code, detail) = match fault {
        Fault::Ours(cause) => return Err(cause),
        Fault::Refused(code, detail) => (code, detail),
        Fault::Broken(detail) => (code::FILE_BROKEN, detail),
        Fault::Read(_) => (code::FILE_BROKEN, "a part cannot be unpacked".to_owned()),
    };
    reader.problems.add((code, 0), || (Place::default(), detail));
    Ok(())
}
