//! Parts that another branch builds; this file goes when it is merged.
#![allow(unused_variables, reason = "goes with the file")]
#![allow(unused_imports, reason = "goes with the file")]
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use model::audit::Entry;
use model::names::FileName;
use model::records::{RecordKey, RemovedRows};
use model::scopes::Deadline;
use model::submissions::{Problem, StagedRow};
use model::{
    CompanyId, Digest, DocumentId, EditorKey, InboxNumber, Label, OrganisationId, RegistrationId, Scope,
    SummaryLogId, TemplateId, TemplateVersion,
};
use steps::{Fault, Faults};

use crate::callers::{ApiToken, NewApiToken, Revocation};
use crate::changes::{ChangeOutcome, ChangeRequest, Download, HeadChange, SaveNews};
use crate::documents::{
    Author, Company, CompanyChange, Content, Document, DocumentPage, KeptCopy, KeptPage, NewDocument,
    Project, ProjectRenaming, UnnamedBlob,
};
use crate::history::{ContentsPage, DocumentRenaming, Mention, NewMention, Person};
use crate::keys::{KeyRecord, KeyStandingNow, OpenGrant, OpenRequest, Presence, Retirement, ViewKey};
use crate::logs::{
    CreatedLog, Finished, FinishedValidation, LogsPage, NewLog, Run, Submission, SubmissionReceipt,
    SubmitAnswer, SubmitWish, SummaryLog, TakeUp,
};
use crate::operations::{Operation, Present};
use crate::outbox::{Delivery, DeliveryEnd, Subscription, WebhookStanding};
use crate::pruning::{OwedPruning, PruneWish, PrunedContent, PrunedKept, Purged};
use crate::publications::{ExternalChange, Owed, Published};
use crate::records::{
    AsOf, Commit, Erased, Erasure, RecordVersion, RecordsPage, ScopeStanding, StandingsPage, VersionAppend,
    VersionAppends,
};
use crate::saves::{
    Arrival, Aside, Committed, ForgottenFile, OpenSave, PreparedSave, Receipt, SaveRecord, StillNeeded,
};
use crate::scopes::{
    Accreditation, AccreditationWish, DeadlineWish, Import, Imported, Organisation, OrganisationWish,
    Registration, RegistrationWish, ScopeWish, Writing,
};
use crate::sessions::{Look, LookOutcome, SessionPage, SessionRecord};
use crate::shares::{Guest, GuestSession, NewShare, RefusedVisit, Share, ShareRevocation, Visit};
use crate::snapshots::{BegunAgain, Restoration};
use crate::staging::{
    ChangesPage, Comparison, Duplicate, ProblemChunk, ProblemCount, ProblemsPage, RowChange, UndoStaged,
};
use crate::templates::{Added, NewTemplate, Template, TemplateEntry, TemplateRetirement};
use crate::trail::{ActsPage, Anchored, Anchoring, BlobRecord, Inconsistency, ReadBack, SaveReceipt, Totals};
use crate::{
    Callers, Changes, Documents, History, Keys, Ledger, LedgerError, Logs, Operations, Outbox, Pruning,
    Publications, Records, Result, Saves, Scopes, Sessions, Shares, Snapshots, Staging, Templates, Trail,
};

macro_rules! awaited {
    ($part:ident { $(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)* }) => {
        #[async_trait]
        impl $part for super::PostgresLedger {
            $(async fn $name(&self, $($arg: $type),*) -> Result<$result> {
                Err(super::errors::unavailable("not built yet"))
            })*
        }
    };
}

