//! The contract about records: current and past, one by one and across scopes, and erasing.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use std::collections::{BTreeMap, BTreeSet};

use model::records::{Change, ERASED, RecordKey, changed_cells};
use model::submissions::{Policy, Problem, Severity, StagedRow};
use model::{AccreditationId, OrganisationId};

use super::desk::{Desk, author};
use super::workbooks::{later, load, log_id, row, rows, scope, scope_of};
use crate::LedgerError;
use crate::logs::NewLog;
use crate::records::{AsOf, ContentNumber, Ended, Erasure, RecordsPage, StandingsPage, VersionAppend};
use crate::staging::{ProblemChunk, ProblemsPage};

pub async fn records_are_read_as_they_are_and_as_they_were(desk: &Desk) {
    desk.submitted("one", &rows(&[("1", "5"), ("2", "5")])).await;
    let between = desk.now();
    desk.submitted("two", &rows(&[("1", "6")])).await;
    let at = async |moment: AsOf| desk.ledger.commit_at(&scope(), &moment).await.unwrap();
    let pairs = |expected: &[(&str, &str)]| -> Vec<(String, String)> {
        expected.iter().map(|(key, tonnes)| ((*key).to_owned(), (*tonnes).to_owned())).collect()
    };

    assert_eq!(desk.loads(None).await, pairs(&[("1", "6")]));
    assert_eq!(desk.loads(Some(1)).await, pairs(&[("1", "5"), ("2", "5")]));
    assert_eq!(desk.loads(Some(0)).await, []);
    assert_eq!(at(AsOf::Head).await, Some(2));
    assert_eq!(at(AsOf::Time(between)).await, Some(1));
    assert_eq!(at(AsOf::Time(later(between, -10_000))).await, Some(0));
    assert_eq!(at(AsOf::Log(log_id("one"))).await, Some(1));
    assert_eq!(at(AsOf::Log(log_id("none"))).await, None);
    assert_eq!((at(AsOf::Commit(2)).await, at(AsOf::Commit(3)).await), (Some(2), None));
    let nothing = desk.ledger.commit_at(&scope_of("none"), &AsOf::Head).await.unwrap();
    assert_eq!(nothing, Some(0));
}

pub async fn the_history_of_a_record_is_in_the_order_of_commits(desk: &Desk) {
    let early = desk.now();
    desk.submitted("a", &rows(&[("1", "5")])).await;
    desk.submitted("b", &rows(&[("1", "6")])).await;
    // The clock of whoever commits the third one is an hour behind.
    desk.previewed("c", Policy::OneActive, &rows(&[("1", "5")])).await;
    let run = desk.begun("c").await;
    desk.append(&run, 7).await;
    desk.ledger.commit_submission(&run, later(early, -3600)).await.unwrap();

    let history = desk.ledger.record_history(&scope(), &load("1"), (0, 10)).await.unwrap();

    let told: Vec<_> = history
        .iter()
        .map(|version| {
            (version.sequence, version.log.as_str(), version.content.as_ref().unwrap().measure.as_deref())
        })
        .collect();
    assert_eq!(told, [(1, "a", Some("5")), (2, "b", Some("6")), (3, "c", Some("5"))]);
    assert_eq!(history[0].hash, history[2].hash);
    assert!(history.windows(2).all(|pair| pair[0].committed_at <= pair[1].committed_at));
    let [first, second, _] = history.as_slice() else { unreachable!("three versions") };
    let values = |version: &crate::records::RecordVersion| version.content.clone().unwrap().values;
    let cells = changed_cells(Some(&values(first)), Some(&values(second)));
    assert_eq!(cells.len(), 1);
    assert_eq!(first.place, Some(("Loads".to_owned(), 1)));
    assert_eq!((first.change, second.change), (Change::Created, Change::Updated));
    assert!(first.validated_at.is_some() && first.by.id == "ann");
    assert_eq!(first.template, ("loads".to_owned(), "1.0".to_owned()));
    let rest = desk.ledger.record_history(&scope(), &load("1"), (2, 10)).await.unwrap();
    assert_eq!(rest.as_slice(), &history[2..]);
    desk.expect_consistent().await;
}

