//! Templates: what a workbook holds, in a file that anybody can write.
//!
//! A file is one version of a template and never changes. [`Template::parse`] reads it, checks every reference and type in it, and
//! either gives a template that can be used without further questions or all its mistakes at once.
//!
//! Guarantees: a [`Template`] is consistent: every name in a rule is a column, every expression has the right type, every table has
//! a key and (if it has outcomes) a last one that always holds. The fields are for reading.
//! Does not do: storing templates or deciding which one is in use.

mod catalogue;
mod check;
mod columns;
mod meta;
mod parse;
mod tables;
mod telling;
mod walk;

use std::collections::BTreeMap;
use std::fmt;

use model::submissions::{Policy, Severity};
use regex_lite::Regex;

use crate::expressions::Expression;
use crate::{DayBound, Decimal};

pub use catalogue::code;
pub use telling::Place;
pub(crate) use telling::cut;

/// The template of waste records that we ship: for the demonstration, as an example, and for tests.
pub const WASTE_RECORDS: &str = include_str!("../../templates/waste-records.toml");

/// Something wrong in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where, by names: `table.LOADS_IN.column.NET_T.scale`.
    pub place: String,
    /// The line in the file.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(out, "line {line}: {} {}", self.place, self.what),
            None => write!(out, "{} {}", self.place, self.what),
        }
    }
}

/// A version: numbers with points between them, compared number by number (2.10 is newer than 2.9).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(Vec<u32>);

impl Version {
    /// Reads `2.1`.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
        numbers.filter(|numbers| numbers.len() <= 4).map(Self)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        out.write_str(&numbers.join("."))
    }
}

/// One version of a template.
#[derive(Debug, Clone)]
pub struct Template {
    /// What it is called by machines.
    pub id: String,
    /// What it is called by people.
    pub title: String,
    /// Which version this file is.
    pub version: Version,
    /// The versions of workbooks that are still accepted.
    pub accepts: Vec<Version>,
    /// What every marker cell begins with: `__SG`.
    pub marker_prefix: String,
    /// How many logs of a scope may be previewed side by side.
    pub policy: Policy,
    /// Bounds for reading.
    pub limits: Limits,
    /// Everything that can be found wrong, by its code.
    pub issues: BTreeMap<String, Issue>,
    /// How a preview is shown.
    pub preview: PreviewRules,
    /// Lists of choices.
    pub lists: BTreeMap<String, Vec<String>>,
    /// Single values.
    pub meta: Vec<Meta>,
    /// Tables.
    pub tables: Vec<Table>,
}

/// Bounds for reading one workbook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of everything in it, unpacked.
    pub inflated_bytes: u64,
    /// How much larger than the file its contents may be, once they are beyond 16 MiB.
    pub inflate_ratio: u64,
    /// Bytes of its texts that occur in cells.
    pub shared_string_bytes: u64,
    /// Sheets.
    pub sheets: u64,
    /// Rows of one table that are in use.
    pub rows_per_table: u64,
    /// Columns of one table.
    pub columns: u64,
    /// Characters of one cell.
    pub cell_chars: u64,
    /// Problems that are kept; all are counted.
    pub problems: u64,
    /// Characters of an offending value that are kept.
    pub value_chars: u64,
}

/// How a preview is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewRules {
    /// Rows that are listed.
    pub list_max: u64,
    /// From which share of changed rows on `ROWS_SEEM_SHIFTED` is considered.
    pub shifted_share: Decimal,
}

/// An entry of the catalogue of problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// How bad it is.
    pub severity: Severity,
    /// The sentence, with `{header}`, `{value}`, `{cell}`, `{row_id}` and `{detail}` to be filled in.
    pub text: String,
}

/// A single value, found beside its marker.
#[derive(Debug, Clone)]
pub struct Meta {
    /// Its name; the marker is `PREFIX_META_NAME`.
    pub name: String,
    /// What people call it.
    pub label: String,
    /// What it must be.
    pub kind: MetaKind,
    /// Whether it is put into upper case before it is compared.
    pub is_upper: bool,
    /// Whether it must be there.
    pub is_required: bool,
    /// When it must be there, otherwise.
    pub required_when: Option<Expression>,
    /// When it must not be there.
    pub forbidden_when: Option<Expression>,
    /// What it must be equal to.
    pub equals: Option<Expression>,
    /// Whether it must be an accepted version of the template.
    pub is_accepted_version: bool,
    /// Whether it is about a person.
    pub is_personal: bool,
    /// The codes of its problems: missing, malformed, mismatch, forbidden.
    pub codes: [String; 4],
}

