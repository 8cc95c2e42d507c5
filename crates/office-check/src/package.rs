//! A package: an archive whose parts are read for what they are.
//!
//! Guarantees: every entry is inflated once and its checksum compared, within the budget; what is found is told as
//! findings; reading goes on after a damaged part, so that all damage is told. Does not do: know what a part means;
//! `opc` and `odf` do.

use std::collections::BTreeSet;
use std::io::{Read, Seek};
use std::ops::ControlFlow;

use crate::extent::{Extent, Measure, is_picture};
use crate::xml::{Visitor, XmlChecker, XmlFault, XmlFaultKind};
use crate::zip::{Archive, Budget, Entry, Inflated, ZipFault, ZipFaultKind};
use crate::{Code, Finding, Limits, Severity, Thoroughness};

/// Findings beyond this say nothing new, and each may have a long name.
const FINDINGS_MAX: usize = 100;

/// The emptiest of large workbooks inflate to a hundred times their size.
const RATIO_ODD: u64 = 250;
const SMALL_BYTES: u64 = 1024 * 1024;

/// Parts that are written carelessly by programs everybody uses, or are not XML though they begin like it.
const CARELESS: [&str; 6] = [".vml", ".htm", ".html", ".mht", ".svg", ".xhtml"];

pub(crate) struct Package<'a, R> {
    archive: Archive<R>,
    budget: Budget,
    limits: &'a Limits,
    pub(crate) findings: &'a mut Vec<Finding>,
    /// Where the entries are that were read before the rest.
    read: BTreeSet<u64>,
    doctypes: Doctypes,
    extent: Extent,
    /// Whether the part that is the document could be looked into.
    is_main_measured: bool,
}

/// What a document type means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doctypes {
    /// No program writes one.
    Fatal,
    /// Macros and formulas of OpenOffice have one.
    Usual,
}

/// What became of a required part.
pub(crate) enum Part<V> {
    Whole(V),
    Missing,
    /// It is there and damaged, which was told.
    Damaged,
}

impl<'a, R: Read + Seek> Package<'a, R> {
    /// Opens an archive; `None` if it is none, which is told.
    pub(crate) fn open(reader: R, limits: &'a Limits, findings: &'a mut Vec<Finding>) -> Option<Self> {
        let archive = match Archive::open(reader, &limits.zip()) {
            Ok(archive) => archive,
            Err(fault) => {
                findings.push(finding_of(&fault, IsRequired::Yes));
                return None;
            }
        };
        findings.extend(archive.notices.iter().map(|notice| finding_of(notice, IsRequired::No)));
        let budget = Budget::of(&limits.zip());
        Some(Self {
            archive,
            budget,
            limits,
            findings,
            read: BTreeSet::new(),
            doctypes: Doctypes::Fatal,
            extent: Extent::default(),
            is_main_measured: false,
        })
    }

    pub(crate) fn usual_doctypes(&mut self) {
        self.doctypes = Doctypes::Usual;
    }

    /// Whether there is such a part.
    pub(crate) fn has(&self, name: &str) -> bool {
        !matches!(self.archive.find(name), Ok(None))
    }

    /// The part of this name; two of them are told.
    pub(crate) fn the_one(&mut self, name: &str) -> Part<Entry> {
        match self.archive.find(name) {
            Ok(Some(entry)) => Part::Whole(entry),
            Ok(None) => Part::Missing,
            Err(fault) => {
                self.tell(finding_of(&fault, IsRequired::Yes));
                Part::Damaged
            }
        }
    }

    /// Reads a part that must be well-formed.
    pub(crate) fn require<V: Visitor>(&mut self, name: &str, visitor: V) -> Part<V> {
        let entry = match self.the_one(name) {
            Part::Whole(entry) => entry,
            Part::Missing => return Part::Missing,
            Part::Damaged => return Part::Damaged,
        };
        self.read.insert(entry.offset());
        let mut checker = Some(XmlChecker::new(&self.limits.xml(), visitor));
        let mut fault = None;
        let read = self.archive.read(&entry, &mut self.budget, &mut |bytes| {
            if let Some(open) = checker.as_mut()
                && let Err(found) = open.feed(bytes)
            {
                (fault, checker) = (Some(found), None);
            }
            ControlFlow::Continue(())
        });
        if let Err(fault) = read {
            self.tell(finding_of(&fault, IsRequired::Yes));
            return Part::Damaged;
        }
        match checker.map(XmlChecker::finish) {
            Some(Ok(visitor)) => Part::Whole(visitor),
            Some(Err(fault)) => self.bad_required(name, fault),
            None => {
                self.bad_required(name, fault.unwrap_or(XmlFault { kind: XmlFaultKind::Empty, offset: 0 }))
            }
        }
    }

