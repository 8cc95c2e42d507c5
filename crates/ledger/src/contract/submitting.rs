//! The contract about submissions: visible at once and whole, repeated, overtaken, returned, raced for, and stopped anywhere.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use model::records::RemovedRows;
use model::submissions::{LogState, OnSubmit, Policy};

use super::desk::Desk;
use super::logs::is_overtaken;
use super::workbooks::{load, log_id, rows, scope, scope_of};
use crate::logs::{CreatedLog, Run, Submission};

const ONE: Policy = Policy::OneActive;
const PARALLEL: Policy = Policy::Parallel;

pub async fn a_submission_becomes_visible_at_once_and_whole(desk: &Desk) {
    desk.submitted("one", &rows(&[("1", "5"), ("2", "5")])).await;
    let comparison =
        desk.previewed("two", ONE, &rows(&[("1", "6"), ("2", "5"), ("3", "5"), ("4", "5")])).await;
    let run = desk.begun("two").await;
    let before = [("1", "5"), ("2", "5")];

    let appended = desk.append(&run, 1).await;

    assert_eq!(appended, comparison.stats.changes());
    desk.expect_loads(&before).await;
    let above = desk.loads(Some(2)).await;
    assert_eq!(above.len(), 2, "not even by asking for it: {above:?}");
    assert_eq!(desk.ledger.record_history(&scope(), &load("1"), (0, 10)).await.unwrap().len(), 1);
    let committed = desk.ledger.commit_submission(&run, desk.now()).await.unwrap();
    assert!(matches!(committed, Submission::Committed { sequence: 2, is_new: true, .. }));
    desk.expect_loads(&[("1", "6"), ("2", "5"), ("3", "5"), ("4", "5")]).await;
    desk.expect_consistent().await;
}

pub async fn an_incomplete_submission_is_not_committed(desk: &Desk) {
    desk.previewed("one", ONE, &rows(&[("1", "5"), ("2", "5")])).await;
    let run = desk.begun("one").await;
    let mut versions = desk.ledger.versions_to_append(&run, None, 10).await.unwrap();
    versions.remove(&load("2"));
    desk.ledger.append_versions(&desk.appends(&run, versions)).await.unwrap();

    let committed = desk.ledger.commit_submission(&run, desk.now()).await.unwrap();

    assert_eq!(committed, Submission::Incomplete { applied: 1, promised: 2 });
    desk.expect_loads(&[]).await;
    assert_eq!(desk.state("one").await, LogState::Submitting);
    assert_eq!(desk.finish(&run).await, 1);
    desk.expect_consistent().await;
}

pub async fn a_submission_that_is_repeated_has_the_same_result(desk: &Desk) {
    desk.previewed("one", ONE, &rows(&[("1", "5"), ("2", "5")])).await;
    let run = desk.begun("one").await;
    let running = desk.confirm("one").await;
    let first = desk.append(&run, 7).await;
    let again = desk.append(&run, 7).await;
    let Submission::Committed { sequence, at, .. } =
        desk.ledger.commit_submission(&run, desk.now()).await.unwrap()
    else {
        unreachable!("it is complete")
    };

    let repeated = desk.ledger.commit_submission(&run, desk.now()).await.unwrap();
    let done = desk.confirm("one").await;

    assert_eq!((running.ruling, running.run), (OnSubmit::Running, None));
    assert_eq!((first, again), (2, 0));
    assert_eq!(repeated, Submission::Committed { sequence, at, is_new: false });
    assert_eq!((done.ruling, done.log.commit), (OnSubmit::Done, Some((1, at))));
    assert_eq!(desk.ledger.commits(&scope(), None, 10).await.unwrap().len(), 1);
    assert_eq!(desk.ledger.record_history(&scope(), &load("1"), (0, 10)).await.unwrap().len(), 1);
    desk.expect_consistent().await;
}

pub async fn an_overtaken_run_changes_nothing(desk: &Desk) {
    desk.previewed("one", ONE, &rows(&[("1", "5"), ("2", "5")])).await;
    let paused = desk.begun("one").await;
    let versions = desk.ledger.versions_to_append(&paused, None, 10).await.unwrap();
    assert_eq!(desk.take("one", LogState::Submitting).await, None, "its lease is not over");
    let run = desk.take_over("one", LogState::Submitting).await;

    let appends = desk.appends(&paused, versions);
    assert!(is_overtaken(desk.ledger.append_versions(&appends).await));
    assert!(is_overtaken(desk.ledger.commit_submission(&paused, desk.now()).await));
    assert!(is_overtaken(desk.ledger.return_to_validated(&paused, "paused", desk.now()).await));
    assert!(is_overtaken(desk.ledger.keep_working(&paused, desk.now()).await));
    assert_eq!(desk.summary_log("one").await.applied, 0);
    assert_eq!(desk.finish(&run).await, 1);

    // What it wanted is done, and it may know.
    assert!(matches!(
        desk.ledger.commit_submission(&paused, desk.now()).await.unwrap(),
        Submission::Committed { sequence: 1, is_new: false, .. }
    ));
    desk.expect_consistent().await;
}

