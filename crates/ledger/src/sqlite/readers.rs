//! Connections for reading, side by side with the writer.
//!
//! Guarantees: at most the configured number of reads run at once; a read sees a consistent snapshot. Connections are
//! opened when first needed and used again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::unavailable;
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
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}
