//! The part of the port about summary logs: from the upload of a workbook to the commit that makes its rows the records.
//!
//! A *scope* (organisation and registration) has a head: the number of its last commit. Every step that changes a log locks the
//! scope first, so that uploads and submits of one scope have an order. Whoever works on a log has a [`Run`]: a number that grows
//! whenever somebody takes the log up. A step of an older run is refused with [`LedgerError::Overtaken`](crate::LedgerError::Overtaken)
//! and changes nothing, however long it was paused. Leases only save work.
//!
//! Every step may be repeated. Those that touch many rows do so in small transactions of at most [`CHUNK_MAX`] rows, so that saves of
//! documents go on between them; cut short, they are begun again by whoever takes the log up.
//!
//! Does not do: reading workbooks, waiting, deciding when to try again. Rows and problems: [`Staging`](crate::Staging). What became of them:
//! [`Records`](crate::Records).

use async_trait::async_trait;
use jiff::Timestamp;
use model::audit::Entry;
use model::records::{PreviewStats, Scope};
use model::submissions::{LogState, OnSubmit, Policy};
use model::{AccreditationId, Digest, DocumentId, Label, OrganisationId, SummaryLogId};

use crate::Result;
use crate::documents::{Author, BlobFacts};

/// Rows in one transaction: a save of a document waits some milliseconds behind it, not more.
pub const CHUNK_MAX: usize = 500;
/// Versions appended in one transaction. They only name what is staged, so that a page of them takes no longer than a chunk of rows.
pub const APPENDED_MAX: usize = 1_000;

/// Summary logs on their way.
#[async_trait]
pub trait Logs: Send + Sync {
    /// Writes down an upload whose bytes are stored, as [`rule_on_upload`](model::submissions::rule_on_upload) says: older logs of the
    /// scope make way in the same step. The same id or upload id again finds what the first one made.
    async fn create_log(&self, new: &NewLog) -> Result<CreatedLog>;
    /// A log of a scope. The id of a log of another scope finds nothing.
    async fn log(&self, scope: &Scope, id: &SummaryLogId) -> Result<Option<SummaryLog>>;
    /// A log, whosever it is: for work that was not asked for by anybody.
    async fn log_by_id(&self, id: &SummaryLogId) -> Result<Option<SummaryLog>>;
    /// Logs, the newest first.
    async fn logs(&self, page: &LogsPage) -> Result<Vec<SummaryLog>>;
    /// Logs that wait for work and that nobody works on: `preprocessing`, `validating` or `submitting`, their lease over. Oldest first.
    async fn owed_logs(&self, at: Timestamp, limit: u32) -> Result<Vec<SummaryLog>>;
    /// Takes a log up: from now on only this run counts. `None` if it is in another state, or its lease is not over.
    async fn take_up(&self, wish: &TakeUp) -> Result<Option<Run>>;
    /// Work goes on: the lease holds until then.
    async fn keep_working(&self, run: &Run, until: Timestamp) -> Result<()>;
    /// `preprocessing` becomes `validating`; one that is `validating`, or a preview that the records have left behind, begins again. What
    /// was staged before is gone afterwards.
    async fn begin_validation(&self, run: &Run, at: Timestamp) -> Result<()>;
    /// The workbook is read: `validated`, if the records have not moved since the comparison, or `invalid`.
    async fn finish_validation(&self, finish: &FinishedValidation) -> Result<Finished>;
    /// A stale preview was compared again ([`Staging::compare`](crate::Staging::compare)) and can be confirmed.
    async fn renew_preview(&self, run: &Run, basis: u64, at: Timestamp) -> Result<Finished>;
    /// We could not read it: `validation_failed`.
    async fn fail_validation(&self, run: &Run, reason: &str, at: Timestamp) -> Result<()>;
    /// Somebody confirms a preview: [`rule_on_submit`](model::submissions::rule_on_submit) decides.
    async fn begin_submission(&self, wish: &SubmitWish) -> Result<SubmitAnswer>;
    /// The one small step in which all versions of a submission become visible: the head moves, the log is `submitted`, audit entry
    /// and announcements are written. [`rule_on_commit`](model::records::rule_on_commit) decides.
    async fn commit_submission(&self, run: &Run, at: Timestamp) -> Result<Submission>;
    /// A submission failed for good: what it wrote above the head goes, and it is `validated` again, with the reason.
    async fn return_to_validated(&self, run: &Run, reason: &str, at: Timestamp) -> Result<()>;
    /// An operator frees the scope of a log, as [`rule_on_release`](model::records::rule_on_release) says. `false` if it does not hold it.
    async fn release_log(&self, id: &SummaryLogId, who: &Author, at: Timestamp) -> Result<bool>;
    /// An operator wants it tried again now: its lease is over and its attempts are forgotten. `false` if nothing is owed.
    async fn retry_log(&self, id: &SummaryLogId, who: &Author, at: Timestamp) -> Result<bool>;
    /// Removes staged rows that nobody needs any more, at most `limit` of them and at most [`CHUNK_MAX`]. How many; 0 when none are left.
    async fn clear_staging(&self, limit: u32) -> Result<u64>;
    /// What can be shown for a submission.
    async fn submission_receipt(&self, scope: &Scope, id: &SummaryLogId)
    -> Result<Option<SubmissionReceipt>>;
}

