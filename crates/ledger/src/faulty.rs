//! A ledger around a ledger whose n-th call fails, for tests of flows.
//!
//! Guarantees: a call that fails *before* did nothing; one that fails *after* did everything and its caller does not
//! know. Which call it is, [`Faults`] says.

use std::collections::BTreeMap;
use std::ops::Range;
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
use crate::searching::{DocumentSearch, FoundDocuments};
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

/// A ledger whose calls may fail.
pub struct Faulty {
    inner: Arc<dyn Ledger>,
    faults: Arc<Faults>,
}

impl Faulty {
    /// Wraps a ledger.
    pub fn new(inner: Arc<dyn Ledger>, faults: Arc<Faults>) -> Self {
        Self { inner, faults }
    }
}

fn injected() -> LedgerError {
    LedgerError::Unavailable { cause: "injected by a test".into() }
}

macro_rules! faulty {
    ($part:ident { $(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)* }) => {
        #[async_trait]
        impl $part for Faulty {
            $(async fn $name(&self, $($arg: $type),*) -> Result<$result> {
                match self.faults.next(concat!("ledger.", stringify!($name))) {
                    Fault::None => self.inner.$name($($arg),*).await,
                    Fault::Before => Err(injected()),
                    Fault::After => self.inner.$name($($arg),*).await.and_then(|_| Err(injected())),
                }
            })*
        }
    };
}

faulty!(Documents {
    fn create_company(company: &Company, by: &Author) -> ();
    fn companies() -> Vec<Company>;
    fn company(id: &CompanyId) -> Option<Company>;
    fn change_company(change: &CompanyChange) -> Company;
    fn create_project(project: &Project, by: &Author) -> ();
    fn rename_project(renaming: &ProjectRenaming) -> Project;
    fn projects(company: &CompanyId) -> Vec<Project>;
    fn create_document(new: &NewDocument) -> Document;
    fn document(id: &DocumentId) -> Option<Document>;
    fn documents(page: &DocumentPage) -> Vec<Document>;
    fn find_documents(search: &DocumentSearch) -> FoundDocuments;
    fn contents(id: &DocumentId) -> Vec<Content>;
    fn content(id: &DocumentId, label: Label) -> Option<Content>;
    fn kept_copies(page: &KeptPage) -> Vec<KeptCopy>;
    fn kept_copy(number: u64) -> Option<KeptCopy>;
    fn keep_unnamed(found: &UnnamedBlob) -> Option<u64>;
});

faulty!(Keys {
    fn open_for_editing(request: &OpenRequest) -> OpenGrant;
    fn note_view_key(view: &ViewKey) -> ();
    fn key(key: &EditorKey) -> Option<KeyRecord>;
    fn live_key_of(document: &DocumentId) -> Option<KeyRecord>;
    fn live_keys() -> Vec<KeyRecord>;
    fn note_presence(presence: &Presence) -> KeyStandingNow;
    fn note_base_fetched(key: &EditorKey, at: Timestamp) -> ();
    fn retire_key(retirement: &Retirement) -> bool;
});

faulty!(Sessions {
    fn sessions(page: &SessionPage) -> Vec<SessionRecord>;
    fn named_under(key: &EditorKey) -> BTreeMap<String, Timestamp>;
    fn note_look(look: &Look) -> LookOutcome;
});

faulty!(Saves {
    fn receive(arrival: &Arrival) -> Receipt;
    fn commit_save(save: &PreparedSave) -> Committed;
    fn keep_aside(aside: &Aside) -> Committed;
    fn acknowledge(number: InboxNumber, at: Timestamp) -> ();
    fn give_up(number: InboxNumber, at: Timestamp) -> ();
    fn open_saves() -> Vec<OpenSave>;
    fn is_overtaking(number: InboxNumber, at: Timestamp) -> bool;
    fn still_needed(number: InboxNumber, at: Timestamp) -> StillNeeded;
    fn save(number: InboxNumber) -> Option<SaveRecord>;
    fn builds_on_forgotten(key: &EditorKey, forgotten: &Digest) -> bool;
    fn keep_forgotten(found: &ForgottenFile) -> Option<u64>;
    fn collect_forgotten(found: &ForgottenFile) -> Committed;
});

