//! The shapes of submissions for the contract: checks say `submitted(desk, "one", &rows)`.
#![allow(clippy::unwrap_used, reason = "a broken contract must stop the test that found it")]

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use model::records::{RecordKey, RemovedRows, Scope};
use model::submissions::{LogState, OnSubmit, Policy, StagedRow, canonical_values};
use model::{OrganisationId, RegistrationId, SummaryLogId};

use super::desk::{Desk, author, blob};
use crate::logs::{
    CreatedLog, Finished, FinishedValidation, LogSource, LogVerdict, NewLog, Run, Submission, SubmitAnswer,
    SubmitWish, SummaryLog, TakeUp,
};
use crate::records::{Ended, RecordsPage, VersionAppends};
use crate::staging::Comparison;

/// The scope of most checks.
pub(super) fn scope() -> Scope {
    scope_of("reg-1")
}

pub(super) fn scope_of(registration: &str) -> Scope {
    Scope {
        organisation: OrganisationId::parse("org-1").unwrap(),
        registration: RegistrationId::parse(registration).unwrap(),
    }
}

pub(super) fn log_id(id: &str) -> SummaryLogId {
    SummaryLogId::parse(id).unwrap()
}

pub(super) fn load(key: &str) -> RecordKey {
    RecordKey::new("load", key)
}

/// A row of the table of loads.
pub(super) fn row(key: &str, tonnes: &str) -> StagedRow {
    let values = BTreeMap::from([
        ("ID".to_owned(), key.to_owned()),
        ("TONNES".to_owned(), tonnes.to_owned()),
        ("PHONE".to_owned(), format!("555-{key}")),
    ]);
    StagedRow {
        kind: "load".into(),
        key: key.to_owned(),
        values: canonical_values(&values),
        outcome: "included".into(),
        reason: None,
        measure: Some(tonnes.to_owned()),
        sheet: "Loads".into(),
        row: key.parse().unwrap_or(7),
    }
}

pub(super) fn rows(pairs: &[(&str, &str)]) -> Vec<StagedRow> {
    pairs.iter().map(|(key, tonnes)| row(key, tonnes)).collect()
}

/// What it means that a load is gone.
pub(super) fn removals(policy: RemovedRows) -> BTreeMap<String, RemovedRows> {
    BTreeMap::from([("load".to_owned(), policy)])
}