awaited!(Scopes {
    fn write_organisation(wish: &OrganisationWish, writing: &Writing) -> Organisation;
    fn write_registration(wish: &RegistrationWish, writing: &Writing) -> Registration;
    fn write_accreditation(wish: &AccreditationWish, writing: &Writing) -> Accreditation;
    fn write_deadline(wish: &DeadlineWish, writing: &Writing) -> Deadline;
    fn remove_deadline(scope: &Scope, period: &str, writing: &Writing) -> bool;
    fn import_scopes(wishes: &[(u32, ScopeWish)], import: &Import) -> Imported;
    fn organisation(id: &OrganisationId) -> Option<Organisation>;
    fn organisations(after: Option<&OrganisationId>, limit: u32) -> Vec<Organisation>;
    fn registration(scope: &Scope) -> Option<Registration>;
    fn registrations(organisation: &OrganisationId, after: Option<&RegistrationId>, limit: u32) -> Vec<Registration>;
    fn accreditations(scope: &Scope) -> Vec<Accreditation>;
    fn deadlines(scope: &Scope) -> Vec<Deadline>;
});

awaited!(Templates {
    fn add_template(new: &NewTemplate) -> Added;
    fn retire_template(retirement: &TemplateRetirement) -> bool;
    fn template(id: &TemplateId, version: &TemplateVersion) -> Option<Template>;
    fn templates(id: Option<&TemplateId>) -> Vec<TemplateEntry>;
});

awaited!(Logs {
    fn create_log(new: &NewLog) -> CreatedLog;
    fn log(scope: &Scope, id: &SummaryLogId) -> Option<SummaryLog>;
    fn log_by_id(id: &SummaryLogId) -> Option<SummaryLog>;
    fn logs(page: &LogsPage) -> Vec<SummaryLog>;
    fn owed_logs(at: Timestamp, limit: u32) -> Vec<SummaryLog>;
    fn take_up(wish: &TakeUp) -> Option<Run>;
    fn keep_working(run: &Run, until: Timestamp) -> ();
    fn begin_validation(run: &Run, at: Timestamp) -> ();
    fn finish_validation(finish: &FinishedValidation) -> Finished;
    fn renew_preview(run: &Run, basis: u64, at: Timestamp) -> Finished;
    fn fail_validation(run: &Run, reason: &str, at: Timestamp) -> ();
    fn begin_submission(wish: &SubmitWish) -> SubmitAnswer;
    fn commit_submission(run: &Run, at: Timestamp) -> Submission;
    fn return_to_validated(run: &Run, reason: &str, at: Timestamp) -> ();
    fn release_log(id: &SummaryLogId, who: &Author, at: Timestamp) -> bool;
    fn retry_log(id: &SummaryLogId, who: &Author, at: Timestamp) -> bool;
    fn clear_staging(limit: u32) -> u64;
    fn submission_receipt(scope: &Scope, id: &SummaryLogId) -> Option<SubmissionReceipt>;
});

awaited!(Staging {
    fn stage_rows(run: &Run, rows: Vec<StagedRow>) -> Vec<Duplicate>;
    fn stage_problems(run: &Run, chunk: &ProblemChunk) -> ();
    fn count_problems(run: &Run, more: &[ProblemCount]) -> ();
    fn stage_undo(run: &Run, sequence: u64) -> UndoStaged;
    fn compare(run: &Run, removals: &BTreeMap<String, RemovedRows>) -> Comparison;
    fn log_changes(page: &ChangesPage) -> Vec<RowChange>;
    fn problems(page: &ProblemsPage) -> Vec<(u64, Problem)>;
    fn problem_counts(log: &SummaryLogId) -> Vec<ProblemCount>;
});

awaited!(Records {
    fn find_by_registration(page: &RecordsPage) -> Vec<RecordVersion>;
    fn append_versions(append: &VersionAppends) -> u64;
    fn versions_to_append(run: &Run, after: Option<&RecordKey>, limit: u32) -> BTreeMap<RecordKey, VersionAppend>;
    fn commit_at(scope: &Scope, moment: &AsOf) -> Option<u64>;
    fn record_history(scope: &Scope, key: &RecordKey, page: (u64, u32)) -> Vec<RecordVersion>;
    fn commits(scope: &Scope, before: Option<u64>, limit: u32) -> Vec<Commit>;
    fn scope_standings(page: &StandingsPage) -> Vec<ScopeStanding>;
    fn erase_values(erasure: &Erasure) -> Erased;
});
