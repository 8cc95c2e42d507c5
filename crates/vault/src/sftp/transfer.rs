//! Whole files to the server and back, with many requests on their way at once.
//!
//! Guarantees: every answer to every write is looked at; a file counts as written when the server has flushed it and its length
//! is right, or, where it cannot flush, when it was read back with the right hash. Memory is bounded by what is on its way.

use std::io;
use std::ops::Range;

use futures_util::stream::{self, FuturesUnordered, StreamExt as _, TryStreamExt as _};
use model::Digest;
use russh_sftp::client::error::Error;
use russh_sftp::protocol::StatusCode;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::connection::{Connection, RemoteFile};
use super::failure::{Failure, Outcome};

const WRITING: &str = "write to a file";
const READING: &str = "read a file";

/// What a file must be to count as written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Promise {
    pub(crate) digest: Digest,
    pub(crate) size_bytes: u64,
}

impl Connection {
    /// Writes all of a source from a place in the file on; returns where it ended.
    pub(crate) async fn write(
        &self,
        file: &RemoteFile,
        mut at: u64,
        mut source: impl AsyncRead + Send + Unpin,
    ) -> Outcome<u64> {
        let mut flying = FuturesUnordered::new();
        let mut has_ended = false;
        loop {
            while !has_ended && flying.len() < self.abilities.in_flight {
                let chunk =
                    read_chunk(&mut source, self.abilities.chunk_bytes).await.map_err(Failure::Ours)?;
                has_ended = chunk.len() < self.abilities.chunk_bytes;
                if !chunk.is_empty() {
                    let size_bytes = chunk.len() as u64;
                    flying.push(self.session.write(&*file.0, at, chunk));
                    at += size_bytes;
                }
            }
            // Any answer will do: on a slow line the last one may take much longer than the next one.
            match self.patiently(WRITING, flying.next()).await? {
                Some(answer) => answer.map(drop).map_err(Failure::of(WRITING))?,
                None => return Ok(at),
            }
        }
    }

    /// Makes sure of a file that was written in full, and closes it.
    pub(crate) async fn finish(&self, file: RemoteFile, (path, promise): (&str, Promise)) -> Outcome<()> {
        let flushed = if self.abilities.flushes { self.flush(&file).await } else { Ok(()) };
        let size_bytes = self.size_of(&file).await;
        self.close(file).await?;
        flushed?;
        let size_bytes = size_bytes?;
        if size_bytes != promise.size_bytes {
            return Err(Failure::ours(format!(
                "the SFTP server took {} bytes and has {size_bytes}",
                promise.size_bytes
            )));
        }
        self.prove(path, promise.digest).await
    }

    /// Reads a file back where the server cannot flush it.
    async fn prove(&self, path: &str, digest: Digest) -> Outcome<()> {
        if self.abilities.flushes || self.hash(path).await?.0 == digest {
            return Ok(());
        }
        Err(Failure::ours("the SFTP server gave back other bytes than it took"))
    }

    /// The hash and the length of a file as it is now: one file from begin to end, even if its name moves on.
    pub(crate) async fn hash(&self, path: &str) -> Outcome<(Digest, u64)> {
        let file = self.open(path).await?;
        let hashed = self.hash_open(&file).await;
        self.close(file).await?;
        hashed
    }

    async fn hash_open(&self, file: &RemoteFile) -> Outcome<(Digest, u64)> {
        let size_bytes = self.size_of(file).await?;
        let mut chunks = self.chunks(file, 0..size_bytes);
        let (mut hasher, mut total_bytes) = (Sha256::new(), 0);
        while let Some(chunk) = self.patiently(READING, chunks.try_next()).await?? {
            hasher.update(&chunk);
            total_bytes += chunk.len() as u64;
        }
        Ok((Digest::new(hasher.finalize().into()), total_bytes))
    }

    /// The bytes of a part of a file, as many of them as there are.
    pub(crate) async fn read(&self, file: &RemoteFile, range: Range<u64>) -> Outcome<Vec<u8>> {
        let mut chunks = self.chunks(file, range);
        let mut bytes = Vec::new();
        while let Some(mut chunk) = self.patiently(READING, chunks.try_next()).await?? {
            bytes.append(&mut chunk);
        }
        Ok(bytes)
    }

    /// A part of a file in order, some requests ahead.
    fn chunks<'a>(
        &'a self,
        file: &'a RemoteFile,
        range: Range<u64>,
    ) -> impl stream::Stream<Item = Outcome<Vec<u8>>> + Send + Unpin + use<'a> {
        let chunk_bytes = self.abilities.chunk_bytes;
        let starts = range.clone().step_by(chunk_bytes);
        let requests =
            starts.map(move |start| self.read_chunk(file, start..range.end.min(start + chunk_bytes as u64)));
        Box::pin(stream::iter(requests).buffered(self.abilities.in_flight))
    }

    /// An answer may be shorter than the question; only nothing at all is the end.
    async fn read_chunk(&self, file: &RemoteFile, range: Range<u64>) -> Outcome<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let at = range.start + bytes.len() as u64;
            // Never more than one chunk, which fits.
            let wanted = u32::try_from(range.end - at).unwrap_or(u32::MAX);
            if wanted == 0 {
                return Ok(bytes);
            }
            match self.session.read(&*file.0, at, wanted).await {
                Ok(part) if part.data.is_empty() => return Ok(bytes),
                Ok(mut part) if bytes.is_empty() => bytes.append(&mut part.data),
                Ok(part) => bytes.extend_from_slice(&part.data),
                Err(Error::Status(status)) if status.status_code == StatusCode::Eof => return Ok(bytes),
                Err(error) => return Err(Failure::of(READING)(error)),
            }
        }
    }
}

/// A full chunk, or what is left.
async fn read_chunk(source: &mut (impl AsyncRead + Send + Unpin), chunk_bytes: usize) -> io::Result<Vec<u8>> {
    let mut chunk = Vec::with_capacity(chunk_bytes);
    source.take(chunk_bytes as u64).read_to_end(&mut chunk).await?;
    Ok(chunk)
}
