//! What real software writes is taken, however odd.

use std::io::Write as _;

use super::{
    builder::{Part, Sizes, Zip, extra, package, text},
    *,
};

const SIGNATURE: &[u8] = b"PK\x07\x08";

/// Opens without a word and reads as written.
fn assert_plain(zip: &Zip) {
    let seen = see(&zip.bytes()).unwrap();

    assert_eq!(seen.notices, []);
    assert_eq!(seen.names.len(), zip.parts.len());
    assert_eq!(seen.unclaimed_bytes, 0);
}

fn one(part: Part) -> Zip {
    Zip::of(vec![part, Part::deflated("last.xml", &text(5))])
}

#[test]
fn stored_and_deflated_parts_come_out_as_they_went_in() {
    let seen = see(&Zip::of(package()).bytes()).unwrap();

    assert_eq!(seen.names, ["[Content_Types].xml", "word/media/image1.png", "word/document.xml"]);
    assert_eq!(seen.bodies, [&b"<Types/>"[..], b"not really a picture", &text(30)]);
}

#[test]
fn parts_larger_than_every_buffer_come_out_whole() {
    let long = text(40_000);
    let zip = Zip::of(vec![Part::stored("a", &long), Part::deflated("b", &long), Part::stored("c", b"")]);

    assert_eq!(see(&zip.bytes()).unwrap().bodies, [&long[..], &long, b""]);
}

#[test]
fn every_form_of_descriptor_is_known() {
    for signature in [SIGNATURE, b""] {
        for sizes in [Sizes::Short, Sizes::Long] {
            assert_plain(&one(Part::deflated("a.xml", &text(9)).streamed(signature, sizes)));
            assert_plain(&one(Part::stored("a.xml", &text(9)).streamed(signature, sizes)));
            assert_plain(&one(Part::stored("empty", b"").streamed(signature, sizes)));
            assert_plain(&Zip::of(vec![Part::deflated("a.xml", &text(9)).streamed(signature, sizes)]));
        }
    }
}

#[test]
fn a_descriptor_may_be_missing_if_the_header_knows_already() {
    let part = Part::deflated("a.xml", &text(9)).with(|part| part.local.flags = 8);

    assert_plain(&one(part.clone().with(|part| part.central.flags = 8)));
    assert_plain(&one(part));
    // The directory alone does not know of it.
    let streamed = Part::deflated("a.xml", &text(9)).streamed(SIGNATURE, Sizes::Short);
    assert_plain(&one(streamed.with(|part| part.central.flags = 0)));
}

#[test]
fn zip64_is_known_in_all_its_places() {
    let wide = |part: &mut Part| {
        let sizes = [u64::from(part.central.size), u64::from(part.central.deflated)];
        part.local.extra = extra(1, &sizes);
        part.central.extra = [extra(0xA220, &[7]), extra(1, &[sizes[0], sizes[1], 0])].concat();
        for header in [&mut part.local, &mut part.central] {
            (header.size, header.deflated) = (u32::MAX, u32::MAX);
        }
        part.offset = Some(u32::MAX);
    };
    let part = Part::deflated("a.xml", &text(9)).with(wide);

    assert_plain(&one(part.clone()));
    assert_plain(&one(part.clone()).with(|zip| zip.is_zip64 = true));
    assert_plain(&Zip::of(package()).with(|zip| zip.is_zip64 = true));
    // Only what is needed, and all of it though only one is needed.
    let offset_only = Part::deflated("a.xml", &text(9)).with(|part| {
        part.offset = Some(u32::MAX);
        part.central.extra = extra(1, &[0]);
    });
    assert_plain(&one(offset_only.clone()));
    assert_plain(&one(offset_only.with(|part| {
        let sizes = [u64::from(part.central.size), u64::from(part.central.deflated)];
        part.central.extra = extra(1, &[sizes[0], sizes[1], 0]);
    })));
}

#[test]
fn zip64_behind_other_bytes_is_found_where_it_is() {
    let zip = Zip::of(package()).with(|zip| {
        zip.is_zip64 = true;
        zip.before = b"#!/bin/sh\n".to_vec();
    });

    assert_eq!(see(&zip.bytes()).unwrap().notices, [ZipFaultKind::PrependedBytes]);
}

#[test]
fn what_changes_nothing_may_differ_or_be_odd() {
    assert_plain(&one(Part::stored("a", b"x").with(|part| {
        part.local.time = 77;
        part.local.version = 9999;
        part.central.version = 45;
        part.local.flags = 1 << 11 | 1 << 1;
        part.central.flags = 1 << 2;
        part.local.extra = vec![1, 2, 3];
        part.central.extra = vec![0xFE, 0xCA, 0xFF, 0xFF, 0];
        part.attributes = 0x10;
    })));
    assert_plain(&Zip::of(package()).with(|zip| zip.is_reversed = true));
    assert_plain(&Zip::of(package()).with(|zip| zip.comment = b"a comment".to_vec()));
    assert_plain(&Zip::of(package()).with(|zip| zip.comment = vec![b'x'; 0xFFFF]));
    assert_plain(&Zip::of(package()).with(|zip| zip.gap = b"in between".to_vec()));
    let signed = b"PK\x05\x05\x03\x00sig".to_vec();
    assert_plain(&Zip::of(package()).with(|zip| zip.directory_tail = signed));
    assert_plain(&Zip::of(Vec::new()));
}

