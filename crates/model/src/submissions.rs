//! Submissions: the words of a summary log on its way to becoming records, and the rules of that way.
//!
//! Guarantees: every transition of a log is in one table ([`LogState::may_become`]); what an upload and a submit may do is decided by
//! [`rule_on_upload`] and [`rule_on_submit`], from facts read under the lock of the scope; a row has one canonical text
//! ([`canonical_values`]), whatever its cells looked like, and one hash ([`StagedRow::hash`]) that tells whether it changed.
//! Does not do: reading workbooks (`sheets`), storing (`ledger`), waiting.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Digest, Guards, SummaryLogId};

/// Where a summary log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogState {
    /// The bytes are stored; a scanner may still look at them.
    Preprocessing,
    /// The workbook is being read.
    Validating,
    /// Read, without a fatal problem; its preview can be submitted.
    Validated,
    /// Read, and wrong.
    Invalid,
    /// Its records are being written.
    Submitting,
    /// Its records are the current ones, or were.
    Submitted,
    /// A newer one took its place before it was submitted.
    Superseded,
    /// We could not read it, through a fault of ours that did not pass.
    ValidationFailed,
}

impl LogState {
    /// Every state with its word.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Preprocessing, "preprocessing"),
        (Self::Validating, "validating"),
        (Self::Validated, "validated"),
        (Self::Invalid, "invalid"),
        (Self::Submitting, "submitting"),
        (Self::Submitted, "submitted"),
        (Self::Superseded, "superseded"),
        (Self::ValidationFailed, "validation_failed"),
    ];

    /// The word.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(state, _)| *state == self).map_or("", |(_, word)| word)
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(state, _)| *state)
    }

    /// The table of transitions. What is not here never happens.
    pub fn may_become(self, next: Self) -> bool {
        use LogState::{
            Invalid, Preprocessing, Submitted, Submitting, Superseded, Validated, Validating,
            ValidationFailed,
        };
        matches!(
            (self, next),
            (Preprocessing, Validating | Invalid | Superseded | ValidationFailed)
                | (Validating, Validated | Invalid | Superseded | ValidationFailed)
                | (Validated, Validating | Submitting | Superseded)
                | (Submitting, Submitted | Validated)
        )
    }

    /// Whether the log holds its scope: at most one such log under [`Policy::OneActive`].
    pub fn is_active(self) -> bool {
        matches!(self, Self::Preprocessing | Self::Validating | Self::Validated | Self::Submitting)
    }

    /// Whether nothing will ever happen to it again.
    pub fn is_final(self) -> bool {
        !Self::ALL.iter().any(|(next, _)| self.may_become(*next))
    }
}

/// How many logs of a scope may be previewed side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// The last upload wins; none while a submission runs.
    #[default]
    OneActive,
    /// Previews coexist; whether one is stale is decided when it is submitted.
    Parallel,
}

impl Policy {
    /// Each with its word.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::OneActive, "one-active"), (Self::Parallel, "parallel")];

    /// The word.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(policy, _)| *policy == self).map_or("", |(_, word)| word)
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(policy, _)| *policy)
    }
}

/// What follows from an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUpload {
    /// A log is created; every older one of the scope that is active becomes superseded.
    Create {
        /// Whether older unsubmitted logs of the scope make way.
        supersede_others: bool,
    },
    /// 409: "A submission is in progress. Please wait."
    RefuseWhileSubmitting,
}

/// Decides about an upload, from the log of the scope that is being submitted, if there is one.
pub fn rule_on_upload(policy: Policy, submitting: Option<&SummaryLogId>) -> OnUpload {
    match policy {
        Policy::OneActive if submitting.is_some() => OnUpload::RefuseWhileSubmitting,
        Policy::OneActive => OnUpload::Create { supersede_others: true },
        Policy::Parallel => OnUpload::Create { supersede_others: false },
    }
}

/// What the ledger knows when somebody confirms a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmitFacts {
    /// Where the log is.
    pub state: LogState,
    /// The head of the scope that the preview was computed against.
    pub basis: u64,
    /// The head of the scope now.
    pub head: u64,
    /// Whether another log of the scope is being submitted.
    pub another_is_submitting: bool,
}

