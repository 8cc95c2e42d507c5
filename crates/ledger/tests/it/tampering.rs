//! Somebody with the database in hands: every manipulation of the audit trail is found, whatever else they set right.

use std::path::Path;
use std::sync::Arc;

use ledger::Trail as _;
use ledger::contract::{Desk, environment};
use ledger::sqlite::{Durability, Options, SqliteLedger};
use ledger::trail::Anchoring;
use rusqlite::Connection;

fn open(folder: &Path) -> SqliteLedger {
    let options = Options { durability: Durability::None, ..Options::new(environment()) };
    SqliteLedger::open(&folder.join("ledger.sqlite"), &options).unwrap()
}

/// Two documents with four entries each, all of them anchored.
async fn written(folder: &Path) {
    let desk = Desk::new(Arc::new(open(folder))).await;
    for id in ["one", "two"] {
        let document = desk.document(id).await;
        let key = desk.key(&document.id).await;
        desk.save(&key, 2, id.as_bytes()).await;
    }
    desk.pass(60);
    let wish = Anchoring { at: desk.now(), spacing: jiff::SignedDuration::from_mins(1) };
    assert_eq!(desk.ledger.anchor(&wish).await.unwrap().len(), 1);
    desk.expect_consistent().await;
}

/// What is found after the statements: the invariants, in order.
async fn found_after(statements: &str) -> Vec<(&'static str, String)> {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path()).await;
    let connection = Connection::open(folder.path().join("ledger.sqlite")).unwrap();
    let off = "DROP TRIGGER audit_is_append_only_update; DROP TRIGGER audit_is_append_only_delete;";
    connection.execute_batch(&format!("{off} {statements}")).unwrap();
    drop(connection);
    let found = open(folder.path()).inconsistencies().await.unwrap();
    found.into_iter().map(|each| (each.invariant, each.what)).collect()
}

/// Sets the end of a chain right after its last entries were taken.
const HEAD_OF_ONE: &str = "UPDATE documents SET (audit_sequence, audit_hash, anchored_sequence) =
    (SELECT sequence, hash, sequence FROM audit WHERE chain = 'one' ORDER BY sequence DESC LIMIT 1) WHERE id = 'one';";

#[tokio::test]
async fn an_untouched_trail_is_clean() {
    assert_eq!(found_after("").await, []);
}