/// An upload whose bytes are durable in the vault, or another source of rows.
#[derive(Debug, Clone)]
pub struct NewLog {
    /// Its id, chosen by the caller.
    pub id: SummaryLogId,
    /// Whose.
    pub scope: Scope,
    /// Under which licence, if the template asks for one.
    pub accreditation: Option<AccreditationId>,
    /// The template's id.
    pub template: String,
    /// The template's version.
    pub template_version: String,
    /// How many previews the template lets stand side by side.
    pub policy: Policy,
    /// The id an outside uploader gave; the same one again is the same upload.
    pub upload: Option<String>,
    /// Where its rows come from.
    pub source: LogSource,
    /// Who.
    pub who: Author,
    /// When.
    pub at: Timestamp,
}

/// Where the rows of a log come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogSource {
    /// A workbook.
    Workbook {
        /// What it was called.
        name: String,
        /// Its bytes.
        blob: BlobFacts,
        /// The content of a document it is, if it was submitted from there.
        document: Option<(DocumentId, Label)>,
    },
    /// The undoing of a commit of the scope.
    Undo(u64),
}

/// What became of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreatedLog {
    /// It is new; these made way.
    Created {
        /// The log.
        log: Box<SummaryLog>,
        /// Older logs of the scope that are superseded now.
        superseded: Vec<SummaryLogId>,
    },
    /// It was known.
    Known(Box<SummaryLog>),
    /// A submission of the scope is in progress: this one.
    Busy(SummaryLogId),
}

/// A summary log as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryLog {
    /// Its place among all logs.
    pub number: u64,
    /// Its id.
    pub id: SummaryLogId,
    /// Whose.
    pub scope: Scope,
    /// Under which licence.
    pub accreditation: Option<AccreditationId>,
    /// The template's id.
    pub template: String,
    /// The template's version.
    pub template_version: String,
    /// How many previews may stand side by side.
    pub policy: Policy,
    /// Where it is.
    pub state: LogState,
    /// The id an outside uploader gave.
    pub upload: Option<String>,
    /// Where its rows come from.
    pub source: LogSource,
    /// Who uploaded it.
    pub who: Author,
    /// When.
    pub uploaded_at: Timestamp,
    /// When it was validated, for the first time; shown on every version it makes.
    pub validated_at: Option<Timestamp>,
    /// The head its preview was computed against.
    pub basis: Option<u64>,
    /// The head of its scope now. A preview on another basis is stale.
    pub head: u64,
    /// What its submission does.
    pub stats: Option<PreviewStats>,
    /// Rows that are staged.
    pub staged_rows: u64,
    /// Problems, all of them, also those that are not kept.
    pub problems: ProblemTotals,
    /// What the reader of the workbook wanted to be kept with it, as JSON.
    pub facts: Option<String>,
    /// Who confirmed it.
    pub submitted_by: Option<Author>,
    /// The commit it became, and when.
    pub commit: Option<(u64, Timestamp)>,
    /// Versions written by a submission that is running.
    pub applied: u64,
    /// Why it is where it is, if somebody said so.
    pub reason: Option<String>,
    /// The log it made way for.
    pub superseded_by: Option<SummaryLogId>,
    /// The run that counts.
    pub run: u64,
    /// How often it was taken up in its state.
    pub attempts: u32,
    /// Somebody works on it until then, as far as we know.
    pub worked_until: Option<Timestamp>,
}

