//! What can be found, under codes that never change their meaning.

use crate::Verdict;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Worth telling; the file is taken.
    Notice,
    /// The file is damaged.
    Fatal,
}

impl Severity {
    /// The verdict a finding of this severity leads to.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Notice => Verdict::Flag,
            Self::Fatal => Verdict::Refuse,
        }
    }
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The file has no bytes, and its type cannot be empty.
    Empty,
    /// A text file without bytes.
    EmptyText,
    /// The bytes are not of the type the file is said to have.
    WrongContainer,
    /// The container's directory cannot be read: cut off or overwritten.
    BrokenContainer,
    /// An entry cannot be inflated or its checksum does not match.
    BrokenEntry,
    /// The file needs more work than the limits allow, so it was not checked to the end.
    OverLimit,
    /// The reader failed.
    Unreadable,
}

impl Code {
    /// The word for machines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::EmptyText => "empty-text",
            Self::WrongContainer => "wrong-container",
            Self::BrokenContainer => "broken-container",
            Self::BrokenEntry => "broken-entry",
            Self::OverLimit => "over-limit",
            Self::Unreadable => "unreadable",
        }
    }

    /// How bad it is.
    pub const fn severity(self) -> Severity {
        match self {
            Self::EmptyText | Self::OverLimit => Severity::Notice,
            _ => Severity::Fatal,
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// The entry of the container it is about.
    pub part: Option<String>,
    /// Where in the file, if known.
    pub offset: Option<u64>,
    /// One sentence for people.
    pub message: String,
}

impl Finding {
    pub(crate) fn whole(code: Code, message: String) -> Self {
        Self { code, part: None, offset: None, message }
    }

    pub(crate) fn of_part(code: Code, part: String, message: String) -> Self {
        Self { code, part: Some(part), offset: None, message }
    }
}
