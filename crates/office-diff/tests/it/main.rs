//! Files as programs write them, files nobody would write, and what changed between them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

mod files;
mod hostile;

use std::io::Cursor;

use files::{docx, odf, pptx, xlsx};
use office_diff::{Change, CompareError, Comparison, Cut, Kind, Limits, Place, Side, Subject, compare};

fn compared(from: &[u8], to: &[u8]) -> Comparison {
    compare(Cursor::new(from), Cursor::new(to), &Limits::default()).unwrap()
}

/// A change in a line: what, where, old, new.
fn line(change: &Change) -> String {
    let place = match &change.place {
        Place::Paragraph { part, number } => format!("{part} {number}"),
        Place::Slide { slide, number } => format!("slide {slide} {number}"),
        Place::Line { number } => format!("line {number}"),
        Place::Cell { sheet, address } => format!("{sheet}!{address}"),
        Place::Sheet { sheet } => format!("sheet {sheet}"),
    };
    let shown = |shown: &Option<office_diff::Shown>| match shown {
        None => String::new(),
        Some(shown) => match &shown.formula {
            None => shown.text.clone(),
            Some(formula) => format!("={formula} {}", shown.text),
        },
    };
    format!("{} {place}: [{}] [{}]", change.kind.as_str(), shown(&change.old), shown(&change.new))
}

fn lines(from: &[u8], to: &[u8]) -> Vec<String> {
    let comparison = compared(from, to);
    assert_eq!(comparison.cut, []);
    comparison.changes.iter().map(line).collect()
}

#[test]
fn paragraphs_that_were_added_removed_and_changed_are_told() {
    let from = docx(&["One.", "Two.", "Three.", "Four.", "Five."]);
    let to = docx(&["One.", "Two, changed.", "Three.", "Five.", "Six."]);

    assert_eq!(
        lines(&from, &to),
        ["changed body 2: [Two.] [Two, changed.]", "removed body 4: [Four.] []", "added body 5: [] [Six.]"]
    );
    assert_eq!(compared(&from, &to).subject, Subject::Document);
    assert_eq!(lines(&from, &from), [""; 0]);
}

#[test]
fn text_is_read_as_a_reader_sees_it() {
    let body = r#"<w:p><w:r><w:t>Gr&#246;&#xDF;e </w:t></w:r><w:r><w:t xml:space="preserve">&lt;5 &amp; more</w:t></w:r></w:p>
        <w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:ins><w:r><w:t>come</w:t></w:r></w:ins></w:p>
        <w:p><w:moveFrom><w:r><w:t>moved away</w:t></w:r></w:moveFrom><w:r><w:t>left</w:t><w:br/><w:t>here</w:t></w:r></w:p>
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>in a table</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
        <w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent></mc:Choice>
        <mc:Fallback><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p>"#;

    assert_eq!(
        lines(&docx::<&str>(&[]), &files::docx_with(body, &[])),
        [
            "added body 1: [] [Größe <5 & more]",
            "added body 2: [] [come]",
            "added body 3: [] [left\nhere]",
            "added body 4: [] [in a table]",
            "added body 6: [] [in a box]",
        ]
    );
}

#[test]
fn headers_footnotes_and_comments_are_compared_by_themselves() {
    let parts = |text: &str| {
        [("header", "header1.xml", format!("<w:hdr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:hdr>"))]
    };

    assert_eq!(
        lines(&files::docx_with("", &parts("Draft")), &files::docx_with("", &parts("Final"))),
        ["changed header1 1: [Draft] [Final]"]
    );
}

