//! A reader over bytes that gives them in pieces, and is interrupted now and then, as a file on a network is.
//!
//! Guarantees: whatever the pieces, the bytes are the same. Does not do: fail.

use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};

/// How the bytes come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// As many as are asked for.
    Whole,
    /// At most so many at once, and a signal before each piece.
    Pieces(usize),
}

impl Reading {
    /// The most that comes at once.
    pub(crate) fn piece_bytes(self, length: usize) -> usize {
        match self {
            Self::Whole => length.max(1),
            Self::Pieces(bytes) => bytes.max(1),
        }
    }
}

/// Bytes in pieces.
#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    bytes: &'a [u8],
    at: u64,
    reading: Reading,
    is_interrupted: bool,
}

impl<'a> Pieces<'a> {
    pub(crate) fn of(bytes: &'a [u8], reading: Reading) -> Self {
        Self { bytes, at: 0, reading, is_interrupted: false }
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.reading != Reading::Whole {
            self.is_interrupted = !self.is_interrupted;
            if self.is_interrupted {
                return Err(ErrorKind::Interrupted.into());
            }
        }
        let start = usize::try_from(self.at).unwrap_or(usize::MAX).min(self.bytes.len());
        let rest = self.bytes.get(start..).unwrap_or_default();
        let count = rest.len().min(out.len()).min(self.reading.piece_bytes(self.bytes.len()));
        for (to, from) in out.iter_mut().zip(rest.iter().take(count)) {
            *to = *from;
        }
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Pieces<'_> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let place = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => (self.bytes.len() as u64).checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = place.ok_or_else(|| Error::from(ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
