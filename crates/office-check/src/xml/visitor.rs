//! What somebody who listens to a document is told.
//!
//! Guarantees: what was told was well-formed up to there; whether the whole document is, only the end tells.
//! Not its business: comments and processing instructions, which mean nothing to Office.

use std::borrow::Cow;

use super::attributes::{Attribute, Name};
use super::namespaces::Namespaces;
use super::reference::resolved;

/// Listens to a document. What is left out costs nothing.
pub(crate) trait Visitor {
    /// An element begins. An empty one ends at once.
    #[inline(always)]
    fn start(&mut self, _element: &Element<'_>) {}

    /// The innermost element ends; its name is the qualified one.
    #[inline(always)]
    fn end(&mut self, _name: &[u8]) {}

    /// A piece of the text of the innermost element, with references resolved and CDATA sections included. Pieces end
    /// anywhere, but never within a character. Line ends are as they were written.
    #[inline(always)]
    fn text(&mut self, _text: &[u8]) {}
}

/// For those who only want to know whether a document is well-formed.
impl Visitor for () {}

/// An element that begins.
#[derive(Debug)]
pub(crate) struct Element<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) name: Name,
    pub(crate) attributes: &'a [Attribute],
    pub(crate) namespaces: &'a Namespaces,
    pub(crate) depth: usize,
}

impl<'a> Element<'a> {
    /// The name without its prefix.
    pub(crate) fn local_name(&self) -> &'a [u8] {
        self.name.local_in(self.data)
    }

    /// The namespace, if it is in one.
    pub(crate) fn namespace(&self) -> Option<&'a [u8]> {
        self.namespaces.uri(self.name.prefix_in(self.data))
    }

    /// How many elements are around it: the root has none.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether it has an attribute of this local name, in whatever namespace.
    pub(crate) fn has_attribute(&self, name: &[u8]) -> bool {
        self.attributes.iter().any(|attribute| attribute.name.local_in(self.data) == name)
    }

    /// The value of the attribute without prefix of this name, as the document means it.
    pub(crate) fn attribute(&self, name: &[u8]) -> Option<Cow<'a, str>> {
        self.value(|attribute| !attribute.name.has_prefix() && attribute.name.local_in(self.data) == name)
    }

    /// The value of the attribute of this local name in a namespace.
    pub(crate) fn attribute_in(&self, namespace: &[u8], name: &[u8]) -> Option<Cow<'a, str>> {
        self.value(|attribute| {
            attribute.name.has_prefix()
                && attribute.name.local_in(self.data) == name
                && self.namespaces.uri(attribute.name.prefix_in(self.data)) == Some(namespace)
        })
    }

    fn value(&self, is_wanted: impl Fn(&Attribute) -> bool) -> Option<Cow<'a, str>> {
        let attribute = self.attributes.iter().find(|attribute| is_wanted(attribute))?;
        Some(match resolved(attribute.value_in(self.data)) {
            // The value was checked when the tag was read, so neither loses anything.
            Cow::Borrowed(value) => String::from_utf8_lossy(value),
            Cow::Owned(value) => Cow::Owned(String::from_utf8_lossy(&value).into_owned()),
        })
    }
}
