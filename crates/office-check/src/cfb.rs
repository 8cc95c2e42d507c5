//! The compound file of older Office: what is in it, and whether its directory and its main stream are all there.
//!
//! Guarantees: reads a header, a directory and the chain of one stream, each within a bound; follows no chain twice.
//! Does not do: read what the streams say, nor follow the small streams within theirs.

use std::io::{self, Read, Seek, SeekFrom};

use crate::{Code, Finding, Kind};

/// What every compound file begins with.
pub(crate) const SIGNATURE: [u8; 8] = [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];

const HEADER_BYTES: usize = 512;
const ENTRY_BYTES: usize = 128;
/// Sectors of the table that are listed in the header itself.
const LISTED_IN_HEADER: usize = 109;
/// Marks the end of a chain; every number from `0xffff_fffa` on is no sector.
const NO_SECTOR_FROM: u32 = 0xffff_fffa;
/// Streams shorter than this live together in one of their own.
const SMALL_STREAM_BYTES: u64 = 4096;
/// A directory with more entries than this is none: Office writes a handful, macros some hundreds.
const DIRECTORY_ENTRIES_MAX: u64 = 65_536;
/// Links of the list of table sectors: each leads to 127 more, which is enough for 64 GB.
const LISTS_MAX: u32 = 8_192;

/// Streams that tell what a compound file holds, in the order they count.
const TELLTALES: [(&str, Kind); 7] = [
    ("encryptedpackage", Kind::Encrypted),
    ("worddocument", Kind::Doc),
    ("workbook", Kind::Xls),
    ("book", Kind::Xls),
    ("powerpoint document", Kind::Ppt),
    ("current user", Kind::Ppt),
    ("visiodocument", Kind::Ole),
];

/// Checks a compound file; says what it holds.
pub(crate) fn check<R: Read + Seek>(
    reader: &mut R,
    size_bytes: u64,
    findings: &mut Vec<Finding>,
) -> io::Result<Kind> {
    let Some(mut file) = CompoundFile::open(reader, size_bytes)? else {
        findings.push(Finding::whole(Code::BrokenContainer, "the header of the compound file is damaged"));
        return Ok(Kind::Ole);
    };
    let Some(directory) = file.directory()? else {
        findings.push(Finding::whole(Code::BrokenContainer, "the directory of the compound file is damaged"));
        return Ok(Kind::Ole);
    };
    let Some(stream) = directory.main else {
        findings.push(Finding::whole(Code::UnknownContent, "the compound file holds no Office document"));
        return Ok(Kind::Ole);
    };
    let is_whole = match (stream.chain.size_bytes, directory.small_streams) {
        (0, _) => true,
        (SMALL_STREAM_BYTES.., _) => file.is_whole(&stream.chain)?,
        // Some writers put small streams where large ones belong, so whether it fits in here is not asked.
        (_, Some(around)) => file.is_whole(&around)?,
        (_, None) => false,
    };
    if !is_whole {
        let message = "the compound file is shorter than its main stream needs";
        findings.push(Finding::whole(Code::BrokenContainer, message));
    }
    Ok(stream.kind)
}

/// What the directory tells.
#[derive(Default)]
struct Directory {
    main: Option<Stream>,
    /// The stream that all small streams live in.
    small_streams: Option<Chain>,
}

struct Stream {
    kind: Kind,
    rank: usize,
    chain: Chain,
}

/// Sectors that hold so many bytes.
struct Chain {
    start: u32,
    size_bytes: u64,
}

struct CompoundFile<'a, R> {
    reader: &'a mut R,
    size_bytes: u64,
    sector_bytes: u64,
    directory: u32,
    /// The sectors of the table of chains, as far as the header lists them, and where the list goes on.
    listed: Vec<u32>,
    list_goes_on: u32,
    /// The last sector of the table that was read: chains mostly run on.
    cached: Option<(u32, Vec<u8>)>,
}

