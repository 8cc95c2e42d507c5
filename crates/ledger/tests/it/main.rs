//! The contract, run against the SQLite adapter.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

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
