//! Submissions that another instance finishes, that the database itself refuses, and that somebody had in hands.

use std::sync::Arc;

use ledger::Trail as _;
use ledger::contract::{Desk, submitting};
use ledger::postgres::throwaway::{Database, Server};

async fn database() -> Database {
    Server::shared().await.unwrap().database().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_one_instance_began_is_finished_by_another() {
    let database = database().await;
    let mut desk = Desk::new(Arc::new(database.ledger().await.unwrap())).await;

    for stop in 0..submitting::STOPS {
        submitting::stop_after(&desk, stop).await;
        desk = desk.reopened(Arc::new(database.ledger().await.unwrap()));

        submitting::expect_finished(&desk, stop).await;
    }
}

/// A database with one committed submission of three rows, and one that is being written.
async fn written() -> Database {
    let database = database().await;
    let desk = Desk::new(Arc::new(database.ledger().await.unwrap())).await;
    submitting::stop_after(&desk, 0).await;
    submitting::expect_finished(&desk, 0).await;
    submitting::stop_after(&desk, 6).await;
    desk.expect_consistent().await;
    database
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_itself_refuses_what_may_not_be() {
    let database = written().await;
    let copy = |state: &str, policy: &str| {
        format!(
            "INSERT INTO summary_logs (id, scope, template, template_version, policy, state, author_id, author_name, uploaded_ms)
             VALUES ('x', 1, 't', '1', '{policy}', '{state}', 'a', 'a', 0)"
        )
    };

    for statement in [
        copy("preprocessing", "one-active").as_str(),
        copy("validated", "parallel").as_str(),
        "UPDATE summary_logs SET state = 'superseded' WHERE id = 'log-6'",
        "UPDATE summary_logs SET state = 'submitting' WHERE id = 'log-0'",
        "UPDATE summary_logs SET state = 'validated' WHERE id = 'log-6'",
        "UPDATE summary_logs SET run = run - 1",
        "DELETE FROM summary_logs",
        "DELETE FROM record_versions WHERE sequence = 1",
        "UPDATE record_versions SET content = 7",
        "INSERT INTO record_versions SELECT scope, kind, 'x', 1, log, content, change, sheet, sheet_row FROM record_versions",
        "INSERT INTO record_versions SELECT scope, kind, 'x', 3, 2, content, change, sheet, sheet_row FROM record_versions",
        "UPDATE record_scopes SET head = 2",
        "UPDATE record_scopes SET head = 0",
        "INSERT INTO record_commits SELECT scope, 2, log, 0, 0 FROM record_commits",
        "DELETE FROM record_commits",
        "UPDATE record_commits SET committed_ms = 0",
        "UPDATE row_contents SET cells = '{}'",
        "UPDATE row_contents SET hash = decode(repeat('00', 32), 'hex'), erased_ms = 1",
    ] {
        let refused = database.execute(statement).await;

        assert!(refused.is_err(), "{statement}: {refused:?}");
    }
    assert_eq!(database.ledger().await.unwrap().inconsistencies().await.unwrap(), []);
}

/// Each of these is found, and by its name. No trigger and no foreign key looks at what is done so.
async fn expect_found(cases: &[(&str, &str)]) {
    for (statements, invariant) in cases {
        let database = written().await;
        database.execute(&format!("SET session_replication_role = replica; {statements};")).await.unwrap();

        let found = database.ledger().await.unwrap().inconsistencies().await.unwrap();

        assert!(found.iter().any(|each| each.invariant == *invariant), "{statements}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_and_contents_that_somebody_changed_by_hand_are_found() {
    expect_found(&[
        ("DELETE FROM record_versions WHERE sequence = 1 AND key = '1'", "whole-submission"),
        ("UPDATE record_versions SET log = 2 WHERE key = '1'", "versions-of-a-commit"),
        (
            "UPDATE row_contents SET cells = '{}' WHERE number = (SELECT min(number) FROM row_contents)",
            "record-content",
        ),
        ("DELETE FROM row_contents WHERE number = (SELECT min(number) FROM row_contents)", "record-content"),
        ("UPDATE record_scopes SET head = 2", "dense-commits"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_somebody_took_from_the_trail_and_logs_that_lost_their_versions_are_found() {
    expect_found(&[
        ("DELETE FROM audit WHERE chain LIKE 'scope:%'; DELETE FROM chains", "commit-audited"),
        ("UPDATE audit SET details = 'nothing' WHERE action = 'submission-committed'", "commit-audited"),
        (
            "UPDATE summary_logs SET applied = 0, state = 'superseded' WHERE id = 'log-6'",
            "nothing-above-the-head",
        ),
        (
            "UPDATE summary_logs SET state = 'superseded', applied = 0 WHERE id = 'log-0'",
            "submitted-is-committed",
        ),
        ("UPDATE record_versions SET sequence = 7 WHERE sequence = 2", "nothing-above-the-head"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_that_somebody_made_active_by_hand_are_found() {
    expect_found(&[
        (
            "INSERT INTO record_versions SELECT scope, kind, key, 0, log, content, change, sheet, sheet_row FROM record_versions
             WHERE sequence = 1 AND key = '1'",
            "one-version-per-log",
        ),
        (
            "DROP INDEX one_active_log; UPDATE summary_logs SET state = 'validated', applied = 0 WHERE id = 'log-0'",
            "one-active-log",
        ),
        (
            "DROP INDEX one_active_log; DROP INDEX one_submission; UPDATE summary_logs SET state = 'submitting' WHERE id = 'log-0'",
            "one-submission",
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn staged_rows_that_somebody_moved_by_hand_are_found() {
    expect_found(&[
        ("UPDATE staged_rows SET log = 1", "staged-rows"),
        ("UPDATE staged_rows SET log = 1, content = 3", "row-stored-once"),
        ("UPDATE staged_rows SET log = 1, content = 3", "version-as-staged"),
    ])
    .await;
}
