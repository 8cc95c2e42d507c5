//! The contract about summary logs: uploads, validation, who may work on a log, and what is refused.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use std::collections::BTreeMap;

use model::records::RemovedRows;
use model::submissions::{LogState, OnSubmit, Policy};

use super::desk::{Desk, author};
use super::workbooks::{later, log_id, rows, scope, scope_of};
use crate::LedgerError;
use crate::logs::{
    CreatedLog, Finished, FinishedValidation, LogSource, LogVerdict, LogsPage, NewLog, SubmitWish, TakeUp,
};

const ONE: Policy = Policy::OneActive;
const PARALLEL: Policy = Policy::Parallel;

pub(super) fn is_overtaken<T: std::fmt::Debug>(result: Result<T, LedgerError>) -> bool {
    matches!(result, Err(LedgerError::Overtaken { .. }))
}

pub async fn an_upload_begins_as_preprocessing_and_is_found_in_its_scope_only(desk: &Desk) {
    let log = desk.upload("one", ONE).await;

    assert_eq!((log.state, log.head, log.basis, log.stats), (LogState::Preprocessing, 0, None, None));
    assert_eq!(desk.ledger.log(&scope(), &log.id).await.unwrap(), Some(log.clone()));
    assert_eq!(desk.ledger.log(&scope_of("reg-2"), &log.id).await.unwrap(), None);
    let foreign = NewLog { scope: scope_of("reg-2"), ..desk.new_log("one", ONE) };
    let taken = desk.ledger.create_log(&foreign).await;
    assert!(matches!(taken, Err(LedgerError::AlreadyExists { .. })), "{taken:?}");
    desk.expect_consistent().await;
}

pub async fn the_same_upload_again_is_the_same_log(desk: &Desk) {
    let new = NewLog { upload: Some("cdp-17".to_owned()), ..desk.new_log("one", ONE) };
    desk.ledger.create_log(&new).await.unwrap();

    let by_id = desk.ledger.create_log(&new).await.unwrap();
    let by_upload = desk.ledger.create_log(&NewLog { id: log_id("two"), ..new.clone() }).await.unwrap();
    let elsewhere = NewLog { id: log_id("three"), scope: scope_of("reg-2"), ..new };
    let elsewhere = desk.ledger.create_log(&elsewhere).await.unwrap();

    for known in [by_id, by_upload] {
        assert!(matches!(&known, CreatedLog::Known(log) if log.id == log_id("one")), "{known:?}");
    }
    assert!(matches!(elsewhere, CreatedLog::Created { .. }));
    assert_eq!(desk.ledger.logs(&LogsPage { limit: 10, ..LogsPage::default() }).await.unwrap().len(), 2);
}

pub async fn the_last_upload_supersedes_whatever_is_not_submitted(desk: &Desk) {
    desk.upload("preprocessing", ONE).await;
    desk.upload("validating", ONE).await;
    let run = desk.validating("validating").await;
    desk.previewed("validated", ONE, &rows(&[("1", "5")])).await;

    let created = desk.ledger.create_log(&desk.new_log("newest", ONE)).await.unwrap();

    let CreatedLog::Created { superseded, .. } = created else { unreachable!("{created:?}") };
    assert_eq!(superseded, [log_id("validated")], "the others made way before");
    for id in ["preprocessing", "validating", "validated"] {
        assert_eq!(desk.state(id).await, LogState::Superseded, "{id}");
    }
    assert_eq!(desk.summary_log("validated").await.superseded_by, Some(log_id("newest")));
    assert_eq!(desk.confirm("validated").await.ruling, OnSubmit::RefuseSuperseded);
    assert!(is_overtaken(desk.ledger.stage_rows(&run, rows(&[("1", "5")])).await));
    assert!(is_overtaken(desk.ledger.finish_validation(&desk.validated(&run, 0)).await));
    assert_eq!(desk.clear().await, 1);
    desk.expect_consistent().await;
}