impl SummaryLog {
    /// Whether its preview was computed against records that are not the current ones any more.
    pub fn is_stale(&self) -> bool {
        self.state == LogState::Validated && self.basis != Some(self.head)
    }
}

/// How many problems a workbook has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProblemTotals {
    /// That stop it.
    pub fatal: u64,
    /// That stop a row from counting.
    pub error: u64,
    /// Worth a look.
    pub warning: u64,
}

/// Which logs to list.
#[derive(Debug, Clone, Default)]
pub struct LogsPage {
    /// Of these organisations only.
    pub organisations: Option<Vec<OrganisationId>>,
    /// Of this scope only.
    pub scope: Option<Scope>,
    /// Of this document's contents only.
    pub document: Option<DocumentId>,
    /// In these states only; none named: in any.
    pub states: Vec<LogState>,
    /// Older than the one with this number.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: u32,
}

/// Somebody wants to work on a log.
#[derive(Debug, Clone)]
pub struct TakeUp {
    /// Which.
    pub log: SummaryLogId,
    /// The state it must be in.
    pub state: LogState,
    /// When.
    pub at: Timestamp,
    /// Others leave it alone until then.
    pub until: Timestamp,
}

/// The right to work on a log, until somebody takes it up after this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The log.
    pub log: SummaryLogId,
    /// Which of its runs.
    pub number: u64,
}

/// A workbook was read.
#[derive(Debug, Clone)]
pub struct FinishedValidation {
    /// By whom.
    pub run: Run,
    /// With what result.
    pub verdict: LogVerdict,
    /// Anything that should be kept with it, as JSON.
    pub facts: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// With what result a workbook was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogVerdict {
    /// It can be submitted.
    Validated {
        /// The head that [`Staging::compare`](crate::Staging::compare) compared with.
        basis: u64,
    },
    /// It is wrong.
    Invalid {
        /// Why, if it is not told by its problems.
        reason: Option<String>,
    },
}

/// What became of a finished validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// It is written down.
    Yes,
    /// The records moved since the comparison: compare again. Nothing was written.
    BasisMoved,
}

/// Somebody confirms a preview.
#[derive(Debug, Clone)]
pub struct SubmitWish {
    /// Of which scope.
    pub scope: Scope,
    /// The log.
    pub log: SummaryLogId,
    /// Who.
    pub who: Author,
    /// When.
    pub at: Timestamp,
    /// Others leave it alone until then.
    pub until: Timestamp,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitAnswer {
    /// What was decided.
    pub ruling: OnSubmit,
    /// The right to do it, if it begins.
    pub run: Option<Run>,
    /// The log as it stands now.
    pub log: SummaryLog,
}

/// What became of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submission {
    /// It is the head, or was: the commit's number and time.
    Committed {
        /// The commit's number.
        sequence: u64,
        /// When.
        at: Timestamp,
        /// Whether this very step did it.
        is_new: bool,
    },
    /// The records moved since the preview: return it to `validated` and compare again. Nothing is visible.
    BasisMoved,
    /// Versions are missing: append the rest.
    Incomplete {
        /// Versions that were written.
        applied: u64,
        /// Versions that the preview promised.
        promised: u64,
    },
}

/// What can be shown for a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionReceipt {
    /// The log.
    pub log: SummaryLog,
    /// The entry of the scope's audit chain that tells of the commit, and its hash.
    pub act: Option<(Entry, Digest)>,
}