pub async fn records_are_listed_by_page_and_filter(desk: &Desk) {
    let mut all = rows(&[("1", "5"), ("10", "5"), ("2", "6")]);
    all.push(StagedRow { kind: "sent".into(), outcome: "excluded".into(), ..row("1", "1") });
    desk.submitted("one", &all).await;
    desk.submitted("two", &all[1..]).await;
    let list = async |page: RecordsPage| {
        let found = desk.ledger.find_by_registration(&page).await.unwrap();
        found
            .into_iter()
            .map(|version| format!("{}:{}", version.key.kind, version.key.key))
            .collect::<Vec<_>>()
    };
    let page = RecordsPage::of(&scope(), 100);

    assert_eq!(list(page.clone()).await, ["load:10", "load:2", "sent:1"]);
    assert_eq!(list(RecordsPage { ended: Ended::Included, ..page.clone() }).await.len(), 4);
    assert_eq!(list(RecordsPage { kind: Some("sent".to_owned()), ..page.clone() }).await, ["sent:1"]);
    assert_eq!(
        list(RecordsPage { key_prefix: Some("1".to_owned()), ..page.clone() }).await,
        ["load:10", "sent:1"]
    );
    assert_eq!(list(RecordsPage { outcome: Some("excluded".to_owned()), ..page.clone() }).await, ["sent:1"]);
    let column = Some(("TONNES".to_owned(), "6".to_owned()));
    assert_eq!(list(RecordsPage { column, ..page.clone() }).await, ["load:2"]);
    let after = Some(load("10"));
    assert_eq!(list(RecordsPage { after, limit: 1, ..page.clone() }).await, ["load:2"]);
    assert!(list(RecordsPage { scope: scope_of("none"), ..page }).await.is_empty());
}

pub async fn scopes_do_not_see_each_other_and_stand_in_a_list(desk: &Desk) {
    desk.submitted("one", &rows(&[("1", "5")])).await;
    let elsewhere = NewLog { scope: scope_of("reg-2"), ..desk.new_log("two", Policy::OneActive) };
    desk.ledger.create_log(&elsewhere).await.unwrap();

    let other = desk.ledger.find_by_registration(&RecordsPage::of(&scope_of("reg-2"), 10)).await.unwrap();
    let page = StandingsPage { limit: 10, ..StandingsPage::default() };
    let standings = desk.ledger.scope_standings(&page).await.unwrap();

    assert_eq!(other, []);
    let told: Vec<_> = standings
        .iter()
        .map(|each| {
            (each.scope.registration.as_str(), each.head, each.committed_at.is_some(), each.active.len())
        })
        .collect();
    assert_eq!(told, [("reg-1", 1, true, 0), ("reg-2", 0, false, 1)]);
    let after = StandingsPage { after: Some(scope()), ..page.clone() };
    assert_eq!(desk.ledger.scope_standings(&after).await.unwrap().len(), 1);
    let others = vec![OrganisationId::parse("org-2").unwrap()];
    let others = StandingsPage { organisations: Some(others), ..page };
    assert_eq!(desk.ledger.scope_standings(&others).await.unwrap(), []);
}

pub async fn only_what_was_previewed_is_appended(desk: &Desk) {
    desk.previewed("one", Policy::OneActive, &rows(&[("1", "5")])).await;
    let run = desk.begun("one").await;
    let good = desk.ledger.versions_to_append(&run, None, 10).await.unwrap();
    let version = good[&load("1")];
    let refused = async |key: RecordKey, version: VersionAppend| {
        let appends = desk.appends(&run, BTreeMap::from([(key, version)]));
        desk.ledger.append_versions(&appends).await.is_err()
    };

    assert!(refused(load("2"), version).await, "no such row");
    let other = VersionAppend { content: Some(ContentNumber(999)), ..version };
    assert!(refused(load("1"), other).await, "another content");
    let removed = VersionAppend { change: Change::Removed, content: None };
    assert!(refused(load("1"), removed).await, "another change");
    let mut elsewhere = desk.appends(&run, good.clone());
    elsewhere.accreditation = AccreditationId::parse("acc-1").ok();
    let elsewhere = desk.ledger.append_versions(&elsewhere).await;
    assert!(matches!(elsewhere, Err(LedgerError::NotFound { .. })), "{elsewhere:?}");

    assert_eq!(desk.ledger.append_versions(&desk.appends(&run, good)).await.unwrap(), 1);
    desk.expect_consistent().await;
}

