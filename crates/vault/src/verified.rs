//! Reads a blob and proves its hash before the last bytes leave.
//!
//! Guarantees: a reader that gets to the end got exactly the bytes the digest names. A damaged blob ends in an error
//! with its last part held back, so that whoever receives it sees a broken transfer and not a whole, wrong file.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use model::Digest;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, ReadBuf};

use crate::{Result, Spool, Spooled, Vault, VaultError};

/// Held back until the hash is known; small, so that memory stays flat.
const HELD_BYTES: usize = 64 * 1024;

/// Wraps a reader over a whole blob.
pub fn read_verified<R: AsyncRead + Send + Unpin>(reader: R, digest: Digest) -> impl AsyncRead + Send {
    Verified {
        reader,
        digest,
        hasher: Some(Sha256::new()),
        held: Vec::with_capacity(2 * HELD_BYTES),
        at: 0,
        ended: false,
    }
}

/// Takes a blob out of a vault into a spool; `None` if it is missing there, or not what its name says.
pub async fn read_whole(vault: &dyn Vault, digest: &Digest, spool: &Spool) -> Result<Option<Spooled>> {
    let blob = match vault.open(digest, None).await {
        Ok(blob) => blob,
        Err(VaultError::NotFound { .. }) => return Ok(None),
        Err(cause) => return Err(cause),
    };
    let spooled = spool.take_in(blob.reader, "read a blob").await?;
    Ok((spooled.digest == *digest).then_some(spooled))
}

struct Verified<R> {
    reader: R,
    digest: Digest,
    /// Taken when the end was reached and the hash compared.
    hasher: Option<Sha256>,
    held: Vec<u8>,
    at: usize,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Verified<R> {
    /// Bytes that may leave: all but the last [`HELD_BYTES`], or all of them once the hash is right.
    fn free(&self) -> usize {
        let waiting = self.held.len() - self.at;
        if self.ended { waiting } else { waiting.saturating_sub(HELD_BYTES) }
    }

    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.held.drain(..self.at);
        self.at = 0;
        let mut space = [0_u8; 16 * 1024];
        let mut buffer = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.reader).poll_read(context, &mut buffer))?;
        let arrived = buffer.filled();
        if arrived.is_empty() {
            let hash = self.hasher.take().map(|hasher| Digest::new(hasher.finalize().into()));
            if hash != Some(self.digest) {
                return Poll::Ready(Err(std::io::Error::new(
                    std::io::ErrorKind::InvalidData,
                    format!("blob {} is damaged in the vault", self.digest),
                )));
            }
            self.ended = true;
        } else {
            if let Some(hasher) = &mut self.hasher {
                hasher.update(arrived);
            }
            self.held.extend_from_slice(arrived);
        }
        Poll::Ready(Ok(()))
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Verified<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        while self.free() == 0 && !self.ended {
            ready!(self.poll_fill(context))?;
        }
        let count = self.free().min(out.remaining());
        let at = self.at;
        out.put_slice(&self.held[at..at + count]);
        self.at += count;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    async fn read(bytes: &[u8], digest: Digest) -> (Vec<u8>, bool) {
        let mut out = Vec::new();
        let mut reader = std::pin::pin!(read_verified(bytes, digest));
        let whole = reader.read_to_end(&mut out).await.is_ok();
        (out, whole)
    }

    #[tokio::test]
    async fn sound_blobs_pass_whole() {
        for size in [0, 1, HELD_BYTES - 1, HELD_BYTES, HELD_BYTES + 1, 5 * HELD_BYTES + 3] {
            let bytes: Vec<u8> = (0..size).map(|at| u8::try_from(at % 253).unwrap()).collect();

            assert_eq!(read(&bytes, Digest::of(&bytes)).await, (bytes, true), "{size}");
        }
    }

    #[tokio::test]
    async fn a_damaged_blob_never_arrives_whole() {
        for size in [1, HELD_BYTES, 5 * HELD_BYTES] {
            let bytes = vec![7; size];

            let (out, whole) = read(&bytes, Digest::of(b"something else")).await;

            assert!(!whole && out.len() < size, "{size}");
        }
    }
}