    /// What the part that is the document holds.
    pub(crate) fn main_holds(&mut self, measure: &Measure) {
        self.extent.add(&measure.extent);
        self.is_main_measured = true;
    }

    /// What all parts hold, if all of them could be looked into.
    pub(crate) fn extent(&self) -> Option<Extent> {
        let is_unread =
            |finding: &Finding| finding.code == Code::OverLimit || finding.code.severity() == Severity::Fatal;
        let is_read = self.limits.thoroughness == Thoroughness::Full && !self.findings.iter().any(is_unread);
        (is_read && self.is_main_measured).then_some(self.extent)
    }

    fn bad_required<V>(&mut self, name: &str, fault: XmlFault) -> Part<V> {
        let code = match fault.kind {
            XmlFaultKind::Doctype => Code::DocumentType,
            kind if kind.is_limit() => Code::HostileMarkup,
            _ => Code::BadRequiredPart,
        };
        self.tell(of_xml(code, name, fault));
        Part::Damaged
    }

    /// A small part as it is; longer ones are cut.
    pub(crate) fn bytes(&mut self, name: &str, bytes_max: usize) -> Option<Vec<u8>> {
        let entry = self.archive.find(name).ok()??;
        let mut bytes = Vec::new();
        let read = self.archive.read(&entry, &mut self.budget, &mut |piece| {
            let room = bytes_max.saturating_sub(bytes.len());
            bytes.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
            if bytes.len() < bytes_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        read.ok().map(|_| bytes)
    }

    /// Every part that was not read yet, in one pass over the file.
    pub(crate) fn check_the_rest(&mut self) {
        for at in 0..self.archive.len() {
            let Some(entry) = self.archive.entry(at) else { break };
            if self.read.contains(&entry.offset()) {
                continue;
            }
            if self.check_entry(&entry).is_break() {
                break;
            }
        }
        self.compare_sizes();
    }

    /// Nothing that people make shrinks to so little. It opens all the same.
    fn compare_sizes(&mut self) {
        let sum = |one: fn(&Entry) -> u64| {
            self.archive.entries().fold(0_u64, |sum, entry| sum.saturating_add(one(&entry)))
        };
        let (inflated_bytes, deflated_bytes) = (sum(Entry::size_bytes), sum(Entry::deflated_bytes));
        if inflated_bytes > SMALL_BYTES && inflated_bytes / RATIO_ODD > deflated_bytes {
            let message = format!("the parts inflate to more than {RATIO_ODD} times their size");
            self.tell(Finding::whole(Code::HighRatio, message));
        }
    }

    fn check_entry(&mut self, entry: &Entry) -> ControlFlow<()> {
        let mut markup = Markup::new(self.limits);
        let read = self.archive.read(entry, &mut self.budget, &mut |bytes| {
            markup.feed(bytes);
            ControlFlow::Continue(())
        });
        match read {
            Ok(Inflated::Whole { .. }) => {
                self.look_at(entry, markup);
                ControlFlow::Continue(())
            }
            Ok(Inflated::Stopped { .. }) => ControlFlow::Continue(()),
            Err(fault) => {
                // Beyond the budget of all entries nothing more can be read; beyond that of one entry the next can.
                let is_over = fault.kind == ZipFaultKind::InflatesTooFar;
                self.tell(finding_of(&fault, IsRequired::No));
                if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
        }
    }

    /// What a part that was read to its end holds, and what is wrong with it.
    fn look_at(&mut self, entry: &Entry, markup: Markup) {
        let name = self.archive.name(entry).unwrap_or_default();
        self.extent.pictures += u64::from(is_picture(&name));
        match markup.finish() {
            Ok(extent) => self.extent.add(&extent),
            Err(fault) => {
                let code = self.code_of(&name, fault.kind);
                self.tell(of_xml(code, &name, fault));
            }
        }
    }

    fn code_of(&self, name: &str, kind: XmlFaultKind) -> Code {
        let lower = name.to_ascii_lowercase();
        match kind {
            XmlFaultKind::Doctype if CARELESS.iter().any(|end| lower.ends_with(end)) => Code::CarelessPart,
            XmlFaultKind::Doctype if self.doctypes == Doctypes::Fatal => Code::DocumentType,
            XmlFaultKind::Doctype => Code::CarelessPart,
            _ if CARELESS.iter().any(|end| lower.ends_with(end)) => Code::CarelessPart,
            _ => Code::BadPart,
        }
    }

    pub(crate) fn tell(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}

/// Looks at a part of which nothing is known: what begins like XML must be well-formed.
struct Markup(MarkupState);

enum MarkupState {
    /// It may become either: so far there were blanks, or the start of a byte order mark.
    Unsure(Box<XmlChecker<Measure>>, Front),
    Reading(Box<XmlChecker<Measure>>),
    Bad(XmlFault),
    /// No XML, or nobody wants to know.
    Other,
}

impl Markup {
    fn new(limits: &Limits) -> Self {
        match limits.thoroughness {
            Thoroughness::Full => {
                let checker = XmlChecker::new(&limits.xml(), Measure::default());
                Self(MarkupState::Unsure(Box::new(checker), Front::default()))
            }
            Thoroughness::Container | Thoroughness::Required => Self(MarkupState::Other),
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.0 = match std::mem::replace(&mut self.0, MarkupState::Other) {
            MarkupState::Unsure(checker, mut front) => match front.is_xml(bytes) {
                None => fed(checker, bytes, |checker| MarkupState::Unsure(checker, front)),
                Some(true) => fed(checker, bytes, MarkupState::Reading),
                Some(false) => MarkupState::Other,
            },
            MarkupState::Reading(checker) => fed(checker, bytes, MarkupState::Reading),
            state => state,
        };
    }

    fn finish(self) -> Result<Extent, XmlFault> {
        match self.0 {
            MarkupState::Reading(checker) => checker.finish().map(|measure| measure.extent),
            MarkupState::Bad(fault) => Err(fault),
            MarkupState::Unsure(..) | MarkupState::Other => Ok(Extent::default()),
        }
    }
}

fn fed(
    mut checker: Box<XmlChecker<Measure>>,
    bytes: &[u8],
    state: impl FnOnce(Box<XmlChecker<Measure>>) -> MarkupState,
) -> MarkupState {
    match checker.feed(bytes) {
        Ok(()) => state(checker),
        Err(fault) => MarkupState::Bad(fault),
    }
}

/// The first bytes of a part, which may come one by one. As long as they tell nothing, no XML can be at fault.
#[derive(Default)]
struct Front {
    first: Vec<u8>,
    is_behind_blanks: bool,
}

impl Front {
    const OF_XML: [&[u8]; 4] = [b"<", b"\xef\xbb\xbf<", b"\xff\xfe<\0", b"\xfe\xff\0<"];

    /// Whether the part begins like XML; nothing as long as that cannot be told.
    fn is_xml(&mut self, bytes: &[u8]) -> Option<bool> {
        for byte in bytes {
            let is_blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
            if is_blank && matches!(self.first.as_slice(), b"" | b"\xef\xbb\xbf") {
                self.is_behind_blanks = true;
                continue;
            }
            if self.is_behind_blanks {
                return Some(*byte == b'<');
            }
            self.first.push(*byte);
            if Self::OF_XML.contains(&self.first.as_slice()) {
                return Some(true);
            }
            if !Self::OF_XML.iter().any(|front| front.starts_with(&self.first)) {
                return Some(false);
            }
        }
        None
    }
}

/// Whether a document can be opened without a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsRequired {
    Yes,
    No,
}

fn finding_of(fault: &ZipFault, required: IsRequired) -> Finding {
    use ZipFaultKind as Kind;
    let code = match fault.kind {
        Kind::NoEndRecord
        | Kind::TruncatedDirectory
        | Kind::BadDirectory
        | Kind::EntryCountMismatch
        | Kind::MultiDisk => Code::ZipDirectory,
        Kind::BadLocalHeader | Kind::LocalHeaderDisagrees(_) => Code::ZipHeader,
        Kind::UnsupportedMethod | Kind::Encrypted => Code::ZipMethod,
        Kind::BadDeflate | Kind::SizeMismatch | Kind::CrcMismatch | Kind::BadDescriptor | Kind::Truncated => {
            Code::ZipData
        }
        Kind::OverlappingEntries => Code::ZipOverlap,
        Kind::DuplicateName if required == IsRequired::Yes => Code::AmbiguousPart,
        Kind::DuplicateName | Kind::SimilarName => Code::DuplicateName,
        Kind::UnsafeName => Code::UnsafeName,
        Kind::TrailingBytes => Code::TrailingBytes,
        Kind::PrependedBytes => Code::PrependedBytes,
        Kind::TooManyEntries | Kind::NameTooLong | Kind::InflatesTooFar => Code::OverLimit,
        Kind::RatioTooHigh => Code::HighRatio,
        Kind::Unreadable(_) => Code::Unreadable,
    };
    Finding { code, part: fault.part.clone(), offset: fault.offset, message: fault.to_string() }
}

fn of_xml(code: Code, part: &str, fault: XmlFault) -> Finding {
    let message = format!("part \"{}\": {fault}", part.escape_debug());
    Finding { offset: Some(fault.offset), ..Finding::of_part(code, part, message) }
}