/// What a single value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaKind {
    /// Any text.
    Text,
    /// A version.
    Version,
    /// A day.
    Date,
    /// A whole number.
    Integer,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name; the marker is `PREFIX_TABLE_NAME`.
    pub name: String,
    /// What people call it.
    pub label: String,
    /// The kind of its records; with the key it is a record's identity.
    pub kind: String,
    /// The sheet it is written to, and the one that messages name when it is missing.
    pub sheet: String,
    /// Whether it must be there.
    pub presence: Presence,
    /// What happens to columns the template does not know.
    pub unknown_columns: UnknownColumns,
    /// What happens if a column is not there.
    pub missing_columns: MissingColumns,
    /// Rows that are no data.
    pub skip_rows: Vec<SkipRow>,
    /// A row in which all of these are blank is not in use. By index into `columns`; empty: only rows that are blank as a whole.
    pub unused_when_blank: Vec<usize>,
    /// What it means that a row of the last submission is not there.
    pub removed: Removed,
    /// What happens to rows with the same key.
    pub duplicates: Duplicates,
    /// The columns that are a row's identity, by index.
    pub key: Vec<usize>,
    /// The columns, in the order of the file.
    pub columns: Vec<Column>,
    /// Rules between columns.
    pub rules: Vec<Rule>,
    /// How a row counts; the first that holds decides. Empty: every row is included.
    pub outcomes: Vec<Outcome>,
    /// What an included row adds.
    pub measure: Option<Measure>,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$each])* $variant),+ }

        impl $name {
            /// Each with its word.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$variant, $word)),+];

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

words!(
    /// Whether a table must be there.
    Presence {
        /// It must.
        Required = "required",
        /// It need not.
        Optional = "optional",
    }
);
words!(
    /// What happens to columns the template does not know.
    UnknownColumns {
        /// Their values are kept as they stand there.
        Keep = "keep",
        /// They are not looked at.
        Ignore = "ignore",
        /// They are a problem.
        Refuse = "refuse",
    }
);
words!(
    /// What happens if a column is not there.
    MissingColumns {
        /// The workbook cannot be used.
        Fatal = "fatal",
        /// All its values are blank.
        Blank = "blank",
    }
);
words!(
    /// What it means that a row of the last submission is not there.
    Removed {
        /// The workbook cannot be submitted.
        Fatal = "fatal",
        /// The record ends with this submission.
        Tombstone = "tombstone",
        /// The record stays as it is.
        Ignore = "ignore",
    }
);
words!(
    /// What happens to rows with the same key.
    Duplicates {
        /// All of them are a problem.
        Fatal = "fatal",
        /// Rows that are equal in everything count once, with a warning; others are a problem.
        IdenticalOnce = "identical-once",
    }
);
words!(
    /// How a row counts.
    Outcomes {
        /// It counts.
        Included = "included",
        /// It is kept and does not count.
        Excluded = "excluded",
        /// It is kept and does not concern this scope.
        Ignored = "ignored",
    }
);

/// Rows that are no data: headings and examples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkipRow {
    /// The column that tells, by index; `None`: a column that is marked as `PREFIX_SKIP`.
    pub column: Option<usize>,
    /// What stands there.
    pub text: String,
    /// Whether it is enough that the value begins with the text.
    pub is_prefix: bool,
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name: in records, in rules and in the header row.
    pub name: String,
    /// What people call it; also understood as its header.
    pub label: String,
    /// What may stand in it.
    pub kind: ColumnKind,
    /// Whether it must be filled.
    pub is_required: bool,
    /// Groups of columns that are needed for something: `any_blank(needed_for('counting'))`.
    pub needed_for: Vec<String>,
    /// Texts that mean the same as an empty cell, such as `Choose option`.
    pub blanks: Vec<String>,
    /// Whether several spaces become one.
    pub collapses_spaces: bool,
    /// Whether a text becomes upper case.
    pub is_upper: bool,
    /// Whether a number in a column of texts is taken as a text.
    pub takes_numbers: bool,
    /// Whether it is normally computed; a rule compares it.
    pub is_derived: bool,
    /// Whether it is about a person.
    pub is_personal: bool,
    /// What stands in the example row of a workbook.
    pub example: Option<String>,
}

/// What may stand in a column.
#[derive(Debug, Clone)]
pub enum ColumnKind {
    /// A decimal number.
    Decimal {
        /// Digits behind the point; more are rounded, a half away from zero.
        scale: u8,
        /// The least.
        min: Option<Decimal>,
        /// The most.
        max: Option<Decimal>,
    },
    /// A whole number.
    Integer {
        /// The least.
        min: Option<Decimal>,
        /// The most.
        max: Option<Decimal>,
    },
    /// A day.
    Date {
        /// The first.
        min: Option<DayBound>,
        /// The last.
        max: Option<DayBound>,
        /// Whether cells formatted as a date are taken.
        from_cell: bool,
        /// Whether texts `2026-01-31` are taken.
        from_text: bool,
    },
    /// A text.
    Text {
        /// Characters at most.
        chars_max: Option<u64>,
    },
    /// One of a list.
    Choice {
        /// The name of the list in [`Template::lists`].
        list: String,
        /// The list.
        values: Vec<String>,
    },
    /// `Yes` or `No`.
    YesNo,
    /// A text that follows a pattern as a whole.
    Pattern {
        /// The pattern.
        regex: Box<Regex>,
        /// The pattern as it is written.
        text: String,
    },
}

/// A rule between the columns of a row. It is skipped while a value it needs is blank or wrong.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name.
    pub id: String,
    /// What must hold.
    pub expect: Expression,
    /// How far two numbers may be apart that must be equal.
    pub tolerance: Decimal,
    /// The column that is at fault, by index.
    pub blame: usize,
    /// The code of the problem.
    pub code: String,
}

/// How a row counts if something holds.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What must hold.
    pub when: Expression,
    /// How the row counts then.
    pub outcome: Outcomes,
    /// Why.
    pub reason: Option<String>,
    /// The problem that tells so, if it is one.
    pub code: Option<String>,
    /// The column it is shown at, by index. None: at the blank ones it is about, or at the key.
    pub blame: Option<usize>,
}

/// What a row adds.
#[derive(Debug, Clone)]
pub struct Measure {
    /// What it is called: `tonnes`.
    pub name: String,
    /// How it is computed.
    pub value: Expression,
    /// Digits behind the point; each row is rounded, then they are added.
    pub scale: u8,
}

impl Template {
    /// Reads a template. All its mistakes are named at once.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        parse::parse(text)
    }

    /// The table with this kind of records.
    pub fn table_of_kind(&self, kind: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.kind == kind)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
