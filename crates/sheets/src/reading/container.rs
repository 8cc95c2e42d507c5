//! The archive of a workbook: what may be opened at all, and where its parts are.
//!
//! Guarantees: no more is unpacked than the limits allow, whatever the archive says of itself; a read that fails below us is told
//! apart from a file that is damaged.

use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

use zip::ZipArchive;

use super::fault::Fault;
use super::scan::{Scanner, Token};
use crate::days::Epoch;
use crate::{Limits, Unreadable, code};

/// Contents of that size are never suspicious, however well they are packed.
const UNSUSPICIOUS_BYTES: u64 = 16 * 1024 * 1024;
/// Parts of a workbook. Those with thousands of pictures stay far below.
const PARTS_MAX: usize = 100_000;
/// Styles of cells; Excel ends at 64,000.
const STYLES_MAX: usize = 100_000;

/// A workbook that is open.
pub(crate) struct Container<R> {
    zip: ZipArchive<Watched<R>>,
    trouble: Rc<Cell<bool>>,
    left_bytes: Rc<Cell<u64>>,
    /// The part that names all others.
    pub(crate) workbook: String,
    pub(crate) sheets: Vec<SheetPart>,
    pub(crate) epoch: Epoch,
    pub(crate) styles: Option<String>,
    pub(crate) strings: Option<String>,
}

/// A sheet and its part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SheetPart {
    pub(crate) name: String,
    pub(crate) part: String,
}

/// What one part says of another.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) part: String,
}

impl<R: Read + Seek> Container<R> {
    pub(crate) fn open(mut file: R, limits: &Limits) -> Result<Self, Fault> {
        let file_bytes = size_of(&mut file, limits)?;
        let trouble = Rc::new(Cell::new(false));
        let opened = ZipArchive::new(Watched { inner: file, trouble: Rc::clone(&trouble) });
        let zip = opened.map_err(|cause| match cause {
            zip::result::ZipError::Io(cause) if trouble.get() => Fault::Ours(Unreadable::Io(cause)),
            _ => Fault::broken("the end of the archive is missing"),
        })?;
        let allowed = limits
            .inflated_bytes
            .min(UNSUSPICIOUS_BYTES.max(file_bytes.saturating_mul(limits.inflate_ratio)));
        let mut container = Self {
            zip,
            trouble,
            left_bytes: Rc::new(Cell::new(allowed)),
            workbook: String::new(),
            sheets: Vec::new(),
            epoch: Epoch::Of1900,
            styles: None,
            strings: None,
        };
        container.check_parts(allowed)?;
        container.find_parts(limits)?;
        Ok(container)
    }

    /// What can be told without unpacking anything.
    fn check_parts(&self, allowed: u64) -> Result<(), Fault> {
        if self.zip.len() > PARTS_MAX {
            return Err(Fault::Refused(code::FILE_TOO_LARGE, format!("it has {} parts", self.zip.len())));
        }
        let mut inflated: u64 = 0;
        for index in 0..self.zip.len() {
            let Ok(part) = self.zip.by_index_data(index) else {
                return Err(Fault::broken("the list of its parts cannot be read"));
            };
            inflated = inflated.saturating_add(part.size());
            if part.encrypted() {
                return Err(Fault::Refused(code::FILE_PROTECTED, String::new()));
            }
            if part.name_raw().to_ascii_lowercase().ends_with(b"vbaproject.bin") {
                return Err(Fault::Refused(code::FILE_HAS_MACROS, String::new()));
            }
        }
        if inflated > allowed {
            return Err(too_large(allowed));
        }
        Ok(())
    }

