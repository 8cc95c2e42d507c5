//! The contract about what is staged: rows, duplicates, problems, the comparison, and that a preview keeps its promise.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use std::collections::BTreeMap;

use model::records::{CellChange, Change, PreviewStats, RemovedRows};
use model::submissions::{Policy, Problem, Severity, StagedRow};

use super::desk::Desk;
use super::workbooks::{load, log_id, row, rows, scope};
use crate::logs::LogSource;
use crate::staging::{ChangesPage, Duplicate, ProblemChunk, ProblemsPage, RowChange};

fn page(log: &str) -> ChangesPage {
    ChangesPage {
        log: log_id(log),
        change: None,
        kind: None,
        key_prefix: None,
        after: None,
        basis: None,
        limit: 1000,
    }
}

fn stats(created: u64, updated: u64, unchanged: u64, removed: u64) -> PreviewStats {
    PreviewStats { created, updated, unchanged, removed }
}

async fn keys(desk: &Desk, page: ChangesPage) -> Vec<String> {
    let changes = desk.ledger.log_changes(&page).await.unwrap();
    changes.into_iter().map(|change| format!("{} {}", change.change.as_str(), change.key.key)).collect()
}

pub async fn a_preview_tells_what_is_created_updated_unchanged_and_removed(desk: &Desk) {
    desk.submitted("one", &rows(&[("1", "5"), ("2", "5"), ("3", "5")])).await;

    let comparison =
        desk.previewed("two", Policy::OneActive, &rows(&[("1", "6"), ("2", "5"), ("4", "5")])).await;

    assert_eq!((comparison.basis, comparison.stats), (1, stats(1, 1, 1, 1)));
    let kinds: Vec<_> = comparison.stats_by_kind.into_iter().collect();
    assert_eq!(kinds, [("load".to_owned(), stats(1, 1, 1, 1))]);
    assert_eq!(keys(desk, page("two")).await, ["updated 1", "removed 3", "created 4"]);
    let unchanged = ChangesPage { change: Some(Change::Unchanged), ..page("two") };
    assert_eq!(keys(desk, unchanged).await, ["unchanged 2"]);
    let [updated]: [RowChange; 1] = desk
        .ledger
        .log_changes(&ChangesPage { change: Some(Change::Updated), ..page("two") })
        .await
        .unwrap()
        .try_into()
        .unwrap();
    let cell =
        CellChange { column: "TONNES".to_owned(), old: Some("5".to_owned()), new: Some("6".to_owned()) };
    assert_eq!((updated.cells, updated.place), (vec![cell], Some(("Loads".to_owned(), 1))));
    desk.expect_consistent().await;
}

pub async fn changes_are_listed_by_page_and_filter_before_and_after_the_commit(desk: &Desk) {
    desk.submitted("one", &rows(&[("1", "5"), ("10", "5"), ("2", "5")])).await;
    let mut second = rows(&[("1", "6"), ("10", "6"), ("2", "6"), ("11", "6")]);
    second.push(StagedRow { kind: "sent".into(), ..row("1", "1") });
    desk.previewed("two", Policy::OneActive, &second).await;
    let listed = async || {
        let mut pages = Vec::new();
        let mut after = None;
        loop {
            let wish = ChangesPage { after: after.clone(), limit: 2, ..page("two") };
            let found = desk.ledger.log_changes(&wish).await.unwrap();
            let Some(last) = found.last() else { return pages };
            after = Some(last.key.clone());
            pages.extend(found);
        }
    };
    let before = listed().await;
    let prefix = ChangesPage { key_prefix: Some("1".to_owned()), ..page("two") };
    assert_eq!(keys(desk, prefix.clone()).await, ["updated 1", "updated 10", "created 11", "created 1"]);
    let kind = ChangesPage { kind: Some("sent".to_owned()), ..page("two") };
    assert_eq!(keys(desk, kind).await, ["created 1"]);

    let run = desk.begun("two").await;
    desk.finish(&run).await;
    desk.clear().await;

    assert_eq!(before.len(), 5);
    assert_eq!(listed().await, before, "what it did is what it promised, when nothing is staged any more");
    desk.expect_consistent().await;
}

