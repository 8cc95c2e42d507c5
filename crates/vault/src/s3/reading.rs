//! A reader over the stream that object_store gives.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use futures_util::stream::{BoxStream, Stream as _};
use tokio::io::{AsyncRead, ReadBuf};

/// The bytes of an object as they arrive.
pub(super) struct ObjectReader {
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    chunk: Bytes,
}

impl ObjectReader {
    pub(super) fn new(stream: BoxStream<'static, object_store::Result<Bytes>>) -> Self {
        Self { stream, chunk: Bytes::new() }
    }
}

impl AsyncRead for ObjectReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.chunk.is_empty() {
            match ready!(Pin::new(&mut self.stream).poll_next(context)) {
                Some(Ok(chunk)) => self.chunk = chunk,
                Some(Err(cause)) => return Poll::Ready(Err(io::Error::other(cause))),
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = self.chunk.len().min(out.remaining());
        out.put_slice(&self.chunk[..count]);
        self.chunk.advance(count);
        Poll::Ready(Ok(()))
    }
}
