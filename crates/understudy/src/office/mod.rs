//! Real files: their text becomes what people edit, and edits become real files again.
//!
//! | format | edited as | result |
//! |---|---|---|
//! | docx (docm, dotx …) | paragraphs of the main part | same package; only touched paragraphs of the main part change |
//! | xlsx (xlsm, xltx …) | cells of the sheets | same package; only touched cells change, as inline strings or numbers |
//! | txt, csv, md, … | lines | the text |
//! | other packages (pptx, odt, …) | not at all | same package plus one part that holds the changes |
//! | anything else (pdf, doc, …) | not at all | same bytes plus the changes as a trailing comment line |
//!
//! Guarantees: the same base and the same changes give the same bytes; every part that is not touched keeps its
//! compressed bytes; with nothing to apply the result is the base itself. Comments and changes that have no
//! effect on the text are kept in the added part.
//!
//! Does not lay out, calculate or convert between formats.

mod blank;
mod docx;
mod edit;
mod package;
mod plain;
mod shape;
mod xlsx;
mod xml;

use std::collections::BTreeSet;

use bytes::Bytes;
use sha2::{Digest, Sha256};

pub use blank::{blank, docx_of, sample_docx, sample_xlsx};
pub use edit::{Edit, EditKind, marker};
pub use shape::{Paragraph, Shape, Sheet};

use crate::machine::Change;
use package::Package;

/// What can go wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum OfficeError {
    #[error("the package cannot be read")]
    Package(#[from] zip::result::ZipError),
    #[error("a part cannot be read")]
    Part(#[from] std::io::Error),
    #[error("part `{part}` is not the XML it should be")]
    Xml { part: String },
    #[error("the package has no main part")]
    NoMainPart,
    #[error("the file is larger than this server edits")]
    TooLarge,
}

/// How an extension is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Word,
    Cell,
    Slide,
    Text,
    Other,
}

impl Family {
    fn of(ext: &str) -> Family {
        match ext.to_ascii_lowercase().as_str() {
            "docx" | "docm" | "dotx" | "dotm" | "docxf" | "oform" => Family::Word,
            "xlsx" | "xlsm" | "xltx" | "xltm" => Family::Cell,
            "pptx" | "pptm" | "ppsx" | "potx" => Family::Slide,
            "txt" | "csv" | "md" | "html" | "htm" | "xml" | "json" => Family::Text,
            _ => Family::Other,
        }
    }
}

/// Lower-case hexadecimal SHA-256.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the server could open such a file: a package of the named kind must at least have a main part.
pub fn can_open(bytes: &[u8], ext: &str) -> bool {
    match Family::of(ext) {
        Family::Word | Family::Cell | Family::Slide => {
            Package::read(bytes).and_then(|mut package| package.main_part()).is_ok()
        }
        Family::Text | Family::Other => !bytes.is_empty(),
    }
}

/// The editable shape of a file.
pub fn shape_of(bytes: &[u8], ext: &str) -> Shape {
    let shape = match Family::of(ext) {
        Family::Word => docx::read(bytes),
        Family::Cell => xlsx::read(bytes),
        Family::Text => Ok(plain::read(bytes)),
        Family::Slide | Family::Other => Ok(Shape::Opaque),
    };
    shape.unwrap_or(Shape::Opaque)
}

/// Applies changes to a file.
pub fn build(base: &Bytes, ext: &str, changes: &[Change]) -> Result<Bytes, OfficeError> {
    if changes.is_empty() {
        return Ok(base.clone());
    }
    let (edits, kept) = edit::sort_out(changes);
    let edited = match Family::of(ext) {
        Family::Word => docx::write(base, &edits, &kept).ok(),
        Family::Cell => xlsx::write(base, &edits, &kept).ok(),
        Family::Text => Some(plain::write(base, &edits, &kept)),
        Family::Slide | Family::Other => None,
    };
    // What cannot be edited as text was shown as opaque, too.
    let built = edited.map_or_else(|| package::write_with_notes(base, &edit::all_as_notes(changes)), Ok);
    built.map(Bytes::from)
}

/// The text of a file as another type: what a fallback of the real converter looks like from outside.
pub fn in_other_type(bytes: &[u8], ext: &str) -> Bytes {
    let text = text_of(bytes);
    let lines: Vec<&str> = text.lines().collect();
    match Family::of(ext) {
        Family::Word => sample_docx("", &lines),
        Family::Cell => sample_xlsx(&lines.iter().map(std::slice::from_ref).collect::<Vec<_>>()),
        Family::Text => Bytes::from(text),
        Family::Slide | Family::Other => Bytes::copy_from_slice(bytes),
    }
}

/// All visible text of a file of any supported kind, whatever its name, and the changes kept beside it.
pub fn text_of(bytes: &[u8]) -> String {
    let Ok(mut package) = Package::read(bytes) else {
        return String::from_utf8_lossy(bytes).into_owned();
    };
    let main = package.main_part().unwrap_or_default();
    let shape = if main.contains("workbook") { xlsx::read(bytes) } else { docx::read(bytes) };
    let mut text = shape.map(|shape| shape.text()).unwrap_or_default();
    if let Some(notes) = package.notes() {
        text.push('\n');
        text.push_str(&notes);
    }
    text
}

/// Ids of the marked changes that a file contains.
pub fn changes_in(bytes: &[u8]) -> BTreeSet<String> {
    edit::markers_in(&text_of(bytes))
}

/// The zip of changes that goes with a save: one file per run of changes by one author.
pub fn changes_zip(changes: &[Change]) -> Bytes {
    let mut runs: Vec<(&str, Vec<&str>)> = Vec::new();
    for change in changes {
        match runs.last_mut() {
            Some((author, data)) if *author == change.author.id => data.push(&change.data),
            _ => runs.push((&change.author.id, vec![&change.data])),
        }
    }
    let parts = runs.iter().enumerate().map(|(n, (_, data))| {
        let json = serde_json::to_vec(data).unwrap_or_default();
        (format!("changes{n}.json"), json)
    });
    package::pack(parts).map(Bytes::from).unwrap_or_default()
}
