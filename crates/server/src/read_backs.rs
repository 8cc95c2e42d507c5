//! Blobs that were just read back whole, until the next round of the recovery writes it down.
//!
//! Guarantees: a request costs no write; memory is bounded; a blob counts as read back when its last byte has left a reader
//! that compared its hash. Lost with the process, which only makes a receipt tell of an older time.
//! Does not do: the once-a-day. The ledger keeps a time that is less than a day old.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use jiff::Timestamp;
use model::Digest;
use tokio::io::{AsyncRead, ReadBuf};

/// Between two rounds; what is more is noted another day.
const NOTED_MAX: usize = 10_000;

/// Blobs that were read back, and when that began.
#[derive(Debug, Default)]
pub struct ReadBacks {
    noted: Mutex<HashMap<Digest, Timestamp>>,
}

impl ReadBacks {
    /// A blob was read back whole.
    pub fn note(&self, digest: Digest, at: Timestamp) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() < NOTED_MAX {
            noted.insert(digest, at);
        }
    }

    /// All that were noted, with the earliest time, which is true of each.
    pub fn take(&self) -> Option<(Vec<Digest>, Timestamp)> {
        let noted = std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner));
        let earliest = noted.values().min().copied()?;
        Some((noted.into_keys().collect(), earliest))
    }
}

/// A whole, verified read that is noted when its last byte leaves.
pub(crate) struct Noting<R> {
    /// The verified bytes.
    pub(crate) reader: R,
    /// How many are left.
    pub(crate) left_bytes: u64,
    /// What is noted.
    pub(crate) digest: Digest,
    /// When the read began.
    pub(crate) at: Timestamp,
    /// Where it is noted.
    pub(crate) read_backs: Arc<ReadBacks>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Noting<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = out.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(context, out))?;
        let arrived = (out.filled().len() - before) as u64;
        // Whoever knows the length does not ask for the end.
        if arrived > 0 && arrived == self.left_bytes {
            self.read_backs.note(self.digest, self.at);
        }
        self.left_bytes = self.left_bytes.saturating_sub(arrived);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    fn noting(bytes: &'static [u8], read_backs: &Arc<ReadBacks>) -> Noting<&'static [u8]> {
        Noting {
            reader: bytes,
            left_bytes: bytes.len() as u64,
            digest: Digest::of(bytes),
            at: Timestamp::UNIX_EPOCH,
            read_backs: Arc::clone(read_backs),
        }
    }

    #[tokio::test]
    async fn a_read_is_noted_with_its_last_byte_and_not_before() {
        let read_backs = Arc::new(ReadBacks::default());
        let mut reader = noting(b"saveguard", &read_backs);

        reader.read_exact(&mut [0; 8]).await.unwrap();
        assert_eq!(read_backs.take(), None);
        reader.read_exact(&mut [0; 1]).await.unwrap();

        assert_eq!(read_backs.take(), Some((vec![Digest::of(b"saveguard")], Timestamp::UNIX_EPOCH)));
        assert_eq!(read_backs.take(), None);
    }
}