pub async fn an_upload_while_a_submission_runs_is_refused(desk: &Desk) {
    desk.previewed("one", ONE, &rows(&[("1", "5")])).await;
    let run = desk.begun("one").await;

    let refused = desk.ledger.create_log(&desk.new_log("two", ONE)).await.unwrap();
    desk.finish(&run).await;
    let taken = desk.ledger.create_log(&desk.new_log("two", ONE)).await.unwrap();

    assert_eq!(refused, CreatedLog::Busy(log_id("one")));
    assert!(matches!(taken, CreatedLog::Created { superseded, .. } if superseded.is_empty()));
    assert_eq!(desk.state("one").await, LogState::Submitted);
    desk.expect_consistent().await;
}

pub async fn previews_stand_side_by_side_if_the_template_says_so(desk: &Desk) {
    desk.previewed("one", PARALLEL, &rows(&[("1", "5")])).await;
    desk.previewed("two", PARALLEL, &rows(&[("1", "6")])).await;
    let run = desk.begun("one").await;

    let busy = desk.confirm("two").await;
    let meanwhile = desk.previewed("three", PARALLEL, &rows(&[("1", "7")])).await;
    desk.finish(&run).await;
    let stale = desk.confirm("two").await;

    assert_eq!((busy.ruling, busy.run), (OnSubmit::RefuseBusy, None));
    assert_eq!(meanwhile.basis, 0, "an upload while a submission runs is compared with what is committed");
    assert_eq!(stale.ruling, OnSubmit::RefuseStale);
    assert!(stale.log.is_stale() && stale.log.state == LogState::Validated);
    assert_eq!(desk.confirm("three").await.ruling, OnSubmit::RefuseStale);
    desk.expect_loads(&[("1", "5")]).await;
    desk.expect_consistent().await;
}

pub async fn a_stale_preview_is_compared_again_and_confirmed_again(desk: &Desk) {
    desk.previewed("one", PARALLEL, &rows(&[("1", "5"), ("2", "5")])).await;
    let first = desk.previewed("two", PARALLEL, &rows(&[("1", "6"), ("2", "5")])).await;
    let run = desk.begun("one").await;
    desk.finish(&run).await;
    assert_eq!(desk.confirm("two").await.ruling, OnSubmit::RefuseStale);

    let run = desk.take("two", LogState::Validated).await.unwrap();
    let again = desk.compare(&run, RemovedRows::Tombstone).await;
    let renewed = desk.ledger.renew_preview(&run, again.basis, desk.now()).await.unwrap();

    assert_eq!((first.basis, first.stats.created), (0, 2));
    assert_eq!((again.basis, again.stats.updated, again.stats.unchanged), (1, 1, 1));
    assert_eq!(renewed, Finished::Yes);
    assert_eq!(desk.ledger.renew_preview(&run, again.basis, desk.now()).await.unwrap(), Finished::Yes);
    let run = desk.begun("two").await;
    assert_eq!(desk.finish(&run).await, 2);
    desk.expect_loads(&[("1", "6"), ("2", "5")]).await;
    desk.expect_consistent().await;
}

pub async fn a_stale_preview_may_be_validated_from_the_beginning(desk: &Desk) {
    desk.previewed("one", PARALLEL, &rows(&[("1", "5")])).await;
    desk.previewed("two", PARALLEL, &rows(&[("1", "6")])).await;
    let run = desk.begun("one").await;
    desk.finish(&run).await;

    let run = desk.take("two", LogState::Validated).await.unwrap();
    desk.ledger.begin_validation(&run, desk.now()).await.unwrap();

    let log = desk.summary_log("two").await;
    assert_eq!((log.state, log.basis, log.stats, log.staged_rows), (LogState::Validating, None, None, 0));
    assert_eq!(desk.confirm("two").await.ruling, OnSubmit::RefuseNotValidated);
    desk.ledger.stage_rows(&run, rows(&[("1", "6")])).await.unwrap();
    let again = desk.compare(&run, RemovedRows::Tombstone).await;
    desk.ledger.finish_validation(&desk.validated(&run, again.basis)).await.unwrap();
    let run = desk.begun("two").await;
    assert_eq!(desk.finish(&run).await, 2);
    desk.expect_loads(&[("1", "6")]).await;
    desk.expect_consistent().await;
}

