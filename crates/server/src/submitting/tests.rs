//! Submissions against ports that fail: every call of upload, preview and submit fails in turn and "crashes" in turn, and whoever comes next ends in
//! the same state.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::SignedDuration;
use ledger::LedgerError;
use ledger::logs::{LogsPage, SubmitWish, SummaryLog, TakeUp};
use ledger::records::{Ended, RecordsPage};
use ledger::scopes::{How, OrganisationWish, RegistrationWish, Writing};
use ledger::staging::ChangesPage;
use ledger::templates::NewTemplate;
use ledger::{Logs as _, Records as _, Scopes as _, Staging as _, Templates as _, Trail as _};
use model::submissions::LogState;
use model::{OrganisationId, RegistrationId, Scope, SummaryLogId, TemplateId, TemplateVersion};
use steps::{Aftermath, Faults, Moment};

use super::applying::apply;
use super::assessing::renew;
use super::working::{Left, look};
use super::{ASKS, Confirmation, Confirmed, SubmissionError, Upload, confirm, undo, upload};
use crate::app::App;
use crate::testing::{Workbench, author};

const TEMPLATE: &str = include_str!("../../tests/it/loads.toml");

/// A row: id, site, tonnes.
type Row = [String; 3];

fn row(id: u32, site: &str, tonnes: &str) -> Row {
    [id.to_string(), site.to_owned(), tonnes.to_owned()]
}

fn first() -> Vec<Row> {
    vec![row(1000, "North", "1.5"), row(1001, "South", "2")]
}

fn second() -> Vec<Row> {
    vec![row(1000, "North", "1.25"), row(1001, "South", "2"), row(1002, "East", "3")]
}

fn workbook(rows: &[Row]) -> Bytes {
    let mut all: Vec<Vec<&str>> = vec![
        vec!["__T_META_REGISTRATION", "R-1"],
        vec!["__T_META_VERSION", "1.0.0"],
        vec!["__T_TABLE_LOADS", "ID", "SITE", "TONNES"],
    ];
    all.extend(rows.iter().map(|row| [""].into_iter().chain(row.iter().map(String::as_str)).collect()));
    let all: Vec<&[&str]> = all.iter().map(Vec::as_slice).collect();
    understudy::office::sample_xlsx(&all)
}

fn scope() -> Scope {
    Scope {
        organisation: OrganisationId::parse("o1").unwrap(),
        registration: RegistrationId::parse("r1").unwrap(),
    }
}

fn log_id(id: &str) -> SummaryLogId {
    SummaryLogId::parse(id).unwrap()
}

/// Stores with a registration that has no records yet.
async fn registered() -> Workbench {
    registered_with(TEMPLATE).await
}

/// The same, where previews stand side by side and rows may be missing or not.
async fn registered_in_parallel(removed: &str) -> Workbench {
    let text = TEMPLATE.replace("\"one-active\"", "\"parallel\"");
    registered_with(&text.replace("\"fatal\"", &format!("\"{removed}\""))).await
}

async fn registered_with(template: &str) -> Workbench {
    let bench = Workbench::new().await;
    let (by, at) = (author("ops"), bench.process().now());
    let template = NewTemplate {
        id: TemplateId::parse("loads").unwrap(),
        version: TemplateVersion::parse("1.0.0").unwrap(),
        title: "Loads".to_owned(),
        text: template.to_owned(),
        by: by.clone(),
        at,
    };
    bench.ledger.add_template(&template).await.unwrap();
    let writing = Writing { how: How::Put, by, at };
    let organisation = OrganisationWish { id: scope().organisation, name: None, number: None };
    bench.ledger.write_organisation(&organisation, &writing).await.unwrap();
    let registration = RegistrationWish {
        number: Some("R-1".to_owned()),
        template: Some(template.id),
        ..RegistrationWish::new(scope())
    };
    bench.ledger.write_registration(&registration, &writing).await.unwrap();
    bench
}

fn new_upload(id: &str) -> Upload {
    Upload {
        id: log_id(id),
        scope: scope(),
        accreditation: None,
        name: "loads.xlsx".to_owned(),
        upload: None,
        who: author("sue"),
    }
}

async fn bring(app: &Arc<App>, id: &str, rows: &[Row]) -> Result<SummaryLog, SubmissionError> {
    let new = new_upload(id);
    let bytes = workbook(rows);
    let brought =
        upload(app, new, futures_util::stream::once(async move { Ok::<_, Infallible>(bytes) })).await;
    quiet(app).await;
    brought
}

