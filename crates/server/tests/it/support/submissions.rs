//! Registrations with records on a stage: rows go through the ledger's own port, as the service does it, without a workbook to be read.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use ledger::documents::{Author, BlobFacts};
use ledger::logs::{
    CreatedLog, Finished, FinishedValidation, LogSource, LogVerdict, NewLog, Run, Submission, SubmitWish,
    SummaryLog, TakeUp,
};
use ledger::records::VersionAppends;
use ledger::staging::ProblemChunk;
use model::records::RemovedRows;
use model::submissions::{LogState, Policy, Problem, StagedRow, canonical_values};
use model::{OrganisationId, RegistrationId, Scope, SummaryLogId};
use reqwest::Method;
use serde_json::{Value, json};

use super::Stage;
use crate::organisation_matrix::template;

/// The kind of record the shipped template begins with.
pub(crate) const KIND: &str = "load-in";
/// Nobody else takes up what a test works on.
const LEASE: SignedDuration = SignedDuration::from_hours(1);

pub(crate) fn scope(organisation: &str, registration: &str) -> Scope {
    Scope {
        organisation: OrganisationId::parse(organisation).unwrap(),
        registration: RegistrationId::parse(registration).unwrap(),
    }
}

/// The path of a registration.
pub(crate) fn path_of(scope: &Scope, below: &str) -> String {
    format!("/api/v1/organisations/{}/registrations/{}{below}", scope.organisation, scope.registration)
}

/// A load of plastic.
pub(crate) fn load(key: &str, row: u32, values: &[(&str, &str)]) -> StagedRow {
    let mut all = BTreeMap::from([("LOAD_ID".to_owned(), key.to_owned())]);
    all.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    StagedRow {
        kind: KIND.into(),
        key: key.to_owned(),
        values: canonical_values(&all),
        outcome: "included".into(),
        reason: None,
        measure: Some("1.5".to_owned()),
        sheet: "Loads received".into(),
        row,
    }
}

/// Where the columns of the table were found.
fn facts() -> String {
    let columns = json!({ "LOAD_ID": "B", "MATERIAL": "D", "GROSS_T": "G", "SUPPLIER": "K", "NOTES": "Z" });
    let table = json!({ "name": "LOADS_IN", "kind": KIND, "sheet": "Loads received", "header_row": 6, "columns": columns });
    json!({ "tables": [table], "meta": {} }).to_string()
}

impl Stage {
    /// An organisation with a registration whose workbooks are read by the shipped template.
    pub(crate) async fn register(&self, organisation: &str, registration: &str) -> Scope {
        let scope = scope(organisation, registration);
        let added =
            self.request(Method::POST, "/api/v1/templates").body(template("2.1")).send().await.unwrap();
        assert!(added.status().is_success(), "{}", added.text().await.unwrap());
        self.put_json(&format!("/api/v1/organisations/{organisation}"), json!({})).await;
        let wish = json!({ "number": format!("{registration}-number"), "template": "waste-records" });
        self.put_json(&path_of(&scope, ""), wish).await;
        scope
    }

