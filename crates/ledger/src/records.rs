//! The part of the port about records: the repository the seed draws, and everything that is read from it.
//!
//! A record is known by (kind, key) in its scope and has a version for each commit that changed it. Readers look only up to the
//! head of the scope, so versions of a submission that is not committed are never seen. `as_of` and order go by the numbers of
//! commits; times are for people.
//!
//! Guarantees: versions are never changed and never go, once committed. Erasing replaces personal values inside the content of
//! versions and keeps its hash. Does not do: deciding what is written (`staging`), nor when it counts (`logs`).

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jiff::Timestamp;
use model::records::{Change, PreviewStats, RecordKey, Scope};
use model::{AccreditationId, Digest, OrganisationId, RegistrationId, SummaryLogId};

use crate::Result;
use crate::documents::Author;
use crate::logs::Run;
use crate::staging::RowContent;

/// Records and their versions.
#[async_trait]
pub trait Records: Send + Sync {
    /// The records of a registration as they are or were, in order of kind and key: a page of them. The seed's `findByRegistration`.
    async fn find_by_registration(&self, page: &RecordsPage) -> Result<Vec<RecordVersion>>;
    /// Writes versions under the number after the head, invisible until the commit. The seed's `appendVersions`. What was appended before
    /// is not appended again. Returns how many were new.
    async fn append_versions(&self, append: &VersionAppends) -> Result<u64>;
    /// What is to be appended for a submission, in order of kind and key: a page of it, from the one after `after`.
    async fn versions_to_append(
        &self,
        run: &Run,
        after: Option<&RecordKey>,
        limit: u32,
    ) -> Result<BTreeMap<RecordKey, VersionAppend>>;
    /// The number of the commit that a moment means: 0 if there was none yet, `None` if there is no such commit or log.
    async fn commit_at(&self, scope: &Scope, moment: &AsOf) -> Result<Option<u64>>;
    /// The versions of one record, the oldest first, from the one after commit `after`.
    async fn record_history(
        &self,
        scope: &Scope,
        key: &RecordKey,
        page: (u64, u32),
    ) -> Result<Vec<RecordVersion>>;
    /// The commits of a scope, the newest first, older than `before`.
    async fn commits(&self, scope: &Scope, before: Option<u64>, limit: u32) -> Result<Vec<Commit>>;
    /// How scopes stand, in order: for whoever looks across organisations.
    async fn scope_standings(&self, page: &StandingsPage) -> Result<Vec<ScopeStanding>>;
    /// Erases personal values from every version of the records named, staged ones too, at most [`CHUNK_MAX`](crate::logs::CHUNK_MAX) records in
    /// one transaction. Audited. Repeating it changes nothing.
    async fn erase_values(&self, erasure: &Erasure) -> Result<Erased>;
}

/// A moment in the history of a scope.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AsOf {
    /// Now.
    #[default]
    Head,
    /// After this commit.
    Commit(u64),
    /// After the last commit that was made by then.
    Time(Timestamp),
    /// After the commit of this log.
    Log(SummaryLogId),
}

/// Which records to list.
#[derive(Debug, Clone)]
pub struct RecordsPage {
    /// Of this scope.
    pub scope: Scope,
    /// As they were after this commit, or are: `None`. A walk over several pages should name one.
    pub as_of: Option<u64>,
    /// Of this kind only.
    pub kind: Option<String>,
    /// Whose key begins so.
    pub key_prefix: Option<String>,
    /// That count so.
    pub outcome: Option<String>,
    /// Whose column says so.
    pub column: Option<(String, String)>,
    /// Which of those that ended.
    pub ended: Ended,
    /// After this one: the last one of the page before.
    pub after: Option<RecordKey>,
    /// At most so many.
    pub limit: u32,
}

impl RecordsPage {
    /// All records of a scope as they are.
    pub fn of(scope: &Scope, limit: u32) -> Self {
        Self {
            scope: scope.clone(),
            as_of: None,
            kind: None,
            key_prefix: None,
            outcome: None,
            column: None,
            ended: Ended::LeftOut,
            after: None,
            limit,
        }
    }
}

/// Whether records that ended are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ended {
    /// They are left out.
    #[default]
    LeftOut,
    /// They are among the others, without content.
    Included,
}

/// A version of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordVersion {
    /// Of which record.
    pub key: RecordKey,
    /// The commit it came with.
    pub sequence: u64,
    /// What the commit did to the record.
    pub change: Change,
    /// What the record says since; none if it ended.
    pub content: Option<RowContent>,
    /// The hash of the content as it was submitted, also if values of it were erased since.
    pub hash: Option<Digest>,
    /// The log it came with.
    pub log: SummaryLogId,
    /// The sheet and row of that log's workbook; none if it ended.
    pub place: Option<(String, u32)>,
    /// Under which licence.
    pub accreditation: Option<AccreditationId>,
    /// The template and its version.
    pub template: (String, String),
    /// When the log was validated.
    pub validated_at: Option<Timestamp>,
    /// When it was committed.
    pub committed_at: Timestamp,
    /// Who confirmed it.
    pub by: Author,
}

/// Versions to be appended for a submission.
#[derive(Debug, Clone)]
pub struct VersionAppends {
    /// Of this organisation.
    pub organisation: OrganisationId,
    /// And this registration.
    pub registration: RegistrationId,
    /// Under this licence.
    pub accreditation: Option<AccreditationId>,
    /// The submission.
    pub run: Run,
    /// By record: written at most [`APPENDED_MAX`](crate::logs::APPENDED_MAX) at a time.
    pub versions: BTreeMap<RecordKey, VersionAppend>,
}

/// One version to be appended. Its content is staged and stored already; this names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionAppend {
    /// What it does.
    pub change: Change,
    /// The content; none if the record ends.
    pub content: Option<ContentNumber>,
}

/// The number under which the content of a row is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentNumber(pub u64);

/// A commit of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its number.
    pub sequence: u64,
    /// The log it is of.
    pub log: SummaryLogId,
    /// When.
    pub at: Timestamp,
    /// Who confirmed it.
    pub by: Author,
    /// What it did.
    pub stats: PreviewStats,
    /// The commit it undid.
    pub undoes: Option<u64>,
}

/// Which scopes to list.
#[derive(Debug, Clone, Default)]
pub struct StandingsPage {
    /// Of these organisations only.
    pub organisations: Option<Vec<OrganisationId>>,
    /// After this one.
    pub after: Option<Scope>,
    /// At most so many.
    pub limit: u32,
}

/// How a scope stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeStanding {
    /// Which.
    pub scope: Scope,
    /// The number of its last commit; 0 if there is none.
    pub head: u64,
    /// When that was.
    pub committed_at: Option<Timestamp>,
    /// Logs that hold it.
    pub active: Vec<SummaryLogId>,
}

/// Personal values to be erased.
#[derive(Debug, Clone)]
pub struct Erasure {
    /// Of this scope.
    pub scope: Scope,
    /// Of this kind of record.
    pub kind: String,
    /// Of these records; `None`: of all of the kind.
    pub keys: Option<BTreeSet<String>>,
    /// These columns. Problems that quote a value of them, by this name or by their header, forget it too.
    pub columns: BTreeSet<String>,
    /// Why, for the audit trail. Not the value.
    pub reason: String,
    /// Who.
    pub who: Author,
    /// When.
    pub at: Timestamp,
}

/// What was erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erased {
    /// Contents in which something was erased: versions, and rows that are staged.
    pub contents: u64,
    /// Problems whose quoted value was erased.
    pub problems: u64,
}