#[test]
fn names_may_be_of_any_bytes_and_folders_may_repeat() {
    assert_plain(&one(Part::stored("word\\document.xml", b"x")));
    assert_plain(&one(Part::stored("word/", b"")));
    assert_plain(&Zip::of(vec![Part::stored("word/", b""), Part::stored("word/", b"")]));
    assert_plain(&one(Part::stored("Übersicht.xml", b"x").with(|part| part.central.flags = 1 << 11)));
    assert_plain(&one(Part::stored("a..b/...", b"x")));
    let latin = Part::stored("", b"x").with(|part| {
        part.local.name = b"\xDCbersicht".to_vec();
        part.central.name = part.local.name.clone();
    });
    assert_eq!(see(&one(latin).bytes()).unwrap().names[0], "\u{FFFD}bersicht");
}

#[test]
fn an_entry_of_no_bytes_may_call_itself_deflated() {
    assert_plain(&one(Part::stored("empty", b"").with(|part| {
        part.local.method = 8;
        part.central.method = 8;
    })));
}

#[test]
fn bytes_around_the_archive_are_noticed() {
    let before = |is_absolute| {
        Zip::of(package()).with(|zip| {
            zip.before = b"MZ, some program".to_vec();
            zip.is_absolute = is_absolute;
        })
    };
    for zip in [before(true), before(false)] {
        let archive = Archive::open(Cursor::new(zip.bytes()), &ZipLimits::default()).unwrap();
        assert_eq!(archive.notices, [ZipFault::at(ZipFaultKind::PrependedBytes, 16)]);
        assert_eq!(see(&zip.bytes()).unwrap().bodies.len(), 3);
    }
    for count in [1, 1000, 0xFFFF] {
        let zip = Zip::of(package()).with(|zip| zip.after = vec![0; count]);
        assert_eq!(see(&zip.bytes()).unwrap().notices, [ZipFaultKind::TrailingBytes]);
    }
}

#[test]
fn bytes_that_belong_to_nobody_are_counted() {
    let mut parts = package();
    parts[0].behind = b"an older version".to_vec();
    parts[2].behind = b"and another".to_vec();

    assert_eq!(see(&Zip::of(parts).bytes()).unwrap().unclaimed_bytes, 27);
}

#[test]
fn parts_are_found_as_office_names_them() {
    let bytes = Zip::of(package()).bytes();
    let mut archive = Archive::open(Cursor::new(&bytes), &ZipLimits::default()).unwrap();

    for name in ["word/document.xml", "/word/document.xml", "\\Word\\DOCUMENT.xml"] {
        let entry = archive.find(name).unwrap().unwrap();
        assert_eq!(archive.name(&entry).unwrap(), "word/document.xml");
        assert_eq!(entry.size_bytes(), text(30).len() as u64);
    }
    assert!(archive.find("word/documents.xml").unwrap().is_none());
    assert!(archive.find("").unwrap().is_none());
}

#[test]
fn a_sink_that_has_enough_stops_the_reading() {
    let bytes = Zip::of(vec![Part::deflated("a", &text(40_000)), Part::stored("b", b"x")]).bytes();
    let limits = ZipLimits::default();
    let mut archive = Archive::open(Cursor::new(&bytes), &limits).unwrap();
    let entry = archive.entry(0).unwrap();

    let answer = archive.read(&entry, &mut Budget::of(&limits), &mut |_| ControlFlow::Break(())).unwrap();

    assert!(matches!(answer, Inflated::Stopped { bytes } if bytes > 0 && bytes < entry.size_bytes()));
    assert!(archive.read(&entry, &mut Budget::of(&limits), &mut |_| ControlFlow::Continue(())).is_ok());
}

#[test]
fn what_another_writer_made_is_read() {
    use ::zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    for (at, method) in [CompressionMethod::Stored, CompressionMethod::Deflated].into_iter().enumerate() {
        for (name, is_large) in [("small", false), ("large", true)] {
            let options = options.compression_method(method).large_file(is_large);
            writer.start_file(format!("{name}-{at}.xml"), options).unwrap();
            writer.write_all(&text(2000)).unwrap();
        }
    }
    writer.add_directory("folder/", options).unwrap();
    writer.set_comment("made by another").unwrap();

    let seen = see(&writer.finish().unwrap().into_inner()).unwrap();

    assert_eq!(seen.notices, []);
    assert_eq!(seen.names, ["small-0.xml", "large-0.xml", "small-1.xml", "large-1.xml", "folder/"]);
    assert!(seen.bodies[..4].iter().all(|body| *body == text(2000)));
}

#[test]
fn what_another_writer_streamed_is_read() {
    use ::zip::{ZipWriter, write::SimpleFileOptions};
    let mut out = Vec::new();
    let mut writer = ZipWriter::new_stream(&mut out);
    writer.start_file("word/document.xml", SimpleFileOptions::default()).unwrap();
    writer.write_all(&text(2000)).unwrap();
    writer.finish().unwrap();

    assert_eq!(see(&out).unwrap().bodies, [text(2000)]);
}
