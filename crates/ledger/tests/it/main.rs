//! The contract, run against the SQLite adapter.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use std::sync::Arc;

#[test]
fn a_step_waits_three_seconds_for_the_writer_unless_told_otherwise() {
    let options = ledger::sqlite::Options::new(ledger::contract::environment());

    assert_eq!(options.wait_max, std::time::Duration::from_secs(3));
}

mod postgres;
mod submissions;
mod tampering;

#[tokio::test]
async fn a_company_counted_wrongly_and_a_chain_cut_short_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ledger.sqlite");
    let options = ledger::sqlite::Options::new(ledger::contract::environment());
    let ledger = Arc::new(ledger::sqlite::SqliteLedger::open(&file, &options).unwrap());
    let desk = ledger::contract::Desk::new(ledger).await;
    desk.document("12345").await;
    desk.expect_consistent().await;

    let tampering = rusqlite::Connection::open(&file).unwrap();
    let statements = "UPDATE companies SET head_bytes = head_bytes + 1;
        INSERT INTO chains (chain, sequence, hash) VALUES ('saveguard:installation', 3, zeroblob(32));";
    tampering.execute_batch(statements).unwrap();

    let found = desk.ledger.inconsistencies().await.unwrap();
    let invariants: Vec<_> = found.iter().map(|each| each.invariant).collect();
    assert_eq!(invariants, ["company-usage", "audit-chain"], "{found:?}");
}

mod contract {
    use std::sync::Arc;

    use ledger::Ledger;
    use ledger::contract::environment;
    use ledger::sqlite::{Options, SqliteLedger};

    fn fresh() -> Arc<dyn Ledger> {
        Arc::new(SqliteLedger::temporary(&Options::new(environment())).unwrap())
    }

    ledger::contract_tests!(super::fresh());
}
