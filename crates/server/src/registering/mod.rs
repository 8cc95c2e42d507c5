//! Registering: who hands in what and by when, brought as a file, and templates on their way into the ledger.
//!
//! The steps of an import: the file is read as a table ([`table`]); every line is read into wishes, and all mistakes are
//! collected ([`lines`]); if there is none, the ledger writes all of it in one step, or tells what it refuses.
//!
//! Guarantees: all mistakes are told at once, each with its line; if there is one, nothing was written; the same file again changes
//! nothing. A rehearsal tells the same and writes nothing.
//! Does not do: decide who may (the edges do).

mod lines;
mod table;
mod templates;

use ledger::LedgerError;
use ledger::documents::Author;
use ledger::scopes::{Import, Imported};

use crate::app::App;

pub(crate) use lines::COLUMNS;
pub(crate) use templates::{Mistake, TEMPLATE_BYTES_MAX, facts_of, read_template, starter};

/// Bytes of a file that is imported.
pub(crate) const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Something wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineMistake {
    /// The line, from 1.
    pub(crate) line: u32,
    /// The column, if it is about one.
    pub(crate) column: Option<&'static str>,
    /// What is wrong, and what to do.
    pub(crate) what: String,
}

impl LineMistake {
    fn new(line: u32, column: Option<&'static str>, what: impl Into<String>) -> Self {
        Self { line, column, what: what.into() }
    }
}

impl std::fmt::Display for LineMistake {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.column {
            Some(column) => write!(out, "line {}: {column}: {}", self.line, self.what),
            None => write!(out, "line {}: {}", self.line, self.what),
        }
    }
}

/// What came of a file.
pub(crate) enum Outcome {
    /// It was written, or would have been.
    Imported(Imported),
    /// Nothing was written.
    Mistakes(Vec<LineMistake>),
}

/// Whether an import is only tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trial {
    /// It counts.
    No,
    /// It is said what would happen.
    Rehearsal,
}

/// Brings a file of scopes into the ledger.
pub(crate) async fn import(
    app: &App,
    text: &str,
    (trial, by): (Trial, Author),
) -> Result<Outcome, LedgerError> {
    let wishes = match table::read(text).and_then(|table| lines::read(&table)) {
        Ok(wishes) => wishes,
        Err(mistakes) => return Ok(Outcome::Mistakes(mistakes)),
    };
    let import = Import { is_rehearsal: trial == Trial::Rehearsal, by, at: app.now() };
    let imported = app.ledger.import_scopes(&wishes, &import).await?;
    if imported.refused.is_empty() {
        return Ok(Outcome::Imported(imported));
    }
    let refused = imported.refused.into_iter().map(|(line, what)| LineMistake::new(line, None, what));
    Ok(Outcome::Mistakes(refused.collect()))
}
