//! Reads the records that the inner half (`power-loss/notes.c`) wrote.
//!
//! Guarantees the order in which all processes wrote them. A torn record at the end of a log is left
//! out: its process was killed before it acted upon it. Does not judge what a record means: see `replay`.
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::mem;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::rc::Rc;

use super::tree::{self, Entry};

/// `struct record`, without the name that may follow.
const HEAD_BYTES: usize = 56;
/// `NAME_MAX` of Linux.
const NAME_BYTES_MAX: usize = 255;

#[derive(Debug)]
pub(super) struct Record {
    pub(super) sequence: u64,
    pub(super) note: Note,
}

/// What stood somewhere before a change; or that this need not be known any more.
#[derive(Debug)]
pub(super) enum Note {
    Name { folder: u64, name: OsString, previous: Option<Entry>, born: Option<u64>, joined: Option<u64> },
    Bytes { file: u64, old: Old },
    Sync { inode: u64, since: u64 },
    SyncAll { since: u64 },
}

/// The size of a file before a change, and the bytes that were written over.
#[derive(Debug)]
pub(super) struct Old {
    pub(super) size: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Where in its file under `old` the bytes are, and which process put them there.
    pub(super) place: u64,
    pub(super) process: Rc<str>,
}

/// The records of all processes, in order.
pub(super) struct Records {
    logs: Vec<Log>,
}

impl Records {
    pub(super) fn open(shadow: &Path) -> io::Result<Self> {
        let logs = fs::read_dir(shadow.join("log"))?.map(|entry| Log::open(&entry?));
        Ok(Self { logs: logs.collect::<io::Result<_>>()? })
    }
}

impl Iterator for Records {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.logs.iter_mut().min_by_key(|log| log.order())?;
        let next = first.next();
        mem::replace(&mut first.head, next)
    }
}

struct Log {
    process: Rc<str>,
    file: BufReader<File>,
    head: Option<io::Result<Record>>,
}

impl Log {
    fn open(entry: &fs::DirEntry) -> io::Result<Self> {
        let process = entry.file_name().to_string_lossy().into();
        let mut log = Self { process, file: BufReader::new(File::open(entry.path())?), head: None };
        log.head = log.next();
        Ok(log)
    }

    /// An error comes before everything, so that it is not overlooked.
    fn order(&self) -> u64 {
        match &self.head {
            Some(Ok(record)) => record.sequence,
            Some(Err(_)) => 0,
            None => u64::MAX,
        }
    }

    fn next(&mut self) -> Option<io::Result<Record>> {
        match self.read() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            result => Some(result),
        }
    }

    fn read(&mut self) -> io::Result<Record> {
        let mut head = [0; HEAD_BYTES];
        self.file.read_exact(&mut head)?;
        let mut words = head.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let mut word = || words.next().expect("a head is seven words");
        let (bytes_and_kind, sequence, inode) = (word(), word(), word());
        let values = [word(), word(), word(), word()];

        let bytes = usize::try_from(bytes_and_kind & 0xffff_ffff).expect("usize has 64 bits");
        let name_bytes = bytes.checked_sub(HEAD_BYTES).filter(|bytes| *bytes <= NAME_BYTES_MAX);
        let mut name = vec![0; name_bytes.ok_or(io::ErrorKind::InvalidData)?];
        self.file.read_exact(&mut name)?;

        let note = match bytes_and_kind >> 32 {
            1 => name_note(inode, OsString::from_vec(name), values),
            2 => Note::Bytes { file: inode, old: self.old(values) },
            3 => Note::Sync { inode, since: values[0] },
            4 => Note::SyncAll { since: values[0] },
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok(Record { sequence, note })
    }

    fn old(&self, [size, offset, length, place]: [u64; 4]) -> Old {
        Old { size, offset, length, place, process: Rc::clone(&self.process) }
    }
}

fn name_note(folder: u64, name: OsString, [inode, mode, born, joined]: [u64; 4]) -> Note {
    let mode = u32::try_from(mode).expect("a mode has 32 bits");
    let previous = Entry { inode, is_folder: tree::is_folder(mode) };
    Note::Name {
        folder,
        name,
        previous: tree::is_kept(mode).then_some(previous),
        born: (born != 0).then_some(born),
        joined: (joined != 0).then_some(joined),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u64, sequence: u64, name: &str) -> Vec<u8> {
        let bytes = u64::try_from(HEAD_BYTES + name.len()).unwrap();
        let words = [kind << 32 | bytes, sequence, 5, 0, 0, 0, 0];
        [words.map(u64::to_le_bytes).concat(), name.as_bytes().to_vec()].concat()
    }

    fn read(logs: &[Vec<u8>]) -> io::Result<Vec<u64>> {
        let shadow = tempfile::tempdir()?;
        fs::create_dir(shadow.path().join("log"))?;
        for (process, log) in logs.iter().enumerate() {
            fs::write(shadow.path().join("log").join(process.to_string()), log)?;
        }
        Records::open(shadow.path())?.map(|record| Ok(record?.sequence)).collect()
    }

    #[test]
    fn the_records_of_several_processes_come_in_their_order() {
        let one = [record(1, 1, "name"), record(2, 4, ""), record(3, 6, "")].concat();
        let other = [record(4, 2, ""), record(1, 5, "other name")].concat();

        assert_eq!(read(&[one, Vec::new(), other]).unwrap(), [1, 2, 4, 5, 6]);
    }

    #[test]
    fn a_record_torn_anywhere_is_left_out() {
        let whole = record(1, 1, "name");
        let last = record(1, 2, "other name");
        for bytes in 0..last.len() {
            assert_eq!(read(&[[&whole, &last[..bytes]].concat()]).unwrap(), [1]);
        }
    }

    #[test]
    fn a_record_of_no_known_kind_is_an_error() {
        assert!(read(&[record(1, 1, "name"), record(9, 2, "")]).is_err());
    }
}