pub async fn an_unchanged_workbook_stores_nothing_and_still_commits(desk: &Desk) {
    let all = rows(&[("1", "5"), ("2", "5")]);
    desk.submitted("one", &all).await;
    let moved: Vec<_> = all.iter().map(|row| StagedRow { row: row.row + 40, ..row.clone() }).collect();

    let comparison = desk.previewed("two", Policy::OneActive, &moved).await;
    let run = desk.begun("two").await;
    let appended = desk.append(&run, 7).await;
    let sequence = desk.finish(&run).await;

    assert_eq!((comparison.stats, appended, sequence), (stats(0, 0, 2, 0), 0, 2));
    assert_eq!(desk.ledger.record_history(&scope(), &load("1"), (0, 10)).await.unwrap().len(), 1);
    desk.expect_loads(&[("1", "5"), ("2", "5")]).await;
    desk.clear().await;
    desk.expect_loads(&[("1", "5"), ("2", "5")]).await;
    desk.expect_consistent().await;
}

pub async fn a_workbook_without_a_row_still_commits(desk: &Desk) {
    assert_eq!(desk.submitted("one", &[]).await, 1);
    desk.submitted("two", &rows(&[("1", "5")])).await;

    assert_eq!(desk.submitted("three", &[]).await, 3, "all of them ended");

    desk.expect_loads(&[]).await;
    desk.expect_consistent().await;
}

pub async fn a_row_that_counts_otherwise_is_changed(desk: &Desk) {
    desk.submitted("one", &rows(&[("1", "5")])).await;
    let otherwise =
        StagedRow { outcome: "excluded".into(), reason: Some("OUTSIDE_LICENCE".to_owned()), ..row("1", "5") };

    let comparison = desk.previewed("two", Policy::OneActive, &[otherwise]).await;

    assert_eq!(comparison.stats, stats(0, 1, 0, 0));
    let changes = desk.ledger.log_changes(&page("two")).await.unwrap();
    assert_eq!(changes[0].cells, []);
    assert_eq!(changes[0].after.as_ref().unwrap().reason.as_deref(), Some("OUTSIDE_LICENCE"));
}

pub async fn the_same_key_twice_is_told_with_both_places(desk: &Desk) {
    desk.upload("one", Policy::OneActive).await;
    let run = desk.validating("one").await;
    let twice = [row("1", "5"), StagedRow { row: 9, ..row("1", "5") }];
    let other_kind = StagedRow { kind: "sent".into(), ..row("1", "5") };

    let within = desk.ledger.stage_rows(&run, twice.to_vec()).await.unwrap();
    let again = desk.ledger.stage_rows(&run, twice.to_vec()).await.unwrap();
    let fine = desk.ledger.stage_rows(&run, vec![other_kind]).await.unwrap();

    let places = (("Loads".to_owned(), 1), ("Loads".to_owned(), 9));
    let expected = Duplicate { key: load("1"), first: places.0, again: places.1 };
    assert_eq!((&within, &again), (&vec![expected.clone()], &vec![expected]));
    assert_eq!(fine, []);
    assert_eq!(desk.summary_log("one").await.staged_rows, 2, "repeating stages nothing twice");
    desk.expect_consistent().await;
}

pub async fn removed_rows_follow_the_policy_of_their_kind(desk: &Desk) {
    let mut all = rows(&[("1", "5"), ("2", "5")]);
    all.push(StagedRow { kind: "sent".into(), ..row("1", "1") });
    desk.submitted("one", &all).await;
    let log = desk.summary_log("one").await;
    desk.upload("two", Policy::OneActive).await;
    let run = desk.validating("two").await;
    desk.ledger.stage_rows(&run, rows(&[("2", "5")])).await.unwrap();
    let policies = |load, sent| BTreeMap::from([("load".to_owned(), load), ("sent".to_owned(), sent)]);
    let compare = async |policies| desk.ledger.compare(&run, &policies).await.unwrap();

    let ignored = compare(policies(RemovedRows::Ignore, RemovedRows::Ignore)).await;
    let not_named = compare(BTreeMap::new()).await;
    let fatal = compare(policies(RemovedRows::Fatal, RemovedRows::Ignore)).await;
    let ended = compare(policies(RemovedRows::Ignore, RemovedRows::Tombstone)).await;

    assert_eq!((ignored.stats, ignored.missing), (stats(0, 0, 1, 0), 0));
    assert_eq!(not_named, ignored);
    assert_eq!((fatal.missing, fatal.stats), (1, stats(0, 0, 1, 0)));
    let missing = &fatal.missing_keys[0];
    assert_eq!((&missing.key, &missing.place), (&load("1"), &("Loads".to_owned(), 1)));
    assert_eq!((&missing.log, missing.committed_at), (&log_id("one"), log.commit.unwrap().1));
    assert_eq!((ended.stats, ended.missing), (stats(0, 0, 1, 1), 0));
    desk.expect_consistent().await;
}