pub async fn a_preview_counts_only_for_the_records_it_was_compared_with(desk: &Desk) {
    desk.previewed("one", PARALLEL, &rows(&[("1", "5")])).await;
    desk.upload("two", PARALLEL).await;
    let two = desk.validating("two").await;
    desk.ledger.stage_rows(&two, rows(&[("1", "6")])).await.unwrap();
    let early = desk.compare(&two, RemovedRows::Tombstone).await;

    let run = desk.begun("one").await;
    desk.finish(&run).await;
    let moved = desk.ledger.finish_validation(&desk.validated(&two, early.basis)).await.unwrap();
    let again = desk.compare(&two, RemovedRows::Tombstone).await;
    let finished = desk.ledger.finish_validation(&desk.validated(&two, again.basis)).await.unwrap();

    assert_eq!((moved, finished), (Finished::BasisMoved, Finished::Yes));
    assert_eq!((again.basis, again.stats.updated), (1, 1));
    let log = desk.summary_log("two").await;
    assert_eq!((log.state, log.basis, log.stats), (LogState::Validated, Some(1), Some(again.stats)));
    desk.expect_consistent().await;
}

pub async fn nothing_is_validated_that_was_not_compared(desk: &Desk) {
    desk.upload("one", ONE).await;
    let run = desk.validating("one").await;
    desk.ledger.stage_rows(&run, rows(&[("1", "5")])).await.unwrap();

    let on_nothing = desk.ledger.finish_validation(&desk.validated(&run, 7)).await.unwrap();

    assert_eq!(on_nothing, Finished::BasisMoved);
    assert_eq!(desk.state("one").await, LogState::Validating);
}

