//! Submissions on a database that is closed and opened again, that refuses by itself, and that somebody had in hands.

use std::path::Path;
use std::sync::Arc;

use ledger::contract::{Desk, environment, submitting};
use ledger::sqlite::{Durability, Options, SqliteLedger};
use ledger::{Ledger, Trail as _};
use rusqlite::Connection;

fn open(folder: &Path) -> SqliteLedger {
    let options = Options { durability: Durability::None, ..Options::new(environment()) };
    SqliteLedger::open(&folder.join("ledger.sqlite"), &options).unwrap()
}

fn connect(folder: &Path) -> Connection {
    let connection = Connection::open(folder.join("ledger.sqlite")).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = ON").unwrap();
    connection
}

#[tokio::test]
async fn a_submission_is_finished_after_the_database_was_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::new(Arc::new(open(folder.path()))).await;

    for stop in 0..submitting::STOPS {
        submitting::stop_after(&desk, stop).await;
        // One writer at a time: the old one is gone before the new one comes, as when a process is killed.
        desk = desk.reopened(Arc::new(SqliteLedger::temporary(&Options::new(environment())).unwrap()));
        let ledger: Arc<dyn Ledger> = Arc::new(open(folder.path()));
        desk = desk.reopened(ledger);

        submitting::expect_finished(&desk, stop).await;
    }
}

/// A database with one committed submission of three rows, and one that is being written.
async fn written(folder: &Path) {
    let desk = Desk::new(Arc::new(open(folder))).await;
    submitting::stop_after(&desk, 0).await;
    submitting::expect_finished(&desk, 0).await;
    submitting::stop_after(&desk, 6).await;
    desk.expect_consistent().await;
}

#[tokio::test]
async fn the_database_itself_refuses_what_may_not_be() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path()).await;
    let connection = connect(folder.path());
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
        "UPDATE row_contents SET hash = zeroblob(32), erased_ms = 1",
    ] {
        let refused = connection.execute(statement, []);

        assert!(refused.is_err(), "{statement}: {refused:?}");
    }
    drop(connection);
    assert_eq!(open(folder.path()).inconsistencies().await.unwrap(), []);
}

#[tokio::test]
async fn submissions_that_somebody_changed_by_hand_are_found() {
    let triggers = [
        "summary_logs_are_kept",
        "summary_logs_begin_at_the_beginning",
        "summary_logs_go_their_way",
        "contents_change_only_by_erasing",
        "commits_stay",
        "commits_are_kept",
        "heads_follow_commits",
        "versions_are_written_above_the_head",
        "versions_are_immutable",
        "committed_versions_are_kept",
    ];
    let off: String = triggers.iter().map(|name| format!("DROP TRIGGER {name};")).collect();
    for (statements, invariant) in [
        ("DELETE FROM record_versions WHERE sequence = 1 AND key = '1'", "whole-submission"),
        ("UPDATE record_versions SET log = 2 WHERE key = '1'", "versions-of-a-commit"),
        ("UPDATE row_contents SET cells = '{}' WHERE number = 1", "record-content"),
        ("DELETE FROM row_contents WHERE number = 1", "record-content"),
        ("UPDATE record_scopes SET head = 2", "dense-commits"),
        (
            "DROP TRIGGER audit_is_append_only_delete; DELETE FROM audit WHERE chain GLOB 'scope:*'; DELETE FROM chains",
            "commit-audited",
        ),
        ("UPDATE summary_logs SET applied = 0, state = 'superseded' WHERE id = 'log-6'", "nothing-above-the-head"),
        ("UPDATE summary_logs SET state = 'superseded', applied = 0 WHERE id = 'log-0'", "submitted-is-committed"),
        ("UPDATE record_versions SET sequence = 7 WHERE sequence = 2", "nothing-above-the-head"),
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
        ("UPDATE staged_rows SET log = 1", "staged-rows"),
        ("UPDATE staged_rows SET log = 1, content = 3", "row-stored-once"),
        ("UPDATE staged_rows SET log = 1, content = 3", "version-as-staged"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path()).await;
        let connection = connect(folder.path());
        connection.execute_batch(&format!("{off} {statements};")).unwrap();
        drop(connection);

        let found = open(folder.path()).inconsistencies().await.unwrap();

        assert!(found.iter().any(|each| each.invariant == invariant), "{statements}: {found:?}");
    }
}