pub async fn a_submission_that_fails_for_good_leaves_nothing_and_frees_the_scope(desk: &Desk) {
    desk.submitted("one", &rows(&[("1", "5")])).await;
    desk.previewed("two", ONE, &rows(&[("1", "6"), ("2", "6"), ("3", "6")])).await;
    let run = desk.begun("two").await;
    desk.append(&run, 2).await;

    for _ in 0..2 {
        desk.ledger.return_to_validated(&run, "the disk is full", desk.now()).await.unwrap();
    }

    let log = desk.summary_log("two").await;
    assert_eq!((log.state, log.applied), (LogState::Validated, 0));
    assert_eq!((log.reason.as_deref(), log.submitted_by), (Some("the disk is full"), None));
    desk.expect_loads(&[("1", "5")]).await;
    desk.expect_consistent().await;
    // The next submission has the place to itself.
    assert_eq!(desk.submitted("three", &rows(&[("1", "7")])).await, 2);
    desk.expect_loads(&[("1", "7")]).await;
    desk.clear().await;
    desk.expect_consistent().await;
}

pub async fn a_returned_submission_is_confirmed_again(desk: &Desk) {
    desk.previewed("one", ONE, &rows(&[("1", "5")])).await;
    let run = desk.begun("one").await;
    desk.append(&run, 7).await;
    desk.ledger.return_to_validated(&run, "later", desk.now()).await.unwrap();

    let run = desk.begun("one").await;

    assert_eq!(desk.finish(&run).await, 1);
    assert_eq!(desk.summary_log("one").await.reason, None);
    desk.expect_consistent().await;
}

/// Every order of two clients who each submit or upload once: one commit per confirmed preview, never two of a kind at a time.
pub async fn races_have_one_winner(desk: &Desk) {
    desk.previewed("one", ONE, &rows(&[("1", "5")])).await;
    let (mine, yours) = tokio::join!(desk.confirm("one"), desk.confirm("one"));
    let begun: Vec<_> = [&mine, &yours].into_iter().filter_map(|answer| answer.run.clone()).collect();
    assert_eq!(begun.len(), 1, "{mine:?} {yours:?}");
    desk.finish(&begun[0]).await;

    for round in 0..20 {
        let (old, new) = (format!("old-{round}"), format!("new-{round}"));
        desk.previewed(&old, ONE, &rows(&[("1", &round.to_string())])).await;
        let upload = desk.new_log(&new, ONE);
        let (submit, upload) = if round % 2 == 0 {
            tokio::join!(desk.confirm(&old), desk.ledger.create_log(&upload))
        } else {
            let (upload, submit) = tokio::join!(desk.ledger.create_log(&upload), desk.confirm(&old));
            (submit, upload)
        };
        match (submit.ruling, upload.unwrap()) {
            (OnSubmit::Begin, CreatedLog::Busy(busy)) => {
                assert_eq!(busy, log_id(&old));
                desk.finish(&submit.run.unwrap()).await;
            }
            (OnSubmit::RefuseSuperseded, CreatedLog::Created { superseded, .. }) => {
                assert_eq!(superseded, [log_id(&old)]);
            }
            other => unreachable!("no winner, or two: {other:?}"),
        }
        desk.expect_consistent().await;
    }
}

pub async fn two_previews_submitted_at_once_have_one_winner(desk: &Desk) {
    desk.previewed("one", PARALLEL, &rows(&[("1", "5")])).await;
    desk.previewed("two", PARALLEL, &rows(&[("1", "6")])).await;

    let (one, two) = tokio::join!(desk.confirm("one"), desk.confirm("two"));

    let mut rulings = [one.ruling, two.ruling];
    rulings.sort_by_key(|ruling| *ruling != OnSubmit::Begin);
    assert_eq!(rulings, [OnSubmit::Begin, OnSubmit::RefuseBusy]);
    let run = one.run.or(two.run).unwrap();
    desk.finish(&run).await;
    let loser = if run.log == log_id("one") { "two" } else { "one" };
    assert_eq!(desk.state(loser).await, LogState::Validated);
    assert_eq!(desk.confirm(loser).await.ruling, OnSubmit::RefuseStale);
    desk.expect_consistent().await;
}

/// Steps after which [`stop_after`] can stop.
pub const STOPS: usize = 8;

/// Whoever works on a log may die at any instant; whoever takes it up finishes it, and nothing is there twice.
pub async fn a_submission_is_finished_from_wherever_it_stopped(desk: &Desk) {
    for stop in 0..STOPS {
        stop_after(desk, stop).await;
        expect_finished(desk, stop).await;
    }
}

