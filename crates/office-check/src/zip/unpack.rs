//! The bytes of one entry: inflates or passes on, counts, sums and hands out.
//!
//! Guarantees: two fixed buffers (here 128 KiB, in [`Source`] 64 KiB) and one inflater for all entries; stops
//! as soon as an entry goes beyond its declared size, the budget or the ratio; a whole entry has used up
//! exactly its deflated bytes.
//! Does not do: look at headers.

use std::{
    io::{Read, Seek},
    ops::ControlFlow,
};

use flate2::{Decompress, FlushDecompress, Status};

use super::{
    directory::Record,
    fault::{ZipFault, ZipFaultKind},
    limits::Budget,
    source::Source,
};

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Large enough that calls do not count, small enough to stay in a core's cache until it is summed and used.
const OUTPUT_BYTES: usize = 128 * 1024;

/// Takes what was inflated.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> ControlFlow<()>;

/// Whether an entry's bytes can be read at all.
pub(super) fn is_known(method: u16) -> bool {
    matches!(method, STORED | DEFLATED)
}

/// What inflating needs, kept from entry to entry.
pub(super) struct Unpacker {
    inflate: Decompress,
    output: Box<[u8]>,
}

impl Unpacker {
    pub(super) fn new() -> Self {
        Self { inflate: Decompress::new(false), output: vec![0; OUTPUT_BYTES].into_boxed_slice() }
    }

    /// Reads the entry's bytes where the source stands, and goes on until the sink has enough.
    pub(super) fn unpack<R: Read + Seek>(
        &mut self,
        source: &mut Source<R>,
        record: &Record,
        tally: &mut Tally<'_>,
    ) -> Result<ControlFlow<()>, ZipFault> {
        let flow = match record.method {
            STORED => pass_on(source, record, tally)?,
            // Some writers call an entry of no bytes deflated, though even that would take two.
            _ if record.deflated_bytes == 0 && record.size_bytes == 0 => ControlFlow::Continue(()),
            _ => self.inflate(source, record, tally)?,
        };
        if flow.is_continue() {
            tally.finish()?;
        }
        Ok(flow)
    }

    fn inflate<R: Read + Seek>(
        &mut self,
        source: &mut Source<R>,
        record: &Record,
        tally: &mut Tally<'_>,
    ) -> Result<ControlFlow<()>, ZipFault> {
        self.inflate.reset(false);
        let mut left_bytes = record.deflated_bytes;
        loop {
            let input = source.peek(left_bytes)?;
            let (in_before, out_before) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self.inflate.decompress(input, &mut self.output, FlushDecompress::None);
            let used = usize::try_from(self.inflate.total_in() - in_before).unwrap_or(usize::MAX);
            let made = usize::try_from(self.inflate.total_out() - out_before).unwrap_or(usize::MAX);
            source.consume(used);
            left_bytes = left_bytes.saturating_sub(used as u64);
            if made > 0 && tally.take(self.output.get(..made).unwrap_or_default())?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            // Only now: what was inflated before the damage counts, however much of it came at once.
            let status = status.map_err(|_| tally.fault(ZipFaultKind::BadDeflate))?;
            if status == Status::StreamEnd {
                break;
            }
            // There is always room for output, so standing still means that the stream wants bytes it has not
            // got.
            if used == 0 && made == 0 {
                return Err(tally.fault(ZipFaultKind::BadDeflate));
            }
        }
        if left_bytes > 0 {
            return Err(tally.fault(ZipFaultKind::SizeMismatch));
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn pass_on<R: Read + Seek>(
    source: &mut Source<R>,
    record: &Record,
    tally: &mut Tally<'_>,
) -> Result<ControlFlow<()>, ZipFault> {
    if record.deflated_bytes != record.size_bytes {
        return Err(tally.fault(ZipFaultKind::SizeMismatch));
    }
    let mut left_bytes = record.deflated_bytes;
    while left_bytes > 0 {
        let piece = source.peek(left_bytes)?;
        let count = piece.len();
        if tally.take(piece)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        source.consume(count);
        left_bytes = left_bytes.saturating_sub(count as u64);
    }
    Ok(ControlFlow::Continue(()))
}

/// Counts and sums an entry's bytes on their way to the sink.
pub(super) struct Tally<'a> {
    budget: &'a mut Budget,
    sink: Sink<'a>,
    offset: u64,
    declared_bytes: u64,
    declared_crc: u32,
    suspicious_bytes: u64,
    crc: crc32fast::Hasher,
    bytes: u64,
}

impl<'a> Tally<'a> {
    pub(super) fn new(record: &Record, budget: &'a mut Budget, sink: Sink<'a>) -> Self {
        Self {
            offset: record.offset,
            declared_bytes: record.size_bytes,
            declared_crc: record.crc,
            suspicious_bytes: budget.size_max(record.deflated_bytes),
            budget,
            sink,
            crc: crc32fast::Hasher::new(),
            bytes: 0,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn take(&mut self, piece: &[u8]) -> Result<ControlFlow<()>, ZipFault> {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        // Damage before limits: a lie about the size must not pass as an entry that was too large to check.
        if self.bytes > self.declared_bytes {
            return Err(self.fault(ZipFaultKind::SizeMismatch));
        }
        self.budget.spend(piece.len() as u64)?;
        if self.bytes > self.suspicious_bytes {
            return Err(self.fault(ZipFaultKind::RatioTooHigh));
        }
        self.crc.update(piece);
        Ok((self.sink)(piece))
    }

    fn finish(&self) -> Result<(), ZipFault> {
        if self.bytes != self.declared_bytes {
            return Err(self.fault(ZipFaultKind::SizeMismatch));
        }
        if self.crc.clone().finalize() != self.declared_crc {
            return Err(self.fault(ZipFaultKind::CrcMismatch));
        }
        Ok(())
    }

    fn fault(&self, kind: ZipFaultKind) -> ZipFault {
        ZipFault::at(kind, self.offset)
    }
}
