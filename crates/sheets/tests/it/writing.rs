//! What we write: that it is whole, that others read it, and that we read it again.

use std::io::{Cursor, Read};

use calamine::{Data, Reader, Xlsx};
use model::submissions::Problem;
use office_check::{Hint, Verdict};
use sheets::{
    ExportColumn, ExportKind, ScopeFacts, Template, WASTE_RECORDS, assess, export_xlsx, mark_workbook,
    write_workbook,
};
use zip::ZipArchive;

use crate::book::{Book, TODAY, load, right, scope, template, told};

fn is_whole(name: &str, bytes: &[u8]) {
    // Kept, so that it can be looked at with other programs.
    std::fs::write(format!("{}/{name}", env!("CARGO_TARGET_TMPDIR")), bytes).unwrap();
    let report = office_check::check(
        Cursor::new(bytes),
        Hint::from_extension("xlsx"),
        &office_check::Limits::default(),
    );
    assert_eq!(report.verdict, Verdict::Accept, "{name}: {:?}", report.findings);
}

fn part(bytes: &[u8], name: &str) -> String {
    let mut text = String::new();
    ZipArchive::new(Cursor::new(bytes)).unwrap().by_name(name).unwrap().read_to_string(&mut text).unwrap();
    text
}

fn names(bytes: &[u8]) -> Vec<String> {
    ZipArchive::new(Cursor::new(bytes)).unwrap().file_names().map(|name| name.unwrap().into_owned()).collect()
}

fn marked(bytes: &[u8], problems: &[Problem]) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    mark_workbook(&mut Cursor::new(bytes), problems, &mut out).unwrap();
    out.into_inner()
}

#[test]
fn a_workbook_to_fill_in_is_whole_and_read_again_without_a_problem() {
    for (name, template) in
        [("waste-records.xlsx", Template::parse(WASTE_RECORDS).unwrap()), ("loads.xlsx", template())]
    {
        for scope in [scope(), ScopeFacts { accreditations: Vec::new(), ..scope() }] {
            let mut bytes = Vec::new();
            write_workbook(&template, &scope, &mut bytes).unwrap();

            is_whole(name, &bytes);
            let mut rows = Vec::new();
            let assessment = assess(&template, (&scope, TODAY), &mut Cursor::new(&bytes), &mut rows).unwrap();
            assert_eq!((&assessment.problems, rows.len()), (&vec![], 0));
            assert_eq!(assessment.tables.len(), template.tables.len());
            assert_eq!(assessment.meta["REGISTRATION"], "R-1");
        }
    }
}

#[test]
fn the_example_row_is_a_right_row() {
    let template = Template::parse(WASTE_RECORDS).unwrap();
    let mut bytes = Vec::new();
    write_workbook(&template, &scope(), &mut bytes).unwrap();
    let mut book = Book::new();
    for name in names(&bytes) {
        // What was an example becomes data.
        book.parts.push((name.clone(), part(&bytes, &name).replace(">Example<", "><").into_bytes()));
    }

    let (assessment, rows) = book.assess_by(&template);

    assert_eq!(assessment.problems, []);
    assert_eq!(rows.iter().map(|row| &*row.outcome).collect::<Vec<_>>(), ["included"; 3]);
    assert_eq!(rows[0].measure.as_deref(), Some("10.85"));
}

#[test]
fn lists_formats_and_bounds_are_in_the_workbook() {
    let template = Template::parse(WASTE_RECORDS).unwrap();
    let mut bytes = Vec::new();
    write_workbook(&template, &scope(), &mut bytes).unwrap();

    let loads = part(&bytes, "xl/worksheets/sheet2.xml");
    assert!(loads.contains("<formula1>Lists!$B$1:$B$7</formula1>"), "{loads}");
    assert!(loads.contains("<formula1>\"Yes,No\"</formula1>"));
    assert!(loads.contains("<row r=\"1\" hidden=\"1\">"));
    assert!(part(&bytes, "xl/styles.xml").contains("formatCode=\"0.000\""));
    assert!(part(&bytes, "xl/workbook.xml").contains("name=\"Lists\" sheetId=\"5\" state=\"hidden\""));
}

