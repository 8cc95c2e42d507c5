//! The schema on PostgreSQL: migrated once, by whoever comes first.

use ledger::LedgerError;
use ledger::contract::environment;
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
