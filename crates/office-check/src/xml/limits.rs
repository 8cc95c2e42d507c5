//! How much one XML part may cost, each bound with its reason.
//!
//! Guarantees: every buffer of the checker is bounded by one of these.
//! Not its business: what a caller makes of a part that is beyond them; such faults have kinds of their own.

/// How much one document may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct XmlLimits {
    /// Open elements. Office nests below a hundred and libxml2 gives up at 256 (2,048 if asked); a level costs 24
    /// bytes and its name, so there is no reason to be as strict.
    pub(crate) depth_max: usize,
    /// Bytes of the names of all open elements: 26 for each level of the deepest document.
    pub(crate) open_names_bytes_max: usize,
    /// Attributes of one element. The richest root elements that Office writes have about 40.
    pub(crate) attributes_max: usize,
    /// One tag, with its attributes. VML keeps base64 of some hundred kilobytes in `o:gfxdata`.
    pub(crate) tag_bytes_max: usize,
    /// Namespace declarations in scope. Generators that declare anew on every level need a hundred or two.
    pub(crate) namespaces_max: usize,
    /// Bytes of the prefixes and names of all namespaces in scope: about 260 for each.
    pub(crate) namespaces_bytes_max: usize,
}

impl Default for XmlLimits {
    fn default() -> Self {
        Self {
            depth_max: 10_000,
            open_names_bytes_max: 256 * 1024,
            attributes_max: 1_000,
            tag_bytes_max: 1024 * 1024,
            namespaces_max: 1_000,
            namespaces_bytes_max: 256 * 1024,
        }
    }
}