#[test]
fn an_export_is_whole_and_its_texts_are_no_formulas() {
    let column = |header: &str, kind| ExportColumn { header: header.into(), kind };
    let columns =
        [column("a", ExportKind::Text), column("b", ExportKind::Number), column("c", ExportKind::Day)];
    let rows = [
        ["=1+1", "12.5", "2026-03-31"],
        ["+x", "1,5", "31/03/2026"],
        ["a<b>&\"\u{1}_x0041_", "12345678901234567890", ""],
        ["", "-0.001", "2026-02-30"],
    ];
    let mut bytes = Vec::new();
    let rows = rows.iter().map(|row| Ok(row.iter().map(|value| (*value).to_owned()).collect()));
    export_xlsx(("Loads/in", &columns), rows, &mut bytes).unwrap();

    is_whole("export.xlsx", &bytes);
    let mut book: Xlsx<_> = calamine::open_workbook_from_rs(Cursor::new(bytes)).unwrap();
    let range = book.worksheet_range("Loadsin").unwrap();
    let text = |row, column| range.get_value((row, column)).unwrap().to_string();
    assert_eq!(range.get_value((1, 0)), Some(&Data::String("=1+1".into())));
    assert_eq!(range.get_value((1, 1)), Some(&Data::Float(12.5)));
    assert!(matches!(range.get_value((1, 2)), Some(Data::DateTime(_))));
    assert_eq!([text(2, 0), text(2, 1), text(2, 2)], ["+x", "1,5", "31/03/2026"]);
    assert_eq!(text(3, 1), "12345678901234567890");
    assert_eq!(text(4, 2), "2026-02-30");
}

#[test]
fn an_export_without_rows_has_its_headers() {
    let columns = [ExportColumn { header: "a".into(), kind: ExportKind::Text }];
    let mut bytes = Vec::new();
    export_xlsx(("x", &columns), std::iter::empty(), &mut bytes).unwrap();
    let mut book: Xlsx<_> = calamine::open_workbook_from_rs(Cursor::new(bytes)).unwrap();
    assert_eq!(book.worksheet_range("x").unwrap().get_value((0, 0)), Some(&Data::String("a".into())));
    let failing = std::iter::once(Err(std::io::Error::other("gone")));
    assert!(export_xlsx(("x", &columns), failing, Vec::new()).is_err());
}

fn wrong_book() -> Book {
    let rows = [
        right(2, 1000),
        load(3, &["n:1001", "t:yesterday", "t:99 & <more>", "t:No", "n:10.5"]),
        load(4, &["n:1002", "", "", "", "n:-1"]),
    ];
    let mut book = Book::of_loads(&rows);
    book.parts.push(("xl/media/logo.png".into(), vec![1, 2, 3]));
    book
}