pub async fn a_wrong_workbook_is_invalid_and_frees_its_scope(desk: &Desk) {
    desk.upload("one", ONE).await;
    let run = desk.validating("one").await;
    desk.ledger.stage_rows(&run, rows(&[("1", "5")])).await.unwrap();
    let verdict = LogVerdict::Invalid { reason: Some("a cell is wrong".to_owned()) };
    let facts = Some(r#"{"version":"1"}"#.to_owned());
    let finish = FinishedValidation { run: run.clone(), verdict, facts: facts.clone(), at: desk.now() };

    for _ in 0..2 {
        assert_eq!(desk.ledger.finish_validation(&finish).await.unwrap(), Finished::Yes);
    }

    let log = desk.summary_log("one").await;
    assert_eq!((log.state, log.reason.as_deref()), (LogState::Invalid, Some("a cell is wrong")));
    assert_eq!((log.facts, log.worked_until), (facts, None));
    assert_eq!(desk.confirm("one").await.ruling, OnSubmit::RefuseNotValidated);
    assert!(matches!(
        desk.ledger.create_log(&desk.new_log("two", ONE)).await.unwrap(),
        CreatedLog::Created { superseded, .. } if superseded.is_empty()
    ));
    assert_eq!((desk.clear().await, desk.clear().await), (1, 0));
    desk.expect_consistent().await;
}

pub async fn a_scanner_may_refuse_before_anything_is_read(desk: &Desk) {
    desk.upload("one", ONE).await;
    let run = desk.take("one", LogState::Preprocessing).await.unwrap();
    let verdict = LogVerdict::Invalid { reason: Some("a virus".to_owned()) };

    let finish = FinishedValidation { run, verdict, facts: None, at: desk.now() };
    desk.ledger.finish_validation(&finish).await.unwrap();

    assert_eq!(desk.state("one").await, LogState::Invalid);
}

pub async fn a_fault_of_ours_ends_a_validation_for_good(desk: &Desk) {
    desk.upload("one", ONE).await;
    let run = desk.validating("one").await;

    for _ in 0..2 {
        desk.ledger.fail_validation(&run, "the vault is gone", desk.now()).await.unwrap();
    }

    let log = desk.summary_log("one").await;
    assert_eq!((log.state, log.reason.as_deref()), (LogState::ValidationFailed, Some("the vault is gone")));
    assert!(is_overtaken(desk.ledger.begin_validation(&run, desk.now()).await));
    assert_eq!(desk.take("one", LogState::ValidationFailed).await, None, "it is over");
    assert_eq!(desk.confirm("one").await.ruling, OnSubmit::RefuseNotValidated);
    desk.expect_consistent().await;
}

pub async fn every_state_refuses_what_does_not_belong_to_it(desk: &Desk) {
    desk.upload("one", ONE).await;
    assert_eq!(desk.confirm("one").await.ruling, OnSubmit::RefuseNotValidated);
    let run = desk.take("one", LogState::Preprocessing).await.unwrap();
    assert!(is_overtaken(desk.ledger.stage_rows(&run, rows(&[("1", "5")])).await), "it is not read yet");
    assert!(is_overtaken(desk.ledger.finish_validation(&desk.validated(&run, 0)).await));
    assert!(is_overtaken(desk.ledger.commit_submission(&run, desk.now()).await));
    desk.ledger.begin_validation(&run, desk.now()).await.unwrap();
    assert_eq!(desk.confirm("one").await.ruling, OnSubmit::RefuseNotValidated);
    assert!(is_overtaken(desk.ledger.return_to_validated(&run, "why", desk.now()).await));
    let appends = desk.appends(&run, BTreeMap::new());
    desk.ledger.append_versions(&appends).await.unwrap();
    assert!(is_overtaken(desk.ledger.versions_to_append(&run, None, 10).await));
    let missing = SubmitWish {
        scope: scope_of("reg-2"),
        log: log_id("one"),
        who: author("ann"),
        at: desk.now(),
        until: desk.now(),
    };
    let missing = desk.ledger.begin_submission(&missing).await;
    assert!(matches!(missing, Err(LedgerError::NotFound { .. })), "{missing:?}");
    desk.expect_consistent().await;
}

pub async fn a_validation_that_was_taken_over_begins_again_with_nothing(desk: &Desk) {
    desk.upload("one", ONE).await;
    let paused = desk.validating("one").await;
    desk.ledger.stage_rows(&paused, rows(&[("1", "5"), ("9", "9")])).await.unwrap();
    let run = desk.take_over("one", LogState::Validating).await;
    desk.ledger.begin_validation(&run, desk.now()).await.unwrap();

    assert!(is_overtaken(desk.ledger.stage_rows(&paused, rows(&[("3", "5")])).await));
    assert!(is_overtaken(desk.ledger.compare(&paused, &BTreeMap::new()).await));
    assert!(is_overtaken(desk.ledger.fail_validation(&paused, "too late", desk.now()).await));
    desk.ledger.stage_rows(&run, rows(&[("1", "5")])).await.unwrap();
    let comparison = desk.compare(&run, RemovedRows::Tombstone).await;

    assert_eq!(comparison.stats.created, 1);
    let log = desk.summary_log("one").await;
    assert_eq!((log.attempts, log.run, log.staged_rows), (2, 2, 1));
    desk.expect_consistent().await;
}

pub async fn work_that_nobody_does_is_owed(desk: &Desk) {
    desk.upload("preprocessing", PARALLEL).await;
    desk.upload("validating", PARALLEL).await;
    desk.validating("validating").await;
    desk.previewed("validated", PARALLEL, &rows(&[("1", "5")])).await;
    desk.previewed("submitting", PARALLEL, &rows(&[("1", "5")])).await;
    let run = desk.begun("submitting").await;
    let owed = async || {
        let logs = desk.ledger.owed_logs(desk.now(), 10).await.unwrap();
        logs.into_iter().map(|log| log.id.to_string()).collect::<Vec<_>>()
    };

    assert_eq!(owed().await, ["preprocessing"]);
    desk.pass(60);
    assert_eq!(owed().await, ["preprocessing", "validating", "submitting"]);
    desk.ledger.keep_working(&run, later(desk.now(), 600)).await.unwrap();
    assert_eq!(owed().await, ["preprocessing", "validating"]);

    assert!(desk.ledger.retry_log(&run.log, &author("ops"), desk.now()).await.unwrap());
    assert!(owed().await.contains(&"submitting".to_owned()));
    assert!(!desk.ledger.retry_log(&log_id("validated"), &author("ops"), desk.now()).await.unwrap());
    desk.expect_consistent().await;
}

pub async fn an_operator_frees_a_scope(desk: &Desk) {
    desk.upload("validating", PARALLEL).await;
    let validating = desk.validating("validating").await;
    desk.previewed("validated", PARALLEL, &rows(&[("1", "5")])).await;
    desk.previewed("submitting", PARALLEL, &rows(&[("1", "5")])).await;
    let submitting = desk.begun("submitting").await;
    desk.append(&submitting, 7).await;

    for id in ["validating", "validated", "submitting"] {
        assert!(desk.ledger.release_log(&log_id(id), &author("ops"), desk.now()).await.unwrap(), "{id}");
    }

    assert_eq!(desk.state("validating").await, LogState::ValidationFailed);
    assert_eq!(desk.state("validated").await, LogState::Superseded);
    assert_eq!(desk.state("submitting").await, LogState::Validated);
    assert!(is_overtaken(desk.ledger.compare(&validating, &BTreeMap::new()).await));
    assert!(is_overtaken(desk.ledger.commit_submission(&submitting, desk.now()).await));
    assert!(!desk.ledger.release_log(&log_id("validated"), &author("ops"), desk.now()).await.unwrap());
    let run = desk.begun("submitting").await;
    desk.finish(&run).await;
    assert!(!desk.ledger.release_log(&log_id("submitting"), &author("ops"), desk.now()).await.unwrap());
    let chain = desk.ledger.audit(&scope().chain(), 0, 100).await.unwrap();
    let by_ops = chain.iter().filter(|(entry, _)| entry.actor == "ops").count();
    assert_eq!(by_ops, 4, "three releases, and the return of the submission");
    desk.expect_consistent().await;
}

pub async fn logs_are_listed_by_scope_state_and_page(desk: &Desk) {
    for id in ["a", "b", "c"] {
        desk.upload(id, ONE).await;
    }
    let elsewhere = NewLog { scope: scope_of("reg-2"), ..desk.new_log("d", ONE) };
    desk.ledger.create_log(&elsewhere).await.unwrap();
    let document = model::DocumentId::parse("12345").unwrap();
    let mut of_document = NewLog { scope: scope_of("reg-3"), ..desk.new_log("e", ONE) };
    if let LogSource::Workbook { document: from, .. } = &mut of_document.source {
        *from = Some((document.clone(), model::Label { version: 1, checkpoint: 0 }));
    }
    desk.ledger.create_log(&of_document).await.unwrap();
    let list = async |page: LogsPage| {
        let logs = desk.ledger.logs(&page).await.unwrap();
        logs.into_iter().map(|log| log.id.to_string()).collect::<Vec<_>>()
    };
    let page = LogsPage { limit: 10, ..LogsPage::default() };

    assert_eq!(list(page.clone()).await, ["e", "d", "c", "b", "a"]);
    assert_eq!(list(LogsPage { document: Some(document), ..page.clone() }).await, ["e"]);
    assert_eq!(list(LogsPage { scope: Some(scope()), ..page.clone() }).await, ["c", "b", "a"]);
    assert_eq!(list(LogsPage { states: vec![LogState::Superseded], ..page.clone() }).await, ["b", "a"]);
    let before = Some(desk.summary_log("c").await.number);
    assert_eq!(list(LogsPage { before, limit: 1, ..LogsPage::default() }).await, ["b"]);
    assert!(list(LogsPage { organisations: Some(Vec::new()), ..page.clone() }).await.is_empty());
    assert!(list(LogsPage { scope: Some(scope_of("none")), ..page }).await.is_empty());
    let wish = TakeUp { log: log_id("none"), state: LogState::Validating, at: desk.now(), until: desk.now() };
    assert_eq!(desk.ledger.take_up(&wish).await.unwrap(), None);
}

pub async fn the_bytes_of_a_workbook_are_needed_for_ever(desk: &Desk) {
    desk.upload("one", ONE).await;
    let digest = model::Digest::of(b"one");

    assert!(!desk.ledger.begin_removal(&digest, desk.now()).await.unwrap());

    assert_eq!(desk.ledger.blobs(None, 10).await.unwrap().len(), 1);
    desk.expect_consistent().await;
}
