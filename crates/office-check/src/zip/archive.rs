//! An archive whose directory has been checked, and its entries to be read.
//!
//! Guarantees: what [`Archive::read`] calls whole is as it was written. Entries are in the order of the file.
//! Does not do: hold names. They are read from the directory again when somebody asks.

use std::io::{Read, Seek};

use super::{
    descriptor,
    directory::{self, Record},
    end_record,
    fault::{ZipFault, ZipFaultKind},
    layout,
    limits::{Budget, ZipLimits},
    local_header::{self, Behind},
    name::{self, NameHasher},
    source::Source,
    unpack::{self, Sink, Tally, Unpacker},
};

/// More notices say no more than these, and each may have a long name.
const NOTICES_MAX: usize = 32;

/// The worst first, as there may be more than we keep.
const NAME_NOTICES: [(u8, ZipFaultKind); 3] = [
    (Record::DUPLICATE, ZipFaultKind::DuplicateName),
    (Record::UNSAFE, ZipFaultKind::UnsafeName),
    (Record::SIMILAR, ZipFaultKind::SimilarName),
];

/// A checked directory over a reader.
pub(crate) struct Archive<R> {
    source: Source<R>,
    hasher: NameHasher,
    unpacker: Unpacker,
    /// By place in the file.
    records: Vec<Record>,
    /// Places in `records`, by the hash of the name.
    by_part: Vec<u32>,
    directory_at: u64,
    /// What is odd and hinders nobody from reading; at most 32.
    pub(crate) notices: Vec<ZipFault>,
}

/// One entry, as the directory describes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    record: Record,
    /// Where the next entry begins, or the directory.
    room_ends_at: u64,
    is_last: bool,
}

/// How reading an entry ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inflated {
    /// All of it, and size and checksum are right.
    Whole {
        bytes: u64,
        /// Bytes up to the next entry that belong to none. Writers that replace entries in place leave them.
        unclaimed_bytes: u64,
    },
    /// The sink had enough; nothing is known of the rest.
    Stopped { bytes: u64 },
}

impl Entry {
    /// Where its local header is in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.record.offset
    }

    /// Its inflated size, as declared.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.record.size_bytes
    }

    /// Its size in the file, as declared.
    pub(crate) fn deflated_bytes(&self) -> u64 {
        self.record.deflated_bytes
    }
}

impl<R: Read + Seek> Archive<R> {
    /// Finds, reads and checks the directory.
    pub(crate) fn open(reader: R, limits: &ZipLimits) -> Result<Self, ZipFault> {
        let mut source = Source::new(reader)?;
        let hasher = NameHasher::new();
        let file_bytes = source.file_bytes();
        let end = end_record::find(&mut source, file_bytes)?;
        let mut records = directory::read(&mut source, &end, limits, &hasher)?;
        if let Err((record, kind)) = layout::arrange(&mut records, &end) {
            let fault = ZipFault::at(kind, record.offset);
            return Err(named(&mut source, fault, &record));
        }
        let prepended_at = layout::prepended(&mut source, &records, &end)?;
        let trailing_at = layout::trailing(&mut source, &end)?;
        let mut notices = Vec::new();
        notices.extend(prepended_at.map(|at| ZipFault::at(ZipFaultKind::PrependedBytes, at)));
        notices.extend(trailing_at.map(|at| ZipFault::at(ZipFaultKind::TrailingBytes, at)));
        let by_part = layout::by_part(&records);
        layout::mark_alike(&mut records, &by_part);
        let unpacker = Unpacker::new();
        let directory_at = end.directory_at;
        let mut archive = Self { source, hasher, unpacker, records, by_part, directory_at, notices };
        archive.notice_names();
        Ok(archive)
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// An entry by its place in the file. Reading them from 0 on is one forward pass.
    pub(crate) fn entry(&self, at: usize) -> Option<Entry> {
        let record = *self.records.get(at)?;
        let next_at = self.records.get(at.saturating_add(1)).map(|next| next.offset);
        Some(Entry { record, room_ends_at: next_at.unwrap_or(self.directory_at), is_last: next_at.is_none() })
    }

    /// All entries, in the order of the file.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        (0..self.len()).filter_map(|at| self.entry(at))
    }

