//! The reader behind one fixed window, so that headers and data are one forward pass.
//!
//! Guarantees: 64 KiB whatever the input; the reader is told to seek only if the wanted byte is not the next
//! one; a read beyond the end is [`ZipFaultKind::Truncated`].
//! Does not do: know what the bytes mean.

use std::io::{ErrorKind, Read, Seek, SeekFrom};

use super::fault::{ZipFault, ZipFaultKind};

/// Holds the longest field of a header (65,535 bytes) in one piece.
const WINDOW_BYTES: usize = 64 * 1024;

pub(super) struct Source<R> {
    reader: R,
    file_bytes: u64,
    /// Where the reader stands, if we know.
    reader_at: Option<u64>,
    window: Box<[u8]>,
    /// Where in the file the window begins.
    window_at: u64,
    /// The bytes of the window from `next` to `filled` are read and not used yet.
    next: usize,
    filled: usize,
}

impl<R: Read + Seek> Source<R> {
    pub(super) fn new(mut reader: R) -> Result<Self, ZipFault> {
        let file_bytes = reader.seek(SeekFrom::End(0)).map_err(|cause| ZipFault::unreadable(&cause))?;
        let window = vec![0; WINDOW_BYTES].into_boxed_slice();
        Ok(Self { reader, file_bytes, reader_at: None, window, window_at: 0, next: 0, filled: 0 })
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Where the next byte comes from.
    pub(super) fn position(&self) -> u64 {
        self.window_at.saturating_add(self.next as u64)
    }

    pub(super) fn goto(&mut self, offset: u64) {
        let inside = offset.checked_sub(self.window_at).and_then(|inside| usize::try_from(inside).ok());
        match inside.filter(|inside| *inside <= self.filled) {
            Some(inside) => self.next = inside,
            None => {
                self.window_at = offset;
                self.next = 0;
                self.filled = 0;
            }
        }
    }

    pub(super) fn skip(&mut self, bytes: u64) {
        self.goto(self.position().saturating_add(bytes));
    }

    /// The next `count` bytes in one piece; at most as many as the window holds.
    pub(super) fn take(&mut self, count: usize) -> Result<&[u8], ZipFault> {
        if self.filled - self.next < count {
            self.move_to_front();
            while self.filled < count {
                self.fill()?;
            }
        }
        let from = self.next;
        self.next = from.saturating_add(count);
        self.window.get(from..self.next).ok_or(ZipFault::at(ZipFaultKind::Truncated, self.file_bytes))
    }

    /// Some of the next bytes, at least one and at most `bytes_max`; [`consume`](Self::consume) moves on.
    /// Nothing only if nothing is asked for.
    pub(super) fn peek(&mut self, bytes_max: u64) -> Result<&[u8], ZipFault> {
        if bytes_max == 0 {
            return Ok(&[]);
        }
        if self.next == self.filled {
            self.move_to_front();
            self.fill()?;
        }
        let have = self.window.get(self.next..self.filled).unwrap_or_default();
        let count = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(have.len());
        Ok(have.get(..count).unwrap_or_default())
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.next = self.next.saturating_add(count).min(self.filled);
    }

    /// Fills `bytes` from anywhere, past the window, which stays as it is.
    pub(super) fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), ZipFault> {
        self.reader_at = None;
        self.reader.seek(SeekFrom::Start(offset)).map_err(|cause| ZipFault::unreadable(&cause))?;
        self.reader.read_exact(bytes).map_err(|cause| match cause.kind() {
            ErrorKind::UnexpectedEof => ZipFault::at(ZipFaultKind::Truncated, self.file_bytes),
            _ => ZipFault::unreadable(&cause),
        })
    }

    /// Whether these four bytes are there. Where the file has ended they are not.
    pub(super) fn has_at(&mut self, offset: u64, wanted: &[u8]) -> Result<bool, ZipFault> {
        let mut bytes = [0; 4];
        match self.read_at(offset, &mut bytes) {
            Ok(()) => Ok(bytes == wanted),
            Err(fault) if fault.kind == ZipFaultKind::Truncated => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    fn move_to_front(&mut self) {
        self.window.copy_within(self.next..self.filled, 0);
        self.window_at = self.position();
        self.filled -= self.next;
        self.next = 0;
    }

    fn fill(&mut self) -> Result<(), ZipFault> {
        let wanted_at = self.window_at.saturating_add(self.filled as u64);
        if self.reader_at != Some(wanted_at) {
            self.reader.seek(SeekFrom::Start(wanted_at)).map_err(|cause| ZipFault::unreadable(&cause))?;
        }
        let free = self.window.get_mut(self.filled..).unwrap_or_default();
        let count = loop {
            match self.reader.read(free) {
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                // A reader that claims more than it was given room for is not believed.
                answer => break answer.map_err(|cause| ZipFault::unreadable(&cause))?.min(free.len()),
            }
        };
        if count == 0 {
            return Err(ZipFault::at(ZipFaultKind::Truncated, wanted_at));
        }
        self.filled += count;
        self.reader_at = Some(wanted_at.saturating_add(count as u64));
        Ok(())
    }
}