/// What follows from a submit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSubmit {
    /// The log becomes `submitting`.
    Begin,
    /// It runs already: the same answer again.
    Running,
    /// It is done already: the same result again.
    Done,
    /// 409: "A newer summary log has been uploaded".
    RefuseSuperseded,
    /// 409: another submission of the scope is running.
    RefuseBusy,
    /// 409: the records moved since the preview; it is computed again and must be confirmed again.
    RefuseStale,
    /// 409: there is no preview to confirm.
    RefuseNotValidated,
}

/// Decides about a submit.
pub fn rule_on_submit(guards: &Guards, facts: SubmitFacts) -> OnSubmit {
    let state = match facts.state {
        LogState::Submitted | LogState::Submitting if !guards.submits_once => LogState::Validated,
        LogState::Superseded if !guards.superseded_is_over => LogState::Validated,
        state => state,
    };
    match state {
        LogState::Submitted => OnSubmit::Done,
        LogState::Submitting => OnSubmit::Running,
        LogState::Superseded => OnSubmit::RefuseSuperseded,
        LogState::Validated if facts.another_is_submitting => OnSubmit::RefuseBusy,
        LogState::Validated if facts.basis != facts.head && guards.basis_check => OnSubmit::RefuseStale,
        LogState::Validated => OnSubmit::Begin,
        LogState::Preprocessing | LogState::Validating | LogState::Invalid | LogState::ValidationFailed => {
            OnSubmit::RefuseNotValidated
        }
    }
}

/// How bad a problem in a workbook is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The workbook cannot be submitted.
    Fatal,
    /// A row does not count, the workbook can be submitted.
    Error,
    /// Worth a look.
    Warning,
}

impl Severity {
    /// Each with its word.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Fatal, "fatal"), (Self::Error, "error"), (Self::Warning, "warning")];

    /// The word.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(severity, _)| *severity == self).map_or("", |(_, word)| word)
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(severity, _)| *severity)
    }
}

/// Something wrong in a workbook, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, for machines: `NET_DOES_NOT_ADD_UP`.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// On which of the four levels it was found: 0 container, 1 and 2 meta values, 3 values of cells, 4 against the records.
    pub level: u8,
    /// The sheet, if it is about one.
    pub sheet: Option<String>,
    /// The cell, as people write it: `D14`.
    pub cell: Option<String>,
    /// The header of its column, or the name of the meta value.
    pub header: Option<String>,
    /// The row's own id.
    pub row_id: Option<String>,
    /// What stands there, cut to the template's limit. Never written to logs: it may be personal.
    pub value: Option<String>,
    /// The sentence for people: what is wrong and what to do.
    pub sentence: String,
}

/// A row of a workbook in its canonical form, as it is staged, compared and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedRow {
    /// The kind of record; with the key it is the record's identity in its scope. Shared by the rows of a table, like the sheet.
    pub kind: Arc<str>,
    /// The row's id in its one canonical text.
    pub key: String,
    /// [`canonical_values`] of its columns.
    pub values: String,
    /// Whether and how the row counts: `included`, `excluded`, `ignored`.
    pub outcome: Cow<'static, str>,
    /// Why it does not count.
    pub reason: Option<String>,
    /// What it adds to the template's measure, as a decimal text.
    pub measure: Option<String>,
    /// The sheet it stands on.
    pub sheet: Arc<str>,
    /// Its row on the sheet, from 1.
    pub row: u32,
}

impl StagedRow {
    /// What decides whether the row changed: its values and how it counts. Where it stands does not matter.
    pub fn hash(&self) -> Digest {
        content_hash((&self.values, &self.outcome), (self.reason.as_deref(), self.measure.as_deref()))
    }
}

