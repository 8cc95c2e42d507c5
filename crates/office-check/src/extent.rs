//! How much a document holds, counted while its parts are checked.
//!
//! Two counts of one document, made at different times, show whether much of it vanished. Parts are told apart by their root
//! element, never by their name. Guarantees: costs one look at each element and no memory. Does not do: read what the
//! document says, or judge; a document may be empty on purpose.

use crate::xml::{Element, Visitor};

/// How much a document holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Bytes of text, as UTF-8, in the body, headers, notes, comments, cells and slides.
    pub text_bytes: u64,
    /// Cells with a value.
    pub cells: u64,
    /// Cells with a formula.
    pub formulas: u64,
    /// Sheets of a workbook.
    pub sheets: u64,
    /// Slides of a presentation, or pages of a drawing.
    pub slides: u64,
    /// Pictures and charts.
    pub pictures: u64,
}

impl Extent {
    /// Whether there is nothing to see in it: empty sheets and slides count as nothing.
    pub const fn is_nothing(&self) -> bool {
        self.text_bytes == 0 && self.cells == 0 && self.formulas == 0 && self.pictures == 0
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let sum = |one: &mut u64, other: u64| *one = one.saturating_add(other);
        sum(&mut self.text_bytes, other.text_bytes);
        sum(&mut self.cells, other.cells);
        sum(&mut self.formulas, other.formulas);
        sum(&mut self.sheets, other.sheets);
        sum(&mut self.slides, other.slides);
        sum(&mut self.pictures, other.pictures);
    }
}

/// Whether an entry is a picture, by the end of its name: the bytes of pictures are nobody's business here.
pub(crate) fn is_picture(name: &str) -> bool {
    const ENDS: [&str; 12] =
        [".png", ".jpg", ".jpeg", ".gif", ".bmp", ".emf", ".wmf", ".svg", ".tif", ".tiff", ".svm", ".webp"];
    let end = name.rfind('.').and_then(|dot| name.get(dot..)).unwrap_or_default();
    // The preview that programs put beside the document is none of its pictures.
    let is_preview = name.to_ascii_lowercase().contains("thumbnail");
    !is_preview && ENDS.iter().any(|known| known.eq_ignore_ascii_case(end))
}

/// What a part holds, by its root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PartKind {
    /// Its root was not seen yet, or means nothing here.
    #[default]
    Other,
    Text,
    Sheet,
    OpenDocument,
}

/// Counts what one part holds.
#[derive(Debug, Default)]
pub(crate) struct Measure {
    kind: PartKind,
    /// Bytes since the last tag that are not counted yet, because nothing but blanks came. Pieces end anywhere.
    waiting_bytes: u64,
    is_in_text: bool,
    pub(crate) extent: Extent,
}

impl Measure {
    fn root(&mut self, name: &[u8]) {
        self.kind = match name {
            b"document" | b"hdr" | b"ftr" | b"footnotes" | b"endnotes" | b"comments" | b"sst" | b"notes" => {
                PartKind::Text
            }
            b"worksheet" | b"chartsheet" | b"dialogsheet" | b"macrosheet" => {
                self.extent.sheets = 1;
                PartKind::Sheet
            }
            b"sld" => {
                self.extent.slides = 1;
                PartKind::Text
            }
            b"chartSpace" => {
                self.extent.pictures = 1;
                PartKind::Other
            }
            b"document-content" => PartKind::OpenDocument,
            _ => PartKind::Other,
        };
    }

    fn tag(&mut self) {
        self.waiting_bytes = 0;
        self.is_in_text = false;
    }

    fn in_sheet(&mut self, name: &[u8]) {
        match name {
            b"v" | b"is" => self.extent.cells += 1,
            b"f" => self.extent.formulas += 1,
            _ => {}
        }
    }

    /// Sheets and pages stand directly in the body.
    fn in_open_document(&mut self, element: &Element<'_>) {
        match element.local_name() {
            b"table" if element.depth() == 3 => self.extent.sheets += 1,
            b"page" if element.depth() == 3 => self.extent.slides += 1,
            b"table-cell" => {
                self.extent.cells += u64::from(element.has_attribute(b"value-type"));
                self.extent.formulas += u64::from(element.has_attribute(b"formula"));
            }
            _ => {}
        }
    }
}

impl Visitor for Measure {
    fn start(&mut self, element: &Element<'_>) {
        self.tag();
        if element.depth() == 0 {
            self.root(element.local_name());
            return;
        }
        match self.kind {
            PartKind::Other | PartKind::Text => {}
            PartKind::Sheet => self.in_sheet(element.local_name()),
            PartKind::OpenDocument => self.in_open_document(element),
        }
    }

    fn text(&mut self, text: &[u8]) {
        if self.kind == PartKind::Other {
            return;
        }
        self.waiting_bytes = self.waiting_bytes.saturating_add(text.len() as u64);
        self.is_in_text = self.is_in_text || !text.iter().all(u8::is_ascii_whitespace);
        // What only indents the markup is no text.
        if self.is_in_text {
            self.extent.text_bytes = self.extent.text_bytes.saturating_add(self.waiting_bytes);
            self.waiting_bytes = 0;
        }
    }

    fn end(&mut self, _name: &[u8]) {
        self.tag();
    }
}
