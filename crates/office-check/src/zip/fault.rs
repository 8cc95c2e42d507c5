//! What can be wrong with an archive, each as one sentence for people.
//!
//! Guarantees: a kind is a plain value, so that a caller can choose its severity in one `match`.
//! Does not do: say how bad it is.

use std::{fmt, io};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ZipFault {
    pub(crate) kind: ZipFaultKind,
    /// The entry it is about. Bytes that are not UTF-8 are replaced.
    pub(crate) part: Option<String>,
    /// Where in the file, if there is such a place.
    pub(crate) offset: Option<u64>,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ZipFaultKind {
    /// There is no end record: no archive, or one whose end is missing.
    NoEndRecord,
    /// The directory is longer than the bytes that are there.
    TruncatedDirectory,
    /// The directory is not where it should be, or a record in it is none.
    BadDirectory,
    /// The end record and the directory disagree about the number of entries.
    EntryCountMismatch,
    /// There is no local header where the directory says.
    BadLocalHeader,
    /// The local header says something else than the directory.
    LocalHeaderDisagrees(HeaderField),
    /// Neither stored nor deflated.
    UnsupportedMethod,
    /// Encrypted by the ZIP layer, which Office does not use.
    Encrypted,
    /// The deflated bytes are none, or end too early.
    BadDeflate,
    /// An entry has more or fewer bytes than declared.
    SizeMismatch,
    /// An entry has other bytes than those that were written.
    CrcMismatch,
    /// The sizes behind an entry are missing or differ from the directory.
    BadDescriptor,
    /// The file ends too early.
    Truncated,
    /// Two entries share bytes.
    OverlappingEntries,
    /// Two entries have the same name: which one is meant depends on who reads.
    DuplicateName,
    /// Two entries have names that differ only in case or slashes. Office takes them for one; others do not.
    SimilarName,
    /// A name that leads out of a folder it would be unpacked to, or a symbolic link.
    UnsafeName,
    /// Bytes behind the end of the archive.
    TrailingBytes,
    /// Bytes before the first entry.
    PrependedBytes,
    /// More entries than the limit.
    TooManyEntries,
    /// A name longer than the limit.
    NameTooLong,
    /// More inflated bytes than the limit.
    InflatesTooFar,
    /// An entry inflates to a larger multiple than the limit.
    RatioTooHigh,
    /// One of several files that are an archive together.
    MultiDisk,
    /// The reader failed.
    Unreadable(io::ErrorKind),
}

/// What a local header can disagree about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum HeaderField {
    Method,
    Flags,
    Name,
    Sizes,
    Checksum,
}

impl ZipFault {
    pub(super) const fn whole(kind: ZipFaultKind) -> Self {
        Self { kind, part: None, offset: None }
    }

    pub(super) const fn at(kind: ZipFaultKind, offset: u64) -> Self {
        Self { kind, part: None, offset: Some(offset) }
    }

    pub(super) fn unreadable(cause: &io::Error) -> Self {
        Self::whole(ZipFaultKind::Unreadable(cause.kind()))
    }
}

impl fmt::Display for ZipFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            Some(part) => write!(out, "entry \"{}\": {}", part.escape_debug(), self.kind)?,
            None => write!(out, "{}", self.kind)?,
        }
        match self.offset {
            Some(offset) => write!(out, " (at byte {offset})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ZipFaultKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NoEndRecord => "the archive's end is missing",
            Self::TruncatedDirectory => "the archive's directory is cut off",
            Self::BadDirectory => "the archive's directory is damaged",
            Self::EntryCountMismatch => "the archive has another number of entries than it says",
            Self::BadLocalHeader => "its header is not where the directory says",
            Self::LocalHeaderDisagrees(field) => {
                return write!(out, "its header and the directory disagree about {field}");
            }
            Self::UnsupportedMethod => "it is compressed in a way that Office does not know",
            Self::Encrypted => "it is encrypted in a way that Office does not know",
            Self::BadDeflate => "its compressed bytes are damaged",
            Self::SizeMismatch => "it has another size than it says",
            Self::CrcMismatch => "its checksum does not match its bytes",
            Self::BadDescriptor => "the sizes and checksum behind it are missing or wrong",
            Self::Truncated => "the file ends too early",
            Self::OverlappingEntries => "it shares bytes with another entry",
            Self::DuplicateName => "its name occurs more than once",
            Self::SimilarName => "its name differs from another only in case or slashes",
            Self::UnsafeName => "its name or type could lead outside of the archive when unpacked",
            Self::TrailingBytes => "there are bytes behind the archive's end",
            Self::PrependedBytes => "there are bytes before the archive's first entry",
            Self::TooManyEntries => "the archive has more entries than the limit",
            Self::NameTooLong => "the archive has a name longer than the limit",
            Self::InflatesTooFar => "the archive inflates to more bytes than the limit",
            Self::RatioTooHigh => "it inflates to a larger multiple of its size than the limit",
            Self::MultiDisk => "the archive is only one part of several",
            Self::Unreadable(cause) => return write!(out, "the file could not be read: {cause}"),
        })
    }
}

impl fmt::Display for HeaderField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Method => "how it is compressed",
            Self::Flags => "whether it is encrypted",
            Self::Name => "its name",
            Self::Sizes => "its size",
            Self::Checksum => "its checksum",
        })
    }
}
