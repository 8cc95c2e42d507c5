//! Between threads that block and those that do not: what one side writes, the other sends on.
//!
//! Guarantees: the writer never runs ahead by more than a few chunks, and is stopped when nobody reads any more.

use std::io::{self, Write};

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::mpsc;
use vault::Spooled;

const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks between the two sides.
const CHUNKS_AHEAD: usize = 4;

/// Where a thread writes what a stream gives.
pub(super) struct Pipe {
    sender: mpsc::Sender<io::Result<Bytes>>,
    held: Vec<u8>,
}

/// Both ends.
pub(super) fn pipe() -> (Pipe, mpsc::Receiver<io::Result<Bytes>>) {
    let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
    (Pipe { sender, held: Vec::with_capacity(CHUNK_BYTES) }, receiver)
}

impl Pipe {
    /// Whatever was written is on its way, or the reader hears why not.
    pub(super) fn end(mut self, done: io::Result<()>) {
        let ended = done.and_then(|()| self.flush());
        if let Err(cause) = ended {
            // Nobody may be there to hear it.
            let _ = self.sender.blocking_send(Err(cause));
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.held, Vec::with_capacity(CHUNK_BYTES));
        let sent = self.sender.blocking_send(Ok(Bytes::from(chunk)));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// What arrives, as a stream.
pub(super) fn stream(
    receiver: mpsc::Receiver<io::Result<Bytes>>,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|chunk| (chunk, receiver)) })
}

/// The bytes of a spooled content, as a stream.
pub(crate) fn stream_of(spooled: Spooled) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let (mut pipe, receiver) = pipe();
    tokio::task::spawn_blocking(move || {
        let copied = spooled.reader().map_err(io::Error::other);
        let copied = copied.and_then(|mut reader| io::copy(&mut reader, &mut pipe).map(drop));
        pipe.end(copied);
    });
    stream(receiver)
}