impl<'a, R: Read + Seek> CompoundFile<'a, R> {
    fn open(reader: &'a mut R, size_bytes: u64) -> io::Result<Option<Self>> {
        let mut header = [0_u8; HEADER_BYTES];
        reader.seek(SeekFrom::Start(0))?;
        if size_bytes < HEADER_BYTES as u64 {
            return Ok(None);
        }
        reader.read_exact(&mut header)?;
        let shift = u16_at(&header, 30);
        if !header.starts_with(&SIGNATURE) || u16_at(&header, 28) != 0xfffe || !matches!(shift, 7..=16) {
            return Ok(None);
        }
        let listed = (0..LISTED_IN_HEADER).map(|at| u32_at(&header, 76 + at * 4)).collect();
        Ok(Some(Self {
            reader,
            size_bytes,
            sector_bytes: 1 << shift,
            directory: u32_at(&header, 48),
            listed,
            list_goes_on: u32_at(&header, 68),
            cached: None,
        }))
    }

    /// `None` if the directory cannot be read.
    fn directory(&mut self) -> io::Result<Option<Directory>> {
        let (mut sector, mut found) = (self.directory, Directory::default());
        // A chain that is longer than the file runs in circles.
        let sectors_max = DIRECTORY_ENTRIES_MAX * ENTRY_BYTES as u64 / self.sector_bytes;
        let mut left = sectors_max.min(self.size_bytes / self.sector_bytes);
        while sector < NO_SECTOR_FROM {
            let full = self.sector_bytes;
            let is_full = |bytes: &Vec<u8>| bytes.len() as u64 == full;
            let Some(bytes) = self.sector(sector)?.filter(|_| left > 0).filter(is_full) else {
                return Ok(None);
            };
            for entry in bytes.chunks_exact(ENTRY_BYTES) {
                found.main = better(found.main, stream_of(entry));
                found.small_streams = found.small_streams.or(small_streams_of(entry));
            }
            left -= 1;
            let Some(next) = self.next(sector)? else { return Ok(None) };
            sector = next;
        }
        Ok(Some(found))
    }