#[test]
fn cells_are_told_with_sheet_and_address() {
    let from = xlsx(
        &[
            (
                "Plan",
                r#"<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1"><v>4</v></c></row>
        <row r="2"><c r="A2"><f>B1*2</f><v>8</v></c><c r="C2" t="b"><v>1</v></c></row>"#,
            ),
            ("Old", ""),
        ],
        &["Count", "Total"],
    );
    let to = xlsx(
        &[
            (
                "Plan",
                r#"<row r="1"><c r="A1" t="s"><v>1</v></c><c r="B1"><v>5</v></c><c r="D1" t="inlineStr"><is><t>new</t></is></c></row>
        <row r="2"><c r="A2"><f>B1*3</f><v>15</v></c></row>"#,
            ),
            ("New", r#"<row><c><v>1</v></c><c><v>2</v></c></row>"#),
        ],
        &["Count", "Total"],
    );

    assert_eq!(
        lines(&from, &to),
        [
            "changed Plan!A1: [Count] [Total]",
            "changed Plan!B1: [4] [5]",
            "added Plan!D1: [] [new]",
            "changed Plan!A2: [=B1*2 8] [=B1*3 15]",
            "removed Plan!C2: [TRUE] []",
            "removed sheet Old: [] []",
            "added sheet New: [] []",
            "added New!A1: [] [1]",
            "added New!B1: [] [2]",
        ]
    );
    assert_eq!(compared(&from, &to).subject, Subject::Workbook);
}

#[test]
fn a_slide_put_in_moves_the_others_and_changes_none_of_them() {
    let from = pptx(&[&["Welcome"], &["Figures", "They grow."], &["Thanks"]]);
    let to = pptx(&[&["Welcome"], &["Agenda", "Figures first"], &["Figures", "They shrink."], &["Thanks"]]);

    assert_eq!(
        lines(&from, &to),
        [
            "added slide 2 1: [] [Agenda]",
            "added slide 2 2: [] [Figures first]",
            "changed slide 3 2: [They grow.] [They shrink.]",
        ]
    );
}

#[test]
fn open_documents_are_compared_too() {
    let text = |second: &str| odf("text", &format!("<text:h>Title</text:h><text:p>{second}</text:p>"));
    assert_eq!(
        lines(&text("a<text:s text:c=\"2\"/>b"), &text("a<text:tab/>b")),
        ["changed body 2: [a  b] [a\tb]"]
    );

    let sheet = |cells: &str| {
        odf(
            "spreadsheet",
            &format!(
                "<table:table table:name=\"Plan\"><table:table-row table:number-rows-repeated=\"3\"/><table:table-row>{cells}</table:table-row></table:table>"
            ),
        )
    };
    let cell = |text: &str| {
        format!(
            "<table:table-cell table:number-columns-repeated=\"2\"/><table:table-cell><text:p>{text}</text:p></table:table-cell>"
        )
    };
    assert_eq!(lines(&sheet(&cell("4")), &sheet(&cell("5"))), ["changed Plan!C4: [4] [5]"]);

    let slides = |text: &str| {
        odf(
            "presentation",
            &format!(
                "<draw:page><text:p>One</text:p></draw:page><draw:page><text:p>{text}</text:p></draw:page>"
            ),
        )
    };
    assert_eq!(lines(&slides("Two"), &slides("2")), ["changed slide 2 1: [Two] [2]"]);
}

#[test]
fn plain_text_is_compared_by_lines() {
    assert_eq!(lines(b"a\nb\nc\n", b"a\nc\nd\n"), ["removed line 2: [b] []", "added line 3: [] [d]"]);
    assert_eq!(lines(b"", "ä\n".as_bytes()), ["added line 1: [] [ä]"]);
}

#[test]
fn what_has_no_text_or_another_kind_is_refused() {
    let (document, workbook) = (docx(&["a"]), xlsx(&[("Plan", "")], &[]));
    let refused =
        |from: &[u8], to: &[u8]| compare(Cursor::new(from), Cursor::new(to), &Limits::default()).unwrap_err();

    assert_eq!(
        refused(&document, &workbook),
        CompareError::DifferentKinds(Subject::Document, Subject::Workbook)
    );
    assert_eq!(refused(b"\x00\x01\x02", &document), CompareError::NoText(Side::From));
    assert_eq!(refused(&document, &[0xff, 0xfe, 0xfd]), CompareError::NoText(Side::To));
    assert_eq!(refused(&document, &document[..document.len() / 2]), CompareError::NoText(Side::To));
    assert_eq!(refused(&files::package(&[("a.txt", "text")]), &document), CompareError::NoText(Side::From));
}

#[test]
fn limits_are_kept_and_told() {
    let many = |word: &str| docx(&(0..50).map(|at| format!("{word} {at}")).collect::<Vec<_>>());
    let limited = |limits: Limits| compare(Cursor::new(many("a")), Cursor::new(many("b")), &limits).unwrap();

    let few_changes = limited(Limits { changes_max: 10, ..Limits::default() });
    assert_eq!((few_changes.changes.len(), few_changes.counts.changed), (10, 50));
    assert_eq!(few_changes.cut, [Cut::Changes]);
    let short = limited(Limits { shown_characters_max: 3, ..Limits::default() });
    assert_eq!(short.changes[10].new.as_ref().unwrap().text, "b 1");
    assert_eq!(short.cut, [Cut::Shown]);
    let rough = limited(Limits { effort_max: 0, ..Limits::default() });
    assert_eq!((rough.counts.changed, rough.cut.as_slice()), (50, [Cut::Rough].as_slice()));
    for little in [
        Limits { pieces_max: 20, ..Limits::default() },
        Limits { text_bytes_max: 250, ..Limits::default() },
        Limits { unpacked_bytes_max: 1000, ..Limits::default() },
    ] {
        assert_eq!(limited(little.clone()).cut, [Cut::Read], "{little:?}");
    }
}

#[test]
fn what_was_not_read_is_not_told_as_removed() {
    let texts: Vec<String> = (0..100).map(|at| format!("Paragraph {at}")).collect();
    let (whole, longer) = (docx(&texts), docx(&[vec!["First".to_owned()], texts.clone()].concat()));
    let limits = Limits { pieces_max: 50, ..Limits::default() };

    let comparison = compare(Cursor::new(&whole), Cursor::new(&longer), &limits).unwrap();

    assert_eq!(comparison.changes.iter().map(|change| change.kind).collect::<Vec<_>>(), [Kind::Added]);
    let row = |at: usize, value: usize| format!("<row r=\"{at}\"><c r=\"A{at}\"><v>{value}</v></c></row>");
    let sheet = |first: usize| {
        let rows: String = (1..=100).map(|at| row(at, if at == 1 { first } else { at })).collect();
        xlsx(&[("Plan", &rows), ("Later", &row(1, first))], &[])
    };
    let comparison = compare(Cursor::new(sheet(7)), Cursor::new(sheet(8)), &limits).unwrap();
    assert_eq!(comparison.changes.iter().map(line).collect::<Vec<_>>(), ["changed Plan!A1: [7] [8]"]);
    assert_eq!(comparison.cut, [Cut::Read]);
}