faulty!(Changes {
    fn put_version(change: &HeadChange) -> ChangeOutcome;
    fn delete_document(request: &ChangeRequest) -> ChangeOutcome;
    fn undelete_document(document: &DocumentId, who: &Author, at: Timestamp) -> bool;
    fn dismiss_kept(number: u64, who: &Author, at: Timestamp) -> bool;
    fn newest_save(document: &DocumentId) -> InboxNumber;
    fn saves_after(document: &DocumentId, after: InboxNumber) -> Vec<SaveNews>;
    fn note_download(download: &Download) -> ();
});

faulty!(Publications {
    fn owed_publications(after: Option<&Owed>, limit: u32) -> Vec<Owed>;
    fn stalled_publications(since: &Range<Timestamp>, limit: u32) -> Vec<Owed>;
    fn owed_publication(document: &DocumentId) -> Option<Owed>;
    fn published(document: &DocumentId, label: Label, at: Timestamp) -> ();
    fn shown_under(document: &DocumentId, name: &FileName) -> ();
    fn withdrawn(document: &DocumentId, at: Timestamp) -> ();
    fn knows_content(document: &DocumentId, digest: &Digest) -> bool;
    fn take_in_external(change: &ExternalChange) -> Option<u64>;
    fn published_documents(after: Option<&DocumentId>, limit: u32) -> Vec<Published>;
    fn owe_publication(document: &DocumentId, at: Timestamp) -> ();
});

faulty!(Trail {
    fn audit(chain: &str, after: u64, limit: u32) -> Vec<(Entry, Digest)>;
    fn chains(company: Option<&CompanyId>, after: &str, limit: u32) -> Vec<String>;
    fn find_acts(page: &ActsPage) -> Vec<(Entry, Digest)>;
    fn anchor(wish: &Anchoring) -> Vec<Anchored>;
    fn receipt(document: &DocumentId, label: Label) -> Option<SaveReceipt>;
    fn note_read_back(noted: &ReadBack) -> ();
    fn blobs(after: Option<&Digest>, limit: u32) -> Vec<BlobRecord>;
    fn document_ids(after: Option<&DocumentId>, limit: u32) -> Vec<DocumentId>;
    fn inconsistencies() -> Vec<Inconsistency>;
    fn totals() -> Totals;
});

faulty!(Callers {
    fn create_api_token(new: &NewApiToken) -> ApiToken;
    fn api_token_by_hash(hash: &Digest) -> Option<ApiToken>;
    fn api_token(number: u64) -> Option<ApiToken>;
    fn api_tokens(after: u64, limit: u32) -> Vec<ApiToken>;
    fn note_api_token_used(number: u64, at: Timestamp) -> ();
    fn revoke_api_token(revocation: &Revocation) -> bool;
});

faulty!(Shares {
    fn create_share(new: &NewShare) -> Share;
    fn share_by_hash(hash: &Digest) -> Option<Share>;
    fn share(number: u64) -> Option<Share>;
    fn shares(document: &DocumentId, after: u64, limit: u32) -> Vec<Share>;
    fn admit_guest(visit: &Visit) -> Option<Guest>;
    fn guest(share: u64, number: u64) -> Option<Guest>;
    fn seat_guest(session: &GuestSession, at: Timestamp) -> bool;
    fn revoke_share(revocation: &ShareRevocation) -> bool;
    fn guests_to_drop(now: Timestamp, limit: u32) -> Vec<GuestSession>;
    fn note_dropped(sessions: &[GuestSession], at: Timestamp) -> ();
    fn unwelcome(users: &[String]) -> Vec<String>;
    fn note_refused(refused: &RefusedVisit) -> ();
});

faulty!(Snapshots {
    fn write_snapshot(file: &Path) -> ();
    fn snapshot_blobs(file: &Path, after: Option<&Digest>, limit: u32) -> Vec<BlobRecord>;
    fn begin_again(restoration: &Restoration) -> BegunAgain;
});

faulty!(Operations {
    fn keys_in_use() -> Vec<KeyRecord>;
    fn ping() -> Option<Timestamp>;
    fn count_open_saves() -> u64;
    fn present() -> Present;
    fn note_operation(operation: &Operation) -> ();
});

