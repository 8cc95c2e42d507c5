//! Workbooks that become records: a template says what a workbook holds, and this crate reads, checks, writes and marks it.
//!
//! - [`Template::parse`] reads a template and names all its mistakes at once.
//! - [`assess`] reads a workbook by a template: rows in their canonical form go to a [`Sink`], problems are counted exactly.
//! - [`write_workbook`] makes the workbook that people fill in, [`mark_workbook`] gives it back with its problems marked,
//!   [`export_xlsx`] writes records as a workbook.
//!
//! Guarantees: no panic on any input; memory bounded by the template's limits, not by the number of rows; decimals and days exact;
//! the same bytes, template, facts and day give the same assessment.
//! Does not do: storing, comparing with earlier records (`ledger`), files, HTTP, async, asking for the time.
#![warn(missing_docs)]

mod days;
mod decimal;
mod expressions;
mod reading;
mod scope;
mod template;
mod writing;

pub use days::DayBound;
pub use decimal::{Decimal, SCALE_MAX};
pub use expressions::Expression;
pub use reading::{Assessment, FoundTable, Sink, SinkError, TableTotals, Unreadable, assess};
pub use scope::{AccreditationFacts, ScopeFacts};
pub use template::{
    Column, ColumnKind, Duplicates, Issue, Limits, Measure, Meta, MetaKind, MissingColumns, Mistake, Outcome,
    Outcomes, Place, Presence, PreviewRules, Removed, Rule, SkipRow, Table, Template, UnknownColumns,
    Version, WASTE_RECORDS, code,
};
pub use writing::{
    ExportColumn, ExportKind, MarkError, WriteError, export_xlsx, mark_workbook, write_workbook,
};
