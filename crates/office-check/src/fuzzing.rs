//! Each layer on its own, for the package `fuzz` of this workspace. No part of the crate's interface.
//!
//! Guarantees: what an outcome says is all that a caller of the layer could see, so that two readings of the same bytes
//! can be compared. What must hold inside of a layer is asserted here.
//! Does not do: make inputs, or judge outcomes.

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use crate::xml::{Element, Visitor, XmlChecker, XmlFault, XmlLimits};
use crate::zip::{Archive, Budget, Entry, Inflated, ZipFault, ZipFaultKind, ZipLimits};
use crate::{Finding, Kind, Limits, cfb, kind, read_up_to, text};

/// Less than the default, so that no input takes long; more than any input needs that is not made for it.
const INFLATED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Entries of one archive that are looked at.
const ENTRIES_SEEN_MAX: usize = 2_000;

/// What a layer made of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What was found, in codes: many inputs share one.
    pub combination: String,
    /// Each thing that was found, in a sentence without names, places and numbers.
    pub sentences: BTreeSet<String>,
    /// All that was found.
    pub said: String,
    /// How many findings there are.
    pub findings: usize,
}

/// The ZIP layer: opens an archive and reads every entry.
pub fn zip<R: Read + Seek>(reader: R) -> Outcome {
    let limits = ZipLimits { inflated_bytes_max: INFLATED_BYTES_MAX, ..ZipLimits::default() };
    let mut archive = match Archive::open(reader, &limits) {
        Ok(archive) => archive,
        Err(fault) => {
            let combination = format!("closed: {:?}", fault.kind);
            return Outcome { combination, sentences: BTreeSet::new(), said: fault.to_string(), findings: 1 };
        }
    };
    let mut budget = Budget::of(&limits);
    let mut kinds: BTreeSet<String> =
        archive.notices.iter().map(|notice| format!("{:?}", notice.kind)).collect();
    let mut said: Vec<String> = archive.notices.iter().map(ToString::to_string).collect();
    let findings = said.len();
    for at in 0..archive.len().min(ENTRIES_SEEN_MAX) {
        let Some(entry) = archive.entry(at) else { break };
        match read_entry(&mut archive, &entry, &mut budget) {
            Ok(summary) => said.push(summary),
            Err(fault) => {
                kinds.insert(format!("{:?}", fault.kind));
                said.push(fault.to_string());
            }
        }
    }
    let combination = format!("open: {}", joined(&kinds));
    Outcome { combination, sentences: kinds, said: said.join("\n"), findings }
}

fn read_entry<R: Read + Seek>(
    archive: &mut Archive<R>,
    entry: &Entry,
    budget: &mut Budget,
) -> Result<String, ZipFault> {
    let name = archive.name(entry)?;
    let found = archive.find(&name);
    // A name that is no UTF-8 comes back with other bytes, and names of slashes only are one with no name.
    let is_found = matches!(found, Ok(Some(_)))
        || matches!(&found, Err(fault) if fault.kind == ZipFaultKind::DuplicateName)
        || name.contains('\u{FFFD}');
    assert!(is_found, "an entry is found under its own name: {name:?}");
    let (mut sum, mut handed_bytes) = (crc32fast::Hasher::new(), 0_u64);
    let inflated = archive.read(entry, budget, &mut |piece| {
        handed_bytes += piece.len() as u64;
        sum.update(piece);
        ControlFlow::Continue(())
    })?;
    assert!(handed_bytes <= INFLATED_BYTES_MAX, "no more is handed out than the budget has");
    if let Inflated::Whole { bytes, .. } = inflated {
        assert_eq!((bytes, entry.size_bytes()), (handed_bytes, handed_bytes), "a whole entry has its size");
    }
    Ok(format!("{name:?} {inflated:?} {:08x}", sum.finalize()))
}

/// The XML layer, over a document in pieces.
pub fn xml<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut checker = XmlChecker::new(&XmlLimits::default(), Listener::default());
    let mut fed = Ok(());
    for piece in pieces {
        fed = fed.and_then(|()| checker.feed(piece));
    }
    match fed.and_then(|()| checker.finish()) {
        Ok(heard) => {
            let combination =
                format!("whole, 2^{} elements, 2^{} deep", heard.elements.ilog2(), heard.deepest.ilog2());
            let sums = [heard.tags.finalize(), heard.text.finalize()];
            let said = format!("{} {sums:08x?}", heard.elements);
            Outcome { combination, sentences: BTreeSet::new(), said, findings: 0 }
        }
        Err(XmlFault { kind, offset }) => {
            let (combination, said) = (format!("{kind:?}"), format!("{kind:?} at {offset}"));
            Outcome { combination, sentences: BTreeSet::new(), said, findings: 1 }
        }
    }
}

