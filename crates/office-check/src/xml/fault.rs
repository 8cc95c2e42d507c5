//! Why a document was not taken, under kinds that never change their meaning.
//!
//! Guarantees: the kind and the offset of a fault do not depend on how the document was cut into chunks.
//! Not its business: which kinds are damage and which only cost too much; [`XmlFaultKind::is_limit`] tells them apart.

use std::error::Error;
use std::fmt;

/// The first fault of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct XmlFault {
    /// What it is.
    pub(crate) kind: XmlFaultKind,
    /// Where it is: the byte in the UTF-8 form of the document, a byte order mark included. For a document that came
    /// in UTF-8 this is the byte of the input.
    pub(crate) offset: u64,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum XmlFaultKind {
    /// There is no element.
    Empty,
    /// Bytes that the encoding does not allow.
    NotUtf8,
    /// A character that XML does not allow.
    BadCharacter,
    /// The document ends between tags while elements are open.
    UnclosedTag,
    /// An end tag without its start tag.
    MismatchedTag,
    /// A second root element.
    TwoRoots,
    /// Text before or after the root element.
    TextOutsideRoot,
    /// A name is missing or has a character that names may not have.
    BadName,
    /// An attribute without space, value or quotes, with a `<` in its value, or in an end tag.
    BadAttribute,
    /// The same attribute twice, by its name or by its namespace and local name.
    DuplicateAttribute,
    /// An `&` that does not begin a reference, or a reference to a character that XML does not allow.
    BadReference,
    /// A reference to an entity that is none of the five of XML.
    UndefinedEntity,
    /// A prefix that no element around declares.
    UnboundPrefix,
    /// A declaration of a namespace that the standard forbids.
    BadNamespace,
    /// A `--` within a comment.
    BadComment,
    /// A `]]>` in text, or a CDATA section outside of the root element.
    BadCdata,
    /// A processing instruction without space after its target, or with the reserved target `xml` in capitals.
    BadInstruction,
    /// A `<!` that begins nothing we know.
    BadMarkup,
    /// The XML declaration does not follow its grammar.
    BadDeclaration,
    /// An XML declaration that is not at the very start.
    LateDeclaration,
    /// A document type declaration. Nothing of it is read.
    Doctype,
    /// The document ends within a tag, comment, section, instruction or character.
    Truncated,
    /// An encoding that we do not read, or another one than the bytes have.
    UnsupportedEncoding,
    /// More open elements than the limit.
    TooDeep,
    /// More attributes on one element than the limit.
    TooManyAttributes,
    /// A longer tag than the limit.
    TagTooLong,
    /// More namespace declarations in scope than the limit.
    TooManyNamespaces,
}

impl XmlFaultKind {
    /// Whether the document may be whole and only costs more than the limits allow.
    pub(crate) const fn is_limit(self) -> bool {
        matches!(self, Self::TooDeep | Self::TooManyAttributes | Self::TagTooLong | Self::TooManyNamespaces)
    }

    const fn as_sentence(self) -> &'static str {
        match self {
            Self::Empty => "the document has no element",
            Self::NotUtf8 => "the bytes do not fit the encoding",
            Self::BadCharacter => "a character is not allowed in XML",
            Self::UnclosedTag => "the document ends while elements are open",
            Self::MismatchedTag => "an end tag does not match the open element",
            Self::TwoRoots => "there is a second root element",
            Self::TextOutsideRoot => "there is text outside of the root element",
            Self::BadName => "a name is missing or malformed",
            Self::BadAttribute => "an attribute is malformed",
            Self::DuplicateAttribute => "an attribute is given twice",
            Self::BadReference => "a reference is malformed or names a forbidden character",
            Self::UndefinedEntity => "an entity is not defined",
            Self::UnboundPrefix => "a namespace prefix is not declared",
            Self::BadNamespace => "a namespace declaration is not allowed",
            Self::BadComment => "a comment contains two hyphens",
            Self::BadCdata => "a CDATA section begins or ends where none may",
            Self::BadInstruction => "a processing instruction is malformed",
            Self::BadMarkup => "a markup declaration is not known",
            Self::BadDeclaration => "the XML declaration is malformed",
            Self::LateDeclaration => "an XML declaration is not at the start",
            Self::Doctype => "there is a document type declaration",
            Self::Truncated => "the document is cut off",
            Self::UnsupportedEncoding => "the encoding is not supported or not the one declared",
            Self::TooDeep => "elements are nested deeper than the limit",
            Self::TooManyAttributes => "an element has more attributes than the limit",
            Self::TagTooLong => "a tag is longer than the limit",
            Self::TooManyNamespaces => "more namespaces are in scope than the limit",
        }
    }
}

impl fmt::Display for XmlFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (at byte {})", self.kind.as_sentence(), self.offset)
    }
}

impl Error for XmlFault {}

/// Why reading a token stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The token goes on in the next chunk.
    Wait,
    /// The token is wrong, at this index of the data at hand.
    Fault(XmlFaultKind, usize),
}
