//! An exported trail: JSON lines that anybody can check, without this program (`docs/audit-format.md` is this for people).
//!
//! The first line says what the file is, the last one how many entries there were; in between stands an entry per line, the
//! chains of companies first.
//!
//! Guarantees: what [`FileChecker`] finds nothing wrong with is whole, in order, and unchanged since it was written, as far
//! as its chains, anchors and receipts can tell. A file that ends early is found. The format never changes its meaning.
//! Does not do: read files.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::audit::Entry;
use crate::trail::{Checker, Verdict, Witness};
use crate::{CompanyId, Digest, DocumentId};

/// The number of this format.
pub const FORMAT: u32 = 1;
const NAME: &str = "audit-trail";

/// What was exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Everything.
    All,
    /// A company with all its documents.
    Company(String),
    /// One document, with the anchors of its company if they were asked for.
    Document(String),
}

impl Scope {
    /// A company with all its documents.
    pub fn company(company: &CompanyId) -> Self {
        Self::Company(company.to_string())
    }

    /// One document.
    pub fn document(document: &DocumentId) -> Self {
        Self::Document(document.to_string())
    }

    /// Whether a chain that an anchor names must be in the file.
    fn has(&self, chain: &str) -> bool {
        match self {
            Self::All | Self::Company(_) => true,
            Self::Document(document) => document == chain,
        }
    }
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct FirstLine {
    saveguard: String,
    format: u32,
    scope: Scope,
    exported_at: Timestamp,
}

/// A line for an entry.
#[derive(Debug, Serialize, Deserialize)]
struct EntryLine {
    chain: String,
    sequence: u64,
    /// Hashed, so it is exact; `at` says the same for people.
    at_ms: i64,
    at: Timestamp,
    actor: String,
    from: String,
    action: String,
    outcome: String,
    /// The very text that was hashed.
    details: String,
    hash: String,
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
struct LastLine {
    end: bool,
    entries: u64,
}

/// The first line of an export.
pub fn first_line(scope: &Scope, exported_at: Timestamp) -> String {
    let line = FirstLine { saveguard: NAME.to_owned(), format: FORMAT, scope: scope.clone(), exported_at };
    to_line(&line)
}

/// The line of an entry.
pub fn entry_line(entry: &Entry, hash: &Digest) -> String {
    let Entry { chain, sequence, at, actor, from, action, outcome, details } = entry.clone();
    let (at_ms, hash) = (at.as_millisecond(), hash.to_string());
    to_line(&EntryLine { chain, sequence, at_ms, at, actor, from, action, outcome, details, hash })
}

/// The last line of an export.
pub fn last_line(entries: u64) -> String {
    to_line(&LastLine { end: true, entries })
}

fn to_line(line: &impl Serialize) -> String {
    // A structure of plain fields always has a text.
    serde_json::to_string(line).unwrap_or_default()
}

/// What is wrong with the file itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFlaw {
    /// It is something else, or made by a program that is newer.
    #[error("line 1 does not say that this is an audit trail of format {FORMAT}")]
    NotATrail,
    /// A line that says nothing.
    #[error("line {line} cannot be read")]
    Unreadable {
        /// Its number, counted from 1.
        line: u64,
    },
    /// A field for people says something else than the one that is hashed.
    #[error("line {line} says two different times")]
    TwoTimes {
        /// Its number.
        line: u64,
    },
    /// The last line is missing, or something follows it.
    #[error("the file does not end with its last line: a part is missing or was added")]
    NotEnded,
    /// There are more or fewer entries than the last line says.
    #[error("the last line tells of {told} entries, the file has {found}")]
    OtherCount {
        /// What it says.
        told: u64,
        /// What there is.
        found: u64,
    },
}

/// What a file holds, and what is wrong with it.
#[derive(Debug)]
pub struct FileVerdict {
    /// What was exported.
    pub scope: Option<Scope>,
    /// When, by the clock of whoever did it.
    pub exported_at: Option<Timestamp>,
    /// About its chains.
    pub trail: Verdict,
    /// About the file.
    pub flaws: Vec<FileFlaw>,
}

impl FileVerdict {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.flaws.is_empty() && self.trail.flaws.is_empty()
    }
}

/// Reads a file line by line. The first line that cannot be read ends it.
#[derive(Debug, Default)]
pub struct FileChecker {
    lines: u64,
    first: Option<(Scope, Timestamp)>,
    told: Option<u64>,
    checker: Checker,
    entries: u64,
    flaws: Vec<FileFlaw>,
}

impl FileChecker {
    /// Somebody saw this entry.
    pub fn expect(&mut self, chain: &str, sequence: u64, hash: Digest) {
        self.checker.expect(chain, sequence, (hash, Witness::Caller));
    }

    /// The next line. Returns whether it is worth reading on.
    pub fn read(&mut self, line: &str) -> bool {
        self.lines += 1;
        let flaw = match (&self.first, self.told) {
            (None, _) => self.read_first(line),
            (Some(_), None) => self.read_entry(line),
            (Some(_), Some(_)) => Some(FileFlaw::NotEnded),
        };
        let goes_on = flaw.is_none();
        self.flaws.extend(flaw);
        goes_on
    }

