//! Records: what the rows of submitted workbooks become, and the rules about how they change.
//!
//! Guarantees: whether a row changes a record is told by two hashes ([`rule_on_row`]); what changed in it by the canonical texts of
//! its values ([`changed_cells`]); when versions become visible by [`rule_on_commit`]. All of it total and pure.
//! Does not do: the states of a summary log ([`submissions`](crate::submissions)), storing (`ledger`).

use std::collections::{BTreeMap, BTreeSet};

pub use crate::scopes::Scope;

use crate::submissions::LogState;
use crate::{Digest, Guards};

/// What stands in place of a value that was erased.
pub const ERASED: &str = "[erased]";

/// What a record is known by in its scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKey {
    /// The kind of record.
    pub kind: String,
    /// Its own id, in its canonical text.
    pub key: String,
}

impl RecordKey {
    /// Both parts.
    pub fn new(kind: impl Into<String>, key: impl Into<String>) -> Self {
        Self { kind: kind.into(), key: key.into() }
    }
}

/// What a staged row does to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// There was none.
    Created,
    /// Its values, or how it counts, are others.
    Updated,
    /// Nothing.
    Unchanged,
    /// The record ends: its row is not there any more.
    Removed,
}

impl Change {
    /// Each with its word.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Created, "created"),
        (Self::Updated, "updated"),
        (Self::Unchanged, "unchanged"),
        (Self::Removed, "removed"),
    ];

    /// The word.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(change, _)| *change == self).map_or("", |(_, word)| word)
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(change, _)| *change)
    }
}

/// What a staged row does, told by its hash and the hash of the record as it is. A staged row without content asks for the
/// end of its record.
pub fn rule_on_row(staged: Option<&Digest>, current: Option<&Digest>) -> Change {
    match (staged, current) {
        (Some(_), None) => Change::Created,
        (Some(staged), Some(current)) if staged == current => Change::Unchanged,
        (Some(_), Some(_)) => Change::Updated,
        (None, Some(_)) => Change::Removed,
        (None, None) => Change::Unchanged,
    }
}

/// What it means that a record has no row in a workbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RemovedRows {
    /// The workbook is wrong.
    #[default]
    Fatal,
    /// The record ends; its history stays.
    Tombstone,
    /// Nothing: workbooks hold only what is new.
    Ignore,
}

impl RemovedRows {
    /// Each with its word.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Fatal, "fatal"), (Self::Tombstone, "tombstone"), (Self::Ignore, "ignore")];

    /// The word.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(policy, _)| *policy == self).map_or("", |(_, word)| word)
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(policy, _)| *policy)
    }
}

/// What a submission will do, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PreviewStats {
    /// Records that will be new.
    pub created: u64,
    /// Records that will have other values.
    pub updated: u64,
    /// Rows that say what is known.
    pub unchanged: u64,
    /// Records that will end.
    pub removed: u64,
}

impl PreviewStats {
    /// How many versions will be written.
    pub fn changes(&self) -> u64 {
        self.created + self.updated + self.removed
    }
}

impl std::iter::Sum for PreviewStats {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |sum, more| Self {
            created: sum.created + more.created,
            updated: sum.updated + more.updated,
            unchanged: sum.unchanged + more.unchanged,
            removed: sum.removed + more.removed,
        })
    }
}

/// What the ledger knows when all versions of a submission are said to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitFacts {
    /// Where the log is.
    pub state: LogState,
    /// Whether the run that asks is still the one at work.
    pub is_its_run: bool,
    /// The head the preview was computed against.
    pub basis: u64,
    /// The head now.
    pub head: u64,
    /// Versions that were written.
    pub applied: u64,
    /// Versions that the preview promised.
    pub promised: u64,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCommit {
    /// The head moves, the log is submitted.
    Commit,
    /// That has happened already: the same result again.
    Done,
    /// Somebody else works on it now, or nobody should.
    Overtaken,
    /// The records moved since the preview: back to `validated`.
    BasisMoved,
    /// Versions are missing.
    Incomplete,
}

/// Decides whether the versions of a submission become visible.
pub fn rule_on_commit(guards: &Guards, facts: CommitFacts) -> OnCommit {
    match facts.state {
        LogState::Submitted => OnCommit::Done,
        LogState::Submitting if !facts.is_its_run => OnCommit::Overtaken,
        LogState::Submitting if facts.basis != facts.head && guards.basis_check => OnCommit::BasisMoved,
        LogState::Submitting if facts.applied != facts.promised && guards.versions_before_head => {
            OnCommit::Incomplete
        }
        LogState::Submitting => OnCommit::Commit,
        _ => OnCommit::Overtaken,
    }
}

/// Where a log goes when an operator frees its scope; `None` if it does not hold it.
pub fn rule_on_release(state: LogState) -> Option<LogState> {
    match state {
        LogState::Preprocessing | LogState::Validating => Some(LogState::ValidationFailed),
        LogState::Submitting => Some(LogState::Validated),
        LogState::Validated => Some(LogState::Superseded),
        LogState::Invalid | LogState::Submitted | LogState::Superseded | LogState::ValidationFailed => None,
    }
}