/// The hash of what a row says: its values and outcome, why it does not count, and what it measures.
pub fn content_hash(
    (values, outcome): (&str, &str),
    (reason, measure): (Option<&str>, Option<&str>),
) -> Digest {
    let (reason, measure) = (reason.unwrap_or_default(), measure.unwrap_or_default());
    Digest::of_pieces([values, "\n", outcome, "\n", reason, "\n", measure].map(str::as_bytes))
}

/// The one text of a row's values: a JSON object of texts, sorted by column, blanks left out. Values are canonical texts already
/// (decimals without trailing zeros, dates as `YYYY-MM-DD`, `Yes`/`No`), so equal rows are equal bytes.
pub fn canonical_values(values: &BTreeMap<String, String>) -> String {
    let filled: BTreeMap<_, _> = values.iter().filter(|(_, value)| !value.is_empty()).collect();
    serde_json::to_string(&filled).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_transitions_is_the_seeds_diagram_and_our_ways_back() {
        let happening: Vec<String> = LogState::ALL
            .iter()
            .flat_map(|(from, _)| LogState::ALL.iter().map(move |(to, _)| (*from, *to)))
            .filter(|(from, to)| from.may_become(*to))
            .map(|(from, to)| format!("{} -> {}", from.as_str(), to.as_str()))
            .collect();
        assert_eq!(
            happening,
            [
                "preprocessing -> validating",
                "preprocessing -> invalid",
                "preprocessing -> superseded",
                "preprocessing -> validation_failed",
                "validating -> validated",
                "validating -> invalid",
                "validating -> superseded",
                "validating -> validation_failed",
                "validated -> validating",
                "validated -> submitting",
                "validated -> superseded",
                "submitting -> validated",
                "submitting -> submitted",
            ]
        );
    }

    #[test]
    fn what_is_final_is_not_active() {
        for (state, word) in LogState::ALL {
            assert_eq!(state.is_final(), !state.is_active(), "{word}");
            assert_eq!(LogState::parse(word), Some(state));
        }
    }

    #[test]
    fn an_upload_waits_for_nobody_except_a_submission() {
        let running = SummaryLogId::parse("running").ok();
        assert_eq!(rule_on_upload(Policy::OneActive, running.as_ref()), OnUpload::RefuseWhileSubmitting);
        assert_eq!(rule_on_upload(Policy::OneActive, None), OnUpload::Create { supersede_others: true });
        for submitting in [running.as_ref(), None] {
            let plan = rule_on_upload(Policy::Parallel, submitting);
            assert_eq!(plan, OnUpload::Create { supersede_others: false });
        }
    }

    #[test]
    fn only_a_current_preview_of_a_quiet_scope_begins() {
        for (state, word) in LogState::ALL {
            for (head, another_is_submitting) in [(3, false), (3, true), (4, false), (4, true)] {
                let facts = SubmitFacts { state, basis: 3, head, another_is_submitting };
                let begins = rule_on_submit(&Guards::ALL, facts) == OnSubmit::Begin;
                let is_current = state == LogState::Validated && head == 3 && !another_is_submitting;
                assert_eq!(begins, is_current, "{word} {facts:?}");
            }
        }
    }

    #[test]
    fn equal_rows_have_equal_texts_and_where_they_stand_does_not_count() {
        let values = |pairs: &[(&str, &str)]| {
            canonical_values(&pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
        };
        assert_eq!(values(&[("B", "2"), ("A", "1"), ("C", "")]), r#"{"A":"1","B":"2"}"#);
        let row = StagedRow {
            kind: "load".into(),
            key: "1000".into(),
            values: values(&[("A", "1")]),
            outcome: "included".into(),
            reason: None,
            measure: Some("1.5".into()),
            sheet: "Loads".into(),
            row: 7,
        };
        let moved = StagedRow { row: 8, sheet: "Other".into(), ..row.clone() };
        let excluded = StagedRow { outcome: "excluded".into(), ..row.clone() };
        assert_eq!(row.hash(), moved.hash());
        assert_ne!(row.hash(), excluded.hash());
        assert_eq!(
            row.hash(),
            Digest::of(b"{\"A\":\"1\"}\nincluded\n\n1.5"),
            "hashes of earlier releases count"
        );
    }
}
