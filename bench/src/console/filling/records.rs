//! Records of several registrations: submitted twice each, one of them a hundred times, and a preview that waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use jiff::{SignedDuration, Timestamp};
use ledger::Ledger;
use ledger::logs::{
    APPENDED_MAX, CHUNK_MAX, CreatedLog, FinishedValidation, LogSource, LogVerdict, NewLog, Submission,
    SubmitWish, TakeUp,
};
use ledger::records::VersionAppends;
use ledger::scopes::{How, OrganisationWish, RegistrationWish, Writing};
use model::records::{RecordKey, RemovedRows, Scope};
use model::submissions::{LogState, Policy, StagedRow, canonical_values};
use model::{OrganisationId, RegistrationId, SummaryLogId};

use super::{blob, moment, person};

/// Registrations with their parts of all records, in tenths.
const PARTS: [(&str, &str, u32); 4] = [("o1", "r1", 4), ("o1", "r2", 3), ("o2", "r1", 2), ("o3", "r1", 1)];
/// Each record of these has two versions.
const EDITIONS: u32 = 2;
const LONG_EDITIONS: u32 = 100;

/// Where pages find what.
pub(super) struct Records {
    pub(super) versions: u32,
    pub(super) first: String,
    pub(super) preview: String,
    pub(super) record: String,
}

pub(super) async fn fill(ledger: &Arc<dyn Ledger>, versions: u32) -> Result<Records> {
    let mut all = 0;
    for (organisation, registration, part) in PARTS {
        let submitter = Submitter::begin(ledger.as_ref(), (organisation, registration)).await?;
        let records = versions / 10 * part / EDITIONS;
        for edition in 1..=EDITIONS {
            submitter.submit(&format!("{organisation}-{registration}-{edition}"), (records, edition)).await?;
            all += records;
        }
    }
    let long = Submitter::begin(ledger.as_ref(), ("o1", "long")).await?;
    for edition in 1..=LONG_EDITIONS {
        long.submit(&format!("long-{edition}"), (3, edition)).await?;
        all += 3;
    }
    let largest = Submitter::begin(ledger.as_ref(), ("o1", "r1")).await?;
    let records = versions / 10 * PARTS[0].2 / EDITIONS;
    largest.preview("waiting", (records, EDITIONS + 1)).await?;
    Ok(Records {
        versions: all,
        first: "o1-r1-1".to_owned(),
        preview: "waiting".to_owned(),
        record: format!("{:07}", records / 2),
    })
}

struct Submitter<'a> {
    ledger: &'a dyn Ledger,
    scope: Scope,
}

impl<'a> Submitter<'a> {
    async fn begin(ledger: &'a dyn Ledger, (organisation, registration): (&str, &str)) -> Result<Self> {
        let scope = Scope {
            organisation: OrganisationId::parse(organisation)?,
            registration: RegistrationId::parse(registration)?,
        };
        let writing = Writing { how: How::Put, by: person(0), at: moment(0)? };
        let (id, name) = (scope.organisation.clone(), Some(format!("Organisation {organisation}")));
        ledger.write_organisation(&OrganisationWish { id, name, number: None }, &writing).await?;
        let (number, title) = (Some(format!("R-{registration}")), Some(format!("Waste at {registration}")));
        let wish = RegistrationWish { number, title, ..RegistrationWish::new(scope.clone()) };
        ledger.write_registration(&wish, &writing).await?;
        Ok(Self { ledger, scope })
    }

