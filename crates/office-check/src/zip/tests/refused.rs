//! Each kind of damage has its fault, with the name of the part.

use std::io::{Read, Seek, SeekFrom};

use super::{
    builder::{Header, Part, Sizes, Zip, extra, package, text},
    *,
};

fn both(part: &mut Part, change: impl Fn(&mut Header)) {
    change(&mut part.local);
    change(&mut part.central);
}

/// The fault if the second of three parts is changed.
fn fault_with(change: impl FnOnce(&mut Part)) -> ZipFaultKind {
    let mut parts = package();
    parts.swap(1, 2);
    change(&mut parts[1]);
    let fault = see(&Zip::of(parts).bytes()).unwrap_err();
    assert!(fault.offset.is_some());
    fault.kind
}

#[test]
fn a_local_header_that_disagrees_is_refused() {
    use HeaderField::{Checksum, Flags, Method, Name, Sizes};
    let disagrees = ZipFaultKind::LocalHeaderDisagrees;

    assert_eq!(fault_with(|part| part.local.method = 0), disagrees(Method));
    assert_eq!(fault_with(|part| part.local.method = 99), disagrees(Method));
    assert_eq!(fault_with(|part| part.local.flags = 1), disagrees(Flags));
    assert_eq!(fault_with(|part| part.local.name = b"word/Document.xml".to_vec()), disagrees(Name));
    assert_eq!(fault_with(|part| part.local.name = b"word/document.xm".to_vec()), disagrees(Name));
    assert_eq!(fault_with(|part| part.local.size += 1), disagrees(Sizes));
    assert_eq!(fault_with(|part| part.local.deflated = 0), disagrees(Sizes));
    assert_eq!(fault_with(|part| part.local.crc ^= 1), disagrees(Checksum));
}

#[test]
fn a_part_is_named_with_its_fault() {
    let mut parts = package();
    parts[2].body[20] ^= 1;

    let fault = see(&Zip::of(parts).bytes()).unwrap_err();

    assert_eq!(fault.part.as_deref(), Some("word/document.xml"));
    assert!(fault.to_string().starts_with("entry \"word/document.xml\": its "), "{fault}");
}

#[test]
fn what_office_cannot_open_is_refused() {
    let with_method = |method| fault_with(|part| both(part, |header| header.method = method));
    let with_flag = |flag| fault_with(|part| both(part, |header| header.flags = 1_u16 << flag));

    for method in [1, 6, 9, 12, 14, 93, 95, 98, 99] {
        assert_eq!(with_method(method), ZipFaultKind::UnsupportedMethod);
    }
    assert_eq!([0, 6, 13].map(with_flag), [ZipFaultKind::Encrypted; 3]);
    assert_eq!(with_flag(5), ZipFaultKind::UnsupportedMethod);
}

#[test]
fn other_bytes_or_another_size_are_refused() {
    assert_eq!(fault_with(|part| both(part, |header| header.crc ^= 1)), ZipFaultKind::CrcMismatch);
    for delta in [1, u32::MAX] {
        let kind = fault_with(|part| both(part, |header| header.size = header.size.wrapping_add(delta)));
        assert_eq!(kind, ZipFaultKind::SizeMismatch);
    }
    // A byte more than the stream has, and a byte less.
    let longer = fault_with(|part| {
        part.body.push(0);
        both(part, |header| header.deflated += 1);
    });
    assert_eq!(longer, ZipFaultKind::SizeMismatch);
    let shorter = fault_with(|part| {
        part.body.pop();
        both(part, |header| header.deflated -= 1);
    });
    assert_eq!(shorter, ZipFaultKind::BadDeflate);
    assert_eq!(fault_with(|part| part.body.fill(0xFF)), ZipFaultKind::BadDeflate);
    let stored = Part::stored("a", b"four").with(|part| both(part, |header| header.size = 5));
    assert_eq!(fault_of(&Zip::of(vec![stored]).bytes()), ZipFaultKind::SizeMismatch);
}

#[test]
fn a_size_of_four_gigabytes_that_is_a_lie_is_refused() {
    let sizes = [u64::from(u32::MAX), u64::from(u32::MAX) * 1000];

    assert_eq!(
        fault_with(|part| part.central.size = u32::MAX),
        ZipFaultKind::LocalHeaderDisagrees(HeaderField::Sizes)
    );
    assert_eq!(fault_with(|part| both(part, |header| header.size = u32::MAX)), ZipFaultKind::SizeMismatch);
    assert_eq!(fault_with(|part| part.central.deflated = u32::MAX), ZipFaultKind::SizeMismatch);
    for size in sizes {
        let kind = fault_with(|part| {
            both(part, |header| (header.size, header.extra) = (u32::MAX, extra(1, &[size])));
        });
        assert_eq!(kind, ZipFaultKind::SizeMismatch);
    }
}