pub async fn erased_values_are_gone_and_the_history_stays(desk: &Desk) {
    desk.submitted("one", &rows(&[("1", "5"), ("2", "5")])).await;
    desk.submitted("two", &rows(&[("1", "6"), ("2", "5")])).await;
    desk.upload("three", Policy::OneActive).await;
    let run = desk.validating("three").await;
    desk.ledger.stage_rows(&run, rows(&[("1", "7"), ("2", "5")])).await.unwrap();
    let quote = Problem {
        code: "WRONG".to_owned(),
        severity: Severity::Error,
        level: 3,
        sheet: None,
        cell: None,
        header: Some("PHONE".to_owned()),
        row_id: Some("1".to_owned()),
        value: Some("555-1".to_owned()),
        sentence: "wrong".to_owned(),
    };
    let chunk = ProblemChunk { found_before: 0, problems: vec![quote], keep_max: 10 };
    desk.ledger.stage_problems(&run, &chunk).await.unwrap();
    let erasure = Erasure {
        scope: scope(),
        kind: "load".into(),
        keys: Some(BTreeSet::from(["1".to_owned()])),
        columns: BTreeSet::from(["PHONE".to_owned()]),
        reason: "asked by the person".to_owned(),
        who: author("dpo"),
        at: desk.now(),
    };

    let erased = desk.ledger.erase_values(&erasure).await.unwrap();
    let again = desk.ledger.erase_values(&erasure).await.unwrap();

    assert_eq!((erased.contents, erased.problems), (3, 1));
    assert_eq!((again.contents, again.problems), (0, 0));
    let history = desk.ledger.record_history(&scope(), &load("1"), (0, 10)).await.unwrap();
    assert!(history.iter().all(|version| {
        let content = version.content.as_ref().unwrap();
        content.values.contains(ERASED) && !content.values.contains("555-1") && content.erased_at.is_some()
    }));
    assert_eq!(history[0].hash, Some(row("1", "5").hash()), "it still says what was submitted");
    let other = desk.ledger.record_history(&scope(), &load("2"), (0, 10)).await.unwrap();
    assert!(other[0].content.as_ref().unwrap().values.contains("555-2"));
    let page =
        ProblemsPage { log: log_id("three"), severity: None, code: None, sheet: None, after: None, limit: 9 };
    let quoted = desk.ledger.problems(&page).await.unwrap();
    assert_eq!(quoted[0].1.value.as_deref(), Some(ERASED));
    desk.expect_consistent().await;
    // The same workbook again brings nothing back.
    let comparison = desk.previewed("four", Policy::OneActive, &rows(&[("1", "6"), ("2", "5")])).await;
    assert_eq!((comparison.stats.unchanged, comparison.stats.changes()), (2, 0));
    let missing = desk.ledger.erase_values(&Erasure { scope: scope_of("none"), ..erasure }).await;
    assert!(matches!(missing, Err(LedgerError::NotFound { .. })));
    desk.expect_consistent().await;
}

pub async fn commits_are_listed_the_newest_first(desk: &Desk) {
    desk.submitted("one", &rows(&[("1", "5")])).await;
    desk.submitted("two", &rows(&[("1", "6"), ("2", "6")])).await;

    let all = desk.ledger.commits(&scope(), None, 10).await.unwrap();
    let older = desk.ledger.commits(&scope(), Some(2), 10).await.unwrap();

    let told: Vec<_> =
        all.iter().map(|commit| (commit.sequence, commit.log.as_str(), commit.stats.changes())).collect();
    assert_eq!(told, [(2, "two", 2), (1, "one", 1)]);
    assert_eq!(older, all[1..]);
    assert_eq!(desk.ledger.commits(&scope_of("none"), None, 10).await.unwrap(), []);
}