    fn find_parts(&mut self, limits: &Limits) -> Result<(), Fault> {
        let main = self.relations("")?.into_iter().find(|relation| relation.kind == "officeDocument");
        let Some(main) = main else {
            return Err(Fault::Refused(
                code::FILE_NOT_A_WORKBOOK,
                "the archive is no office document".into(),
            ));
        };
        if main.part.ends_with(".bin") {
            return Err(Fault::Refused(code::FILE_NOT_A_WORKBOOK, "it is a binary workbook (.xlsb)".into()));
        }
        self.workbook = main.part;
        let relations = self.relations(&self.workbook.clone())?;
        let (named, epoch) = self.read_workbook()?;
        if named.len() as u64 > limits.sheets {
            let detail = format!("it has {} sheets, and {} are read", named.len(), limits.sheets);
            return Err(Fault::Refused(code::FILE_TOO_LARGE, detail));
        }
        self.epoch = epoch;
        let part_of =
            |kind: &str| relations.iter().find(|each| each.kind == kind).map(|each| each.part.clone());
        self.styles = part_of("styles");
        self.strings = part_of("sharedStrings");
        for (name, id) in named {
            // Sheets that are charts have no cells.
            let sheet = relations.iter().find(|each| each.id == id && each.kind == "worksheet");
            self.sheets.extend(sheet.map(|sheet| SheetPart { name, part: sheet.part.clone() }));
        }
        Ok(())
    }

    /// The names of the sheets with their relations, and where days begin to count.
    fn read_workbook(&mut self) -> Result<(Vec<(String, String)>, Epoch), Fault> {
        let (mut sheets, mut epoch) = (Vec::new(), Epoch::Of1900);
        let mut root = None;
        let part = self.workbook.clone();
        self.walk(&part, |token| {
            if let Token::Start(tag) | Token::Empty(tag) = token {
                let name = root.get_or_insert_with(|| tag.name.to_vec());
                if name != b"workbook" {
                    return Err(Fault::Refused(
                        code::FILE_NOT_A_WORKBOOK,
                        "it is another kind of document".into(),
                    ));
                }
                match tag.name {
                    b"workbookPr" => {
                        let is_1904 =
                            tag.attribute("date1904").is_some_and(|word| word == "1" || word == "true");
                        epoch = if is_1904 { Epoch::Of1904 } else { Epoch::Of1900 };
                    }
                    b"sheet" => sheets.extend(
                        tag.attribute("name")
                            .zip(tag.relation())
                            .map(|(name, id)| (name.into_owned(), id.into_owned())),
                    ),
                    _ => {}
                }
            }
            Ok(())
        })?;
        Ok((sheets, epoch))
    }

    /// Which styles of cells show days.
    pub(crate) fn day_styles(&mut self) -> Result<Vec<bool>, Fault> {
        let mut styles = Vec::new();
        let mut formats: Vec<(u32, bool)> = Vec::new();
        let mut is_inside = false;
        let Some(part) = self.styles.clone() else { return Ok(styles) };
        self.walk(&part, |token| {
            match token {
                Token::Start(tag) | Token::Empty(tag) if tag.name == b"numFmt" => {
                    let id = tag.attribute("numFmtId").and_then(|id| id.parse().ok());
                    let shows = tag.attribute("formatCode").map(|code| shows_days(&code));
                    formats.extend(id.zip(shows).filter(|_| formats.len() < STYLES_MAX));
                }
                Token::Start(tag) if tag.name == b"cellXfs" => is_inside = true,
                Token::Start(tag) | Token::Empty(tag)
                    if is_inside && tag.name == b"xf" && styles.len() < STYLES_MAX =>
                {
                    let id: u32 = tag.attribute("numFmtId").and_then(|id| id.parse().ok()).unwrap_or(0);
                    let custom = formats.iter().find(|(custom, _)| *custom == id).map(|(_, shows)| *shows);
                    styles.push(
                        custom.unwrap_or(matches!(id, 14..=17 | 22 | 27..=31 | 36 | 50..=54 | 57 | 58)),
                    );
                }
                Token::End(b"cellXfs", _) => is_inside = false,
                _ => {}
            }
            Ok(())
        })?;
        Ok(styles)
    }