pub async fn a_record_that_ended_begins_again_and_its_history_stays(desk: &Desk) {
    desk.submitted("one", &rows(&[("1", "5")])).await;
    desk.submitted("two", &[]).await;
    desk.submitted("three", &rows(&[("1", "5")])).await;

    let history = desk.ledger.record_history(&scope(), &load("1"), (0, 10)).await.unwrap();

    let told: Vec<_> =
        history.iter().map(|version| (version.sequence, version.change, version.content.is_some())).collect();
    assert_eq!(told, [(1, Change::Created, true), (2, Change::Removed, false), (3, Change::Created, true)]);
    desk.expect_consistent().await;
}

fn problem(number: u64, severity: Severity) -> Problem {
    Problem {
        code: format!("CODE_{}", number % 2),
        severity,
        level: 3,
        sheet: Some("Loads".to_owned()),
        cell: Some(format!("D{number}")),
        header: Some("Phone".to_owned()),
        row_id: Some(number.to_string()),
        value: Some("555".to_owned()),
        sentence: format!("row {number} is wrong"),
    }
}

pub async fn problems_are_counted_exactly_and_kept_to_a_limit_the_worst_first(desk: &Desk) {
    desk.upload("one", Policy::OneActive).await;
    let run = desk.validating("one").await;
    let found: Vec<_> = (0..10)
        .map(|number| problem(number, if number == 9 { Severity::Fatal } else { Severity::Error }))
        .collect();
    let chunk = |found_before: u64, problems: &[Problem]| ProblemChunk {
        found_before,
        problems: problems.to_vec(),
        keep_max: 3,
    };

    desk.ledger.stage_problems(&run, &chunk(0, &found[..6])).await.unwrap();
    desk.ledger.stage_problems(&run, &chunk(0, &found[..6])).await.unwrap();
    desk.ledger.stage_problems(&run, &chunk(4, &found[4..])).await.unwrap();

    let log = desk.summary_log("one").await;
    assert_eq!((log.problems.fatal, log.problems.error, log.problems.warning), (1, 9, 0));
    let all =
        ProblemsPage { log: log.id.clone(), severity: None, code: None, sheet: None, after: None, limit: 2 };
    let first = desk.ledger.problems(&all).await.unwrap();
    let after = first.last().map(|(number, problem)| (problem.severity, *number));
    let rest = desk.ledger.problems(&ProblemsPage { after, limit: 10, ..all.clone() }).await.unwrap();
    let cells: Vec<_> = first.iter().chain(&rest).map(|(_, problem)| problem.cell.clone().unwrap()).collect();
    assert_eq!(cells, ["D9", "D0", "D1", "D2"]);
    assert_eq!(first[0].1, found[9]);
    let of_code = ProblemsPage { code: Some("CODE_1".to_owned()), limit: 10, ..all };
    assert_eq!(desk.ledger.problems(&of_code).await.unwrap().len(), 2);
    let counts: Vec<_> = desk
        .ledger
        .problem_counts(&log.id)
        .await
        .unwrap()
        .into_iter()
        .map(|count| (count.code, count.severity, count.count))
        .collect();
    let expected = [
        ("CODE_1".to_owned(), Severity::Fatal, 1),
        ("CODE_0".to_owned(), Severity::Error, 5),
        ("CODE_1".to_owned(), Severity::Error, 4),
    ];
    assert_eq!(counts, expected);

    // Read again: counted again from nothing.
    let run = desk.take_over("one", model::submissions::LogState::Validating).await;
    desk.ledger.begin_validation(&run, desk.now()).await.unwrap();
    assert_eq!(desk.summary_log("one").await.problems, crate::logs::ProblemTotals::default());
    desk.expect_consistent().await;
}

pub async fn more_rows_than_one_step_takes_are_staged_compared_and_submitted(desk: &Desk) {
    let many = |tonnes: &str| (0..2500).map(|key| row(&format!("{key:05}"), tonnes)).collect::<Vec<_>>();
    assert_eq!(desk.submitted("one", &many("1")).await, 1);
    let mut second = many("1");
    second.truncate(1200);
    second[0] = row("00000", "2");
    desk.previewed("two", Policy::Parallel, &second).await;
    desk.previewed("three", Policy::Parallel, &many("3")).await;
    let run = desk.begun("two").await;
    assert_eq!(desk.summary_log("two").await.stats, Some(stats(0, 1, 1199, 1300)));

    desk.append(&run, 1000).await;
    desk.ledger.return_to_validated(&run, "later", desk.now()).await.unwrap();
    assert_eq!(desk.loads(None).await.len(), 1000, "a page");
    let run = desk.begun("two").await;
    assert_eq!(desk.finish(&run).await, 2);

    let run = desk.take("three", model::submissions::LogState::Validated).await.unwrap();
    let again = desk.compare(&run, RemovedRows::Tombstone).await;
    assert_eq!((again.basis, again.stats), (2, stats(1300, 1200, 0, 0)));
    desk.clear().await;
    desk.expect_consistent().await;
}