#[test]
fn a_marked_workbook_has_red_cells_notes_and_a_list_and_everything_else_is_as_it_was() {
    let book = wrong_book();
    let (assessment, _) = book.assess();
    assert_eq!(told(&assessment.problems), ["MUST_BE_A_DATE D3", "MUST_BE_CHOSEN E3", "TOO_SMALL G4"]);
    let before = book.bytes();
    let after = marked(&before, &assessment.problems);

    is_whole("marked.xlsx", &after);
    let sheet = part(&after, "xl/worksheets/sheet2.xml");
    assert!(sheet.contains(r#"sqref="D3 E3 G4""#), "{sheet}");
    let old = part(&before, "xl/worksheets/sheet2.xml");
    let rows = |text: &str| text.split("</sheetData>").next().map(str::to_owned);
    assert_eq!(rows(&sheet), rows(&old));
    let notes = part(&after, "xl/comments_marks1.xml");
    assert!(notes.contains("<comment ref=\"E3\"") && notes.contains("99 &amp; &lt;more&gt;"), "{notes}");
    assert!(
        part(&after, "xl/drawings/vmlDrawing_marks1.vml").contains("<x:Row>2</x:Row><x:Column>3</x:Column>")
    );
    for name in names(&before) {
        let is_added_to = [
            "[Content_Types].xml",
            "xl/workbook.xml",
            "xl/_rels/workbook.xml.rels",
            "xl/styles.xml",
            "xl/worksheets/sheet2.xml",
        ];
        if !is_added_to.contains(&name.as_str()) {
            let bytes = |file: &[u8]| {
                let mut bytes = Vec::new();
                ZipArchive::new(Cursor::new(file))
                    .unwrap()
                    .by_name(&name)
                    .unwrap()
                    .read_to_end(&mut bytes)
                    .unwrap();
                bytes
            };
            assert_eq!(bytes(&after), bytes(&before), "{name}");
        }
    }
    let mut workbook: Xlsx<_> = calamine::open_workbook_from_rs(Cursor::new(after)).unwrap();
    let list = workbook.worksheet_range("Problems found").unwrap();
    assert_eq!(list.height(), 4);
    assert_eq!(list.get_value((1, 2)), Some(&Data::String("D3".into())));
    assert_eq!(list.get_value((2, 5)), Some(&Data::String("“99 & <more>”".into())));
}

#[test]
fn a_marked_workbook_is_read_as_it_was_and_can_be_marked_again() {
    let book = wrong_book();
    let (assessment, rows) = book.assess();
    let once = marked(&book.bytes(), &assessment.problems);
    let twice = marked(&once, &assessment.problems);

    is_whole("marked-twice.xlsx", &twice);
    for bytes in [&once, &twice] {
        let mut again = Vec::new();
        let read = assess(&template(), (&scope(), TODAY), &mut Cursor::new(bytes), &mut again).unwrap();
        assert_eq!((&read, &again), (&assessment, &rows));
    }
    assert_eq!(part(&twice, "xl/workbook.xml").matches("Problems found").count(), 1);
    assert_eq!(part(&twice, "xl/worksheets/sheet2.xml").matches("cfRule type").count(), 1);
    assert_eq!(part(&twice, "xl/comments_marks1.xml"), part(&once, "xl/comments_marks1.xml"));
}

#[test]
fn marks_of_an_earlier_round_go_when_their_cells_are_right() {
    let book = wrong_book();
    let (assessment, _) = book.assess();
    let once = marked(&book.bytes(), &assessment.problems);
    let later = marked(&once, &assessment.problems[1..2]);

    is_whole("marked-later.xlsx", &later);
    let sheet = part(&later, "xl/worksheets/sheet2.xml");
    assert!(sheet.contains(r#"sqref="E3""#) && !sheet.contains("D3 E3"), "{sheet}");
    let notes = part(&later, "xl/comments_marks1.xml");
    assert_eq!(notes.matches("Nothing is wrong here any more.").count(), 2);
    assert_eq!(part(&later, "xl/drawings/vmlDrawing_marks1.vml").matches("<v:shape ").count(), 3);
    let corrected = marked(&later, &[]);
    is_whole("marked-corrected.xlsx", &corrected);
    assert!(!part(&corrected, "xl/worksheets/sheet2.xml").contains("cfRule"));
}

#[test]
fn notes_and_drawings_that_are_there_stay() {
    let mut book = wrong_book();
    let relations = r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/comments" Target="../comments1.xml"/><Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/vmlDrawing" Target="../drawings/vmlDrawing1.vml"/></Relationships>"#;
    let notes = r#"<x:comments xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><x:authors><x:author>Ann</x:author></x:authors><x:commentList><x:comment ref="A1" authorId="0"><x:text><x:t>first</x:t></x:text></x:comment><x:comment ref="D3" authorId="0"><x:text><x:t>mine</x:t></x:text></x:comment></x:commentList></x:comments>"#;
    let drawing = r#"<xml xmlns:v="urn:schemas-microsoft-com:vml"><v:shapetype id="_x0000_t202"></v:shapetype><v:shape id="_x0000_s1"></v:shape></xml>"#;
    book.sheets[1].2 = r#"<pageMargins left="1" right="1" top="1" bottom="1" header="1" footer="1"/><legacyDrawing r:id="rId2"/><tableParts count="0"/>"#.into();
    book.parts.push(("xl/worksheets/_rels/sheet2.xml.rels".into(), relations.into()));
    book.parts.push(("xl/comments1.xml".into(), notes.into()));
    book.parts.push(("xl/drawings/vmlDrawing1.vml".into(), drawing.into()));
    let (assessment, _) = book.assess();
    let after = marked(&book.bytes(), &assessment.problems);

    let notes = part(&after, "xl/comments1.xml");
    assert!(
        notes.contains("<x:t>mine</x:t><x:r><x:t xml:space=\"preserve\">\nDay must be a date"),
        "{notes}"
    );
    assert_eq!(notes.matches("<x:comment ").count(), 4);
    assert!(
        notes.contains("<x:author>Problems found</x:author></x:authors>")
            && notes.contains("ref=\"E3\" authorId=\"1\"")
    );
    let drawing = part(&after, "xl/drawings/vmlDrawing1.vml");
    assert_eq!((drawing.matches("<v:shape ").count(), drawing.matches("<v:shapetype").count()), (3, 1));
    let sheet = part(&after, "xl/worksheets/sheet2.xml");
    assert_eq!(sheet.matches("legacyDrawing").count(), 1);
    assert!(sheet.find("conditionalFormatting") < sheet.find("pageMargins"));
    assert!(!names(&after).iter().any(|name| name.contains("_marks1.vml")));
}

#[test]
fn what_cannot_be_opened_cannot_be_marked() {
    assert!(mark_workbook(&mut Cursor::new(b"no workbook"), &[], Cursor::new(Vec::new())).is_err());
    let bytes = marked(&wrong_book().bytes(), &[]);
    assert!(part(&bytes, "xl/workbook.xml").contains("Problems"));
}
