//! What can be found, under codes that never change their meaning.

use crate::Verdict;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Worth knowing; nothing follows from it.
    Note,
    /// Worth telling; the file is taken.
    Notice,
    /// The file is damaged.
    Fatal,
}

impl Severity {
    /// The verdict a finding of this severity leads to.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Note => Verdict::Accept,
            Self::Notice => Verdict::Flag,
            Self::Fatal => Verdict::Refuse,
        }
    }

    /// The word for machines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Notice => "notice",
            Self::Fatal => "fatal",
        }
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $code:ident = $word:literal, $severity:ident;)+) => {
        /// What was found.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $code,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$code,)+];

            /// The word for machines.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $word,)+
                }
            }

            /// How bad it is.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$code => Severity::$severity,)+
                }
            }

            /// What it means, in a sentence or two.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$code => concat!($($doc),+),)+
                }
            }
        }
    };
}

codes! {
    /// The file has no bytes, and its type cannot be empty.
    Empty = "empty", Fatal;
    /// A text file without bytes.
    EmptyText = "empty-text", Notice;
    /// The reader failed.
    Unreadable = "unreadable", Fatal;
    /// The bytes are no document: an error page, a listing, rubbish, or another archive.
    WrongContainer = "wrong-container", Fatal;
    /// A whole document of another kind than its name says.
    OtherKind = "other-kind", Notice;
    /// A container of Office with nothing in it that we know.
    UnknownContent = "unknown-content", Notice;
    /// The compound file of older Office is cut off or damaged.
    BrokenContainer = "broken-container", Fatal;
    /// The archive's end or directory is missing, cut off or damaged.
    ZipDirectory = "zip-directory", Fatal;
    /// An entry's own header is missing or contradicts the directory.
    ZipHeader = "zip-header", Fatal;
    /// An entry's bytes are damaged: they do not inflate, have another size, or another checksum.
    ZipData = "zip-data", Fatal;
    /// An entry is compressed or encrypted in a way that Office does not know.
    ZipMethod = "zip-method", Fatal;
    /// Two entries share bytes.
    ZipOverlap = "zip-overlap", Fatal;
    /// A part that decides what the document is occurs twice: readers would disagree about it.
    AmbiguousPart = "ambiguous-part", Fatal;
    /// Some other part occurs twice, or twice but for case.
    DuplicateName = "duplicate-name", Note;
    /// The name of an entry leads out of the folder it would be unpacked to, or the entry is a link.
    UnsafeName = "unsafe-name", Notice;
    /// Bytes behind the archive.
    TrailingBytes = "trailing-bytes", Note;
    /// Bytes before the archive: another one, or an entry that was taken out.
    PrependedBytes = "prepended-bytes", Notice;
    /// The file needs more work than the limits allow, so it was not checked to the end.
    OverLimit = "over-limit", Notice;
    /// A part inflates to far more than parts usually do.
    HighRatio = "high-ratio", Notice;
    /// The archive is no Office package: it does not say what its parts are.
    NotAPackage = "not-a-package", Fatal;
    /// The package does not have the part that is the document.
    NoMainPart = "no-main-part", Fatal;
    /// The package says that the document itself is somewhere else.
    ExternalMainPart = "external-main-part", Fatal;
    /// A part without which the document cannot be opened is not well-formed.
    BadRequiredPart = "bad-required-part", Fatal;
    /// A part has a document type, which no Office program writes and entity attacks need.
    DocumentType = "document-type", Fatal;
    /// A part is nested deeper or has more attributes than any program writes: an attack on readers.
    HostileMarkup = "hostile-markup", Fatal;
    /// A part that the document can be opened without is not well-formed. Programs open such documents, so that is all.
    BadPart = "bad-part", Note;
    /// A part that Office itself writes carelessly is not well-formed.
    CarelessPart = "careless-part", Note;
    /// The sheet says that rows or cells repeat so often that readers without a bound run out of memory.
    HugeRepetition = "huge-repetition", Notice;
    /// The package is of a beta of Office and older than the standard.
    PreStandard = "pre-standard", Notice;
    /// The groups of a rich text are not closed. Programs close them.
    Unbalanced = "unbalanced", Note;
    /// The document is whole and holds nothing: no text, no cells, no pictures. People empty documents on purpose.
    NoContent = "no-content", Note;
    /// The file has no end mark: it may be cut off.
    CutOff = "cut-off", Notice;
}

/// What is longer was no name of a part. Linux allows so much for a path.
const PART_BYTES_MAX: usize = 4096;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// The entry of the container it is about; what names none may be cut.
    pub part: Option<String>,
    /// Where in the file, or in the part if one is named, if known.
    pub offset: Option<u64>,
    /// One sentence for people.
    pub message: String,
}

impl Finding {
    pub(crate) fn whole(code: Code, message: impl Into<String>) -> Self {
        Self { code, part: None, offset: None, message: message.into() }
    }

    pub(crate) fn of_part(code: Code, part: impl Into<String>, message: impl Into<String>) -> Self {
        let mut part = part.into();
        part.truncate(part.floor_char_boundary(PART_BYTES_MAX));
        Self { code, part: Some(part), offset: None, message: message.into() }
    }
}
