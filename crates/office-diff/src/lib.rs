//! What was added, removed and changed between two Office files, in text: paragraphs of documents and slides, cells of
//! workbooks, lines of plain text.
//!
//! Guarantees: any input costs a bounded amount of memory and work ([`Limits`]). Where a limit was met the comparison says so
//! ([`Comparison::cut`]), and what was not read is never reported as removed. The same two files give the same answer.
//! Does not do: layout, formats, pictures, formulas that are not written down; it neither calculates nor judges whether a
//! file is whole (`office-check` does).

mod budget;
mod cells;
mod changes;
mod markup;
mod open_document;
mod package;
mod paragraphs;
mod sequence;

use std::io::{Read, Seek};

pub use cells::address;

/// How much a comparison may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Unpacked bytes that are read of each file.
    pub unpacked_bytes_max: u64,
    /// Text that is kept of each file, in bytes.
    pub text_bytes_max: usize,
    /// Paragraphs or cells that are kept of each file.
    pub pieces_max: usize,
    /// Steps of looking for the shortest list of changes; beyond them a stretch counts as replaced.
    pub effort_max: usize,
    /// Changes that are listed; all are counted.
    pub changes_max: usize,
    /// Characters that are shown of each text.
    pub shown_characters_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            unpacked_bytes_max: 256 * 1024 * 1024,
            text_bytes_max: 32 * 1024 * 1024,
            pieces_max: 400_000,
            effort_max: 20_000_000,
            changes_max: 2_000,
            shown_characters_max: 2_000,
        }
    }
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Paragraphs of a text document.
    Document,
    /// Cells of a workbook.
    Workbook,
    /// Paragraphs on slides.
    Presentation,
    /// Lines.
    Text,
}

impl Subject {
    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Workbook => "workbook",
            Self::Presentation => "presentation",
            Self::Text => "text",
        }
    }
}

/// Why a comparison does not tell everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// A file is larger than what is read.
    Read,
    /// A part of a file cannot be read to its end.
    Damaged,
    /// The files differ too much for the shortest list; stretches count as replaced.
    Rough,
    /// More changes than are listed; the counts are right.
    Changes,
    /// A text is longer than what is shown.
    Shown,
}

impl Cut {
    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Damaged => "damaged",
            Self::Rough => "rough",
            Self::Changes => "changes",
            Self::Shown => "shown",
        }
    }
}

/// What happened to a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Only in the second file.
    Added,
    /// Only in the first file.
    Removed,
    /// Another text in the same place.
    Changed,
}

impl Kind {
    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}

/// Where a piece stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A paragraph of a document: the part (`body`, `header1`, `footnotes` …) and its number in it.
    Paragraph {
        /// The part.
        part: String,
        /// Counted from 1, empty ones included.
        number: u32,
    },
    /// A paragraph on a slide.
    Slide {
        /// The slide, counted from 1.
        slide: u32,
        /// The paragraph on it.
        number: u32,
    },
    /// A line of plain text.
    Line {
        /// Counted from 1.
        number: u32,
    },
    /// A cell.
    Cell {
        /// The sheet's name.
        sheet: String,
        /// Its address: `B7`.
        address: String,
    },
    /// A whole sheet.
    Sheet {
        /// Its name.
        sheet: String,
    },
}

/// What a piece says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its text; of a cell its value.
    pub text: String,
    /// The formula of a cell that has one.
    pub formula: Option<String>,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What happened.
    pub kind: Kind,
    /// Where: in the second file, or in the first for what was removed.
    pub place: Place,
    /// What it said.
    pub old: Option<Shown>,
    /// What it says.
    pub new: Option<Shown>,
}

/// How many there are of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Added pieces.
    pub added: u64,
    /// Removed pieces.
    pub removed: u64,
    /// Changed pieces.
    pub changed: u64,
}

/// The differences between two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// What was compared.
    pub subject: Subject,
    /// How many differences there are.
    pub counts: Counts,
    /// The differences, in the order of the files.
    pub changes: Vec<Change>,
    /// Why this is not everything; empty if it is.
    pub cut: Vec<Cut>,
}

/// Which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first.
    From,
    /// The second.
    To,
}

impl std::fmt::Display for Side {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::From => "first",
            Self::To => "second",
        })
    }
}

/// Why two files cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The file is no document, workbook, presentation or text that we can read.
    #[error("the {0} file has no text that can be read")]
    NoText(Side),
    /// A document and a workbook have nothing to compare.
    #[error("the first file is a {}, the second a {}", .0.as_str(), .1.as_str())]
    DifferentKinds(Subject, Subject),
}

/// Compares two files.
pub fn compare(
    from: impl Read + Seek,
    to: impl Read + Seek,
    limits: &Limits,
) -> Result<Comparison, CompareError> {
    let from = package::read(from, limits).ok_or(CompareError::NoText(Side::From))?;
    let to = package::read(to, limits).ok_or(CompareError::NoText(Side::To))?;
    if from.subject != to.subject {
        return Err(CompareError::DifferentKinds(from.subject, to.subject));
    }
    Ok(changes::between(&from, &to, limits))
}
