//! Files made to cost as much as possible: each is answered soon, and in little memory.
//!
//! A counting allocator would need `unsafe`, which the workspace forbids. So every attack is checked in a process of its
//! own, which is this very program again, and that process reads from the kernel how far its memory grew
//! (`VmHWM`, after the peak so far was forgotten). That counts more than the check asks for, namely pages of code it
//! runs for the first time and what the allocator keeps; it never counts less.
//!
//! Guarantees: the attacks are made here, so no bomb lies in the repository. Does not do: measure how fast the check is
//! otherwise. A debug build is given more time, as it inflates and scans many times slower.

use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use office_check::{Hint, Limits, check};
use zip::write::{SimpleFileOptions, ZipWriter};

const KIBIBYTES_MAX: u64 = 16 * 1024;
const TIME_MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });

/// Names the file that the child checks.
const FILE: &str = "OFFICE_CHECK_ATTACK";

/// Checks an attack in a child; says verdict and codes.
fn attacked_by(name: &str, bytes: &[u8]) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.docx", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::a_child_checks_the_attack_it_was_given", "--nocapture"])
        .env(FILE, &path)
        .output()
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let output = String::from_utf8_lossy(&child.stdout).into_owned();
    let measured = output.split("measured: ").nth(1).and_then(|rest| rest.lines().next());
    let measured = measured.unwrap_or_else(|| panic!("{name}: the child failed: {output}"));
    let [kibibytes, milliseconds, answer] = measured.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{name}: {measured}");
    };
    println!("{name}: {} bytes: {kibibytes} KiB, {milliseconds} ms, {answer}", bytes.len());
    assert!(kibibytes.parse::<u64>().unwrap() < KIBIBYTES_MAX, "{name} took {kibibytes} KiB");
    let time = Duration::from_millis(milliseconds.parse().unwrap());
    assert!(time < TIME_MAX, "{name} took {milliseconds} ms");
    answer.to_owned()
}

/// Does nothing in a run of its own: it is what the other tests start.
#[test]
fn a_child_checks_the_attack_it_was_given() {
    let Some(path) = std::env::var_os(FILE).map(PathBuf::from) else { return };
    let file = std::fs::File::open(path).unwrap();
    // Forgets the peak of starting up, where the kernel allows it; elsewhere that is counted as well.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = memory("VmRSS:");
    let began = Instant::now();

    let report = check(file, Hint::from_extension("docx"), &Limits::default());

    let (took, grown) = (began.elapsed(), memory("VmHWM:").saturating_sub(before));
    let mut codes: Vec<&str> = report.findings.iter().map(|finding| finding.code.as_str()).collect();
    codes.dedup();
    println!("measured: {grown} {} {} {}", took.as_millis(), report.verdict.as_str(), codes.join(","));
}

/// A figure of this process, in KiB.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

const TYPES: &str = r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/d.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#;
const ROOT: &str = r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="d.xml"/></Relationships>"#;

/// A document with this main part.
fn docx(main: &[u8]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, body) in
        [("[Content_Types].xml", TYPES.as_bytes()), ("_rels/.rels", ROOT.as_bytes()), ("d.xml", main)]
    {
        zip.start_file(name, SimpleFileOptions::default().compression_level(Some(9))).unwrap();
        zip.write_all(body).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A document whose main part is this, again and again, until so many bytes.
fn docx_of(start: &str, again: &str, bytes: usize) -> Vec<u8> {
    docx(&[start.as_bytes(), &again.as_bytes().repeat(bytes / again.len()), b"</a>"].concat())
}

#[test]
fn a_bomb_of_42_kilobytes_is_answered() {
    // As far as deflate goes: a thousandfold. It is whole, and worth a word.
    let honest = docx_of("<a>", " ", 42 << 20);
    assert!(honest.len() < 45_000);
    assert_eq!(attacked_by("honest-bomb", &honest), "flag high-ratio");

    // Gigabytes need entries that share their bytes.
    let overlapping = overlapping_bomb(250, 16 << 20);
    assert!(overlapping.len() < 42_000);
    assert_eq!(attacked_by("overlapping-bomb", &overlapping), "refuse zip-overlap,wrong-container");
}

#[test]
fn a_bomb_of_many_parts_is_answered() {
    let mut one = ZipWriter::new(Cursor::new(Vec::new()));
    one.start_file("blank.bin", SimpleFileOptions::default()).unwrap();
    one.write_all(&vec![b' '; 15 << 20]).unwrap();
    let mut one = one.finish_into_readable().unwrap();
    let mut all = ZipWriter::new(Cursor::new(Vec::new()));
    for number in 0..100 {
        all.raw_copy_file_rename(one.by_index_raw(0).unwrap(), format!("{number}.bin")).unwrap();
    }

    let answer = attacked_by("parts", &all.finish().unwrap().into_inner());

    assert_eq!(answer, "refuse not-a-package,over-limit,high-ratio");
}

/// Entries that all inflate the same bytes: each is one stored block that quotes the next header, and the last is the
/// kernel (David Fifield, "A better zip bomb").
fn overlapping_bomb(entries: u32, kernel_bytes: usize) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![b'a'; kernel_bytes]).unwrap();
    let kernel = encoder.finish().unwrap();
    let header_bytes = 30 + 7;
    let block_bytes = 5 + header_bytes;
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for at in 0..entries {
        let behind = entries - 1 - at;
        let deflated = u32::try_from(kernel.len()).unwrap() + behind * block_bytes;
        let size = u32::try_from(kernel_bytes).unwrap() + behind * header_bytes;
        let fields = [
            &[20, 0, 0, 0, 8, 0, 0, 0, 0x21, 0, 0, 0, 0, 0][..],
            &deflated.to_le_bytes(),
            &size.to_le_bytes(),
            &[7, 0, 0, 0],
        ];
        let (fields, name) = (fields.concat(), format!("{at:03}.xml"));
        if at > 0 {
            let length = u16::try_from(header_bytes).unwrap();
            out.extend([&[0][..], &length.to_le_bytes(), &(!length).to_le_bytes()].concat());
        }
        let offset = u32::try_from(out.len()).unwrap();
        directory.extend(
            [b"PK\x01\x02\x14\0", &fields[..], &[0; 10], &offset.to_le_bytes(), name.as_bytes()].concat(),
        );
        out.extend([b"PK\x03\x04", &fields[..], name.as_bytes()].concat());
    }
    out.extend(kernel);
    let (count, directory_at) =
        (u16::try_from(entries).unwrap().to_le_bytes(), u32::try_from(out.len()).unwrap());
    let directory_bytes = u32::try_from(directory.len()).unwrap().to_le_bytes();
    out.extend(directory);
    out.extend(
        [b"PK\x05\x06\0\0\0\0", &count[..], &count, &directory_bytes, &directory_at.to_le_bytes(), &[0, 0]]
            .concat(),
    );
    out
}

