//! What is PostgreSQL's own: its schema, many writers at once, broken connections, restarts.

mod at_once;
mod breaking;
mod racing;
mod reports;
mod schema;
mod submissions;
mod turns;

mod contract {
    use std::sync::Arc;

    use ledger::Ledger;
    use ledger::postgres::throwaway::Server;

    /// The database goes when the ledger does.
    async fn fresh() -> Arc<dyn Ledger> {
        let database = Server::shared().await.unwrap().database().await.unwrap();
        database.into_ledger().await.unwrap()
    }

    ledger::contract_tests!(super::fresh().await);
}