    /// What a part says of others; what the package says, for the empty name.
    pub(crate) fn relations(&mut self, part: &str) -> Result<Vec<Relation>, Fault> {
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let at = resolve(folder, &format!("_rels/{name}.rels"));
        let mut found = Vec::new();
        if self.index_of(&at).is_none() {
            return Ok(found);
        }
        self.walk(&at, |token| {
            if let Token::Start(tag) | Token::Empty(tag) = token
                && tag.name == b"Relationship"
                && tag.attribute("TargetMode").is_none_or(|mode| mode != "External")
                && let (Some(id), Some(kind), Some(target)) =
                    (tag.attribute("Id"), tag.attribute("Type"), tag.attribute("Target"))
            {
                let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
                found.push(Relation { id: id.into_owned(), kind, part: resolve(folder, &target) });
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Walks through a part.
    pub(crate) fn walk(
        &mut self,
        part: &str,
        mut visit: impl FnMut(Token<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut scanner = self.scan(part)?;
        let ended = loop {
            match scanner.next() {
                Ok(Token::Over) => break Ok(()),
                Ok(token) => match visit(token) {
                    Ok(()) => {}
                    Err(fault) => break Err(fault),
                },
                Err(fault) => break Err(fault),
            }
        };
        drop(scanner);
        ended.map_err(|fault| self.explain(fault))
    }

    /// The tokens of a part. Faults in it are to be explained.
    pub(crate) fn scan(&mut self, part: &str) -> Result<Scanner<impl Read>, Fault> {
        let Some(index) = self.index_of(part) else {
            return Err(Fault::Broken(format!("its part {part} is missing")));
        };
        let (left_bytes, trouble) = (Rc::clone(&self.left_bytes), Rc::clone(&self.trouble));
        match self.zip.by_index(index) {
            Ok(entry) => {
                let scanner = Scanner::new(Bounded { inner: entry, left_bytes: Rc::clone(&left_bytes) });
                scanner.map_err(|fault| explained(fault, &trouble, &left_bytes))
            }
            Err(zip::result::ZipError::Io(cause)) if trouble.get() => Err(Fault::Ours(Unreadable::Io(cause))),
            Err(_) => Err(Fault::Broken(format!("its part {part} cannot be unpacked"))),
        }
    }

    /// Says whose fault it is that a read failed.
    pub(crate) fn explain(&self, fault: Fault) -> Fault {
        explained(fault, &self.trouble, &self.left_bytes)
    }

    fn index_of(&self, part: &str) -> Option<usize> {
        // Some programs do not care for capital letters.
        let exactly = self.zip.index_for_name(part);
        let mut names = self.zip.file_names_raw();
        exactly.or_else(|| names.position(|name| name.eq_ignore_ascii_case(part.as_bytes())))
    }

    /// The archive, to be copied from.
    pub(crate) fn archive(&mut self) -> &mut ZipArchive<impl Read + Seek + use<R>> {
        &mut self.zip
    }
}

fn explained(fault: Fault, trouble: &Cell<bool>, left_bytes: &Cell<u64>) -> Fault {
    match fault {
        Fault::Read(cause) if trouble.get() => Fault::Ours(Unreadable::Io(cause)),
        Fault::Read(_) if left_bytes.get() == 0 => too_large(0),
        Fault::Read(_) => Fault::broken("a part does not fit its checksum"),
        other => other,
    }
}

fn too_large(allowed: u64) -> Fault {
    let detail = match allowed {
        0 => "its contents go on beyond every limit".to_owned(),
        allowed => format!("its contents have more than {} MB", allowed / 1_000_000),
    };
    Fault::Refused(code::FILE_TOO_LARGE, detail)
}

/// The size of the file, if it may be opened at all.
fn size_of<R: Read + Seek>(file: &mut R, limits: &Limits) -> Result<u64, Fault> {
    let ours = |cause| Fault::Ours(Unreadable::Io(cause));
    let bytes = file.seek(SeekFrom::End(0)).map_err(ours)?;
    file.seek(SeekFrom::Start(0)).map_err(ours)?;
    if bytes > limits.file_bytes {
        let detail = format!("it has {bytes} bytes, and at most {} are read", limits.file_bytes);
        return Err(Fault::Refused(code::FILE_TOO_LARGE, detail));
    }
    let mut start = Vec::new();
    file.by_ref().take(8).read_to_end(&mut start).map_err(ours)?;
    file.seek(SeekFrom::Start(0)).map_err(ours)?;
    if start.starts_with(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1") {
        return Err(Fault::Refused(code::FILE_PROTECTED, String::new()));
    }
    if !start.starts_with(b"PK") {
        let detail = if bytes == 0 { "the file is empty" } else { "it is another kind of file" };
        return Err(Fault::Refused(code::FILE_NOT_A_WORKBOOK, detail.into()));
    }
    Ok(bytes)
}

/// Whether a format shows days: it has a year or a day in it, or a month without hours and seconds.
fn shows_days(format: &str) -> bool {
    let mut letters = String::new();
    let mut rest = format.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '"' => drop(rest.by_ref().find(|each| *each == '"')),
            '[' => drop(rest.by_ref().find(|each| *each == ']')),
            // The next one stands for itself, or is only as wide.
            '\\' | '_' | '*' => drop(rest.next()),
            // What follows is for other values.
            ';' => break,
            _ => letters.push(letter.to_ascii_lowercase()),
        }
    }
    let has = |letter: char| letters.contains(letter);
    if letters.contains("general") {
        return false;
    }
    has('y') || has('d') || (has('m') && !has('h') && !has('s'))
}

/// The part that a target means, seen from a folder.
pub(crate) fn resolve(folder: &str, target: &str) -> String {
    let (mut steps, target): (Vec<&str>, &str) = match target.strip_prefix('/') {
        Some(absolute) => (Vec::new(), absolute),
        None => (folder.split('/').filter(|step| !step.is_empty()).collect(), target),
    };
    for step in target.split('/') {
        match step {
            "." | "" => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps.join("/")
}

/// Remembers that a read below us failed.
pub(crate) struct Watched<R> {
    inner: R,
    trouble: Rc<Cell<bool>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).inspect_err(|cause| {
            self.trouble.set(cause.kind() != io::ErrorKind::Interrupted || self.trouble.get());
        })
    }
}

impl<R: Seek> Seek for Watched<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // A seek before the start is the archive's fault; a stream that cannot be sought in would have failed before.
        self.inner.seek(to)
    }
}

/// Ends with an error where more is unpacked than is allowed.
struct Bounded<R> {
    inner: R,
    left_bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left_bytes.get().checked_sub(count as u64) {
            Some(left) if left > 0 || count == 0 => self.left_bytes.set(left),
            _ => {
                self.left_bytes.set(0);
                return Err(io::Error::other("more than may be unpacked"));
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_that_show_days_are_known() {
        for format in ["yyyy-mm-dd", "DD/MM/YY", "[$-409]d mmm yyyy;@", "mmm", "\"on\" dd.mm.", "m/d/yy h:mm"]
        {
            assert!(shows_days(format), "{format}");
        }
        for format in [
            "General",
            "0.00",
            "[h]:mm:ss",
            "mm:ss",
            "0 \"days\"",
            "#,##0.00_d",
            "[Red]0",
            "0\\d",
            "h:mm AM/PM",
        ] {
            assert!(!shows_days(format), "{format}");
        }
    }

    #[test]
    fn targets_are_seen_from_their_folder() {
        assert_eq!(resolve("xl", "worksheets/sheet1.xml"), "xl/worksheets/sheet1.xml");
        assert_eq!(resolve("xl/worksheets", "../comments1.xml"), "xl/comments1.xml");
        assert_eq!(resolve("xl", "/xl/styles.xml"), "xl/styles.xml");
        assert_eq!(resolve("", "../../x"), "x");
    }
}