/// Stored entries of no bytes.
fn entries(count: u32) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for at in 0..count {
        let name = format!("{at:07}");
        let offset = u32::try_from(out.len()).unwrap().to_le_bytes();
        let fields = [&[20, 0][..], &[0; 20], &[7, 0, 0, 0]].concat();
        directory.extend_from_slice(b"PK\x01\x02\x14\0");
        directory.extend_from_slice(&fields);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset);
        directory.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"PK\x03\x04");
        out.extend_from_slice(&fields);
        out.extend_from_slice(name.as_bytes());
    }
    let [directory_at, directory_bytes, wide_at] =
        [out.len(), directory.len(), out.len() + directory.len()].map(|value| (value as u64).to_le_bytes());
    let count = u64::from(count).to_le_bytes();
    out.extend(directory);
    out.extend(
        [
            b"PK\x06\x06\x2c\0\0\0\0\0\0\0\x2d\0\x2d\0",
            &[0; 8][..],
            &count,
            &count,
            &directory_bytes,
            &directory_at,
        ]
        .concat(),
    );
    out.extend([b"PK\x06\x07\0\0\0\0", &wide_at[..], &[1, 0, 0, 0]].concat());
    out.extend([b"PK\x05\x06\0\0\0\0", &[0xff; 12][..], &[0, 0]].concat());
    out
}

#[test]
fn a_million_entries_are_answered() {
    assert_eq!(attacked_by("million-entries", &entries(1_000_000)), "flag over-limit");
}

#[test]
fn as_many_entries_as_allowed_are_answered() {
    assert_eq!(attacked_by("100000-entries", &entries(100_000)), "refuse not-a-package,wrong-container");
}

#[test]
fn a_billion_laughs_are_answered() {
    let mut main = "<!DOCTYPE a [<!ENTITY a0 'ha'>".to_owned();
    for level in 1..10 {
        main += &format!("<!ENTITY a{level} '{}'>", format!("&a{};", level - 1).repeat(10));
    }
    main += "]><a>&a9;</a>";

    assert_eq!(attacked_by("laughs", &docx(main.as_bytes())), "refuse document-type");
}

#[test]
fn deep_markup_is_answered() {
    let nested = |depth: usize| docx(format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth)).as_bytes());

    assert_eq!(attacked_by("10000-deep", &nested(10_000)), "accept no-content");
    assert_eq!(attacked_by("10001-deep", &nested(10_001)), "refuse hostile-markup");
    assert_eq!(attacked_by("million-deep", &nested(1_000_000)), "refuse hostile-markup,high-ratio");
}

#[test]
fn crowded_tags_are_answered() {
    let attributes = |count: u32| (0..count).map(|at| format!(" a{at}=''")).collect::<String>();
    let prefixes = |count: u32| (0..count).map(|at| format!(" xmlns:p{at}='u{at}'")).collect::<String>();
    let prefixed = (0..900).map(|at| format!(" p{at}:a=''")).collect::<String>();

    let crowded = docx(format!("<a{}/>", attributes(80_000)).as_bytes());
    assert_eq!(attacked_by("80000-attributes", &crowded), "refuse hostile-markup");
    let declared = docx(format!("<a{}/>", prefixes(100_000)).as_bytes());
    assert_eq!(attacked_by("100000-namespaces", &declared), "refuse hostile-markup");
    let long = docx(format!("<a b='{}'/>", "x".repeat(5_000_000)).as_bytes());
    assert_eq!(attacked_by("long-tag", &long), "refuse hostile-markup,high-ratio");
    // Within every limit, and as much work for each byte as can be: each attribute is compared and resolved.
    for (name, start, again) in [
        ("900-prefixes-each", format!("<a{}>", prefixes(900)), format!("<b{prefixed}/>")),
        ("999-attributes-each", "<a>".to_owned(), format!("<b{}/>", attributes(999))),
        ("999-namespaces-each", "<a>".to_owned(), format!("<b{}/>", prefixes(999))),
    ] {
        assert_eq!(attacked_by(name, &docx_of(&start, &again, 4 << 20)), "accept no-content");
    }
}