#[test]
fn a_descriptor_that_is_missing_or_wrong_is_refused() {
    let streamed = |part: &mut Part| *part = part.clone().streamed(b"PK\x07\x08", Sizes::Short);

    for at in 0..16 {
        let kind = fault_with(|part| {
            streamed(part);
            part.behind[at] ^= 0x40;
        });
        assert_eq!(kind, ZipFaultKind::BadDescriptor);
    }
    let cut = fault_with(|part| {
        streamed(part);
        part.behind.pop();
    });
    assert_eq!(cut, ZipFaultKind::BadDescriptor);
    let mut parts = package();
    streamed(&mut parts[2]);
    parts[2].behind.clear();
    assert_eq!(fault_of(&Zip::of(parts).bytes()), ZipFaultKind::BadDescriptor);
}

#[test]
fn a_header_that_is_elsewhere_is_refused() {
    let first_bytes = u32::try_from(30 + 19 + package()[0].body.len()).unwrap();

    assert_eq!(fault_with(|part| part.offset = Some(first_bytes + 1)), ZipFaultKind::BadLocalHeader);
    assert_eq!(fault_with(|part| part.offset = Some(u32::MAX - 1)), ZipFaultKind::BadDirectory);
    let before_all = Zip::of(package()).with(|zip| zip.parts[0].offset = Some(1));
    assert_eq!(fault_of(&before_all.bytes()), ZipFaultKind::BadLocalHeader);
}

#[test]
fn entries_that_share_bytes_are_refused() {
    assert_eq!(fault_with(|part| part.offset = Some(0)), ZipFaultKind::OverlappingEntries);
    // The first the directory tells, the second only the local header.
    for more in [40, 5] {
        let kind = fault_with(|part| both(part, |header| header.deflated += more));
        assert_eq!(kind, ZipFaultKind::OverlappingEntries);
    }
    // The directory cannot tell: a local extra field covers the next entry.
    let mut parts = vec![Part::stored("a", b"x"), Part::stored("b", b"y"), Part::stored("c", b"z")];
    let covered = Zip::of(vec![parts[1].clone()]).bytes()[..32].to_vec();
    parts[0].local.extra = covered;
    parts[0].body = b"x".to_vec();
    parts[1].offset = Some(31);
    assert_eq!(fault_of(&Zip::of(parts.clone()).bytes()), ZipFaultKind::OverlappingEntries);
    parts.truncate(1);
    parts[0].body.clear();
    parts[0].local.extra.clear();
    assert_eq!(fault_of(&Zip::of(parts).bytes()), ZipFaultKind::SizeMismatch);
}

#[test]
fn a_name_that_occurs_twice_is_noticed_and_not_found() {
    let parts = vec![Part::stored("word/document.xml", b"a"), Part::stored("word/document.xml", b"b")];
    let bytes = Zip::of(parts).bytes();
    let archive = Archive::open(Cursor::new(&bytes), &ZipLimits::default()).unwrap();

    assert_eq!(archive.notices.len(), 1);
    assert_eq!(archive.notices[0].kind, ZipFaultKind::DuplicateName);
    assert_eq!(archive.notices[0].part.as_deref(), Some("word/document.xml"));
    assert_eq!(archive.find("word/document.xml").unwrap_err().kind, ZipFaultKind::DuplicateName);
}

#[test]
fn names_that_differ_only_in_case_are_noticed_and_found_as_written() {
    let names = ["xl/sheet1.xml", "xl/Sheet1.xml", "XL\\sheet1.xml"];
    let bytes = Zip::of(names.map(|name| Part::stored(name, name.as_bytes())).to_vec()).bytes();
    let archive = Archive::open(Cursor::new(&bytes), &ZipLimits::default()).unwrap();

    let kinds: Vec<_> = archive.notices.iter().map(|notice| notice.kind).collect();
    assert_eq!(kinds, [ZipFaultKind::SimilarName; 2]);
    let parts: Vec<_> = archive.notices.iter().filter_map(|notice| notice.part.as_deref()).collect();
    assert_eq!(parts, names[1..]);
    for (at, name) in names.iter().enumerate() {
        let entry = archive.find(&format!("/{name}")).unwrap().unwrap();
        assert_eq!(entry.offset(), archive.entry(at).unwrap().offset());
    }
    assert_eq!(archive.find("xl/SHEET1.xml").unwrap_err().kind, ZipFaultKind::DuplicateName);
}

/// Reads a few bytes at once.
struct Slow(Cursor<Vec<u8>>);

impl Read for Slow {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = out.len().min(7);
        self.0.read(&mut out[..count])
    }
}

