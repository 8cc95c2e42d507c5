//! The contract, run against the SQLite adapter.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

#[test]
fn a_step_waits_three_seconds_for_the_writer_unless_told_otherwise() {
    let options = ledger::sqlite::Options::new(ledger::contract::environment());

    assert_eq!(options.wait_max, std::time::Duration::from_secs(3));
}

mod tampering;

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
