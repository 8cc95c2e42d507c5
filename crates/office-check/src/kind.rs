//! What the bytes are, from their content, and what a name promises.

use std::fmt;

/// Enough to tell every container apart.
pub(crate) const START_BYTES: usize = 4096;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $word:literal, $family:ident;)+) => {
        /// What the bytes are.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)+];

            /// The word for machines: the usual extension, where there is one.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)+
                }
            }

            /// What people call it.
            pub const fn family(self) -> Family {
                match self {
                    $(Self::$kind => Family::$family,)+
                }
            }
        }
    };
}

kinds! {
    /// A Word document.
    Docx = "docx", Writing;
    /// A Word document with macros.
    Docm = "docm", Writing;
    /// A Word template.
    Dotx = "dotx", Writing;
    /// A Word template with macros.
    Dotm = "dotm", Writing;
    /// A workbook.
    Xlsx = "xlsx", Sheets;
    /// A workbook with macros.
    Xlsm = "xlsm", Sheets;
    /// A workbook template.
    Xltx = "xltx", Sheets;
    /// A workbook template with macros.
    Xltm = "xltm", Sheets;
    /// A workbook in binary parts.
    Xlsb = "xlsb", Sheets;
    /// An add-in for workbooks.
    Xlam = "xlam", Sheets;
    /// A presentation.
    Pptx = "pptx", Slides;
    /// A presentation with macros.
    Pptm = "pptm", Slides;
    /// A presentation template.
    Potx = "potx", Slides;
    /// A presentation template with macros.
    Potm = "potm", Slides;
    /// A presentation that begins by itself.
    Ppsx = "ppsx", Slides;
    /// The same with macros.
    Ppsm = "ppsm", Slides;
    /// An add-in for presentations.
    Ppam = "ppam", Slides;
    /// A drawing.
    Vsdx = "vsdx", Drawing;
    /// An OpenDocument text, or a template of one.
    Odt = "odt", Writing;
    /// An OpenDocument spreadsheet.
    Ods = "ods", Sheets;
    /// An OpenDocument presentation.
    Odp = "odp", Slides;
    /// An OpenDocument drawing.
    Odg = "odg", Drawing;
    /// An OpenDocument text in one XML file.
    Fodt = "fodt", Writing;
    /// An OpenDocument spreadsheet in one XML file.
    Fods = "fods", Sheets;
    /// An OpenDocument presentation in one XML file.
    Fodp = "fodp", Slides;
    /// Some other OpenDocument package.
    Odf = "odf", Other;
    /// Some other Office package.
    Opc = "opc", Other;
    /// An Office package that is encrypted as a whole.
    Encrypted = "encrypted", Any;
    /// A Word document of the older form.
    Doc = "doc", Writing;
    /// A workbook of the older form.
    Xls = "xls", Sheets;
    /// A presentation of the older form.
    Ppt = "ppt", Slides;
    /// Some other compound file.
    Ole = "ole", Any;
    /// PDF.
    Pdf = "pdf", Pages;
    /// Rich text.
    Rtf = "rtf", Writing;
    /// A book.
    Epub = "epub", Pages;
    /// A page of HTML, often somebody's error page.
    Html = "html", Text;
    /// XML of a kind we do not know.
    Xml = "xml", Text;
    /// A table in plain text.
    Csv = "csv", Text;
    /// Plain text.
    Txt = "txt", Text;
    /// A ZIP archive that is no document.
    Zip = "zip", Other;
    /// None of these.
    Unknown = "unknown", Other;
}

/// What a kind of file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Texts.
    Writing,
    /// Workbooks.
    Sheets,
    /// Presentations.
    Slides,
    /// Drawings.
    Drawing,
    /// Pages that are read.
    Pages,
    /// Plain text of any kind.
    Text,
    /// A container that does not show what is in it.
    Any,
    /// No document.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What the first bytes are; what is inside a container is for others to say.
pub(crate) fn from_start(start: &[u8]) -> Kind {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let lower = text.get(..text.len().min(64)).unwrap_or_default().to_ascii_lowercase();
    if [&b"PK\x03\x04"[..], b"PK\x05\x06", b"PK\x07\x08"].iter().any(|magic| start.starts_with(magic)) {
        Kind::Zip
    } else if start.starts_with(&crate::cfb::SIGNATURE) {
        Kind::Ole
    } else if start.get(..start.len().min(1024)).is_some_and(|start| contains(start, b"%PDF-")) {
        Kind::Pdf
    } else if text.starts_with(b"{\\rtf") {
        Kind::Rtf
    } else if lower.starts_with(b"<!doctype html") || lower.starts_with(b"<html") {
        Kind::Html
    } else if lower.starts_with(b"<?xml")
        || start.starts_with(b"\xff\xfe<\0")
        || start.starts_with(b"\xfe\xff\0<")
    {
        from_xml(text)
    } else if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) || !start.contains(&0) {
        if is_table(text) { Kind::Csv } else { Kind::Txt }
    } else {
        Kind::Unknown
    }
}

