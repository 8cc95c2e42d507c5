//! What the bytes are, from their content and never from a name.

use std::fmt;

/// Enough to tell every container apart.
pub(crate) const START_BYTES: usize = 512;

/// What the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A Word document in an OPC package.
    Docx,
    /// A workbook in an OPC package.
    Xlsx,
    /// A presentation in an OPC package.
    Pptx,
    /// An OpenDocument package.
    Odf,
    /// Some other ZIP container.
    Zip,
    /// An OLE container: a legacy Office file, or an encrypted new one.
    Ole,
    /// PDF.
    Pdf,
    /// Rich text.
    Rtf,
    /// A page of HTML, often somebody's error page.
    Html,
    /// Plain text: CSV, TXT, XML.
    Text,
    /// None of these.
    Unknown,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Docx => "docx",
            Self::Xlsx => "xlsx",
            Self::Pptx => "pptx",
            Self::Odf => "odf",
            Self::Zip => "zip",
            Self::Ole => "ole",
            Self::Pdf => "pdf",
            Self::Rtf => "rtf",
            Self::Html => "html",
            Self::Text => "text",
            Self::Unknown => "unknown",
        })
    }
}

pub(crate) fn from_start(start: &[u8]) -> Kind {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let lower = text.to_ascii_lowercase();
    if start.starts_with(b"PK\x03\x04")
        || start.starts_with(b"PK\x05\x06")
        || start.starts_with(b"PK\x07\x08")
    {
        Kind::Zip
    } else if start.starts_with(&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]) {
        Kind::Ole
    } else if start.starts_with(b"%PDF-") {
        Kind::Pdf
    } else if start.starts_with(b"{\\rtf") {
        Kind::Rtf
    } else if lower.starts_with(b"<!doctype html") || lower.starts_with(b"<html") {
        Kind::Html
    } else if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) || !start.contains(&0) {
        Kind::Text
    } else {
        Kind::Unknown
    }
}

/// The type a file is said to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// An Office package or its legacy or encrypted form.
    Office,
    /// PDF.
    Pdf,
    /// Any text.
    Text,
    /// Nothing is known.
    Anything,
}

impl Hint {
    /// What an extension promises.
    pub fn from_extension(extension: &str) -> Self {
        match extension.trim_start_matches('.').to_ascii_lowercase().as_str() {
            "docx" | "docm" | "dotx" | "dotm" | "xlsx" | "xlsm" | "xltx" | "xltm" | "xlsb" | "pptx"
            | "pptm" | "potx" | "potm" | "ppsx" | "ppsm" | "odt" | "ods" | "odp" | "ott" | "ots" | "otp"
            | "doc" | "xls" | "ppt" | "dot" | "xlt" | "pps" | "pot" | "docxf" | "oform" | "vsdx" | "epub" => {
                Self::Office
            }
            "pdf" => Self::Pdf,
            "txt" | "csv" | "xml" | "html" | "htm" | "mht" | "md" | "fodt" | "fods" | "fodp" => Self::Text,
            _ => Self::Anything,
        }
    }

    pub(crate) fn may_be_empty(self) -> bool {
        self == Self::Text
    }

    pub(crate) fn allows(self, kind: Kind) -> bool {
        match self {
            // The server falls back to other formats (a .doc may come back as RTF or docx), but never to a web page.
            Self::Office => !matches!(kind, Kind::Html | Kind::Text | Kind::Unknown),
            Self::Pdf => matches!(kind, Kind::Pdf | Kind::Docx | Kind::Zip | Kind::Ole),
            Self::Text | Self::Anything => true,
        }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Office => "an Office file",
            Self::Pdf => "a PDF",
            Self::Text => "a text",
            Self::Anything => "a file",
        })
    }
}
