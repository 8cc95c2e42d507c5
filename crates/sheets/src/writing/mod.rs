//! Writing workbooks: to be filled in, to be corrected, to take records away.
//!
//! Guarantees: what is written is a whole package that spreadsheet programs open without repairing; texts are texts and never
//! formulas; memory does not grow with the number of rows.
//! Does not do: charts, pictures, formulas.

mod export;
mod fill_in;
mod marking;
mod markup;
mod package;
mod styles;

pub use export::{ExportColumn, ExportKind, export_xlsx};
pub use fill_in::write_workbook;
pub use marking::{MarkError, mark_workbook};

/// Why nothing could be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It could not be written, or its rows could not be read.
    #[error("the workbook could not be written")]
    Io(#[from] std::io::Error),
    /// It could not be packed.
    #[error("the workbook could not be packed")]
    Pack(#[from] zip::result::ZipError),
}