/// A flat OpenDocument names its type in its root element, which is long but comes first.
fn from_xml(text: &[u8]) -> Kind {
    let of_type = |suffix: &str| contains(text, format!("opendocument.{suffix}").as_bytes());
    if contains(text, b"<office:document") && of_type("text") {
        Kind::Fodt
    } else if contains(text, b"<office:document") && of_type("spreadsheet") {
        Kind::Fods
    } else if contains(text, b"<office:document") && of_type("presentation") {
        Kind::Fodp
    } else if contains(&text.to_ascii_lowercase(), b"<html") {
        Kind::Html
    } else {
        Kind::Xml
    }
}

/// Whether the first lines have the same separators, and some.
fn is_table(text: &[u8]) -> bool {
    let lines: Vec<&[u8]> =
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(4).collect();
    let count = |line: &[u8], separator: u8| line.iter().filter(|byte| **byte == separator).count();
    b",;\t|".iter().any(|separator| {
        let first = lines.first().map_or(0, |line| count(line, *separator));
        // The last of these lines may be cut by the end of what we look at.
        first > 0
            && lines.len() > 2
            && lines[..lines.len() - 1].iter().all(|line| count(line, *separator) == first)
    })
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// The type a file is said to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// An Office package of today.
    Package(Family),
    /// A file of older Office, which opens almost anything under such a name.
    Legacy(Family),
    /// PDF.
    Pdf,
    /// Rich text.
    Rtf,
    /// A book.
    Epub,
    /// Any text.
    Text,
    /// Nothing is known.
    Anything,
}

impl Hint {
    /// What an extension promises.
    pub fn from_extension(extension: &str) -> Self {
        match extension.trim_start_matches('.').to_ascii_lowercase().as_str() {
            "docx" | "docm" | "dotx" | "dotm" | "odt" | "ott" | "docxf" | "oform" => {
                Self::Package(Family::Writing)
            }
            "xlsx" | "xlsm" | "xltx" | "xltm" | "xlsb" | "xlam" | "ods" | "ots" => {
                Self::Package(Family::Sheets)
            }
            "pptx" | "pptm" | "potx" | "potm" | "ppsx" | "ppsm" | "ppam" | "odp" | "otp" => {
                Self::Package(Family::Slides)
            }
            "vsdx" | "vsdm" | "vssx" | "vstx" | "odg" => Self::Package(Family::Drawing),
            "doc" | "dot" => Self::Legacy(Family::Writing),
            "xls" | "xlt" => Self::Legacy(Family::Sheets),
            "ppt" | "pps" | "pot" => Self::Legacy(Family::Slides),
            "pdf" => Self::Pdf,
            "rtf" => Self::Rtf,
            "epub" => Self::Epub,
            "txt" | "csv" | "xml" | "html" | "htm" | "mht" | "md" | "fodt" | "fods" | "fodp" => Self::Text,
            _ => Self::Anything,
        }
    }

    pub(crate) fn may_be_empty(self) -> bool {
        self == Self::Text
    }

    pub(crate) fn fits(self, kind: Kind) -> Fit {
        let family = kind.family();
        match self {
            Self::Anything if kind == Kind::Unknown => Fit::Wrong,
            Self::Anything | Self::Text => Fit::Good,
            // What older Office wrote is whole, and not what the name says.
            Self::Package(_) if matches!(kind, Kind::Doc | Kind::Xls | Kind::Ppt) => Fit::Odd,
            Self::Package(wanted) | Self::Legacy(wanted) if family == wanted => Fit::Good,
            Self::Package(_) if kind == Kind::Encrypted => Fit::Good,
            // An error page or a listing under the name of a document is none.
            Self::Package(_) | Self::Pdf | Self::Rtf | Self::Epub if family == Family::Text => Fit::Wrong,
            Self::Package(_) | Self::Pdf | Self::Rtf | Self::Epub
                if matches!(kind, Kind::Unknown | Kind::Zip) =>
            {
                Fit::Wrong
            }
            Self::Legacy(_) if matches!(kind, Kind::Html | Kind::Zip) => Fit::Odd,
            Self::Legacy(_) if matches!(family, Family::Text | Family::Any | Family::Other) => Fit::Good,
            Self::Pdf if kind == Kind::Pdf => Fit::Good,
            Self::Rtf if kind == Kind::Rtf => Fit::Good,
            Self::Epub if kind == Kind::Epub => Fit::Good,
            _ => Fit::Odd,
        }
    }
}

/// How well bytes fit a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    Good,
    /// A document of another kind.
    Odd,
    /// No document.
    Wrong,
}

impl fmt::Display for Hint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Package(_) => "an Office package",
            Self::Legacy(_) => "a file of older Office",
            Self::Pdf => "a PDF",
            Self::Rtf => "rich text",
            Self::Epub => "a book",
            Self::Text => "a text",
            Self::Anything => "a file",
        })
    }
}
