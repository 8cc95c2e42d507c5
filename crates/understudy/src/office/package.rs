//! Office packages: zip files whose parts are found by relationships and content types.
//!
//! Guarantees: reading is bounded ([`PART_BYTES_MAX`]); writing keeps the order of parts and copies every part
//! that is not replaced with its compressed bytes; new and replaced parts carry a fixed time, so the same input
//! gives the same bytes. An added part is named in `[Content_Types].xml` (or the ODF manifest).
//!
//! Does not repair: a package without a main part is an error.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use super::OfficeError;
use super::xml::{self, Step};

/// The largest part that is unpacked for editing.
pub(super) const PART_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where changes without effect on the text are kept.
pub(super) const NOTES_PART: &str = "understudy/changes.xml";

const TYPES_PART: &str = "[Content_Types].xml";
const MANIFEST_PART: &str = "META-INF/manifest.xml";

/// A package being read.
pub(super) struct Package<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
}

/// What to change in a package.
#[derive(Default)]
pub(super) struct Rewrite {
    /// Parts with new content; absent ones are added at the end.
    pub(super) parts: BTreeMap<String, Vec<u8>>,
    pub(super) without: Vec<String>,
}

impl<'a> Package<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Package<'a>, OfficeError> {
        Ok(Package { zip: ZipArchive::new(Cursor::new(bytes))? })
    }

    /// The text of a part; UTF-16 becomes UTF-8.
    pub(super) fn text(&mut self, part: &str) -> Result<String, OfficeError> {
        let entry = self.zip.by_name(part)?;
        if entry.size() > PART_BYTES_MAX {
            return Err(OfficeError::TooLarge);
        }
        let mut bytes = Vec::new();
        entry.take(PART_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > PART_BYTES_MAX {
            return Err(OfficeError::TooLarge);
        }
        decode(bytes).ok_or_else(|| OfficeError::Xml { part: part.to_owned() })
    }

    pub(super) fn has(&self, part: &str) -> bool {
        self.zip.index_for_name(part).is_some()
    }

    /// The part that the package is about: by relationship, else by content type.
    pub(super) fn main_part(&mut self) -> Result<String, OfficeError> {
        let by_relationship = self
            .relationships("_rels/.rels", "")
            .into_iter()
            .find(|relationship| relationship.kind.ends_with("/officeDocument"))
            .map(|relationship| relationship.target);
        let main = match by_relationship {
            Some(part) => Some(part),
            None => self.main_part_by_type(),
        };
        main.filter(|part| self.has(part)).ok_or(OfficeError::NoMainPart)
    }

    fn main_part_by_type(&mut self) -> Option<String> {
        let types = self.text(TYPES_PART).ok()?;
        let mut main = None;
        let walked = xml::walk(&types, |_, step, _| {
            let Step::Start { tag, .. } = step else { return };
            let kind = xml::attribute(tag, "ContentType").unwrap_or_default();
            if kind.ends_with(".main+xml") {
                main = xml::attribute(tag, "PartName").map(|part| part.trim_start_matches('/').to_owned());
            }
        });
        walked.ok().and(main)
    }

    /// Relationships of a part; targets are resolved against `folder`.
    pub(super) fn relationships(&mut self, part: &str, folder: &str) -> Vec<Relationship> {
        let Ok(text) = self.text(part) else { return Vec::new() };
        let mut found = Vec::new();
        let walked = xml::walk(&text, |_, step, _| {
            let Step::Start { tag, .. } = step else { return };
            let attribute = |name: &str| xml::attribute(tag, name);
            if attribute("TargetMode").as_deref() == Some("External") {
                return;
            }
            if let (Some(id), Some(kind), Some(target)) =
                (attribute("Id"), attribute("Type"), attribute("Target"))
            {
                found.push(Relationship { id, kind, target: resolve(folder, &target) });
            }
        });
        walked.map(|()| found).unwrap_or_default()
    }

    /// The lines kept in the added part.
    pub(super) fn notes(&mut self) -> Option<String> {
        let text = self.text(NOTES_PART).ok()?;
        let mut lines: Vec<String> = Vec::new();
        let walked = xml::walk(&text, |path, step, _| match (path.last().map(String::as_str), step) {
            (Some("change"), Step::Start { .. }) => lines.push(String::new()),
            (Some("change"), Step::Text(text)) => {
                if let Some(line) = lines.last_mut() {
                    line.push_str(&text);
                }
            }
            _ => {}
        });
        walked.ok().map(|()| lines.join("\n"))
    }

    /// Adds lines to the part for changes without effect on the text, and names the part where it must be named.
    pub(super) fn add_notes(&mut self, rewrite: &mut Rewrite, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let old = self.notes().unwrap_or_default();
        let all = old.lines().chain(lines.iter().map(String::as_str));
        let items: String = all.map(|line| format!("<change>{}</change>", xml::escape(line))).collect();
        let part = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<changes xmlns=\"urn:saveguard:understudy\">{items}</changes>"
        );
        rewrite.parts.insert(NOTES_PART.to_owned(), part.into_bytes());
        if self.has(NOTES_PART) {
            return;
        }
        let (list, entry, end) = if self.has(TYPES_PART) {
            let entry = format!("<Override PartName=\"/{NOTES_PART}\" ContentType=\"application/xml\"/>");
            (TYPES_PART, entry, "</Types>")
        } else {
            let entry = format!(
                "<manifest:file-entry manifest:full-path=\"{NOTES_PART}\" manifest:media-type=\"text/xml\"/>"
            );
            (MANIFEST_PART, entry, "</manifest:manifest>")
        };
        if let Ok(text) = self.text(list) {
            rewrite.parts.insert(list.to_owned(), insert_before(&text, end, &entry).into_bytes());
        }
    }

    /// The package with changes.
    pub(super) fn rewrite(&mut self, rewrite: &Rewrite) -> Result<Vec<u8>, OfficeError> {
        let mut out = ZipWriter::new(Cursor::new(Vec::new()));
        let mut written: Vec<String> = Vec::new();
        for index in 0..self.zip.len() {
            let entry = self.zip.by_index_raw(index)?;
            let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
            if rewrite.without.contains(&name) {
                continue;
            }
            match rewrite.parts.get(&name) {
                Some(content) => put(&mut out, &name, content)?,
                None => out.raw_copy_file(entry)?,
            }
            written.push(name);
        }
        for (name, content) in rewrite.parts.iter().filter(|(name, _)| !written.contains(name)) {
            put(&mut out, name, content)?;
        }
        Ok(out.finish()?.into_inner())
    }
}