async fn submit(app: &Arc<App>, id: &str) -> Result<Confirmed, SubmissionError> {
    let confirmation = Confirmation { who: author("sue"), despite: vec![ASKS.to_owned()] };
    let confirmed = confirm(app, &scope(), &log_id(id), &confirmation).await;
    quiet(app).await;
    confirmed
}

/// Waits until a process has nothing in hand: whoever works holds it.
async fn quiet(app: &Arc<App>) {
    while Arc::strong_count(app) > 1 {
        // waits on purpose: for work on other threads
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A submitter: uploads, and confirms the preview if the upload was taken.
async fn play(app: &Arc<App>, id: &str, rows: &[Row]) {
    if bring(app, id, rows).await.is_ok() {
        // What comes of it is seen in the ledger.
        let _ = submit(app, id).await;
    }
}

/// The next process does what is owed; then the submitter, who may have heard nothing, does everything again.
async fn recover(bench: &Workbench, id: &str, rows: &[Row]) {
    let app = bench.process();
    look_again(bench, &app).await;
    bring(&app, id, rows).await.unwrap();
    submit(&app, id).await.unwrap();
    look_again(bench, &app).await;
}

async fn look_again(bench: &Workbench, app: &Arc<App>) {
    bench.clock.pass(60);
    look(app).await.unwrap();
    quiet(app).await;
}

async fn summary_log(bench: &Workbench, id: &str) -> SummaryLog {
    bench.ledger.log(&scope(), &log_id(id)).await.unwrap().unwrap()
}

/// What must be the same whenever it happened: records, their histories, submissions, logs. Without times.
async fn told(bench: &Workbench) -> Vec<String> {
    let mut told = Vec::new();
    let page = RecordsPage { ended: Ended::Included, ..RecordsPage::of(&scope(), 500) };
    for record in bench.ledger.find_by_registration(&page).await.unwrap() {
        for version in bench.ledger.record_history(&scope(), &record.key, (0, 100)).await.unwrap() {
            let values = version.content.map(|content| content.values);
            told.push(format!("{:?} {} {:?} {values:?}", version.key, version.sequence, version.change));
        }
    }
    for commit in bench.ledger.commits(&scope(), None, 100).await.unwrap() {
        told.push(format!("{} {} {:?}", commit.sequence, commit.log, commit.stats));
    }
    let logs = LogsPage { scope: Some(scope()), limit: 100, ..LogsPage::default() };
    for log in bench.ledger.logs(&logs).await.unwrap() {
        told.push(format!(
            "{} {:?} {:?} {:?}",
            log.id,
            log.state,
            log.stats,
            log.commit.map(|(number, _)| number)
        ));
    }
    told
}

/// Everything that lasts, with times.
async fn everything(bench: &Workbench) -> String {
    let logs = LogsPage { scope: Some(scope()), limit: 100, ..LogsPage::default() };
    let page = RecordsPage { ended: Ended::Included, ..RecordsPage::of(&scope(), 500) };
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}",
        bench.ledger.logs(&logs).await.unwrap(),
        bench.ledger.find_by_registration(&page).await.unwrap(),
        bench.ledger.commits(&scope(), None, 100).await.unwrap(),
        bench.ledger.totals().await.unwrap(),
    )
}

/// A registration with one submission, and what it looks like after a second one that nothing disturbed.
async fn undisturbed() -> (Vec<String>, Vec<&'static str>) {
    let bench = registered().await;
    play(&bench.process(), "first", &first()).await;
    let faults = Arc::new(Faults::none());
    play(&bench.process_with(&faults), "second", &second()).await;
    assert_eq!(summary_log(&bench, "second").await.commit.map(|(number, _)| number), Some(2));
    (told(&bench).await, faults.calls())
}

/// The n-th port call of a submission fails, for every n, before or after its effect, and the process lives or dies.
async fn fail_every_call(moment: Moment, aftermath: Aftermath) {
    let (expected, calls) = undisturbed().await;
    assert!(calls.contains(&"ledger.create_log") && calls.contains(&"ledger.commit_submission"), "{calls:?}");
    for number in 1.. {
        let bench = registered().await;
        play(&bench.process(), "first", &first()).await;
        let faults = Arc::new(Faults::at_call(number, moment, aftermath));
        play(&bench.process_with(&faults), "second", &second()).await;
        let call = faults.calls().last().copied();

        recover(&bench, "second", &second()).await;

        assert_eq!(told(&bench).await, expected, "call {number}, {call:?}");
        let before = everything(&bench).await;
        recover(&bench, "second", &second()).await;
        assert_eq!(
            everything(&bench).await,
            before,
            "doing it all again changes nothing: call {number}, {call:?}"
        );
        assert_eq!(bench.ledger.inconsistencies().await.unwrap(), [], "call {number}, {call:?}");
        if !faults.has_struck() {
            return;
        }
    }
}