#[tokio::test]
async fn the_end_of_a_chain_cut_off_together_with_its_head_is_found_by_the_anchor() {
    let cut = format!("DELETE FROM audit WHERE chain = 'one' AND sequence > 2; {HEAD_OF_ONE}");

    let found = found_after(&cut).await;

    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "audit-anchor");
    assert!(
        found[0].1.contains("ends at entry 2") && found[0].1.contains("anchor 4 of company:acme"),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_document_that_vanished_with_all_its_rows_is_found_by_the_anchor() {
    let gone = "PRAGMA foreign_keys = OFF; DROP TRIGGER contents_are_kept; DROP TRIGGER keys_are_kept;
        DELETE FROM contents WHERE document = 'one'; DELETE FROM session_people; DELETE FROM keys WHERE document = 'one';
        DELETE FROM inbox WHERE document = 'one'; DELETE FROM documents WHERE id = 'one';
        DELETE FROM audit WHERE chain = 'one';";

    let found = found_after(gone).await;

    assert_eq!(found.iter().map(|each| each.0).collect::<Vec<_>>(), ["audit-anchor"], "{found:?}");
}

#[tokio::test]
async fn edited_removed_reordered_and_spliced_entries_are_found() {
    let renumber = "UPDATE audit SET sequence = -2 WHERE chain = 'one' AND sequence = 2;
        UPDATE audit SET sequence = 2 WHERE chain = 'one' AND sequence = 3;
        UPDATE audit SET sequence = 3 WHERE chain = 'one' AND sequence = -2;";
    let splice = "DELETE FROM audit WHERE chain = 'one' AND sequence = 2;
        INSERT INTO audit SELECT 'one', sequence, at_ms, actor, action, details, hash, came_from, outcome, company
        FROM audit WHERE chain = 'two' AND sequence = 2;";
    for manipulation in [
        "UPDATE audit SET actor = 'u9' WHERE chain = 'one' AND sequence = 2",
        "UPDATE audit SET came_from = '192.0.2.9' WHERE chain = 'one' AND sequence = 2",
        "UPDATE audit SET outcome = 'conflict' WHERE chain = 'one' AND sequence = 3",
        "UPDATE audit SET came_from = '', outcome = '' WHERE chain = 'one' AND sequence = 2",
        "UPDATE audit SET at_ms = at_ms + 1 WHERE chain = 'one' AND sequence = 2",
        "UPDATE audit SET details = '{}' WHERE chain = 'one' AND sequence = 3",
        "UPDATE audit SET hash = zeroblob(32) WHERE chain = 'one' AND sequence = 2",
        "DELETE FROM audit WHERE chain = 'one' AND sequence = 2",
        "DELETE FROM audit WHERE chain = 'one' AND sequence = 1",
        renumber,
        splice,
    ] {
        let found = found_after(manipulation).await;

        assert!(found.iter().any(|each| each.0 == "audit-chain"), "{manipulation}: {found:?}");
    }
}

#[tokio::test]
async fn anchors_that_were_edited_or_cut_off_are_found() {
    for manipulation in [
        "UPDATE audit SET details = replace(details, 'one', 'owe') WHERE chain = 'company:acme' AND sequence = 3",
        "DELETE FROM audit WHERE chain = 'company:acme' AND sequence = 5",
        "DELETE FROM audit WHERE chain = 'company:acme'",
    ] {
        let found = found_after(manipulation).await;

        assert!(found.iter().any(|each| each.0 == "audit-chain"), "{manipulation}: {found:?}");
    }
}

#[tokio::test]
async fn a_chain_of_the_first_form_goes_on_after_the_migration() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path()).await;
    let connection = Connection::open(folder.path().join("ledger.sqlite")).unwrap();
    // As a program before the second form left it: one entry, and nothing about places, outcomes or anchors.
    let entry = model::audit::Entry {
        chain: "old".to_owned(),
        sequence: 1,
        at: jiff::Timestamp::from_second(1_794_700_000).unwrap(),
        actor: "u0".to_owned(),
        from: String::new(),
        action: "document-uploaded".to_owned(),
        outcome: String::new(),
        details: r#"{"label":"1"}"#.to_owned(),
    };
    let hash = model::audit::hash_of(&model::audit::CHAIN_START, &entry);
    connection
        .execute_batch(&format!(
             "CREATE TEMP TABLE copy AS SELECT * FROM documents WHERE id = 'one';
             UPDATE copy SET id = 'old', audit_sequence = 1, audit_hash = x'{hash}', anchored_sequence = 0,
                 head_version = 1, last_version = 1, head_key = NULL, head_digest = (SELECT digest FROM contents
                 WHERE document = 'one' AND version = 1), key_counter = 0;
             INSERT INTO documents SELECT * FROM copy;
             CREATE TEMP TABLE first AS SELECT * FROM contents WHERE document = 'one' AND version = 1;
             UPDATE first SET document = 'old';
             INSERT INTO contents SELECT * FROM first;
             INSERT INTO audit (chain, sequence, at_ms, actor, action, details, hash, company)
             VALUES ('old', 1, {}, 'u0', 'document-uploaded', '{}', x'{hash}', 'acme');",
            entry.at.as_millisecond(),
            entry.details
        ))
        .unwrap();
    drop(connection);

    let ledger = open(folder.path());
    let at = jiff::Timestamp::from_second(1_794_800_000).unwrap();
    let anchored = ledger.anchor(&Anchoring { at, spacing: jiff::SignedDuration::ZERO }).await.unwrap();

    assert_eq!(anchored.iter().map(|each| each.heads).collect::<Vec<_>>(), [1]);
    assert_eq!(ledger.inconsistencies().await.unwrap(), []);
}