pub(super) fn later(at: Timestamp, seconds: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

impl Desk {
    pub(super) fn new_log(&self, id: &str, policy: Policy) -> NewLog {
        NewLog {
            id: log_id(id),
            scope: scope(),
            accreditation: None,
            template: "loads".to_owned(),
            template_version: "1.0".to_owned(),
            policy,
            upload: None,
            source: LogSource::Workbook {
                name: format!("{id}.xlsx"),
                blob: blob(id.as_bytes()),
                document: None,
            },
            who: author("ann"),
            at: self.now(),
        }
    }

    /// Uploads a workbook and expects that it is taken.
    pub(super) async fn upload(&self, id: &str, policy: Policy) -> SummaryLog {
        match self.ledger.create_log(&self.new_log(id, policy)).await.unwrap() {
            CreatedLog::Created { log, .. } => *log,
            other => unreachable!("expected a new log, got {other:?}"),
        }
    }

    pub(super) async fn summary_log(&self, id: &str) -> SummaryLog {
        self.ledger.log_by_id(&log_id(id)).await.unwrap().unwrap()
    }

    pub(super) async fn state(&self, id: &str) -> LogState {
        self.summary_log(id).await.state
    }

    /// Somebody takes a log up whose lease is over.
    pub(super) async fn take(&self, id: &str, state: LogState) -> Option<Run> {
        let at = self.now();
        let wish = TakeUp { log: log_id(id), state, at, until: later(at, 30) };
        self.ledger.take_up(&wish).await.unwrap()
    }

    /// The same after the lease of whoever had it.
    pub(super) async fn take_over(&self, id: &str, state: LogState) -> Run {
        self.pass(60);
        self.take(id, state).await.unwrap()
    }

    pub(super) async fn validating(&self, id: &str) -> Run {
        let run = self.take(id, LogState::Preprocessing).await.unwrap();
        self.ledger.begin_validation(&run, self.now()).await.unwrap();
        run
    }

    pub(super) async fn compare(&self, run: &Run, policy: RemovedRows) -> Comparison {
        self.ledger.compare(run, &removals(policy)).await.unwrap()
    }

    pub(super) fn validated(&self, run: &Run, basis: u64) -> FinishedValidation {
        let verdict = LogVerdict::Validated { basis };
        FinishedValidation { run: run.clone(), verdict, facts: None, at: self.now() }
    }

    /// From upload to preview; rows that are gone end their records.
    pub(super) async fn previewed(&self, id: &str, policy: Policy, rows: &[StagedRow]) -> Comparison {
        self.upload(id, policy).await;
        let run = self.validating(id).await;
        assert_eq!(self.ledger.stage_rows(&run, rows.to_vec()).await.unwrap(), []);
        let comparison = self.compare(&run, RemovedRows::Tombstone).await;
        let finished = self.ledger.finish_validation(&self.validated(&run, comparison.basis)).await.unwrap();
        assert_eq!(finished, Finished::Yes);
        comparison
    }

    pub(super) async fn confirm(&self, id: &str) -> SubmitAnswer {
        let at = self.now();
        let who = author("ann");
        let wish = SubmitWish { scope: scope(), log: log_id(id), who, at, until: later(at, 30) };
        self.ledger.begin_submission(&wish).await.unwrap()
    }

    /// Confirms and expects that it begins.
    pub(super) async fn begun(&self, id: &str) -> Run {
        let answer = self.confirm(id).await;
        assert_eq!(answer.ruling, OnSubmit::Begin);
        answer.run.unwrap()
    }

    /// Appends everything, in pages of so many.
    pub(super) async fn append(&self, run: &Run, limit: u32) -> u64 {
        let mut after: Option<RecordKey> = None;
        let mut appended = 0;
        loop {
            let versions = self.ledger.versions_to_append(run, after.as_ref(), limit).await.unwrap();
            let Some(last) = versions.keys().next_back().cloned() else { return appended };
            after = Some(last);
            appended += self.ledger.append_versions(&self.appends(run, versions)).await.unwrap();
        }
    }

    pub(super) fn appends(
        &self,
        run: &Run,
        versions: BTreeMap<RecordKey, crate::records::VersionAppend>,
    ) -> VersionAppends {
        let Scope { organisation, registration } = scope();
        VersionAppends { organisation, registration, accreditation: None, run: run.clone(), versions }
    }

    /// Appends and commits; returns the number of the commit.
    pub(super) async fn finish(&self, run: &Run) -> u64 {
        self.append(run, 7).await;
        match self.ledger.commit_submission(run, self.now()).await.unwrap() {
            Submission::Committed { sequence, .. } => sequence,
            other => unreachable!("expected a commit, got {other:?}"),
        }
    }

    /// A whole submission.
    pub(super) async fn submitted(&self, id: &str, rows: &[StagedRow]) -> u64 {
        self.previewed(id, Policy::OneActive, rows).await;
        let run = self.begun(id).await;
        self.finish(&run).await
    }

    /// Key and tonnes of every record, as of a commit.
    pub(super) async fn loads(&self, as_of: Option<u64>) -> Vec<(String, String)> {
        let page = RecordsPage { as_of, ended: Ended::LeftOut, ..RecordsPage::of(&scope(), 1000) };
        let found = self.ledger.find_by_registration(&page).await.unwrap();
        found
            .into_iter()
            .map(|version| (version.key.key, version.content.unwrap().measure.unwrap_or_default()))
            .collect()
    }

    /// Asserts what the records are now.
    pub(super) async fn expect_loads(&self, expected: &[(&str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(key, tonnes)| ((*key).to_owned(), (*tonnes).to_owned())).collect();
        assert_eq!(self.loads(None).await, expected);
    }

    /// Removes all that is not needed any more.
    pub(super) async fn clear(&self) -> u64 {
        let mut cleared = 0;
        loop {
            match self.ledger.clear_staging(5).await.unwrap() {
                0 => return cleared,
                some => cleared += some,
            }
        }
    }
}