    /// A log whose rows are staged and compared.
    async fn preview(&self, id: &str, (records, edition): (u32, u32)) -> Result<()> {
        let new = NewLog {
            id: SummaryLogId::parse(id)?,
            scope: self.scope.clone(),
            accreditation: None,
            template: "loads".to_owned(),
            template_version: "1.0".to_owned(),
            policy: Policy::OneActive,
            upload: None,
            source: LogSource::Workbook {
                name: format!("{id}.xlsx"),
                blob: blob(2_000_000 + edition, "xlsx"),
                document: None,
            },
            who: person(7),
            at: moment(edition * 60)?,
        };
        let CreatedLog::Created { .. } = self.ledger.create_log(&new).await? else {
            bail!("{id} is not new")
        };
        let wish = TakeUp { log: new.id, state: LogState::Preprocessing, at: new.at, until: later(new.at)? };
        let run = self.ledger.take_up(&wish).await?.context("somebody else works on it")?;
        self.ledger.begin_validation(&run, new.at).await?;
        for first in (0..records).step_by(CHUNK_MAX) {
            let last = records.min(first + u32::try_from(CHUNK_MAX)?);
            let rows = (first..last).map(|number| row(number, edition)).collect();
            ensure!(self.ledger.stage_rows(&run, rows).await?.is_empty(), "{id} has rows twice");
        }
        let compared = self.ledger.compare(&run, &BTreeMap::<String, RemovedRows>::new()).await?;
        let verdict = LogVerdict::Validated { basis: compared.basis };
        let finished = FinishedValidation { run, verdict, facts: None, at: new.at };
        self.ledger.finish_validation(&finished).await?;
        Ok(())
    }

    /// A preview that somebody confirms.
    async fn submit(&self, id: &str, (records, edition): (u32, u32)) -> Result<()> {
        self.preview(id, (records, edition)).await?;
        let (log, at) = (SummaryLogId::parse(id)?, moment(edition * 60 + 5)?);
        let wish = SubmitWish { scope: self.scope.clone(), log, who: person(7), at, until: later(at)? };
        let run = self.ledger.begin_submission(&wish).await?.run.context("the submission does not begin")?;
        let mut after: Option<RecordKey> = None;
        loop {
            let limit = u32::try_from(APPENDED_MAX)?;
            let versions = self.ledger.versions_to_append(&run, after.as_ref(), limit).await?;
            let Some(last) = versions.keys().next_back().cloned() else { break };
            after = Some(last);
            let Scope { organisation, registration } = self.scope.clone();
            let run = run.clone();
            let append = VersionAppends { organisation, registration, accreditation: None, run, versions };
            self.ledger.append_versions(&append).await?;
        }
        match self.ledger.commit_submission(&run, at).await? {
            Submission::Committed { .. } => {}
            other => bail!("{id} is not committed: {other:?}"),
        }
        while self.ledger.clear_staging(u32::try_from(CHUNK_MAX)?).await? > 0 {}
        Ok(())
    }
}

fn later(at: Timestamp) -> Result<Timestamp> {
    Ok(at.checked_add(SignedDuration::from_hours(1))?)
}

/// A load with a dozen cells; each edition says another weight.
fn row(number: u32, edition: u32) -> StagedRow {
    let supplier = if number % 100_000 == 99_999 { "Rare Bins" } else { "Northern Bins" };
    let weight = format!("{}.{:02}", 10 + number % 20, (number + edition) % 100);
    let values: BTreeMap<String, String> = [
        ("LOAD_ID", format!("{number:07}")),
        ("RECEIVED_ON", format!("2026-{:02}-{:02}", number % 12 + 1, number % 28 + 1)),
        ("MATERIAL", if number.is_multiple_of(3) { "Plastic" } else { "Glass" }.to_owned()),
        ("WASTE_CODE", "15 01 02".to_owned()),
        ("EVIDENCE_ISSUED", "No".to_owned()),
        ("GROSS_T", weight.clone()),
        ("TARE_T", "14.02".to_owned()),
        ("NET_T", weight.clone()),
        ("USABLE_SHARE", "0.875".to_owned()),
        ("VEHICLE", format!("AB{:02}CDE", number % 100)),
        ("SUPPLIER", supplier.to_owned()),
        ("SUPPLIER_PHONE", format!("555-{number:07}")),
    ]
    .map(|(column, value)| (column.to_owned(), value))
    .into();
    StagedRow {
        kind: if number % 10 == 9 { "load-out" } else { "load-in" }.into(),
        key: format!("{number:07}"),
        values: canonical_values(&values),
        outcome: if number % 1000 == 7 { "excluded" } else { "included" }.into(),
        reason: None,
        measure: Some(weight),
        sheet: "Loads".into(),
        row: number + 8,
    }
}
