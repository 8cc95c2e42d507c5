//! Small files made here, each for one finding; what real programs write is in `tests/`.

use std::io::{Cursor, Write as _};

use super::*;
use ::zip::write::{SimpleFileOptions, ZipWriter};

const WORD: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml";
const OFFICE_DOCUMENT: &str =
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument";

fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, body) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(body.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn types(main: &str, content_type: &str) -> String {
    format!(
        r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/><Override PartName="/{main}" ContentType="{content_type}"/></Types>"#
    )
}

fn relationships(relation: &str, target: &str) -> String {
    format!(
        r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="{relation}" Target="{target}"/></Relationships>"#
    )
}

fn body(text: &str) -> String {
    format!(
        r#"<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>"#
    )
}

/// A document with some more parts.
fn docx_with(main: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let (types, root) =
        (types("word/document.xml", WORD), relationships(OFFICE_DOCUMENT, "word/document.xml"));
    let mut parts =
        vec![("[Content_Types].xml", types.as_str()), ("_rels/.rels", &root), ("word/document.xml", main)];
    parts.extend_from_slice(more);
    archive(&parts)
}

fn docx(text: &str) -> Vec<u8> {
    docx_with(&body(text), &[])
}

fn verdict(bytes: &[u8], extension: &str) -> (Verdict, Kind, Vec<&'static str>) {
    let report = check(Cursor::new(bytes), Hint::from_extension(extension), &Limits::default());
    (report.verdict, report.kind, report.findings.iter().map(|finding| finding.code.as_str()).collect())
}

fn expect(bytes: &[u8], extension: &str, expected: Verdict, code: &'static str) {
    let (verdict, _, codes) = verdict(bytes, extension);
    assert_eq!(verdict, expected, "{codes:?}");
    assert!(codes.contains(&code), "{code} is not among {codes:?}");
}

#[test]
fn a_whole_package_is_accepted_whatever_its_size() {
    assert_eq!(verdict(&docx("few words"), "docx"), (Verdict::Accept, Kind::Docx, vec![]));
    assert_eq!(verdict(&docx(&"many words ".repeat(10_000)), "docx").0, Verdict::Accept);
}

#[test]
fn the_main_part_is_found_through_what_the_package_says() {
    let sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml";
    let strict = "http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument";
    for (relation, target, name) in [
        (OFFICE_DOCUMENT, "/wtf/Workbook.xml", "wtf/workbook.xml"),
        (strict, "xl/../book2.xml", "book2.xml"),
        (OFFICE_DOCUMENT, r"xl\workbook.xml", r"xl\workbook.xml"),
    ] {
        let (types, root) = (types(&name.replace('\\', "/"), sheet), relationships(relation, target));
        let bytes =
            archive(&[("[Content_Types].xml", &types), ("_rels/.rels", &root), (name, "<workbook/>")]);
        assert_eq!(verdict(&bytes, "xlsx"), (Verdict::Accept, Kind::Xlsx, vec!["no-content"]), "{target}");
    }
}

#[test]
fn a_package_without_its_document_is_refused() {
    let (types, root) =
        (types("word/document.xml", WORD), relationships(OFFICE_DOCUMENT, "word/document.xml"));
    let external = root.replace("Target=", r#"TargetMode="External" Target="#);

    expect(&archive(&[("a.txt", "no package")]), "docx", Verdict::Refuse, "not-a-package");
    expect(&archive(&[("[Content_Types].xml", &types)]), "docx", Verdict::Refuse, "no-main-part");
    let no_main = archive(&[("[Content_Types].xml", &types), ("_rels/.rels", &root)]);
    expect(&no_main, "docx", Verdict::Refuse, "no-main-part");
    let elsewhere = archive(&[("[Content_Types].xml", &types), ("_rels/.rels", &external)]);
    expect(&elsewhere, "docx", Verdict::Refuse, "external-main-part");
    expect(&archive(&[("META-INF/manifest.xml", "<m/>")]), "odt", Verdict::Refuse, "no-main-part");
}

#[test]
fn the_main_part_is_found_however_its_name_is_escaped() {
    for (target, name) in [
        ("word/my%20text.xml", "word/my%20text.xml"),
        ("word/my%20text.xml", "word/my text.xml"),
        ("word/b\u{fc}cher.xml", "word/b%C3%BCcher.xml"),
        ("word/b%c3%bccher.xml", "word/b\u{fc}cher.xml"),
        ("word/100%.xml", "word/100%.xml"),
    ] {
        let (types, root) = (types(target, WORD), relationships(OFFICE_DOCUMENT, target));
        let bytes = archive(&[("[Content_Types].xml", &types), ("_rels/.rels", &root), (name, &body("x"))]);
        assert_eq!(verdict(&bytes, "docx"), (Verdict::Accept, Kind::Docx, vec![]), "{target} is {name}");
    }
}

#[test]
fn a_binary_workbook_has_one_main_part_and_whole_relationships() {
    let (types, root) = (
        types("xl/workbook.bin", "application/vnd.ms-excel.sheet.binary.macroEnabled.main"),
        relationships(OFFICE_DOCUMENT, "xl/workbook.bin"),
    );
    let package = |more: &[(&str, &str)]| {
        archive(&[&[("[Content_Types].xml", types.as_str()), ("_rels/.rels", &root)], more].concat())
    };
    let main = ("xl/workbook.bin", "\u{1}");

    assert_eq!(verdict(&package(&[main]), "xlsb"), (Verdict::Accept, Kind::Xlsb, vec![]));
    expect(&package(&[]), "xlsb", Verdict::Refuse, "no-main-part");
    let rels = ("xl/_rels/workbook.bin.rels", "<Relationships");
    expect(&package(&[main, rels]), "xlsb", Verdict::Refuse, "bad-required-part");
    // The writer of tests writes no name twice, but bytes can be changed: to a name of the same length.
    let mut twice = package(&[main, ("xl/workbook.bim", "\u{2}")]);
    for at in 0..twice.len() - 15 {
        if twice[at..].starts_with(b"xl/workbook.bim") {
            twice[at + 14] = b'n';
        }
    }
    expect(&twice, "xlsb", Verdict::Refuse, "ambiguous-part");
}

#[test]
fn required_parts_must_be_well_formed_and_others_are_told_about() {
    expect(&docx_with("<w:document>", &[]), "docx", Verdict::Refuse, "bad-required-part");
    let entity = r#"<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>"#;
    expect(&docx_with(entity, &[]), "docx", Verdict::Refuse, "document-type");
    expect(&docx_with(&body("x"), &[("word/styles.xml", entity)]), "docx", Verdict::Refuse, "document-type");
    expect(&docx_with(&body("x"), &[("word/styles.xml", "<a><b></a>")]), "docx", Verdict::Accept, "bad-part");
    expect(&docx_with(&body("x"), &[("xl/d.vml", "<a><br></a>")]), "docx", Verdict::Accept, "careless-part");
    let rels = [("word/_rels/document.xml.rels", "<Relationships")];
    expect(&docx_with(&body("x"), &rels), "docx", Verdict::Refuse, "bad-required-part");
}

#[test]
fn markup_that_attacks_readers_is_refused_at_once() {
    let deep = "<a>".repeat(20_000);
    let attributes: String = (0..80_000).map(|number| format!(" a{number}=\"\"")).collect();
    let names: String = (0..100_000).map(|number| format!(" xmlns:n{number}=\"u\"")).collect();
    for main in [deep, format!("<a{attributes}/>"), format!("<a{names}/>")] {
        expect(&docx_with(&main, &[]), "docx", Verdict::Refuse, "hostile-markup");
    }
}

#[test]
fn an_empty_file_is_refused_unless_it_is_text() {
    assert_eq!(verdict(b"", "docx"), (Verdict::Refuse, Kind::Unknown, vec!["empty"]));
    assert_eq!(verdict(b"", "csv"), (Verdict::Flag, Kind::Unknown, vec!["empty-text"]));
}

#[test]
fn an_error_page_is_no_document() {
    for page in [&b"<html>502</html>"[..], b"<!DOCTYPE html><p>sign in", b"{\"error\":1}"] {
        expect(page, "docx", Verdict::Refuse, "wrong-container");
        expect(page, "pdf", Verdict::Refuse, "wrong-container");
        assert_eq!(verdict(page, "txt").0, Verdict::Accept);
    }
}

#[test]
fn texts_are_told_apart() {
    assert_eq!(verdict(b"a;b\n1;2\n3;4\n", "csv").1, Kind::Csv);
    assert_eq!(verdict(b"just words, and more\n", "txt").1, Kind::Txt);
    assert_eq!(verdict(b"{\\rtf1 x}", "doc"), (Verdict::Accept, Kind::Rtf, vec![]));
    assert_eq!(verdict(b"{\\rtf1 {x}", "rtf"), (Verdict::Accept, Kind::Rtf, vec!["unbalanced"]));
    assert_eq!(verdict(b"%PDF-1.7\n1 0 obj\n%%EOF", "pdf"), (Verdict::Accept, Kind::Pdf, vec![]));
    assert_eq!(verdict(b"%PDF-1.7\n1 0 obj", "pdf"), (Verdict::Flag, Kind::Pdf, vec!["cut-off"]));
    expect(&docx("x"), "xlsx", Verdict::Flag, "other-kind");
}

#[test]
fn a_flat_document_must_be_whole() {
    let flat = r#"<?xml version="1.0"?><office:document xmlns:office="o" office:mimetype="application/vnd.oasis.opendocument.text"><office:body/></office:document>"#;

    assert_eq!(verdict(flat.as_bytes(), "fodt"), (Verdict::Accept, Kind::Fodt, vec![]));
    expect(&flat.as_bytes()[..flat.len() - 5], "fodt", Verdict::Refuse, "bad-required-part");
}

#[test]
fn open_documents_are_known_by_type_manifest_or_body() {
    let content = r#"<o:document-content xmlns:o="o" xmlns:table="t"><o:body><o:spreadsheet><table:table-row table:number-rows-repeated="9"/></o:spreadsheet></o:body></o:document-content>"#;
    let mimetype = ("mimetype", "application/vnd.oasis.opendocument.spreadsheet");
    let huge = content.replace("\"9\"", "\"999999999\"");
    let encrypted = r#"<m:manifest xmlns:m="m"><m:file-entry m:full-path="/" m:media-type="application/vnd.oasis.opendocument.text"/><m:file-entry m:full-path="content.xml"><m:encryption-data/></m:file-entry></m:manifest>"#;

    assert_eq!(
        verdict(&archive(&[mimetype, ("content.xml", content)]), "ods"),
        (Verdict::Accept, Kind::Ods, vec!["no-content"])
    );
    let by_body = archive(&[("META-INF/manifest.xml", "<m/>"), ("content.xml", content)]);
    assert_eq!(verdict(&by_body, "ods").1, Kind::Ods);
    expect(&archive(&[mimetype, ("content.xml", &huge)]), "ods", Verdict::Flag, "huge-repetition");
    let hidden = archive(&[("META-INF/manifest.xml", encrypted), ("content.xml", "\u{1}\u{2}")]);
    assert_eq!(verdict(&hidden, "odt"), (Verdict::Accept, Kind::Odt, vec![]));
}

#[test]
fn texts_of_the_first_openoffice_have_document_types() {
    let doctype =
        r#"<?xml version="1.0"?><!DOCTYPE a PUBLIC "-//OpenOffice.org//DTD OfficeDocument 1.0//EN" "a.dtd">"#;
    let content = format!("{doctype}<a/>");
    let package = |media_type: &str| {
        let content = content.as_str();
        let parts = [("mimetype", media_type), ("content.xml", content), ("META-INF/manifest.xml", content)];
        verdict(&archive(&parts), "sxw")
    };

    assert_eq!(
        package("application/vnd.sun.xml.writer"),
        (Verdict::Accept, Kind::Odf, vec!["careless-part", "careless-part"])
    );
    assert_eq!(package("application/vnd.oasis.opendocument.text").0, Verdict::Refuse);
}

#[test]
fn a_reader_that_is_interrupted_reads_on() {
    for (bytes, extension) in [
        (docx("x"), "docx"),
        (b"{\\rtf1 x}".to_vec(), "rtf"),
        (b"%PDF-1.7\n%%EOF".to_vec(), "pdf"),
        (br#"<?xml version="1.0"?><office:document xmlns:office="o" office:mimetype="opendocument.text"/>"#.to_vec(), "fodt"),
    ] {
        let report = check(Interrupted::over(bytes), Hint::from_extension(extension), &Limits::default());
        assert_eq!((report.verdict, report.findings), (Verdict::Accept, vec![]), "{extension}");
    }
}

/// A signal comes before every piece.
struct Interrupted {
    bytes: Cursor<Vec<u8>>,
    is_next: bool,
}

impl Interrupted {
    fn over(bytes: Vec<u8>) -> Self {
        Self { bytes: Cursor::new(bytes), is_next: true }
    }
}

impl Read for Interrupted {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.is_next = !self.is_next;
        if self.is_next { self.bytes.read(out) } else { Err(std::io::ErrorKind::Interrupted.into()) }
    }
}

impl Seek for Interrupted {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.bytes.seek(to)
    }
}

/// One byte at once.
struct ByteByByte(Cursor<Vec<u8>>);

impl Read for ByteByByte {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = out.len().min(1);
        self.0.read(&mut out[..count])
    }
}