/// What the undoing of a commit does to one record that the commit changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUndo {
    /// It gets back what it was before the commit.
    Restore,
    /// It was created by the commit, and ends.
    Remove,
    /// A later commit changed it: it stays.
    Leave,
}

/// Decides about one record of a commit that is undone, from the numbers of the commits that gave it its value before that commit
/// (none, or one that ended it: `None`) and now.
pub fn rule_on_undo(undone: u64, before: Option<u64>, now: u64) -> OnUndo {
    match before {
        _ if now != undone => OnUndo::Leave,
        Some(_) => OnUndo::Restore,
        None => OnUndo::Remove,
    }
}

/// A value of a row that is another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellChange {
    /// The column.
    pub column: String,
    /// What stood there; none if the cell was blank.
    pub old: Option<String>,
    /// What stands there.
    pub new: Option<String>,
}

/// The values that differ between two rows, in order of column, from their canonical texts. A row that is not there is blank.
pub fn changed_cells(old: Option<&str>, new: Option<&str>) -> Vec<CellChange> {
    let (old, new) = (values_of(old), values_of(new));
    let columns: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    columns
        .into_iter()
        .filter(|column| old.get(*column) != new.get(*column))
        .map(|column| CellChange {
            column: column.clone(),
            old: old.get(column).cloned(),
            new: new.get(column).cloned(),
        })
        .collect()
}

/// Reads [`canonical_values`](crate::submissions::canonical_values) back. What is no such text has no values.
pub fn values_of(text: Option<&str>) -> BTreeMap<String, String> {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The text of a row without the values of these columns; `None` if nothing stands there, or nothing any more.
pub fn erased_values(text: &str, columns: &BTreeSet<String>) -> Option<String> {
    let mut values = values_of(Some(text));
    let mut has_changed = false;
    for (column, value) in &mut values {
        if columns.contains(column) && value != ERASED {
            ERASED.clone_into(value);
            has_changed = true;
        }
    }
    has_changed.then(|| crate::submissions::canonical_values(&values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hashes_tell_what_a_row_does() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        for (staged, current, expected) in [
            (Some(&a), None, Change::Created),
            (Some(&a), Some(&a), Change::Unchanged),
            (Some(&a), Some(&b), Change::Updated),
            (None, Some(&b), Change::Removed),
            (None, None, Change::Unchanged),
        ] {
            assert_eq!(rule_on_row(staged, current), expected);
        }
        for (change, word) in Change::ALL {
            assert_eq!(Change::parse(word), Some(change));
        }
        for (policy, word) in RemovedRows::ALL {
            assert_eq!(RemovedRows::parse(word), Some(policy));
        }
    }

    #[test]
    fn only_a_whole_submission_of_the_right_run_on_the_right_basis_is_committed() {
        for (state, _) in LogState::ALL {
            for is_its_run in [true, false] {
                for (head, applied) in [(3, 7), (4, 7), (3, 6), (4, 8)] {
                    let facts = CommitFacts { state, is_its_run, basis: 3, head, applied, promised: 7 };

                    let commits = rule_on_commit(&Guards::ALL, facts) == OnCommit::Commit;

                    let is_right = state == LogState::Submitting && is_its_run && (head, applied) == (3, 7);
                    assert_eq!(commits, is_right, "{facts:?}");
                }
            }
        }
    }

    #[test]
    fn releasing_follows_the_table_of_transitions() {
        for (state, word) in LogState::ALL {
            let next = rule_on_release(state);
            assert_eq!(next.is_some(), state.is_active(), "{word}");
            assert!(next.is_none_or(|next| state.may_become(next)), "{word}");
        }
    }

    #[test]
    fn undoing_leaves_what_changed_since() {
        assert_eq!(rule_on_undo(4, Some(2), 4), OnUndo::Restore);
        assert_eq!(rule_on_undo(4, None, 4), OnUndo::Remove);
        assert_eq!(rule_on_undo(4, Some(2), 5), OnUndo::Leave);
        assert_eq!(rule_on_undo(4, None, 5), OnUndo::Leave);
    }

    #[test]
    fn changed_cells_are_told_with_what_stood_there() {
        let old = r#"{"A":"1","B":"2","C":"3"}"#;
        let new = r#"{"A":"1","B":"20","D":"4"}"#;

        let cells: Vec<_> = changed_cells(Some(old), Some(new))
            .into_iter()
            .map(|cell| (cell.column, cell.old.unwrap_or_default(), cell.new.unwrap_or_default()))
            .collect();

        let expected = [("B", "2", "20"), ("C", "3", ""), ("D", "", "4")];
        assert_eq!(cells, expected.map(|(column, old, new)| (column.into(), old.into(), new.into())));
        assert_eq!(changed_cells(Some(old), Some(old)), []);
        assert_eq!(changed_cells(None, Some(old)).len(), 3);
    }

    #[test]
    fn erasing_twice_changes_nothing_the_second_time() {
        let columns = BTreeSet::from(["PHONE".to_owned()]);
        let text = r#"{"A":"1","PHONE":"555"}"#;

        let erased = erased_values(text, &columns).unwrap();

        assert_eq!(erased, r#"{"A":"1","PHONE":"[erased]"}"#);
        assert_eq!(erased_values(&erased, &columns), None);
        assert_eq!(erased_values(r#"{"A":"1"}"#, &columns), None);
    }
}