faulty!(Outbox {
    fn set_webhooks(targets: &[Subscription], at: Timestamp) -> ();
    fn due_deliveries(target: &str, at: Timestamp, limit: u32) -> Vec<Delivery>;
    fn next_delivery_at(target: &str) -> Option<Timestamp>;
    fn delivery_ended(number: u64, end: &DeliveryEnd, at: Timestamp) -> ();
    fn webhooks() -> Vec<WebhookStanding>;
    fn dead_deliveries(before: Option<u64>, limit: u32) -> Vec<Delivery>;
    fn retry_delivery(number: u64, who: &Author, at: Timestamp) -> bool;
    fn forget_deliveries(delivered: Timestamp, dead: Timestamp) -> u64;
});

faulty!(History {
    fn contents_page(page: &ContentsPage) -> Vec<Content>;
    fn rename_document(renaming: &DocumentRenaming) -> Option<Document>;
    fn people(document: &DocumentId, limit: u32) -> Vec<Person>;
    fn note_mention(mention: &NewMention) -> u64;
    fn mentions(after: u64, limit: u32) -> Vec<Mention>;
});

faulty!(Pruning {
    fn prune_contents(document: &DocumentId, wish: &PruneWish) -> Vec<PrunedContent>;
    fn prune_kept(wish: &PruneWish, limit: u32) -> Vec<PrunedKept>;
    fn purge_document(document: &DocumentId, wish: &PruneWish) -> Purged;
    fn deleted_documents(before: Timestamp, after: Option<&DocumentId>, limit: u32) -> Vec<DocumentId>;
    fn owed_prunings(limit: u32) -> Vec<OwedPruning>;
    fn knew_content(document: &DocumentId, digest: &Digest) -> bool;
    fn backups_pruned(document: &DocumentId) -> ();
    fn unneeded_blobs(before: Timestamp, limit: u32) -> Vec<BlobRecord>;
    fn begin_removal(digest: &Digest, before: Timestamp) -> bool;
    fn begun_removals(limit: u32) -> Vec<BlobRecord>;
    fn finish_removal(digest: &Digest, at: Timestamp) -> ();
    fn removals_of(digest: &Digest) -> u64;
});

faulty!(Scopes {
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

faulty!(Templates {
    fn add_template(new: &NewTemplate) -> Added;
    fn retire_template(retirement: &TemplateRetirement) -> bool;
    fn template(id: &TemplateId, version: &TemplateVersion) -> Option<Template>;
    fn templates(id: Option<&TemplateId>) -> Vec<TemplateEntry>;
});

faulty!(Logs {
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

faulty!(Staging {
    fn stage_rows(run: &Run, rows: Vec<StagedRow>) -> Vec<Duplicate>;
    fn stage_problems(run: &Run, chunk: &ProblemChunk) -> ();
    fn count_problems(run: &Run, more: &[ProblemCount]) -> ();
    fn stage_undo(run: &Run, sequence: u64) -> UndoStaged;
    fn compare(run: &Run, removals: &BTreeMap<String, RemovedRows>) -> Comparison;
    fn log_changes(page: &ChangesPage) -> Vec<RowChange>;
    fn problems(page: &ProblemsPage) -> Vec<(u64, Problem)>;
    fn problem_counts(log: &SummaryLogId) -> Vec<ProblemCount>;
});

faulty!(Records {
    fn find_by_registration(page: &RecordsPage) -> Vec<RecordVersion>;
    fn append_versions(append: &VersionAppends) -> u64;
    fn versions_to_append(run: &Run, after: Option<&RecordKey>, limit: u32) -> BTreeMap<RecordKey, VersionAppend>;
    fn commit_at(scope: &Scope, moment: &AsOf) -> Option<u64>;
    fn record_history(scope: &Scope, key: &RecordKey, page: (u64, u32)) -> Vec<RecordVersion>;
    fn commits(scope: &Scope, before: Option<u64>, limit: u32) -> Vec<Commit>;
    fn scope_standings(page: &StandingsPage) -> Vec<ScopeStanding>;
    fn erase_values(erasure: &Erasure) -> Erased;
});
