//! The bytes of one entry: inflates or passes on, counts, sums and hands out.
//!
//! Guarantees: fixed buffers (here 128 KiB, in [`Source`] 64 KiB, in [`Whole`] 5 MiB) for all entries; stops as
//! soon as an entry goes beyond its declared size, the budget or the ratio; a whole entry has used up exactly
//! its deflated bytes. Small entries and large ones get the same answers.
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
    whole::Whole,
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
    whole: Whole,
    /// Only made for an archive that needs it.
    stream: Option<Stream>,
}

/// What inflating piece by piece needs.
struct Stream {
    inflate: Decompress,
    output: Box<[u8]>,
}

impl Unpacker {
    pub(super) fn new() -> Self {
        Self { whole: Whole::new(), stream: None }
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
            _ if Whole::is_for(record) && !tally.is_suspicious() => {
                self.inflate_whole(source, record, tally)?
            }
            _ => self.stream().inflate(source, record, tally)?,
        };
        if flow.is_continue() {
            tally.finish()?;
        }
        Ok(flow)
    }

    fn stream(&mut self) -> &mut Stream {
        self.stream.get_or_insert_with(|| Stream {
            inflate: Decompress::new(false),
            output: vec![0; OUTPUT_BYTES].into_boxed_slice(),
        })
    }

    fn inflate_whole<R: Read + Seek>(
        &mut self,
        source: &mut Source<R>,
        record: &Record,
        tally: &mut Tally<'_>,
    ) -> Result<ControlFlow<()>, ZipFault> {
        let Some(bytes) = self.whole.inflate(source, record)? else {
            return self.stream().inflate(source, record, tally);
        };
        tally.is_summed = true;
        for piece in bytes.chunks(OUTPUT_BYTES) {
            if tally.take(piece)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl Stream {
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
    /// Whether whoever inflated has compared the checksum.
    is_summed: bool,
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
            is_summed: false,
            bytes: 0,
        }
    }

    /// Whether what is declared is already too much.
    fn is_suspicious(&self) -> bool {
        self.declared_bytes > self.suspicious_bytes
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
        if !self.is_summed {
            self.crc.update(piece);
        }
        Ok((self.sink)(piece))
    }

    fn finish(&self) -> Result<(), ZipFault> {
        if self.bytes != self.declared_bytes {
            return Err(self.fault(ZipFaultKind::SizeMismatch));
        }
        if !self.is_summed && self.crc.clone().finalize() != self.declared_crc {
            return Err(self.fault(ZipFaultKind::CrcMismatch));
        }
        Ok(())
    }

    fn fault(&self, kind: ZipFaultKind) -> ZipFault {
        ZipFault::at(kind, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use flate2::{Compression, write::DeflateEncoder};
    use proptest::{collection::vec, prelude::*};

    use super::super::limits::ZipLimits;
    use super::*;

    /// How an entry comes out: its bytes and whether they are whole.
    type Answer = (Result<(), ZipFaultKind>, Vec<u8>);

    #[derive(Clone, Copy, PartialEq)]
    enum Way {
        AsUsual,
        PieceByPiece,
    }

    fn read(data: &[u8], record: &Record, way: Way) -> Answer {
        let mut source = Source::new(Cursor::new(data)).unwrap();
        let mut budget = Budget::of(&ZipLimits::default());
        let mut unpacker = Unpacker::new();
        let mut bytes = Vec::new();
        let mut sink = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            ControlFlow::Continue(())
        };
        let mut tally = Tally::new(record, &mut budget, &mut sink);
        let answer = if way == Way::AsUsual {
            unpacker.unpack(&mut source, record, &mut tally).map(drop)
        } else {
            unpacker.stream().inflate(&mut source, record, &mut tally).and_then(|_| tally.finish())
        };
        if answer.is_ok() {
            assert_eq!(source.position(), record.deflated_bytes, "the source stands behind the entry");
        }
        (answer.map_err(|fault| fault.kind), bytes)
    }

    fn record(data: &[u8], deflated_bytes: usize) -> Record {
        Record {
            offset: 0,
            deflated_bytes: deflated_bytes as u64,
            size_bytes: data.len() as u64,
            part_hash: 0,
            name_at: 0,
            crc: crc32fast::hash(data),
            name_hash: 0,
            name_bytes: 0,
            method: DEFLATED,
            flags: 0,
            trait_bits: 0,
        }
    }

    fn deflate(data: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    proptest! {
        /// Both ways of inflating are one to everybody else, whatever was done to the bytes.
        #[test]
        fn small_entries_get_the_answers_large_ones_get(
            words in vec(0_u8..12, 0..3_000),
            level in 0_u32..=9,
            flip in proptest::option::of((0_usize..4_000, 0_u8..8)),
            behind in vec(any::<u8>(), 0..4),
            short_by in 0_usize..3,
            size_off in -1_i64..=1,
        ) {
            let data: Vec<u8> = words.iter().flat_map(|word| vec![b'a' + word; usize::from(*word)]).collect();
            let mut deflated = deflate(&data, level);
            deflated.extend_from_slice(&behind);
            if let Some((at, bit)) = flip {
                let at = at % deflated.len();
                deflated[at] ^= 1 << bit;
            }
            let mut record = record(&data, deflated.len().saturating_sub(short_by).max(1));
            record.size_bytes = record.size_bytes.saturating_add_signed(size_off);

            prop_assert_eq!(read(&deflated, &record, Way::AsUsual), read(&deflated, &record, Way::PieceByPiece));
        }
    }
}
