//! The schema on PostgreSQL: migrated once, by whoever comes first.

use std::sync::Arc;

use ledger::LedgerError;
use ledger::contract::{Desk, environment};
use ledger::postgres::throwaway::Server;
use ledger::postgres::{Options, PostgresLedger};

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_start_at_once_migrate_once() {
    let database = Server::shared().await.unwrap().empty_database().await.unwrap();
    let options = Options::new(environment(), database.url());

    let (one, two, three) = tokio::join!(
        PostgresLedger::open(&options),
        PostgresLedger::open(&options),
        PostgresLedger::open(&options)
    );
    let again = PostgresLedger::open(&options).await;

    for opened in [one, two, three, again] {
        opened.unwrap();
    }
    let once =
        "DO $$ BEGIN ASSERT (SELECT count(*) = max(number) AND max(number) >= 12 FROM migrations); END $$";
    database.execute(once).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_newer_program_is_refused() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    database.execute("INSERT INTO migrations (number, name) VALUES (999, 'of the future')").await.unwrap();

    let opened = database.ledger().await;

    assert!(matches!(opened, Err(LedgerError::Damaged { .. })), "{opened:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_never_changed_or_removed() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    let entry = "INSERT INTO audit (chain, sequence, at_ms, actor, action, details, hash)
                 VALUES ('a', 1, 0, 'me', 'x', '{}', decode(repeat('00', 32), 'hex'))";
    database.execute(entry).await.unwrap();

    for tampering in ["UPDATE audit SET actor = 'you'", "DELETE FROM audit"] {
        let refused = database.execute(tampering).await.unwrap_err();

        let LedgerError::Unavailable { cause } = refused else { panic!("{refused:?}") };
        assert!(cause.to_string().contains("append-only"), "{cause}");
    }
}

/// A rolling upgrade: the newer program has migrated, the older one still runs, with statements prepared before.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_runs_goes_on_while_a_newer_one_adds_to_every_table() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    let desk = Desk::new(Arc::new(database.ledger().await.unwrap())).await;
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 6, b"before").await;
    desk.expect_consistent().await;

    let newer = "DO $$ DECLARE it text; BEGIN
        FOR it IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'migrations' LOOP
            EXECUTE format('ALTER TABLE %I ADD COLUMN of_the_future BIGINT NOT NULL DEFAULT 7', it);
        END LOOP;
        INSERT INTO migrations (number, name) VALUES (999, 'of the future');
        END $$";
    database.execute(newer).await.unwrap();

    desk.save(&key, 6, b"meanwhile").await;
    desk.save(&key, 2, b"after").await;
    desk.expect_head(&document.id, "2", b"after").await;
    assert_eq!(desk.labels(&document.id).await, ["2", "1.2", "1.1", "1"]);
    let next = desk.document("67890").await;
    let key = desk.key(&next.id).await;
    desk.save(&key, 2, b"next").await;
    desk.expect_head(&next.id, "2", b"next").await;
    desk.expect_consistent().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_waits_for_a_table_lets_others_use_it_meanwhile() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    let desk = Desk::new(Arc::new(database.ledger().await.unwrap())).await;
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let before =
        "DROP INDEX inbox_by_document; DROP TABLE reports; DELETE FROM migrations WHERE number >= 15";
    database.execute(before).await.unwrap();
    let reading = database.hold("LOCK TABLE inbox IN ROW EXCLUSIVE MODE").await.unwrap();

    let url = database.url();
    let migrating =
        tokio::spawn(async move { PostgresLedger::open(&Options::new(environment(), url)).await.map(drop) });
    // Each is received, which writes into the very table, while the migration waits for whoever holds it.
    for number in 0..20_u8 {
        desk.save(&key, 6, &[number]).await;
        // waits on purpose: over several attempts of the migration
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(!migrating.is_finished());
    drop(reading);

    migrating.await.unwrap().unwrap();
    desk.save(&key, 2, b"after").await;
    desk.expect_head(&document.id, "2", b"after").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_for_one_document_is_found_by_an_index() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    database.ledger().await.unwrap();
    let by_index = "DO $$ DECLARE line text; plan text := ''; BEGIN
        SET LOCAL enable_seqscan = off;
        FOR line IN EXPLAIN SELECT coalesce(max(number), 0) FROM inbox WHERE document = 'x' LOOP plan := plan || line; END LOOP;
        ASSERT plan LIKE '%inbox_by_document%', plan; END $$";
    database.execute(by_index).await.unwrap();
}