/// One relationship inside the package.
pub(super) struct Relationship {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) target: String,
}

/// A package of these parts.
pub(super) fn pack(parts: impl Iterator<Item = (String, Vec<u8>)>) -> Result<Vec<u8>, OfficeError> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        put(&mut out, &name, &content)?;
    }
    Ok(out.finish()?.into_inner())
}

/// A file whose text we do not edit: the changes go into an added part, or, if it is no package, behind its end.
pub(super) fn write_with_notes(base: &[u8], lines: &[String]) -> Result<Vec<u8>, OfficeError> {
    let Ok(mut package) = Package::read(base) else {
        let mut bytes = base.to_vec();
        for line in lines {
            bytes.extend_from_slice(format!("\n%{}", line.replace('\n', " ")).as_bytes());
        }
        return Ok(bytes);
    };
    let mut rewrite = Rewrite::default();
    package.add_notes(&mut rewrite, lines);
    package.rewrite(&rewrite)
}

/// The folder of a part and the part that holds its relationships.
pub(super) fn relationships_of(part: &str) -> (String, String) {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let slash = if folder.is_empty() { "" } else { "/" };
    (folder.to_owned(), format!("{folder}{slash}_rels/{name}.rels"))
}

fn put(out: &mut ZipWriter<Cursor<Vec<u8>>>, name: &str, content: &[u8]) -> Result<(), OfficeError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default());
    out.start_file(name, options)?;
    out.write_all(content)?;
    Ok(())
}

fn resolve(folder: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut path: Vec<&str> = folder.split('/').filter(|step| !step.is_empty()).collect();
    for step in target.split('/') {
        match step {
            "." | "" => {}
            ".." => drop(path.pop()),
            step => path.push(step),
        }
    }
    path.join("/")
}

fn insert_before(text: &str, end: &str, entry: &str) -> String {
    match text.rfind(end) {
        Some(place) => xml::splice(text, vec![(place..place, entry.to_owned())]),
        None => text.to_owned(),
    }
}

fn decode(bytes: Vec<u8>) -> Option<String> {
    let wide = |big: bool| {
        let units = bytes.get(2..)?.chunks_exact(2).map(|pair| match pair {
            [first, second] if big => u16::from_be_bytes([*first, *second]),
            [first, second] => u16::from_le_bytes([*first, *second]),
            _ => 0,
        });
        let text = String::from_utf16(&units.collect::<Vec<_>>()).ok()?;
        // The declaration would now be wrong.
        let body = text
            .trim_start()
            .strip_prefix("<?xml")
            .and_then(|rest| rest.split_once("?>"))
            .map(|(_, body)| body);
        let body = body.unwrap_or(&text);
        Some(format!("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>{body}"))
    };
    match bytes.get(..2) {
        Some([0xfe, 0xff]) => wide(true),
        Some([0xff, 0xfe]) => wide(false),
        _ => String::from_utf8(bytes).ok().map(|text| text.trim_start_matches('\u{feff}').to_owned()),
    }
}
