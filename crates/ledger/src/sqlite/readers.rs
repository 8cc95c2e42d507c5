//! Connections for reading, side by side with the writer.
//!
//! Guarantees: at most the configured number of reads run at once; a read sees a consistent snapshot. Connections are
//! opened when first needed and used again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::{keep_plans, unavailable};
use crate::Result;

#[derive(Debug)]
pub(super) struct Readers {
    file: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(file: PathBuf, count: usize) -> Self {
        Self { file, idle: Arc::default(), permits: Arc::new(Semaphore::new(count.max(1))) }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(unavailable)?;
        let (file, idle) = (self.file.clone(), Arc::clone(&self.idle));
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let free = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = match free {
                Some(connection) => connection,
                None => connect(&file)?,
            };
            // A snapshot for the whole read: two statements never see two states.
            connection.execute_batch("BEGIN")?;
            let result = read(&connection);
            connection.execute_batch("COMMIT")?;
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            result
        })
        .await
        .map_err(unavailable)?
    }
}

fn connect(file: &PathBuf) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.execute_batch("PRAGMA busy_timeout = 3000; PRAGMA query_only = ON;")?;
    connection.set_prepared_statement_cache_capacity(128);
    keep_plans(&connection)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::super::{Options, SqliteLedger};

    #[tokio::test]
    async fn a_statement_is_planned_once_whatever_is_bound() {
        let options = Options::new(model::Environment::parse("test").unwrap());
        let ledger = SqliteLedger::temporary(&options).unwrap();
        let look = |connection: &rusqlite::Connection| {
            let query = "SELECT content FROM record_versions WHERE scope = ?1 AND kind = ?2 AND key = ?3 AND sequence <= ?4
                         ORDER BY sequence DESC LIMIT 1";
            let mut statement = connection.prepare_cached(query)?;
            for key in ["1", "2", "3"] {
                statement.exists(rusqlite::params![1, "load", key, 7])?;
            }
            Ok(statement.get_status(StatementStatus::RePrepare))
        };

        let planned_again =
            (ledger.read(look).await.unwrap(), ledger.write(move |c, _| look(c)).await.unwrap());

        assert_eq!(planned_again, (0, 0));
    }
}
