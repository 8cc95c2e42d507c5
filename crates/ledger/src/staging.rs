//! The part of the port about what a workbook holds before it is submitted: its rows, its problems, and how it compares.
//!
//! Rows are staged in their canonical form and stored once: what is staged is what becomes a version. A row that says what its
//! record says already stores nothing. Everything that is written needs the [`Run`] that may write.
//!
//! Does not do: deciding whether a workbook is right; that is told to it as problems.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use model::SummaryLogId;
use model::records::{CellChange, Change, PreviewStats, RecordKey, RemovedRows};
use model::submissions::{Problem, Severity, StagedRow};

use crate::Result;
use crate::logs::Run;

/// Rows and problems of a log.
#[async_trait]
pub trait Staging: Send + Sync {
    /// Stages rows, in transactions of at most [`CHUNK_MAX`](crate::logs::CHUNK_MAX). A row whose key is staged already from another place is not
    /// staged: it is named in the answer. The same row again changes nothing. Rows survive a power cut once the validation is finished; until
    /// then it would begin again.
    async fn stage_rows(&self, run: &Run, rows: Vec<StagedRow>) -> Result<Vec<Duplicate>>;
    /// Counts problems, and keeps as many of each severity as may be kept. Those that were counted before are not counted again.
    async fn stage_problems(&self, run: &Run, chunk: &ProblemChunk) -> Result<()>;
    /// Counts problems that were found and not handed over one by one, because there were too many of them. The last step before the
    /// validation is finished.
    async fn count_problems(&self, run: &Run, more: &[ProblemCount]) -> Result<()>;
    /// Stages the undoing of a commit: what it created ends, what it updated or ended comes back, unless it was changed since.
    async fn stage_undo(&self, run: &Run, sequence: u64) -> Result<UndoStaged>;
    /// Compares everything staged with the records as they are now, and stages the end of records that have no row, as the policy of
    /// their kind says. Kinds that are not named are left alone. The answer holds for the basis it names.
    async fn compare(&self, run: &Run, removals: &BTreeMap<String, RemovedRows>) -> Result<Comparison>;
    /// What a log changes, in order of kind and key: against its basis if it is not submitted, in its commit if it is.
    async fn log_changes(&self, page: &ChangesPage) -> Result<Vec<RowChange>>;
    /// The problems that are kept, the worst first, then in the order in which they were found.
    async fn problems(&self, page: &ProblemsPage) -> Result<Vec<(u64, Problem)>>;
    /// How often each problem was found, exactly.
    async fn problem_counts(&self, log: &SummaryLogId) -> Result<Vec<ProblemCount>>;
}

/// A row whose key is taken by another row of the same workbook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The key.
    pub key: RecordKey,
    /// The sheet and row of the one that is staged.
    pub first: (String, u32),
    /// The sheet and row of the other.
    pub again: (String, u32),
}

/// Problems in the order in which they were found.
#[derive(Debug, Clone)]
pub struct ProblemChunk {
    /// How many were found before these, since the validation began.
    pub found_before: u64,
    /// These.
    pub problems: Vec<Problem>,
    /// As many of each severity are kept; all are counted.
    pub keep_max: u64,
}

/// What the undoing of a commit does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UndoStaged {
    /// Records that get back what they were.
    pub restored: u64,
    /// Records that end.
    pub removed: u64,
    /// Records that were changed since, and stay: how many.
    pub left: u64,
    /// The first of them.
    pub left_keys: Vec<RecordKey>,
}

/// How a log compares with the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The head it was compared with.
    pub basis: u64,
    /// What its submission does.
    pub stats: PreviewStats,
    /// The same by kind of record.
    pub stats_by_kind: BTreeMap<String, PreviewStats>,
    /// Records of kinds whose rows may not be removed, and that have none: how many.
    pub missing: u64,
    /// The first of them, in order.
    pub missing_keys: Vec<MissingRow>,
}

/// A record that has no row, although it must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRow {
    /// Which.
    pub key: RecordKey,
    /// The sheet and row it had when it was last changed.
    pub place: (String, u32),
    /// The log that last changed it.
    pub log: SummaryLogId,
    /// When that was committed.
    pub committed_at: Timestamp,
}

/// Which changes of a log to list.
#[derive(Debug, Clone)]
pub struct ChangesPage {
    /// Of this log.
    pub log: SummaryLogId,
    /// Of this kind of change only. None named: everything that is not unchanged.
    pub change: Option<Change>,
    /// Of this kind of record only.
    pub kind: Option<String>,
    /// Whose key begins so.
    pub key_prefix: Option<String>,
    /// After this one: the last one of the page before.
    pub after: Option<RecordKey>,
    /// Against this head, while the preview is being computed; otherwise against the basis of the log.
    pub basis: Option<u64>,
    /// At most so many.
    pub limit: u32,
}

/// What happens to one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// Which.
    pub key: RecordKey,
    /// What.
    pub change: Change,
    /// What it is before.
    pub before: Option<RowContent>,
    /// What it is afterwards.
    pub after: Option<RowContent>,
    /// The values that differ.
    pub cells: Vec<CellChange>,
    /// The sheet and row it comes from; none if it ends.
    pub place: Option<(String, u32)>,
}

/// What a row says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowContent {
    /// [`canonical_values`](model::submissions::canonical_values) of its columns.
    pub values: String,
    /// Whether and how it counts.
    pub outcome: String,
    /// Why it does not count.
    pub reason: Option<String>,
    /// What it adds to the template's measure.
    pub measure: Option<String>,
    /// When personal values of it were erased.
    pub erased_at: Option<Timestamp>,
}

/// Which problems to list.
#[derive(Debug, Clone)]
pub struct ProblemsPage {
    /// Of this log.
    pub log: SummaryLogId,
    /// Of this severity only.
    pub severity: Option<Severity>,
    /// With this code only.
    pub code: Option<String>,
    /// On this sheet only.
    pub sheet: Option<String>,
    /// After this one: severity and number of the last one of the page before.
    pub after: Option<(Severity, u64)>,
    /// At most so many.
    pub limit: u32,
}

/// How often a problem was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemCount {
    /// Its code.
    pub code: String,
    /// How bad.
    pub severity: Severity,
    /// How often.
    pub count: u64,
}