fn workbook(stop: usize) -> Vec<model::submissions::StagedRow> {
    let tonnes = stop.to_string();
    rows(&[("1", &tonnes), ("2", &tonnes), ("3", "same")])
}

/// Does so many steps of the submission with this number, and no more.
pub async fn stop_after(desk: &Desk, stop: usize) -> Option<Run> {
    let id = format!("log-{stop}");
    desk.upload(&id, ONE).await;
    let after = |steps: usize| (stop >= steps).then_some(());
    after(1)?;
    let run = desk.take(&id, LogState::Preprocessing).await?;
    after(2)?;
    desk.ledger.begin_validation(&run, desk.now()).await.unwrap();
    after(3)?;
    desk.ledger.stage_rows(&run, workbook(stop)).await.unwrap();
    after(4)?;
    let comparison = desk.compare(&run, RemovedRows::Fatal).await;
    desk.ledger.finish_validation(&desk.validated(&run, comparison.basis)).await.unwrap();
    after(5)?;
    let run = desk.begun(&id).await;
    after(6)?;
    let mut versions = desk.ledger.versions_to_append(&run, None, 10).await.unwrap();
    versions.pop_first();
    desk.ledger.append_versions(&desk.appends(&run, versions)).await.unwrap();
    after(7)?;
    desk.append(&run, 1).await;
    Some(run)
}

/// Finishes the submission with this number from the state it is in, and expects what an undisturbed one leaves.
pub async fn expect_finished(desk: &Desk, stop: usize) {
    let id = format!("log-{stop}");
    loop {
        match desk.state(&id).await {
            state @ (LogState::Preprocessing | LogState::Validating) => {
                let run = desk.take_over(&id, state).await;
                desk.ledger.begin_validation(&run, desk.now()).await.unwrap();
                desk.ledger.stage_rows(&run, workbook(stop)).await.unwrap();
                let comparison = desk.compare(&run, RemovedRows::Fatal).await;
                desk.ledger.finish_validation(&desk.validated(&run, comparison.basis)).await.unwrap();
            }
            LogState::Validated => drop(desk.begun(&id).await),
            LogState::Submitting => drop(desk.finish(&desk.take_over(&id, LogState::Submitting).await).await),
            _ => break,
        }
    }
    let tonnes = stop.to_string();
    desk.expect_loads(&[("1", &tonnes), ("2", &tonnes), ("3", "same")]).await;
    let log = desk.summary_log(&id).await;
    assert_eq!(
        log.commit.map(|(sequence, _)| sequence),
        u64::try_from(stop + 1).ok(),
        "stopped after {stop}"
    );
    desk.clear().await;
    desk.expect_consistent().await;
}

pub async fn what_happens_to_a_scope_is_written_down_and_told(desk: &Desk) {
    let subscription = crate::outbox::Subscription {
        target: "crm".to_owned(),
        events: vec![model::webhooks::Event::Submitted],
    };
    desk.ledger.set_webhooks(&[subscription], desk.now()).await.unwrap();
    desk.submitted("one", &rows(&[("1", "5")])).await;
    desk.upload("two", ONE).await;
    desk.upload("three", ONE).await;

    let chain = desk.ledger.audit(&scope().chain(), 0, 100).await.unwrap();
    let acts: Vec<_> = chain.iter().map(|(entry, _)| entry.action.as_str()).collect();

    assert_eq!(
        acts,
        [
            "summary-log-uploaded",
            "validation-begun",
            "validation-finished",
            "submission-begun",
            "submission-committed",
            "summary-log-uploaded",
            "summary-log-superseded",
            "summary-log-uploaded",
        ]
    );
    let told = desk.ledger.due_deliveries("crm", desk.now(), 10).await.unwrap();
    let [told] = told.as_slice() else { unreachable!("told once: {told:?}") };
    assert!(
        told.payload.contains("summary_log.submitted") && told.payload.contains(r#""commit":1"#),
        "{told:?}"
    );
    assert!(told.payload.contains(r#""organisation":"org-1""#), "{told:?}");
    let receipt = desk.ledger.submission_receipt(&scope(), &log_id("one")).await.unwrap().unwrap();
    let (entry, hash) = receipt.act.unwrap();
    assert_eq!((entry.action.as_str(), entry.actor.as_str()), ("submission-committed", "ann"));
    assert!(chain.iter().any(|(_, each)| *each == hash));
    assert_eq!(desk.ledger.submission_receipt(&scope(), &log_id("three")).await.unwrap(), None);
    assert_eq!(desk.ledger.submission_receipt(&scope_of("reg-2"), &log_id("one")).await.unwrap(), None);
    desk.expect_consistent().await;
}