    fn read_first(&mut self, line: &str) -> Option<FileFlaw> {
        let first = serde_json::from_str::<FirstLine>(line).ok();
        let first = first.filter(|first| first.saveguard == NAME && first.format == FORMAT);
        self.first = first.map(|first| (first.scope, first.exported_at));
        self.first.is_none().then_some(FileFlaw::NotATrail)
    }

    fn read_entry(&mut self, line: &str) -> Option<FileFlaw> {
        let unreadable = Some(FileFlaw::Unreadable { line: self.lines });
        if let Ok(last) = serde_json::from_str::<LastLine>(line) {
            self.told = Some(last.entries);
            return if last.end { None } else { unreadable };
        }
        let Ok(line) = serde_json::from_str::<EntryLine>(line) else { return unreadable };
        let (Ok(at), Some(hash)) = (Timestamp::from_millisecond(line.at_ms), Digest::parse_hex(&line.hash))
        else {
            return unreadable;
        };
        let EntryLine { chain, sequence, actor, from, action, outcome, details, .. } = line;
        self.entries += 1;
        self.checker.read(&Entry { chain, sequence, at, actor, from, action, outcome, details }, hash);
        (line.at != at).then_some(FileFlaw::TwoTimes { line: self.lines })
    }

    /// All was read.
    pub fn finish(mut self) -> FileVerdict {
        match self.told {
            _ if !self.flaws.is_empty() => {}
            None if self.first.is_none() => self.flaws.push(FileFlaw::NotATrail),
            None => self.flaws.push(FileFlaw::NotEnded),
            Some(told) if told != self.entries => {
                self.flaws.push(FileFlaw::OtherCount { told, found: self.entries })
            }
            Some(_) => {}
        }
        let (scope, exported_at) = self.first.unzip();
        let trail = self.checker.finish(|chain| scope.as_ref().is_none_or(|scope| scope.has(chain)));
        FileVerdict { scope, exported_at, trail, flaws: self.flaws }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{CHAIN_START, hash_of};

    fn file() -> Vec<String> {
        let mut lines = vec![first_line(&Scope::Document("12345".to_owned()), Timestamp::UNIX_EPOCH)];
        let mut previous = CHAIN_START;
        for sequence in 1..=3 {
            let entry = Entry {
                chain: "12345".to_owned(),
                sequence,
                at: Timestamp::from_millisecond(1_794_770_000_123).unwrap(),
                actor: "u1".to_owned(),
                from: String::new(),
                action: "save-committed".to_owned(),
                outcome: "version".to_owned(),
                details: "{\"name\":\"Größe \\\"x\\\"\"}".to_owned(),
            };
            previous = hash_of(&previous, &entry);
            lines.push(entry_line(&entry, &previous));
        }
        lines.push(last_line(3));
        lines
    }

    fn check<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> FileVerdict {
        let mut checker = FileChecker::default();
        let _ = lines.into_iter().all(|line| checker.read(line.as_ref()));
        checker.finish()
    }

    #[test]
    fn what_is_written_reads_back_sound() {
        let verdict = check(file());

        assert!(verdict.is_sound(), "{verdict:?}");
        assert_eq!((verdict.scope, verdict.trail.entries), (Some(Scope::Document("12345".to_owned())), 3));
    }

    #[test]
    fn a_file_that_was_cut_off_or_added_to_is_found() {
        let lines = file();
        for kept in 0..lines.len() {
            assert!(!check(&lines[..kept]).is_sound(), "the first {kept} lines");
        }
        let mut added = lines.clone();
        added.push(lines[3].clone());
        assert_eq!(check(&added).flaws, [FileFlaw::NotEnded]);
        let mut fewer = lines.clone();
        fewer.remove(3);
        assert_eq!(check(&fewer).flaws, [FileFlaw::OtherCount { told: 3, found: 2 }]);
    }

    #[test]
    fn every_changed_byte_of_an_entry_is_found() {
        let lines = file();
        let line = &lines[2];
        for at in line.char_indices().map(|(at, _)| at).filter(|at| line.is_char_boundary(at + 1)) {
            let mut changed = line.clone();
            let other = if &line[at..=at] == "7" { "8" } else { "7" };
            changed.replace_range(at..=at, other);

            let verdict = check([&lines[0], &lines[1], &changed, &lines[3], &lines[4]]);

            assert!(!verdict.is_sound(), "{changed}");
        }
    }

    #[test]
    fn other_files_are_no_trails() {
        for other in ["", "{}", "[]", "PK\u{3}\u{4}", "{\"saveguard\":\"audit-trail\",\"format\":2}"] {
            assert_eq!(check([other]).flaws, [FileFlaw::NotATrail], "{other}");
        }
        assert_eq!(check::<&str>([]).flaws, [FileFlaw::NotATrail]);
    }
}