#[tokio::test]
async fn every_port_call_of_a_submission_may_fail_before_it_did_anything() {
    fail_every_call(Moment::Before, Aftermath::GoesOn).await;
}

#[tokio::test]
async fn every_port_call_of_a_submission_may_fail_after_it_did_everything() {
    fail_every_call(Moment::After, Aftermath::GoesOn).await;
}

#[tokio::test]
async fn the_process_may_end_before_every_port_call_of_a_submission() {
    fail_every_call(Moment::Before, Aftermath::Crashed).await;
}

#[tokio::test]
async fn the_process_may_end_after_every_port_call_of_a_submission() {
    fail_every_call(Moment::After, Aftermath::Crashed).await;
}

/// Rows that differ.
fn many(count: u32) -> Vec<Row> {
    (0..count).map(|number| row(1000 + number, "North", &format!("{}.5", number % 90))).collect()
}

/// The port calls of a submission that nothing disturbs.
async fn rehearsed(rows: &[Row]) -> Vec<&'static str> {
    let (bench, faults) = (registered().await, Arc::new(Faults::none()));
    play(&bench.process_with(&faults), "log", rows).await;
    faults.calls()
}

/// Plays until the process ends, right after the n-th call of that name did its work.
async fn end_after(bench: &Workbench, (calls, name, nth): (&[&str], &str, usize), rows: &[Row]) {
    let mut places = calls.iter().enumerate().filter(|(_, call)| **call == name);
    let (place, _) = places.nth(nth - 1).expect("there are as many calls");
    let faults = Arc::new(Faults::at_call(place + 1, Moment::After, Aftermath::Crashed));
    play(&bench.process_with(&faults), "log", rows).await;
    assert!(faults.has_struck());
}

#[tokio::test]
async fn behaviour_6_a_crash_between_chunks_shows_nothing_and_recovery_ends_the_same() {
    let rows = many(2_100);
    let calls = rehearsed(&rows).await;
    let whole = registered().await;
    play(&whole.process(), "log", &rows).await;
    let expected = told(&whole).await;
    for (name, nth, state) in [
        ("ledger.stage_rows", 2, LogState::Validating),
        ("ledger.append_versions", 1, LogState::Submitting),
        ("ledger.append_versions", 2, LogState::Submitting),
        ("ledger.append_versions", 3, LogState::Submitting),
    ] {
        let bench = registered().await;
        end_after(&bench, (&calls, name, nth), &rows).await;

        assert_eq!(summary_log(&bench, "log").await.state, state, "{name} {nth}");
        let page = RecordsPage::of(&scope(), 500);
        assert_eq!(bench.ledger.find_by_registration(&page).await.unwrap(), [], "{name} {nth}");
        recover(&bench, "log", &rows).await;
        assert_eq!(told(&bench).await, expected, "{name} {nth}");
        assert_eq!(bench.ledger.inconsistencies().await.unwrap(), []);
    }
}

#[tokio::test]
async fn clearing_away_a_large_log_does_not_keep_owed_ones_waiting() {
    let bench = registered().await;
    let app = bench.process();
    play(&app, "log", &many(2_100)).await;
    assert_eq!(look(&app).await.unwrap(), Left::Some);
    assert_eq!(look(&app).await.unwrap(), Left::Nothing);
}

#[tokio::test]
async fn behaviour_7_a_crash_after_the_commit_leaves_it_submitted_and_a_repeat_adds_nothing() {
    let (bench, calls) = (registered().await, rehearsed(&first()).await);

    end_after(&bench, (&calls, "ledger.commit_submission", 1), &first()).await;

    assert_eq!(summary_log(&bench, "log").await.state, LogState::Submitted);
    let before = told(&bench).await;
    let app = bench.process();
    let again = submit(&app, "log").await.unwrap();
    assert!(matches!(again, Confirmed::Done(log) if log.commit.map(|(number, _)| number) == Some(1)));
    recover(&bench, "log", &first()).await;
    assert_eq!(told(&bench).await, before);
}