impl Seek for ByteByByte {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn a_document_type_is_found_however_the_part_comes() {
    let blanks = " ".repeat(200_000) + "<!DOCTYPE a><a/>";
    let units = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let wide = units("\u{feff}<!DOCTYPE a><a/>");
    for styles in [&b"\xef\xbb\xbf<!DOCTYPE a><a/>"[..], b"\r\n <!DOCTYPE a><a/>", blanks.as_bytes(), &wide] {
        let mut zip = ZipWriter::new_append(Cursor::new(docx("x"))).unwrap();
        let stored = SimpleFileOptions::default().compression_method(::zip::CompressionMethod::Stored);
        zip.start_file("word/styles.xml", stored).unwrap();
        zip.write_all(styles).unwrap();
        let bytes = zip.finish().unwrap().into_inner();
        expect(&bytes, "docx", Verdict::Refuse, "document-type");
        let slowly = check(ByteByByte(Cursor::new(bytes)), Hint::from_extension("docx"), &Limits::default());
        assert_eq!(slowly.verdict, Verdict::Refuse, "{:?}", &styles[..4]);
    }
}

#[test]
fn what_is_said_is_bounded_however_long_the_names_are() {
    let long = "a".repeat(500_000);
    let (types, root) = (types("word/document.xml", WORD), relationships(OFFICE_DOCUMENT, &long));
    let external = root.replace("Target=", r#"TargetMode="External" Target="#);
    for root in [root, external] {
        let bytes = archive(&[("[Content_Types].xml", &types), ("_rels/.rels", &root)]);
        let report = check(Cursor::new(bytes), Hint::from_extension("docx"), &Limits::default());
        let said = report
            .findings
            .iter()
            .map(|finding| finding.message.len() + finding.part.as_ref().map_or(0, String::len));
        assert!(said.max() < Some(20_000), "{:?}", report.verdict);
    }
}

#[test]
fn a_package_cut_anywhere_is_refused() {
    let whole = docx(&"some text that does not compress to nothing 0123456789 ".repeat(50));

    for cut in 1..whole.len() {
        assert_eq!(verdict(&whole[..cut], "docx").0, Verdict::Refuse, "cut at {cut} of {}", whole.len());
    }
}

#[test]
fn a_flipped_bit_in_compressed_data_is_found() {
    let whole = docx(&(0..2000).map(|number| format!("{number} ")).collect::<String>());
    let data = whole.windows(17).rposition(|window| window == b"word/document.xml").unwrap();
    let start = whole.windows(17).position(|window| window == b"word/document.xml").unwrap() + 17;

    for step in 0..500 {
        let mut flipped = whole.clone();
        flipped[start + (step * 7) % (data - start - 100)] ^= 1 << (step % 8);
        assert_eq!(verdict(&flipped, "docx").0, Verdict::Refuse, "step {step}");
    }
}

#[test]
fn a_bomb_costs_no_more_than_its_limit_and_is_flagged() {
    let bomb = docx(&"0".repeat(5_000_000));
    let limits = Limits { inflated_bytes_max: 1_000_000, ..Limits::default() };

    let report = check(Cursor::new(bomb), Hint::from_extension("docx"), &limits);

    assert_eq!((report.verdict, report.findings[0].code), (Verdict::Flag, Code::OverLimit));
}

#[test]
fn what_is_too_large_to_look_into_is_flagged() {
    let limits = Limits { entries_max: 2, ..Limits::default() };

    let report = check(Cursor::new(docx("x")), Hint::from_extension("docx"), &limits);

    assert_eq!((report.verdict, report.kind), (Verdict::Flag, Kind::Zip));
}

#[test]
fn codes_and_kinds_have_words_of_their_own() {
    let codes: std::collections::BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let kinds: std::collections::BTreeSet<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();

    assert_eq!((codes.len(), kinds.len()), (Code::ALL.len(), Kind::ALL.len()));
}

fn extent(bytes: &[u8], extension: &str) -> Option<Extent> {
    check(Cursor::new(bytes), Hint::from_extension(extension), &Limits::default()).extent
}

/// A package whose main part is of a type, with some more parts.
fn package_of(content_type: &str, parts: &[(&str, &str)]) -> Vec<u8> {
    let (types, root) = (types("main.xml", content_type), relationships(OFFICE_DOCUMENT, "main.xml"));
    let mut all = vec![("[Content_Types].xml", types.as_str()), ("_rels/.rels", root.as_str())];
    all.extend_from_slice(parts);
    archive(&all)
}

#[test]
fn an_empty_document_is_whole_and_said_to_be_empty() {
    expect(&docx(""), "docx", Verdict::Accept, "no-content");
    assert_eq!(extent(&docx(""), "docx"), Some(Extent::default()));
    let picture = docx_with(&body(""), &[("word/media/image1.PNG", "…"), ("docProps/thumbnail.jpeg", "…")]);
    assert_eq!(verdict(&picture, "docx"), (Verdict::Accept, Kind::Docx, vec![]), "a picture is content");
    assert_eq!(extent(&picture, "docx"), Some(Extent { pictures: 1, ..Extent::default() }));
}

#[test]
fn the_text_of_a_document_is_counted_wherever_it_stands() {
    let header = r#"<w:hdr xmlns:w="x"><w:t>head</w:t></w:hdr>"#;
    let properties = "<Properties><Application>Somebody's writer</Application></Properties>";
    let chart = "<c:chartSpace xmlns:c=\"x\"><c:v>12</c:v></c:chartSpace>";
    let more =
        [("word/header1.xml", header), ("docProps/app.xml", properties), ("word/charts/chart1.xml", chart)];

    let extent = extent(&docx_with(&body("four words &amp; more"), &more), "docx");

    assert_eq!(extent, Some(Extent { text_bytes: 17 + 4, pictures: 1, ..Extent::default() }));
}

#[test]
fn the_cells_of_a_workbook_are_counted() {
    let sheet = r#"<worksheet xmlns="x"><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" s="3"/>
        <c r="C1"><f>A1*2</f><v>84</v></c><c r="D1" t="inlineStr"><is><t>in line</t></is></c></row></sheetData></worksheet>"#;
    let strings = r#"<sst xmlns="x"><si><t>shared</t></si></sst>"#;
    let empty = r#"<worksheet xmlns="x"><sheetData/></worksheet>"#;
    let bytes = package_of(
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
        &[("main.xml", "<workbook/>"), ("a.xml", sheet), ("b.xml", empty), ("c.xml", strings)],
    );

    let extent = extent(&bytes, "xlsx").unwrap();

    assert_eq!((extent.cells, extent.formulas, extent.sheets), (3, 1, 2));
    assert_eq!(extent.text_bytes, "0A1*284in lineshared".len() as u64);
}

#[test]
fn slides_and_open_documents_are_counted() {
    let slide = r#"<p:sld xmlns:p="x" xmlns:a="y"><a:t>Welcome</a:t></p:sld>"#;
    let deck = package_of(
        "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
        &[("main.xml", "<presentation/>"), ("1.xml", slide), ("2.xml", slide)],
    );
    let content = r#"<o:document-content xmlns:o="o" xmlns:t="t"><o:body><o:spreadsheet><t:table><t:table-row>
        <t:table-cell o:value-type="float" t:formula="of:=1+1"><p>2</p></t:table-cell><t:table-cell/></t:table-row></t:table></o:spreadsheet></o:body></o:document-content>"#;
    let sheet = archive(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("content.xml", content),
        ("META-INF/manifest.xml", "<manifest/>"),
    ]);

    let (deck, sheet) = (extent(&deck, "pptx"), extent(&sheet, "ods"));

    assert_eq!(deck, Some(Extent { slides: 2, text_bytes: 14, ..Extent::default() }));
    let counted = Extent { sheets: 1, cells: 1, formulas: 1, text_bytes: 1, ..Extent::default() };
    assert_eq!(sheet, Some(counted));
}

#[test]
fn the_count_is_the_same_however_the_bytes_come() {
    let main = body(" four words &amp; <![CDATA[ more ]]> ").replace("<w:p>", "\n    <w:p> \n");
    let bytes = docx_with(&main, &[]);

    let slowly =
        check(ByteByByte(Cursor::new(bytes.clone())), Hint::from_extension("docx"), &Limits::default());

    let counted = Extent { text_bytes: " four words &  more  ".len() as u64, ..Extent::default() };
    assert_eq!(extent(&bytes, "docx"), Some(counted));
    assert_eq!(slowly.extent, Some(counted));
}

#[test]
fn what_is_not_counted_is_not_said_to_be_empty() {
    let visio = package_of("application/vnd.ms-visio.drawing.main+xml", &[("main.xml", "<VisioDocument/>")]);
    let shape = r#"<o:document-content xmlns:o="o" xmlns:d="d"><o:body><o:drawing><d:page><d:rect/></d:page></o:drawing></o:body></o:document-content>"#;
    let drawing =
        archive(&[("mimetype", "application/vnd.oasis.opendocument.graphics"), ("content.xml", shape)]);

    assert_eq!(verdict(&visio, "vsdx"), (Verdict::Accept, Kind::Vsdx, vec![]));
    assert_eq!(verdict(&drawing, "odg"), (Verdict::Accept, Kind::Odg, vec![]));
    let formula = [
        ("mimetype", "application/vnd.oasis.opendocument.formula"),
        ("content.xml", "<math><mi>x</mi></math>"),
    ];
    assert_eq!(verdict(&archive(&formula), "bin"), (Verdict::Accept, Kind::Odf, vec![]));
}

#[test]
fn what_was_not_read_to_its_end_is_not_counted() {
    let mut damaged = docx("words");
    let at = damaged.len() - 40;
    damaged[at] ^= 1;
    let required = Limits { thoroughness: Thoroughness::Required, ..Limits::default() };

    assert_eq!(extent(&damaged, "docx"), None);
    assert_eq!(check(Cursor::new(docx("words")), Hint::from_extension("docx"), &required).extent, None);
    assert_eq!(extent(b"plain words", "txt"), None);
}
