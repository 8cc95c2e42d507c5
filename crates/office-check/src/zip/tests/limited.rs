//! Limits hold, and are told apart from damage.

use std::io::{Read, Seek, SeekFrom};

use super::super::directory::Record;
use super::{
    builder::{Part, Zip, package, text},
    *,
};

fn fault_within(bytes: &[u8], change: impl FnOnce(&mut ZipLimits)) -> ZipFaultKind {
    let mut limits = ZipLimits::default();
    change(&mut limits);
    see_within(bytes, &limits).unwrap_err().kind
}

#[test]
fn each_limit_has_its_fault() {
    let bytes = Zip::of(package()).bytes();
    let total = 8 + 20 + text(30).len() as u64;

    assert_eq!(fault_within(&bytes, |limits| limits.entries_max = 2), ZipFaultKind::TooManyEntries);
    assert_eq!(fault_within(&bytes, |limits| limits.name_bytes_max = 20), ZipFaultKind::NameTooLong);
    assert_eq!(
        fault_within(&bytes, |limits| limits.inflated_bytes_max = total - 1),
        ZipFaultKind::InflatesTooFar
    );
    let enough = ZipLimits { entries_max: 3, name_bytes_max: 21, inflated_bytes_max: total, ratio_max: 1 };
    assert!(see_within(&bytes, &enough).is_ok());
}

#[test]
fn a_ratio_counts_only_beyond_the_floor() {
    let of = |mebibytes: usize| Zip::of(vec![Part::deflated("a", &vec![0; mebibytes * 1024 * 1024])]).bytes();

    assert!(see(&of(16)).is_ok());
    assert_eq!(fault_within(&of(17), |_| {}), ZipFaultKind::RatioTooHigh);
    let generous = ZipLimits { ratio_max: 1100, ..ZipLimits::default() };
    assert!(see_within(&of(17), &generous).is_ok());
}

/// An archive of so many entries that is made while it is read, and counts how much of it is.
struct Endless {
    entries: u64,
    at: u64,
    read_bytes: u64,
}

const LOCAL: &[u8] = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0A\0\0\0";

impl Endless {
    const LOCAL_BYTES: u64 = 40;
    const RECORD_BYTES: u64 = 56;

    fn end(&self) -> Vec<u8> {
        let [locals, records] = [self.entries * Self::LOCAL_BYTES, self.entries * Self::RECORD_BYTES];
        let mut end = [&b"PK\x06\x06"[..], &44_u64.to_le_bytes(), &[0; 12]].concat();
        for value in [self.entries, self.entries, records, locals] {
            end.extend(value.to_le_bytes());
        }
        end.extend(b"PK\x06\x07\0\0\0\0");
        end.extend((locals + records).to_le_bytes());
        end.extend(b"\x01\0\0\0PK\x05\x06\0\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0");
        end
    }

    fn byte(&self, at: u64, end: &[u8]) -> u8 {
        let locals = self.entries * Self::LOCAL_BYTES;
        let ends = locals + self.entries * Self::RECORD_BYTES;
        let name = |entry: u64| format!("{entry:010}").into_bytes();
        let in_file = |at: u64| usize::try_from(at).unwrap();
        if at < locals {
            let (entry, at) = (at / Self::LOCAL_BYTES, in_file(at % Self::LOCAL_BYTES));
            return LOCAL.get(at).copied().unwrap_or_else(|| name(entry)[at - 30]);
        }
        if at >= ends {
            return end[in_file(at - ends)];
        }
        let (entry, at) = ((at - locals) / Self::RECORD_BYTES, in_file((at - locals) % Self::RECORD_BYTES));
        let offset = u32::try_from(entry * Self::LOCAL_BYTES).unwrap().to_le_bytes();
        match at {
            0..4 => b"PK\x01\x02"[at],
            28 => 10,
            42..46 => offset[at - 42],
            46.. => name(entry)[at - 46],
            _ => 0,
        }
    }

    fn len(&self) -> u64 {
        self.entries * (Self::LOCAL_BYTES + Self::RECORD_BYTES) + 98
    }
}

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = usize::try_from(self.len() - self.at).unwrap().min(out.len());
        let end = self.end();
        for slot in out.iter_mut().take(count) {
            *slot = self.byte(self.at, &end);
            self.at += 1;
        }
        self.read_bytes += count as u64;
        Ok(count)
    }
}

impl Seek for Endless {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at.min(self.len()),
            SeekFrom::End(0) => self.len(),
            _ => return Err(std::io::ErrorKind::Unsupported.into()),
        };
        Ok(self.at)
    }
}

#[test]
fn a_million_entries_are_refused_without_reading_them() {
    let mut endless = Endless { entries: 1_000_000, at: 0, read_bytes: 0 };

    let fault = Archive::open(&mut endless, &ZipLimits::default()).err().unwrap();

    assert_eq!(fault.kind, ZipFaultKind::TooManyEntries);
    assert!(endless.read_bytes < 128 * 1024);
}

#[test]
fn as_many_entries_as_allowed_fit_the_memory_and_are_read_in_one_pass() {
    let limits = ZipLimits::default();
    let mut endless = Endless { entries: limits.entries_max as u64, at: 0, read_bytes: 0 };
    let mut archive = Archive::open(&mut endless, &limits).unwrap();
    let mut budget = Budget::of(&limits);

    for at in 0..archive.len() {
        let entry = archive.entry(at).unwrap();
        archive.read(&entry, &mut budget, &mut |_| ControlFlow::Continue(())).unwrap();
    }

    assert_eq!(size_of::<Record>(), 56);
    assert!(archive.kept_bytes() < 7 * 1024 * 1024);
    // Directory and entries once each, and the tail twice.
    assert!(endless.read_bytes < endless.len() + 256 * 1024);
}

#[test]
fn a_flood_of_notices_is_kept_short() {
    let parts = (0..200).map(|_| Part::stored("../same", b"")).collect();

    assert_eq!(see(&Zip::of(parts).bytes()).unwrap().notices.len(), 32);
}
