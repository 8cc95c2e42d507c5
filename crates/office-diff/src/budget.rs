//! What may still be read and kept of a file.

use std::io::{BufRead, BufReader, Error, Read, Result};

use crate::{Cut, Limits};

/// The longest stretch of markup that is held at once: a tag with its attributes, or a text.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What is left.
#[derive(Debug)]
pub(crate) struct Budget {
    unpacked_bytes: u64,
    text_bytes: usize,
    pieces: usize,
    /// Why not everything was read.
    pub(crate) cut: Option<Cut>,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            unpacked_bytes: limits.unpacked_bytes_max,
            text_bytes: limits.text_bytes_max,
            pieces: limits.pieces_max,
            cut: None,
        }
    }

    /// Whether reading may go on.
    pub(crate) fn is_open(&self) -> bool {
        self.cut.is_none()
    }

    /// Whether a piece with so many bytes may be kept.
    pub(crate) fn takes(&mut self, text_bytes: usize) -> bool {
        if self.pieces == 0 || text_bytes > self.text_bytes {
            self.cut = Some(Cut::Read);
        } else if self.is_open() {
            self.pieces -= 1;
            self.text_bytes -= text_bytes;
        }
        self.is_open()
    }

    /// The longest text that could still be kept.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// A reader that ends with an error where the budget does.
    pub(crate) fn reader<R: Read>(&self, source: R) -> Bounded<R> {
        Bounded { source: BufReader::new(source), left: self.unpacked_bytes, event_left: EVENT_BYTES_MAX }
    }

    /// Takes what a reader used up.
    pub(crate) fn settle<R>(&mut self, reader: &Bounded<R>) {
        self.unpacked_bytes = reader.left;
    }
}

/// A reader with an end.
pub(crate) struct Bounded<R> {
    source: BufReader<R>,
    left: u64,
    event_left: usize,
}

impl<R> Bounded<R> {
    /// A new event begins.
    pub(crate) fn next_event(&mut self) {
        self.event_left = EVENT_BYTES_MAX;
    }

    /// Whether a limit was met, and not just the end of the file.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left == 0 || self.event_left == 0
    }
}

impl<R: Read> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        if self.is_exhausted() {
            return Err(Error::other("a limit was met"));
        }
        let allowed = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.event_left);
        let buffer = self.source.fill_buf()?;
        Ok(&buffer[..buffer.len().min(allowed)])
    }

    fn consume(&mut self, count: usize) {
        self.source.consume(count);
        self.left = self.left.saturating_sub(count as u64);
        self.event_left = self.event_left.saturating_sub(count);
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}