pub async fn an_undone_submission_is_a_new_one_that_can_be_looked_at_first(desk: &Desk) {
    desk.submitted("one", &rows(&[("1", "5"), ("2", "5"), ("3", "5")])).await;
    desk.submitted("two", &rows(&[("1", "6"), ("2", "6"), ("4", "6")])).await;
    desk.submitted("three", &rows(&[("1", "6"), ("2", "7"), ("4", "6")])).await;
    let undo = crate::logs::NewLog { source: LogSource::Undo(2), ..desk.new_log("undo", Policy::OneActive) };
    desk.ledger.create_log(&undo).await.unwrap();
    let run = desk.validating("undo").await;

    let staged = desk.ledger.stage_undo(&run, 2).await.unwrap();
    let again = desk.ledger.stage_undo(&run, 2).await.unwrap();
    let comparison = desk.ledger.compare(&run, &BTreeMap::new()).await.unwrap();
    desk.ledger.finish_validation(&desk.validated(&run, comparison.basis)).await.unwrap();

    assert_eq!(staged, again);
    assert_eq!((staged.restored, staged.removed, staged.left), (2, 1, 1));
    assert_eq!(staged.left_keys, [load("2")], "it was changed since");
    assert_eq!(comparison.stats, stats(1, 1, 0, 1));
    assert_eq!(keys(desk, page("undo")).await, ["updated 1", "created 3", "removed 4"]);
    let run = desk.begun("undo").await;
    assert_eq!(desk.finish(&run).await, 4);
    desk.clear().await;
    desk.expect_loads(&[("1", "5"), ("2", "7"), ("3", "5")]).await;
    assert_eq!(desk.ledger.commits(&scope(), None, 1).await.unwrap()[0].undoes, Some(2));
    desk.expect_consistent().await;
}

/// A small generator: the contract needs no randomness that cannot be repeated.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn workbook(&mut self) -> Vec<StagedRow> {
        let mut rows = Vec::new();
        for key in 0..14 {
            if self.below(4) > 0 {
                rows.push(row(&key.to_string(), &self.below(3).to_string()));
            }
        }
        rows
    }
}

pub async fn what_a_preview_promises_is_what_the_records_show(desk: &Desk) {
    expect_kept_promises(desk, Chance(42)).await;
}

pub async fn what_a_preview_promises_is_what_the_records_show_of_other_workbooks(desk: &Desk) {
    expect_kept_promises(desk, Chance(7)).await;
}

/// A hundred workbooks, each against the records of the one before it.
async fn expect_kept_promises(desk: &Desk, mut chance: Chance) {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for pair in 0..100 {
        let rows = chance.workbook();
        let id = format!("log-{pair}");
        let promised = desk.previewed(&id, Policy::OneActive, &rows).await;
        let changes = desk.ledger.log_changes(&page(&id)).await.unwrap();

        let run = desk.begun(&id).await;
        desk.finish(&run).await;

        let mut expected = known.clone();
        for change in &changes {
            let after = change.after.as_ref().map(|after| after.measure.clone().unwrap_or_default());
            let before = match after {
                Some(after) => expected.insert(change.key.key.clone(), after),
                None => expected.remove(&change.key.key),
            };
            let told = change.before.as_ref().map(|before| before.measure.clone().unwrap_or_default());
            assert_eq!(told, before, "what was there before: {change:?}");
        }
        let now: BTreeMap<_, _> = desk.loads(None).await.into_iter().collect();
        assert_eq!(now, expected, "pair {pair}");
        let staged: BTreeMap<_, _> =
            rows.iter().map(|row| (row.key.clone(), row.measure.clone().unwrap_or_default())).collect();
        assert_eq!(now, staged, "every record says what its row said");
        assert_eq!(u64::try_from(changes.len()).unwrap(), promised.stats.changes());
        let unchanged = rows.iter().filter(|row| known.get(&row.key) == row.measure.as_ref()).count();
        assert_eq!(u64::try_from(unchanged).unwrap(), promised.stats.unchanged);
        known = now;
        if pair % 50 == 0 {
            desk.clear().await;
            desk.expect_consistent().await;
        }
    }
    desk.expect_consistent().await;
}