#[tokio::test]
async fn behaviour_8_a_worker_that_wakes_up_late_changes_nothing() {
    let bench = registered().await;
    let (late, prompt) = (bench.process(), bench.process());
    bring(&late, "log", &first()).await.unwrap();
    let wish = SubmitWish {
        scope: scope(),
        log: log_id("log"),
        who: author("sue"),
        at: late.now(),
        until: late.now().checked_add(SignedDuration::from_secs(10)).unwrap(),
    };
    let begun = late.ledger.begin_submission(&wish).await.unwrap();
    look_again(&bench, &prompt).await;
    assert_eq!(summary_log(&bench, "log").await.state, LogState::Submitted);
    let before = everything(&bench).await;

    let woken = apply(&late, &begun.log, &begun.run.unwrap()).await;

    assert!(matches!(woken, Err(SubmissionError::Ledger(LedgerError::Overtaken { .. }))), "{woken:?}");
    assert_eq!(everything(&bench).await, before);
}

#[tokio::test]
async fn behaviour_9_a_submission_nobody_works_on_is_taken_up() {
    let (bench, calls) = (registered().await, rehearsed(&first()).await);
    end_after(&bench, (&calls, "ledger.begin_submission", 1), &first()).await;
    assert_eq!(summary_log(&bench, "log").await.state, LogState::Submitting);

    look_again(&bench, &bench.process()).await;

    let log = summary_log(&bench, "log").await;
    assert_eq!((log.state, log.commit.map(|(number, _)| number)), (LogState::Submitted, Some(1)));
}