/// Sums up what a document tells. Pieces of text may be cut anywhere, so their ends do not count.
struct Listener {
    elements: u64,
    deepest: usize,
    tags: crc32fast::Hasher,
    text: crc32fast::Hasher,
}

impl Default for Listener {
    fn default() -> Self {
        let (tags, text) = (crc32fast::Hasher::new(), crc32fast::Hasher::new());
        Self { elements: 1, deepest: 1, tags, text }
    }
}

impl Visitor for Listener {
    fn start(&mut self, element: &Element<'_>) {
        self.elements += 1;
        self.deepest = self.deepest.max(element.depth() + 1);
        self.tags.update(element.namespace().unwrap_or(b"-"));
        self.tags.update(element.local_name());
        for name in [&b"Target"[..], b"ContentType", b"a"] {
            self.tags.update(element.attribute(name).unwrap_or_default().as_bytes());
        }
    }

    fn end(&mut self, name: &[u8]) {
        self.tags.update(b"/");
        self.tags.update(name);
    }

    fn text(&mut self, text: &[u8]) {
        self.text.update(text);
    }
}

/// The layer of compound files.
pub fn cfb<R: Read + Seek>(mut reader: R) -> Outcome {
    let mut findings = Vec::new();
    let found = reader
        .seek(SeekFrom::End(0))
        .and_then(|size_bytes| cfb::check(&mut reader, size_bytes, &mut findings))
        .unwrap_or(Kind::Unknown);
    outcome(found, &findings)
}

/// The layer of files that are one text, whatever the first bytes say.
pub fn text<R: Read + Seek>(mut reader: R) -> Outcome {
    let mut findings = Vec::new();
    let mut start = vec![0; kind::START_BYTES];
    let count = read_up_to(&mut reader, &mut start).unwrap_or_default();
    let kind = kind::from_start(start.get(..count).unwrap_or_default());
    let found = reader
        .seek(SeekFrom::Start(0))
        .and_then(|_| text::check(&mut reader, kind, &Limits::default(), &mut findings));
    outcome(found.unwrap_or(Kind::Unknown), &findings)
}

/// What was found, for people and for comparing.
pub fn outcome(kind: Kind, findings: &[Finding]) -> Outcome {
    let codes = findings.iter().map(|finding| finding.code.as_str().to_owned()).collect();
    let combination = format!("{kind}: {}", joined(&codes));
    let sentences = findings.iter().map(|finding| format!("{kind}: {}", without_names(finding))).collect();
    Outcome { combination, sentences, said: format!("{kind} {findings:?}"), findings: findings.len() }
}

fn joined(words: &BTreeSet<String>) -> String {
    words.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// The code and the sentence, without what differs from file to file.
fn without_names(finding: &Finding) -> String {
    let message = &finding.message;
    let quoted = message.find('"').zip(message.rfind('"'));
    let (before, behind) = match quoted {
        Some((first, last)) => (message.get(..first), message.get(last..)),
        None => (Some(message.as_str()), None),
    };
    let sentence = [before.unwrap_or_default(), behind.unwrap_or_default()].concat();
    let sentence: String = sentence.chars().filter(|character| !character.is_ascii_digit()).collect();
    format!("{} {sentence}", finding.code.as_str())
}

/// The names and bytes of all entries, if every one of them is whole.
pub fn entries(bytes: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let limits = ZipLimits { inflated_bytes_max: INFLATED_BYTES_MAX, ..ZipLimits::default() };
    let mut archive = Archive::open(std::io::Cursor::new(bytes), &limits).ok()?;
    let mut budget = Budget::of(&limits);
    let mut entries = Vec::new();
    for at in 0..archive.len() {
        let entry = archive.entry(at)?;
        let mut data = Vec::new();
        let read = archive.read(&entry, &mut budget, &mut |piece| {
            data.extend_from_slice(piece);
            ControlFlow::Continue(())
        });
        read.ok()?;
        entries.push((archive.name(&entry).ok()?.into_bytes(), data));
    }
    Some(entries)
}
