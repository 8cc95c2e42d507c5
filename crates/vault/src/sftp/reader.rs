//! A file of the server as a reader that holds a connection only while bytes come.
//!
//! Guarantees: a slow reader keeps nobody waiting, and one that is dropped leaves nothing open; memory is one window. The file is
//! opened anew for each window, so it is only for files that never change: blobs and backups.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::connection::Connection;
use super::failure::Outcome;
use super::pool::Pool;
use crate::BlobReader;

/// What is fetched at once.
const WINDOW_BYTES: u64 = 2 * 1024 * 1024;

/// Opens a file that never changes.
pub(crate) async fn open(pool: Arc<Pool>, path: String, range: Option<Range<u64>>) -> Outcome<BlobReader> {
    let wanted = range.unwrap_or(0..u64::MAX);
    let (size_bytes, held) =
        pool.run(|connection, _| first_window(connection, path.clone(), wanted.clone())).await?;
    let end = wanted.end.min(size_bytes);
    let at = wanted.start + held.len() as u64;
    let reader = RemoteReader { pool, path, at, end, held, taken: 0, fetching: None };
    Ok(BlobReader { size_bytes, reader: Box::pin(reader) })
}

async fn first_window(
    connection: Arc<Connection>,
    path: String,
    wanted: Range<u64>,
) -> Outcome<(u64, Vec<u8>)> {
    let file = connection.open(&path).await?;
    let read = async {
        let size_bytes = connection.size_of(&file).await?;
        let bytes = connection.read(&file, window(wanted.start, wanted.end.min(size_bytes))).await?;
        Ok((size_bytes, bytes))
    };
    let read = read.await;
    connection.close(file).await?;
    read
}

async fn next_window(pool: Arc<Pool>, path: String, range: Range<u64>) -> io::Result<Vec<u8>> {
    let fetched = pool.run(|connection, _| {
        let (path, range) = (path.clone(), range.clone());
        async move {
            let file = connection.open(&path).await?;
            let read = connection.read(&file, range).await;
            connection.close(file).await?;
            read
        }
    });
    let bytes = fetched.await?;
    if bytes.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the file became shorter while it was read",
        ));
    }
    Ok(bytes)
}

fn window(at: u64, end: u64) -> Range<u64> {
    at..end.min(at.saturating_add(WINDOW_BYTES)).max(at)
}

type Fetching = Pin<Box<dyn Future<Output = io::Result<Vec<u8>>> + Send>>;

struct RemoteReader {
    pool: Arc<Pool>,
    path: String,
    /// Where the next window begins.
    at: u64,
    end: u64,
    held: Vec<u8>,
    /// How much of what is held has gone out.
    taken: usize,
    fetching: Option<Fetching>,
}

impl AsyncRead for RemoteReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.taken == self.held.len() && self.at < self.end {
            let (pool, path, range) = (Arc::clone(&self.pool), self.path.clone(), window(self.at, self.end));
            let fetching = self.fetching.get_or_insert_with(|| Box::pin(next_window(pool, path, range)));
            let fetched = ready!(fetching.as_mut().poll(context));
            self.fetching = None;
            self.held = fetched?;
            self.taken = 0;
            self.at += self.held.len() as u64;
        }
        let count = out.remaining().min(self.held.len() - self.taken);
        let taken = self.taken;
        out.put_slice(&self.held[taken..taken + count]);
        self.taken += count;
        Poll::Ready(Ok(()))
    }
}