#[tokio::test]
async fn a_preview_that_lacks_records_by_now_becomes_invalid() {
    let bench = registered_in_parallel("fatal").await;
    let app = bench.process();
    bring(&app, "one", &first()).await.unwrap();
    bring(&app, "two", &[row(1002, "East", "3")]).await.unwrap();
    submit(&app, "one").await.unwrap();

    let stale = submit(&app, "two").await;

    assert!(matches!(stale, Err(SubmissionError::Stale { .. })), "{stale:?}");
    let log = summary_log(&bench, "two").await;
    assert_eq!((log.state, log.problems.fatal), (LogState::Invalid, 2), "its rows 1000 and 1001 are missing");
    let refused = submit(&app, "two").await;
    assert!(matches!(refused, Err(SubmissionError::NotValidated { .. })), "{refused:?}");
    assert_eq!(bench.ledger.commits(&scope(), None, 100).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_undoing_leaves_what_others_changed_after_its_preview() {
    let bench = registered_in_parallel("ignore").await;
    let app = bench.process();
    play(&app, "first", &first()).await;
    undo(&app, new_upload("undoing"), 1).await.unwrap();
    quiet(&app).await;
    assert_eq!(summary_log(&bench, "undoing").await.stats.unwrap().removed, 2);
    play(&app, "second", &second()).await;

    let stale = submit(&app, "undoing").await;
    let preview = summary_log(&bench, "undoing").await;
    submit(&app, "undoing").await.unwrap();

    assert!(matches!(stale, Err(SubmissionError::Stale { .. })), "{stale:?}");
    assert_eq!(preview.stats.map(|stats| stats.changes()), Some(1), "{preview:?}");
    let page = RecordsPage::of(&scope(), 500);
    let records = bench.ledger.find_by_registration(&page).await.unwrap();
    let left: Vec<(&str, u64)> =
        records.iter().map(|record| (record.key.key.as_str(), record.sequence)).collect();
    assert_eq!(left, [("1000", 2), ("1002", 2)], "1001 is as it was before; nobody touched the others");
}

/// Somebody begins to renew a preview that is up to date; before the records are looked at, another one is submitted.
async fn renewed_while_others_submit(bench: &Workbench, (renewed, other): (&str, &str)) -> SummaryLog {
    let app = bench.process();
    let log = summary_log(bench, renewed).await;
    submit(&app, other).await.unwrap();
    let until = app.now().checked_add(SignedDuration::from_secs(10)).unwrap();
    let wish = TakeUp { log: log.id.clone(), state: log.state, at: app.now(), until };
    let run = bench.ledger.take_up(&wish).await.unwrap().unwrap();

    renew(&app, &log, &run).await.unwrap();

    summary_log(bench, renewed).await
}

#[tokio::test]
async fn a_preview_that_lacks_records_since_it_is_renewed_becomes_invalid() {
    let bench = registered_in_parallel("fatal").await;
    let app = bench.process();
    bring(&app, "one", &first()).await.unwrap();
    bring(&app, "two", &[row(1002, "East", "3")]).await.unwrap();

    let log = renewed_while_others_submit(&bench, ("two", "one")).await;

    assert_eq!((log.state, log.problems.fatal), (LogState::Invalid, 2), "its rows 1000 and 1001 are missing");
}

#[tokio::test]
async fn an_undoing_that_is_renewed_while_others_submit_leaves_what_they_changed() {
    let bench = registered_in_parallel("ignore").await;
    let app = bench.process();
    play(&app, "first", &first()).await;
    undo(&app, new_upload("undoing"), 1).await.unwrap();
    bring(&app, "second", &second()).await.unwrap();

    let log = renewed_while_others_submit(&bench, ("undoing", "second")).await;

    assert_eq!(log.stats.map(|stats| stats.changes()), Some(1), "{log:?}");
}

#[tokio::test]
async fn fifteen_thousand_rows_become_records() {
    let bench = registered().await;
    let rows = many(15_000);

    play(&bench.process(), "log", &rows).await;

    let log = summary_log(&bench, "log").await;
    assert_eq!((log.state, log.applied), (LogState::Submitted, 15_000), "{:?}", log.reason);
    assert_eq!(log.stats.map(|stats| stats.created), Some(15_000));
    let mut again = rows;
    again[14_999] = row(15_999, "South", "1");
    bring(&bench.process(), "again", &again).await.unwrap();
    let preview = summary_log(&bench, "again").await.stats.unwrap();
    assert_eq!((preview.created, preview.updated, preview.unchanged), (0, 1, 14_999));
}

/// Made-up workbooks, always the same ones.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Rows come, go and change; the same number is written in several ways.
    fn workbook(&mut self) -> Vec<Row> {
        const TONNES: [&str; 5] = ["1.5", "1.50", "2", "2.000", "0.125"];
        let mut rows = Vec::new();
        for id in 1000..1012 {
            if self.below(5) > 0 {
                let site = ["North", "South"][usize::from(self.below(4) == 0)];
                rows.push(row(id, site, TONNES[usize::try_from(self.below(5)).unwrap()]));
            }
        }
        rows
    }
}

/// What the records say, by key.
async fn records(bench: &Workbench) -> BTreeMap<String, String> {
    let found = bench.ledger.find_by_registration(&RecordsPage::of(&scope(), 500)).await.unwrap();
    found.into_iter().map(|record| (record.key.key, record.content.unwrap().values)).collect()
}

#[tokio::test]
async fn what_the_preview_of_a_workbook_promises_is_what_the_records_show_for_200_pairs() {
    let bench = registered_with(&TEMPLATE.replace("\"fatal\"", "\"tombstone\"")).await;
    let mut chance = Chance(2026);
    play(&bench.process(), "pair-0", &chance.workbook()).await;
    let mut before = records(&bench).await;
    for pair in 1..=200 {
        let (id, rows) = (format!("pair-{pair}"), chance.workbook());
        let app = bench.process();
        bring(&app, &id, &rows).await.unwrap();
        let promised = summary_log(&bench, &id).await.stats.unwrap();
        let page = ChangesPage {
            log: log_id(&id),
            change: None,
            kind: None,
            key_prefix: None,
            after: None,
            basis: None,
            limit: 500,
        };
        let changes = bench.ledger.log_changes(&page).await.unwrap();
        assert_eq!(records(&bench).await, before, "a preview changes nothing");

        submit(&app, &id).await.unwrap();

        let mut expected = before.clone();
        for change in &changes {
            let was = match &change.after {
                Some(after) => expected.insert(change.key.key.clone(), after.values.clone()),
                None => expected.remove(&change.key.key),
            };
            assert_eq!(change.before.as_ref().map(|content| content.values.clone()), was, "{change:?}");
        }
        let after = records(&bench).await;
        assert_eq!(after, expected, "pair {pair}");
        assert_eq!(after.len(), rows.len(), "every row is a record, and nothing else is");
        assert_eq!(promised.changes(), changes.len() as u64);
        let unchanged = after.iter().filter(|(key, values)| before.get(*key) == Some(values)).count();
        assert_eq!(promised.unchanged, unchanged as u64);
        before = after;
    }
}