    /// The entry of a part, in upper or lower case, with or without a slash in front. Of names that differ
    /// only in case the one as written is meant. Two that are equally good are a fault.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Entry>, ZipFault> {
        let bytes = name.as_bytes();
        let part_hash = self.hasher.of_part(bytes);
        let name_hash = self.hasher.of_bytes(name::without_leading_slashes(bytes));
        let record_at = |at: &u32| layout::record_at(&self.records, *at);
        let from = self
            .by_part
            .partition_point(|at| record_at(at).is_some_and(|record| record.part_hash < part_hash));
        let alike = || {
            let rest = self.by_part.iter().skip(from);
            rest.take_while(|at| record_at(at).is_some_and(|record| record.part_hash == part_hash))
        };
        let as_written =
            || alike().filter(|at| record_at(at).is_some_and(|record| record.name_hash == name_hash));
        let found = match (alike().take(2).count(), as_written().take(2).count()) {
            (0, _) => None,
            (1, _) => alike().next(),
            (_, 1) => as_written().next(),
            _ => {
                let fault = ZipFault::whole(ZipFaultKind::DuplicateName);
                return Err(ZipFault { part: Some(name.to_owned()), ..fault });
            }
        };
        Ok(found.and_then(|at| self.entry(usize::try_from(*at).ok()?)))
    }

    /// The name of an entry, read from the directory. Bytes that are not UTF-8 are replaced.
    pub(crate) fn name(&mut self, entry: &Entry) -> Result<String, ZipFault> {
        name_of(&mut self.source, &entry.record)
    }

    /// Reads an entry and checks all there is to check. The sink gets bytes before they are known to be
    /// right: only [`Inflated::Whole`] says so.
    pub(crate) fn read(
        &mut self,
        entry: &Entry,
        budget: &mut Budget,
        sink: Sink<'_>,
    ) -> Result<Inflated, ZipFault> {
        let mut tally = Tally::new(&entry.record, budget, sink);
        let answer = self.read_with(entry, &mut tally);
        answer.map_err(|fault| named(&mut self.source, fault, &entry.record))
    }

    /// What is kept between two calls, buffers apart.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Record>() + self.by_part.capacity() * size_of::<u32>()
    }

    fn read_with(&mut self, entry: &Entry, tally: &mut Tally<'_>) -> Result<Inflated, ZipFault> {
        let Entry { record, room_ends_at, is_last } = entry;
        let fault = |kind| Err(ZipFault::at(kind, record.offset));
        self.source.goto(record.offset);
        let behind = local_header::check(&mut self.source, record, &self.hasher)?;
        if record.flags & local_header::FLAGS_ENCRYPTED != 0 {
            return fault(ZipFaultKind::Encrypted);
        }
        if record.flags & local_header::FLAG_PATCH != 0 || !unpack::is_known(record.method) {
            return fault(ZipFaultKind::UnsupportedMethod);
        }
        let data_ends_at = self.source.position().checked_add(record.deflated_bytes);
        if data_ends_at.is_none_or(|ends_at| ends_at > *room_ends_at) {
            let kind = if *is_last { ZipFaultKind::SizeMismatch } else { ZipFaultKind::OverlappingEntries };
            return fault(kind);
        }
        let flow = self.unpacker.unpack(&mut self.source, record, tally)?;
        if flow.is_break() {
            return Ok(Inflated::Stopped { bytes: tally.bytes() });
        }
        let may_lack_descriptor = behind != Behind::Descriptor;
        if behind != Behind::Nothing
            && !descriptor::pass(&mut self.source, record, *room_ends_at)?
            && !may_lack_descriptor
        {
            return Err(descriptor::missing(record));
        }
        let unclaimed_bytes = room_ends_at.saturating_sub(self.source.position());
        Ok(Inflated::Whole { bytes: tally.bytes(), unclaimed_bytes })
    }

    /// Notes names that occur twice and unsafe names, in the order of the file.
    fn notice_names(&mut self) {
        let Self { source, records, notices, .. } = self;
        for (bit, kind) in NAME_NOTICES {
            for record in records.iter().filter(|record| record.has(bit)) {
                if notices.len() == NOTICES_MAX {
                    return;
                }
                notices.push(named(source, ZipFault::at(kind, record.offset), record));
            }
        }
    }
}

fn named<R: Read + Seek>(source: &mut Source<R>, fault: ZipFault, record: &Record) -> ZipFault {
    // A fault without its name still is the fault that was found.
    ZipFault { part: name_of(source, record).ok(), ..fault }
}

fn name_of<R: Read + Seek>(source: &mut Source<R>, record: &Record) -> Result<String, ZipFault> {
    let mut bytes = vec![0; usize::from(record.name_bytes)];
    source.read_at(record.name_at, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