    /// Whether the chain of a stream is as long as the stream, inside the file.
    fn is_whole(&mut self, chain: &Chain) -> io::Result<bool> {
        let sectors = chain.size_bytes.div_ceil(self.sector_bytes);
        if sectors > self.size_bytes / self.sector_bytes {
            return Ok(false);
        }
        let mut sector = chain.start;
        for _ in 0..sectors {
            if !self.is_inside(sector) {
                return Ok(false);
            }
            match self.next(sector)? {
                Some(next) => sector = next,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn is_inside(&self, sector: u32) -> bool {
        // The last sector may be cut short: writers do not always fill it up.
        sector < NO_SECTOR_FROM && (u64::from(sector) + 1) * self.sector_bytes < self.size_bytes
    }

    fn sector(&mut self, sector: u32) -> io::Result<Option<Vec<u8>>> {
        if !self.is_inside(sector) {
            return Ok(None);
        }
        let start = (u64::from(sector) + 1) * self.sector_bytes;
        self.reader.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        self.reader.by_ref().take(self.sector_bytes).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// The sector after this one in its chain; `None` if the table does not reach that far.
    fn next(&mut self, sector: u32) -> io::Result<Option<u32>> {
        let per_sector = u32::try_from(self.sector_bytes / 4).unwrap_or(u32::MAX);
        let Some(table) = self.table_sector(sector / per_sector)? else { return Ok(None) };
        if self.cached.as_ref().is_none_or(|(known, _)| *known != table) {
            self.cached = self.sector(table)?.map(|bytes| (table, bytes));
        }
        let at = (sector % per_sector) as usize * 4;
        let bytes = self.cached.as_ref().filter(|(known, _)| *known == table);
        Ok(bytes.filter(|(_, bytes)| bytes.len() >= at + 4).map(|(_, bytes)| u32_at(bytes, at)))
    }

    /// The n-th sector of the table of chains.
    fn table_sector(&mut self, number: u32) -> io::Result<Option<u32>> {
        let number = number as usize;
        let per_list = usize::try_from(self.sector_bytes / 4).unwrap_or(usize::MAX) - 1;
        let mut lists = 0;
        while self.listed.len() <= number && self.list_goes_on < NO_SECTOR_FROM {
            let Some(list) = self.sector(self.list_goes_on)?.filter(|_| lists < LISTS_MAX) else {
                return Ok(None);
            };
            self.listed.extend((0..per_list).map(|at| u32_at(&list, at * 4)));
            self.list_goes_on = u32_at(&list, per_list * 4);
            lists += 1;
        }
        Ok(self.listed.get(number).copied().filter(|sector| *sector < NO_SECTOR_FROM))
    }
}

/// What a directory entry tells.
fn stream_of(entry: &[u8]) -> Option<Stream> {
    let is_stream = entry.get(66) == Some(&2);
    let length = usize::from(u16_at(entry, 64)).saturating_sub(2).min(62);
    let units = entry.get(..length)?.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let name: String = char::decode_utf16(units).map_while(Result::ok).collect::<String>().to_lowercase();
    let rank = TELLTALES.iter().position(|(known, _)| *known == name).filter(|_| is_stream)?;
    Some(Stream { kind: TELLTALES[rank].1, rank, chain: chain_of(entry) })
}

/// The root of the directory says where the small streams live.
fn small_streams_of(entry: &[u8]) -> Option<Chain> {
    (entry.get(66) == Some(&5)).then(|| chain_of(entry))
}

fn chain_of(entry: &[u8]) -> Chain {
    // The upper half is rubbish in files of the older form, whose streams cannot be that long.
    Chain { start: u32_at(entry, 116), size_bytes: u64::from(u32_at(entry, 120)) }
}

fn better(best: Option<Stream>, other: Option<Stream>) -> Option<Stream> {
    match (best, other) {
        (Some(best), Some(other)) if other.rank < best.rank => Some(other),
        (None, other) => other,
        (best, _) => best,
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |pair| u16::from_le_bytes([pair[0], pair[1]]))
}

/// What is not there reads as no sector.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(u32::MAX, |four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const SECTOR: usize = 512;
    const LAST: u32 = 0xffff_fffe;

    /// A compound file with one stream: header, table of chains, directory, and the stream's sectors.
    fn compound(name: &str, stream_bytes: usize) -> Vec<u8> {
        let sectors = stream_bytes.div_ceil(SECTOR);
        let mut header = vec![0_u8; SECTOR];
        header[..8].copy_from_slice(&SIGNATURE);
        header[28..34].copy_from_slice(&[0xfe, 0xff, 9, 0, 6, 0]);
        header[44..48].copy_from_slice(&1_u32.to_le_bytes());
        header[48..52].copy_from_slice(&1_u32.to_le_bytes());
        header[68..72].copy_from_slice(&LAST.to_le_bytes());
        header[76..].fill(0xff);
        header[76..80].copy_from_slice(&0_u32.to_le_bytes());
        let mut table = vec![0xff_u8; SECTOR];
        let chain = |at: usize| if at + 1 == sectors { LAST } else { u32::try_from(at + 3).unwrap() };
        for (at, next) in [LAST, LAST].into_iter().chain((0..sectors).map(chain)).enumerate() {
            table[at * 4..at * 4 + 4].copy_from_slice(&next.to_le_bytes());
        }
        let mut directory = vec![0_u8; SECTOR];
        for (at, unit) in name.encode_utf16().enumerate() {
            directory[at * 2..at * 2 + 2].copy_from_slice(&unit.to_le_bytes());
        }
        directory[64] = u8::try_from(name.len() * 2 + 2).unwrap();
        directory[66] = 2;
        directory[116..120].copy_from_slice(&2_u32.to_le_bytes());
        directory[120..124].copy_from_slice(&u32::try_from(stream_bytes).unwrap().to_le_bytes());
        [header, table, directory, vec![7; sectors * SECTOR]].concat()
    }

    fn checked(bytes: &[u8]) -> (Kind, Vec<&'static str>) {
        let mut findings = Vec::new();
        let kind = check(&mut Cursor::new(bytes), bytes.len() as u64, &mut findings).unwrap();
        (kind, findings.iter().map(|finding| finding.code.as_str()).collect())
    }

    #[test]
    fn the_streams_tell_what_it_is() {
        for (name, kind) in [
            ("WordDocument", Kind::Doc),
            ("Workbook", Kind::Xls),
            ("BOOK", Kind::Xls),
            ("PowerPoint Document", Kind::Ppt),
            ("EncryptedPackage", Kind::Encrypted),
        ] {
            assert_eq!(checked(&compound(name, 5000)), (kind, vec![]), "{name}");
        }
        assert_eq!(checked(&compound("Contents", 5000)), (Kind::Ole, vec!["unknown-content"]));
    }

    #[test]
    fn a_file_that_is_cut_off_is_damaged() {
        let whole = compound("WordDocument", 20_000);
        for cut in (8..whole.len() - SECTOR).step_by(97) {
            assert_eq!(checked(&whole[..cut]).1, ["broken-container"], "cut at {cut}");
        }
        assert_eq!(
            checked(&whole[..whole.len() - 100]).1,
            Vec::<&str>::new(),
            "the last sector need not be full"
        );
    }

    /// Its stream is in the mini stream, whose sectors come last.
    fn compound_with_small_stream() -> Vec<u8> {
        let mut bytes = compound("Workbook", 5000);
        let directory = 2 * SECTOR;
        bytes[directory + 120..directory + 124].copy_from_slice(&3000_u32.to_le_bytes());
        let root = directory + ENTRY_BYTES;
        bytes[root + 66] = 5;
        bytes[root + 116..root + 120].copy_from_slice(&2_u32.to_le_bytes());
        bytes[root + 120..root + 124].copy_from_slice(&5000_u32.to_le_bytes());
        bytes
    }

    #[test]
    fn a_small_stream_is_whole_if_the_stream_of_small_streams_is() {
        let whole = compound_with_small_stream();

        assert_eq!(checked(&whole), (Kind::Xls, vec![]));
        assert_eq!(checked(&whole[..whole.len() - 3 * SECTOR]), (Kind::Xls, vec!["broken-container"]));
        let mut without_root = whole;
        without_root[2 * SECTOR + ENTRY_BYTES + 66] = 0;
        assert_eq!(checked(&without_root), (Kind::Xls, vec!["broken-container"]));
    }

    /// A stream so long that the header cannot list all sectors of the table: a list of its own goes on.
    fn large_compound() -> Vec<u8> {
        let (stream, tables) = (16_000_u32, 127_u32);
        // In this order: the directory, the list, the table, the stream.
        let chain = |at: u32| if at + 1 == 2 + tables + stream { LAST } else { at + 1 };
        let mut table: Vec<u32> = vec![LAST; 2 + tables as usize];
        table.extend((2 + tables..2 + tables + stream).map(chain));
        table.resize(tables as usize * SECTOR / 4, u32::MAX);
        let mut list: Vec<u32> = (2..2 + tables).skip(LISTED_IN_HEADER).collect();
        list.resize(SECTOR / 4 - 1, u32::MAX);
        list.push(LAST);

        let small = compound("WordDocument", 5000);
        let (mut header, mut directory) = (small[..SECTOR].to_vec(), small[2 * SECTOR..3 * SECTOR].to_vec());
        header[48..52].fill(0);
        header[68..72].copy_from_slice(&1_u32.to_le_bytes());
        for (at, sector) in (2..2 + tables).take(LISTED_IN_HEADER).enumerate() {
            header[76 + at * 4..80 + at * 4].copy_from_slice(&sector.to_le_bytes());
        }
        directory[116..120].copy_from_slice(&(2 + tables).to_le_bytes());
        directory[120..124].copy_from_slice(&(stream * 512).to_le_bytes());
        let words = |words: Vec<u32>| words.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
        [header, directory, words(list), words(table), vec![7; stream as usize * SECTOR]].concat()
    }

    #[test]
    fn the_table_of_a_large_file_goes_on_in_lists() {
        let whole = large_compound();

        assert_eq!(checked(&whole), (Kind::Doc, vec![]));
        assert_eq!(checked(&whole[..whole.len() - SECTOR]).1, ["broken-container"]);
        let mut without_list = whole;
        without_list[68..72].copy_from_slice(&LAST.to_le_bytes());
        assert_eq!(checked(&without_list).1, ["broken-container"]);
    }

    #[test]
    fn chains_that_run_in_circles_end() {
        let mut bytes = compound("Contents", 5000);
        // The directory's chain leads back to itself.
        bytes[SECTOR + 4..SECTOR + 8].copy_from_slice(&1_u32.to_le_bytes());

        assert_eq!(checked(&bytes).1, ["broken-container"]);
    }
}