impl Seek for Slow {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn the_fault_is_the_same_however_the_bytes_come() {
    // A block that holds more than the entry says, and behind it one of a type that does not exist.
    let mut part = Part::deflated("a.xml", b"");
    part.body = [&[0, 200, 0, 55, 255][..], &[b'x'; 200], &[0xFF; 9]].concat();
    let deflated = u32::try_from(part.body.len()).unwrap();
    both(&mut part, |header| (header.size, header.deflated) = (100, deflated));
    let bytes = Zip::of(vec![part]).bytes();
    let limits = ZipLimits::default();
    let mut archive = Archive::open(Slow(Cursor::new(bytes.clone())), &limits).unwrap();
    let entry = archive.entry(0).unwrap();

    let slowly = archive.read(&entry, &mut Budget::of(&limits), &mut |_| ControlFlow::Continue(()));

    assert_eq!(slowly.unwrap_err().kind, ZipFaultKind::SizeMismatch);
    assert_eq!(fault_of(&bytes), ZipFaultKind::SizeMismatch);
}

/// Reads some bytes and then no more.
struct Broken(Cursor<Vec<u8>>, usize);

impl Read for Broken {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.1 = self.1.checked_sub(1).ok_or(std::io::ErrorKind::TimedOut)?;
        self.0.read(out)
    }
}

impl Seek for Broken {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn a_reader_that_fails_is_not_taken_for_damage() {
    let limits = ZipLimits::default();
    for reads in 0..50 {
        let mut archive = match Archive::open(Broken(Cursor::new(Zip::of(package()).bytes()), reads), &limits)
        {
            Ok(archive) => archive,
            Err(fault) => {
                assert_eq!(fault.kind, ZipFaultKind::Unreadable(std::io::ErrorKind::TimedOut));
                continue;
            }
        };
        let entry = archive.entry(0).unwrap();
        if let Err(fault) = archive.read(&entry, &mut Budget::of(&limits), &mut |_| ControlFlow::Continue(()))
        {
            assert_eq!(fault.kind, ZipFaultKind::Unreadable(std::io::ErrorKind::TimedOut));
        }
    }
}

#[test]
fn unsafe_names_are_noticed() {
    let safe = Part::stored("a", b"x");
    for name in ["/etc/passwd", "\\x", "../x", "a/../../x", "a\\..\\x", "C:\\x", "c:x", "a\0b", ".."] {
        let seen = see(&Zip::of(vec![safe.clone(), Part::stored(name, b"x")]).bytes()).unwrap();
        assert_eq!(seen.notices, [ZipFaultKind::UnsafeName], "{name}");
    }
    let link = safe.with(|part| (part.host, part.attributes) = (3, 0o120_777 << 16));
    assert_eq!(see(&Zip::of(vec![link.clone()]).bytes()).unwrap().notices, [ZipFaultKind::UnsafeName]);
    let no_link = link.with(|part| part.host = 0);
    assert_eq!(see(&Zip::of(vec![no_link]).bytes()).unwrap().notices, []);
}

#[test]
fn a_directory_that_says_otherwise_than_the_end_record_is_refused() {
    let zip = |change: fn(&mut Zip)| fault_of(&Zip::of(package()).with(change).bytes());

    for entries in [0, 1, 2, 4, 7, 60_000] {
        let zip = Zip::of(package()).with(|zip| zip.entries = Some(entries));
        assert_eq!(fault_of(&zip.bytes()), ZipFaultKind::EntryCountMismatch, "{entries}");
        assert_eq!(fault_of(&zip.with(|zip| zip.is_zip64 = true).bytes()), ZipFaultKind::EntryCountMismatch);
    }
    assert_eq!(zip(|zip| zip.directory_tail = vec![0; 10]), ZipFaultKind::BadDirectory);
    assert_eq!(zip(|zip| zip.directory_tail = vec![0; 2]), ZipFaultKind::TruncatedDirectory);
    assert_eq!(zip(|zip| zip.disk = 1), ZipFaultKind::MultiDisk);
    assert_eq!(zip(|zip| zip.parts[0].disk = 3), ZipFaultKind::MultiDisk);
    let short_field = |zip: &mut Zip| {
        zip.parts[1].central.extra = extra(1, &[]);
        zip.parts[1].central.size = u32::MAX;
    };
    assert_eq!(zip(short_field), ZipFaultKind::BadDirectory);
}

#[test]
fn text_says_what_happened_in_one_sentence() {
    let fault = ZipFault { part: Some("a\n\"b".to_owned()), ..ZipFault::at(ZipFaultKind::CrcMismatch, 7) };

    assert_eq!(fault.to_string(), "entry \"a\\n\\\"b\": its checksum does not match its bytes (at byte 7)");
    assert_eq!(fault_of(&text(3)), ZipFaultKind::NoEndRecord);
    assert_eq!(fault_of(b""), ZipFaultKind::NoEndRecord);
}