    pub(crate) async fn put_json(&self, path: &str, body: Value) {
        let response = self.request(Method::PUT, path).json(&body).send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.text().await.unwrap());
    }

    /// Stores bytes and makes a log of them that nobody else works on.
    pub(crate) async fn bring(&self, scope: &Scope, id: &str, bytes: &[u8]) -> (SummaryLog, Run) {
        let app = self.app();
        let mut writer = app.spool.begin();
        writer.write(bytes).await.unwrap();
        let spooled = writer.finish().await.unwrap();
        let to_become = model::DocumentId::parse(id).unwrap();
        app.vault.put(&spooled, &vault::Sidecar::Uploaded { to_become }).await.unwrap();
        let blob = BlobFacts::plain(spooled.digest, spooled.size_bytes, "xlsx");
        let new = NewLog {
            id: SummaryLogId::parse(id).unwrap(),
            scope: scope.clone(),
            accreditation: None,
            template: "waste-records".to_owned(),
            template_version: "2.1".to_owned(),
            policy: Policy::OneActive,
            upload: None,
            source: LogSource::Workbook { name: format!("{id}.xlsx"), blob, document: None },
            who: Author::new("sue", "Sue Submitter"),
            at: app.now(),
        };
        let created = app.ledger.create_log(&new).await.unwrap();
        let CreatedLog::Created { log, .. } = created else { panic!("{created:?}") };
        let wish = TakeUp {
            log: log.id.clone(),
            state: LogState::Preprocessing,
            at: app.now(),
            until: self.leased(),
        };
        let run = app.ledger.take_up(&wish).await.unwrap().expect("the test is first");
        (*log, run)
    }

    fn leased(&self) -> Timestamp {
        self.app().now().checked_add(LEASE).unwrap()
    }

    /// From upload to preview. Records without a row end.
    pub(crate) async fn preview(&self, scope: &Scope, id: &str, rows: &[StagedRow]) -> SummaryLog {
        let ledger = &self.app().ledger;
        let (log, run) = self.bring(scope, id, id.as_bytes()).await;
        ledger.begin_validation(&run, self.app().now()).await.unwrap();
        assert_eq!(ledger.stage_rows(&run, rows.to_vec()).await.unwrap(), []);
        let removals = BTreeMap::from([(KIND.to_owned(), RemovedRows::Tombstone)]);
        let basis = ledger.compare(&run, &removals).await.unwrap().basis;
        let verdict = LogVerdict::Validated { basis };
        let finish = FinishedValidation { run, verdict, facts: Some(facts()), at: self.app().now() };
        assert_eq!(ledger.finish_validation(&finish).await.unwrap(), Finished::Yes);
        log
    }

    /// A workbook that is wrong.
    pub(crate) async fn reject(&self, scope: &Scope, id: &str, (bytes, problem): (&[u8], Problem)) {
        let ledger = &self.app().ledger;
        let (_, run) = self.bring(scope, id, bytes).await;
        ledger.begin_validation(&run, self.app().now()).await.unwrap();
        let chunk = ProblemChunk { found_before: 0, problems: vec![problem], keep_max: 10 };
        ledger.stage_problems(&run, &chunk).await.unwrap();
        let verdict = LogVerdict::Invalid { reason: None };
        let finish = FinishedValidation { run, verdict, facts: None, at: self.app().now() };
        assert_eq!(ledger.finish_validation(&finish).await.unwrap(), Finished::Yes);
    }

    /// From upload to records. Returns the number of the submission.
    pub(crate) async fn submit(&self, scope: &Scope, id: &str, rows: &[StagedRow]) -> u64 {
        self.submit_as((scope, "Sue Submitter"), id, rows).await
    }

    /// The same by somebody of that name.
    pub(crate) async fn submit_as(&self, (scope, name): (&Scope, &str), id: &str, rows: &[StagedRow]) -> u64 {
        let ledger = &self.app().ledger;
        let log = self.preview(scope, id, rows).await;
        let wish = SubmitWish {
            scope: scope.clone(),
            log: log.id.clone(),
            who: Author::new("sue", name),
            at: self.app().now(),
            until: self.leased(),
        };
        let run = ledger.begin_submission(&wish).await.unwrap().run.unwrap();
        let versions = ledger.versions_to_append(&run, None, 1000).await.unwrap();
        let appends = VersionAppends {
            organisation: scope.organisation.clone(),
            registration: scope.registration.clone(),
            accreditation: None,
            run: run.clone(),
            versions,
        };
        ledger.append_versions(&appends).await.unwrap();
        match ledger.commit_submission(&run, self.app().now()).await.unwrap() {
            Submission::Committed { sequence, .. } => sequence,
            other => panic!("{other:?}"),
        }
    }
}
