//! What must be right, case by case: the behaviours of a submission that are decided while a workbook is read.

use model::submissions::Severity;
use sheets::code;

use crate::book::{Book, cover, headers, load, right, row, template, told, value};

#[test]
fn a_right_workbook_becomes_rows_with_their_cells() {
    let (assessment, rows) = Book::of_loads(&[right(2, 1000), right(3, 1001)]).assess();

    assert_eq!(assessment.problems, []);
    assert!(assessment.is_valid());
    assert_eq!(
        rows[0].values,
        r#"{"CLAIMED":"No","CODE":"15 01 01","DAY":"2026-03-11","GROSS":"10.5","ID":"1000","NET":"6.5","NOTE":"fine","PHONE":"0123","SHARE":"0.5","TARE":"4"}"#
    );
    assert_eq!((rows[1].key.as_str(), rows[1].row, &*rows[1].sheet), ("1001", 3, "Loads"));
    assert_eq!((&*rows[0].outcome, rows[0].measure.as_deref()), ("included", Some("3.25")));
    let table = &assessment.tables[0];
    assert_eq!((table.header_row, table.columns["NET"].as_str()), (1, "I"));
    assert_eq!(table.totals.measure.map(|sum| sum.to_string()).as_deref(), Some("6.5"));
    assert_eq!(assessment.meta["REGISTRATION"], "R-1");
}

#[test]
fn the_text_of_a_row_is_the_canonical_one() {
    let (_, rows) = Book::of_loads(&[load(
        2,
        &["n:1000", "d:46092", "", "", "n:1", "", "", "", "t:a \"b\" \\ \u{1F600} é", "t:\u{1}x"],
    )])
    .assess();

    let values = serde_json::from_str(&rows[0].values).unwrap();
    assert_eq!(rows[0].values, model::submissions::canonical_values(&values));
}

#[test]
fn behaviour_11_all_copies_of_a_key_are_named_even_if_they_are_identical() {
    let rows: Vec<String> = (2..6).map(|n| right(n, 1000)).chain([right(6, 1001)]).collect();
    let (assessment, _) = Book::of_loads(&rows).assess();

    assert_eq!(told(&assessment.problems), ["KEY_TWICE C2", "KEY_TWICE C3", "KEY_TWICE C4", "KEY_TWICE C5"]);
    assert_eq!(assessment.problems[0].row_id.as_deref(), Some("1000"));
    assert_eq!(
        assessment.problems[0].sentence,
        "Load number 1000 is there more than once (also in C3). Every row needs its own."
    );
}

#[test]
fn behaviour_11_the_same_key_in_another_table_is_another_record() {
    let out =
        row(1, &["t:__T_TABLE_OUT", "t:ID", "t:SITE", "t:TONNES"]) + &row(2, &["", "n:1000", "t:a|b", "n:1"]);
    let (assessment, rows) = Book::of_loads(&[right(2, 1000)]).sheet("Out", &out).assess();

    assert_eq!(assessment.problems, []);
    let identities: Vec<_> = rows.iter().map(|row| (&*row.kind, row.key.as_str())).collect();
    assert_eq!(identities, [("load", "1000"), ("out", "a\\|b|1000")]);
}

#[test]
fn behaviour_11_identical_rows_count_once_where_the_template_says_so() {
    let line = |n: u32, tonnes: &str| row(n, &["", "n:7", "t:x", tonnes]);
    let out = row(1, &["t:__T_TABLE_OUT", "t:ID", "t:SITE", "t:TONNES"]);
    let same = Book::of_loads(&[]).sheet("Out", &(out.clone() + &line(2, "n:1") + &line(3, "n:1.0")));
    let other = Book::of_loads(&[]).sheet("Out", &(out + &line(2, "n:1") + &line(3, "n:2")));

    let (assessment, rows) = same.assess();
    assert_eq!((told(&assessment.problems), rows.len()), (vec!["ROW_REPEATED C3".to_owned()], 1));
    assert!(assessment.is_valid());
    assert_eq!(told(&other.assess().0.problems), ["KEY_TWICE C2", "KEY_TWICE C3"]);
}

#[test]
fn behaviour_12_rows_may_be_sorted_without_changing_what_they_are() {
    let (_, one) = Book::of_loads(&[right(2, 1000), right(3, 1001)]).assess();
    let (_, other) = Book::of_loads(&[right(2, 1001), right(3, 1000)]).assess();

    assert_eq!(one[0].hash(), other[1].hash());
    assert_eq!(one[0].key, other[1].key);
}

#[test]
fn behaviour_13_a_key_has_one_canonical_text() {
    for cell in ["n:1000", "n:1000.0", "n:1E3", "t:1000", "t: 1000 ", "t:1000.0", "f:1000", "g:1000"] {
        let (assessment, rows) = Book::of_loads(&[right(2, 1).replace(&one_id(), &id_cell(cell))]).assess();
        assert_eq!(
            rows.first().map(|row| row.key.as_str()),
            Some("1000"),
            "{cell} {:?}",
            assessment.problems
        );
    }
    for cell in ["t:01000", "n:1000.5", "t:1 000", "t:1,000", "b:1", "d:46092", "t:+1000"] {
        let (assessment, rows) = Book::of_loads(&[right(2, 1).replace(&one_id(), &id_cell(cell))]).assess();
        assert_eq!(told(&assessment.problems), ["MUST_BE_A_WHOLE_NUMBER C2"], "{cell}");
        assert_eq!(rows, []);
    }
}

fn one_id() -> String {
    id_cell("n:1")
}

fn id_cell(cell: &str) -> String {
    let row = row(2, &["", "", cell]);
    row.replace("<row r=\"2\">", "").replace("</row>", "")
}

#[test]
fn behaviour_14_blank_rows_do_not_end_a_table_and_unused_rows_are_known() {
    let unused = |n| load(n, &["", "", "t:Choose option", "t:No", "", "", "f:0"]);
    let styled = |n| load(n, &["style:", "style:", "style:"]);
    let rows =
        [right(2, 1000), styled(3), unused(4), "<row r=\"5\"/>".into(), right(900, 1001), unused(15_000)];
    let (assessment, rows) = Book::of_loads(&rows).assess();

    assert_eq!(assessment.problems, []);
    assert_eq!(rows.iter().map(|row| row.row).collect::<Vec<_>>(), [2, 900]);
    assert_eq!(assessment.tables[0].totals.unused, 2);
}

#[test]
fn behaviour_14_a_row_with_data_and_no_key_is_never_dropped() {
    let (assessment, rows) =
        Book::of_loads(&[load(2, &["", "d:46092"]), load(3, &["t:  ", "", "", "", "n:1"])]).assess();

    assert_eq!(told(&assessment.problems)[..1], ["ROW_WITHOUT_KEY C2"]);
    assert_eq!(assessment.by_code[code::ROW_WITHOUT_KEY], 2);
    assert_eq!((rows.len(), assessment.tables[0].totals.rejected), (0, 2));
}

#[test]
fn behaviour_14_headings_and_examples_are_skipped() {
    let example = row(3, &["", "t:Example", "n:1", "t:wrong"]);
    let (assessment, rows) =
        Book::of_loads(&[load(2, &["t:Load number", "t:Day"]), example, right(4, 1000)]).assess();

    assert_eq!((assessment.problems, rows.len()), (vec![], 1));
    assert_eq!(assessment.tables[0].totals.skipped, 2);
}

#[test]
fn behaviour_15_formulas_are_their_cached_results() {
    let with_net = |net: &str| load(2, &["n:1000", "d:46092", "", "", "n:10.5", "n:4", net]);
    let told_of = |net: &str| {
        let (assessment, rows) = Book::of_loads(&[with_net(net)]).assess();
        (told(&assessment.problems), rows.first().and_then(|row| value(row, "NET")))
    };
    assert_eq!(told_of("f:6.5"), (vec![], Some("6.5".into())));
    assert_eq!(told_of("f:6.4999999999999996"), (vec![], Some("6.5".into())));
    assert_eq!(told_of("g:"), (vec![], None));
    assert_eq!(told_of("F:"), (vec!["FORMULA_WITHOUT_RESULT I2".into()], None));
    assert_eq!(told_of("G:"), (vec!["FORMULA_WITHOUT_RESULT I2".into()], None));
    assert_eq!(told_of("e:#DIV/0!"), (vec!["ERROR_VALUE I2".into()], None));
    assert_eq!(told_of("f:6.6"), (vec!["NET_WRONG I2".into()], None));
    let (assessment, _) = Book::of_loads(&[with_net("e:#DIV/0!")]).assess();
    assert_eq!(assessment.problems[0].value.as_deref(), Some("#DIV/0!"));
}

#[test]
fn behaviour_16_a_merge_inside_a_table_is_a_problem_and_one_outside_is_not() {
    let loads = headers(1) + &load(2, &["t:Load number"]) + &right(3, 1000) + &right(4, 1001);
    let merges = |range: &str| {
        let behind = format!(r#"<mergeCells count="1"><mergeCell ref="{range}"/></mergeCells>"#);
        let cover = cover(&["t:loads", "t:2.1", "t:R-1", "t:ACC-1"]);
        Book::new()
            .sheet_with("Cover", &cover, &behind)
            .sheet_with("Loads", &loads, &behind)
            .assess()
            .0
            .problems
    };

    let found = merges("D3:D4");
    assert_eq!(told(&found), ["MERGED_CELLS D4"]);
    assert_eq!(found[0].sentence, "The cells D3:D4 are merged. Undo the merge and fill in every cell.");
    assert_eq!(found[0].header.as_deref(), Some("Day"));
    for range in ["C1:D2", "N3:P4", "C9:D20", "A3:A4"] {
        assert_eq!(merges(range), [], "{range}");
    }
}

#[test]
fn behaviour_16_headers_are_fatal_by_name() {
    let book = |headers: &[&str]| {
        let cover = cover(&["t:loads", "t:2.1", "t:R-1", "t:ACC-1"]);
        Book::new().sheet("Cover", &cover).sheet("Loads", &(row(1, headers) + &right(2, 1000))).assess().0
    };
    let right = [
        "t:__T_TABLE_LOADS",
        "t:__T_SKIP",
        "t:Load  number",
        "t:Day",
        "t:CODE",
        "t:CLAIMED",
        "t:GROSS",
        "t:TARE",
        "t:NET",
        "t:SHARE",
        "t:NOTE",
        "t:PHONE",
    ];
    assert_eq!(book(&right).problems, []);

    let mut twice = right;
    twice[4] = "t:DAY";
    let found = book(&twice);
    assert_eq!(told(&found.problems), ["HEADER_TWICE E1", "HEADER_MISSING A1"]);
    assert_eq!(found.problems[1].header.as_deref(), Some("CODE"));
    let mut typo = right;
    typo[8] = "t:NETT";
    let found = book(&typo);
    assert_eq!(told(&found.problems), ["HEADER_MISSING A1"]);
    assert_eq!(
        found.problems[0].sentence,
        "The column NET is missing from its table. Begin with a fresh copy of the workbook."
    );
}

#[test]
fn behaviour_16_an_unknown_column_is_kept_as_it_stands_there() {
    let headers =
        headers(1).replace("</row>", r#"<c r="M1" t="inlineStr"><is><t>Our own</t></is></c></row>"#);
    let with = right(2, 1000).replace("</row>", r#"<c r="M2" s="1"><v>46112</v></c></row>"#);
    let cover = cover(&["t:loads", "t:2.1", "t:R-1", "t:ACC-1"]);
    let (assessment, rows) = Book::new().sheet("Cover", &cover).sheet("Loads", &(headers + &with)).assess();

    assert_eq!(assessment.problems, []);
    assert_eq!(value(&rows[0], "Our own").as_deref(), Some("2026-03-31"));
    assert_eq!(assessment.tables[0].columns["Our own"], "M");
}

#[test]
fn behaviour_16_a_marker_without_a_value_is_missing_and_never_takes_another_cell() {
    let cover = row(2, &["t:__T_META_TEMPLATE", "t:loads"])
        + &row(3, &["t:__T_META_VERSION", "n:2.1"])
        + &row(4, &["t:__T_META_REGISTRATION", "", "t:R-1"])
        + &row(5, &["t:R-1"])
        + &row(6, &["t:__T_META_ACCREDITATION", "t:ACC-1"]);
    let (assessment, _) =
        Book::new().sheet("Cover", &cover).sheet("Loads", &(headers(1) + &right(2, 7))).assess();

    assert_eq!(told(&assessment.problems), ["REGISTRATION_MISSING B4"]);
    assert_eq!(assessment.problems[0].sentence, "Registration number is missing. Fill it in.");
    assert_eq!(assessment.problems[0].level, 1);
}

#[test]
fn behaviour_16_markers_that_are_twice_or_strange_are_fatal() {
    let loads = headers(1) + &right(2, 1000);
    let first = cover(&["t:loads", "t:2.1", "t:R-1", "t:ACC-1"]);
    let book = Book::new().sheet("Cover", &first).sheet("Loads", &loads).sheet("Copy", &loads);
    let (assessment, _) = book.assess();
    assert_eq!(told(&assessment.problems), ["MARKER_TWICE A1"]);
    assert_eq!(assessment.problems[0].sheet.as_deref(), Some("Copy"));
    assert!(assessment.problems[0].sentence.contains("the first is in A1 of Loads"));

    let strange =
        row(9, &["t:__T_META_OTHER", "t:x"]) + &row(10, &["t:__T_META_TEMPLATE", "t:__T_META_VERSION"]);
    let (assessment, _) = Book::new().sheet("Cover", &strange).sheet("Loads", &loads).assess();
    assert_eq!(told(&assessment.problems), ["MARKER_UNKNOWN A9", "MARKER_INSTEAD_OF_VALUE A10"]);
}

#[test]
fn behaviour_17_days_are_days_in_both_calendars_and_nothing_else_is_guessed() {
    let day = |cell: &str, properties: &str| {
        let mut book = Book::of_loads(&[load(2, &["n:1000", cell, "", "", "n:1"])]);
        book.workbook_properties = properties.into();
        let (assessment, rows) = book.assess();
        (told(&assessment.problems), rows.first().and_then(|row| value(row, "DAY")))
    };
    let right = |text: &str| (vec![], Some(text.to_owned()));
    assert_eq!(day("d:46112", ""), right("2026-03-31"));
    assert_eq!(day("d:46112.9999", ""), right("2026-03-31"));
    assert_eq!(day("D:46112", ""), right("2026-03-31"));
    assert_eq!(day("d:44650", "<workbookPr date1904=\"1\"/>"), right("2026-03-31"));
    assert_eq!(day("t:2026-03-31", ""), right("2026-03-31"));
    assert_eq!(day("x:t=\"d\"><v>2026-03-31T00:00:00Z</v>", ""), right("2026-03-31"));
    for cell in [
        "n:46112",
        "t:31/03/2026",
        "t:2026-02-30",
        "d:60",
        "d:1",
        "d:-5",
        "d:0.5",
        "d:9999999",
        "b:1",
        "x:s=\"3\"><v>0.5</v>",
    ] {
        assert_eq!(day(cell, ""), (vec!["MUST_BE_A_DATE D2".to_owned()], None), "{cell}");
    }
    assert_eq!(day("d:43830", "").0, ["TOO_EARLY D2"]);
    assert_eq!(day("t:2026-11-18", "").0, ["TOO_LATE D2"]);
    assert_eq!(day("t:2026-11-17", ""), right("2026-11-17"));
}

#[test]
fn behaviour_17_decimals_are_exact_and_rounded_to_their_column() {
    let gross = |cell: &str| {
        let (assessment, rows) = Book::of_loads(&[load(2, &["n:1000", "d:46092", "", "", cell])]).assess();
        (told(&assessment.problems), rows.first().and_then(|row| value(row, "GROSS")))
    };
    for (cell, text) in [
        ("n:0.30000000000000004", "0.3"),
        ("n:1.0005", "1.001"),
        ("n:1.00049999999999994", "1.001"),
        ("n:5E-4", "0.001"),
        ("n:12.50", "12.5"),
        ("t: 12.5 ", "12.5"),
        ("t:87.5 %", "0.875"),
        ("p:0.875", "0.875"),
        ("n:0", "0"),
    ] {
        assert_eq!(gross(cell), (vec![], Some(text.to_owned())), "{cell}");
    }
    for cell in ["t:1,020", "t:1.020,5", "t:12 t", "t:1e3", "b:1", "d:46092", "n:nonsense", "n:1E+90"] {
        assert_eq!(gross(cell), (vec!["MUST_BE_A_NUMBER G2".to_owned()], None), "{cell}");
    }
    assert_eq!(gross("n:-0.001").0, ["TOO_SMALL G2"]);
    assert_eq!(gross("n:1000.001").0, ["TOO_LARGE G2"]);
    assert_eq!(gross("n:1000.0004"), (vec![], Some("1000".into())));
}

#[test]
fn behaviour_17_each_row_is_rounded_and_then_they_are_added() {
    let line = |n: u32| {
        load(n, &[&format!("n:{}", 1000 + n), "d:46092", "", "", "n:1.005", "n:0", "n:1.005", "n:1"])
    };
    let (assessment, rows) = Book::of_loads(&[line(2), line(3), line(4)]).assess();

    assert_eq!(rows[0].measure.as_deref(), Some("1.01"));
    assert_eq!(assessment.tables[0].totals.measure.map(|sum| sum.to_string()).as_deref(), Some("3.03"));
}

#[test]
fn behaviour_18_blank_is_one_value_however_it_is_written() {
    let with = |cells: &[&str]| {
        let (assessment, rows) = Book::of_loads(&[load(2, cells)]).assess();
        assert_eq!(assessment.problems, [], "{cells:?}");
        rows[0].hash()
    };
    let short = with(&["n:1000", "d:46092", "", "", "n:1"]);
    for blank in ["", "t:", "t:   ", "t:\u{A0}", "g:", "style:"] {
        assert_eq!(
            with(&["n:1000", "d:46092", blank, blank, "n:1", blank, blank, blank, blank, blank]),
            short,
            "{blank:?}"
        );
    }
    assert_eq!(with(&["n:1000.0", "t:2026-03-11", "t: Choose option ", "t:Choose option", "t:1.000"]), short);
    let placeholder_in_text =
        Book::of_loads(&[load(2, &["n:1000", "d:46092", "", "", "n:1", "", "", "", "t:Choose option"])]);
    assert_eq!(value(&placeholder_in_text.assess().1[0], "NOTE").as_deref(), Some("Choose option"));
}

#[test]
fn behaviour_18_reading_twice_gives_the_same_rows() {
    let book = Book::of_loads(&(2..200).map(|n| right(n, 1000 + n)).collect::<Vec<_>>());
    assert_eq!(book.assess(), book.assess());
}

#[test]
fn behaviour_20_a_flood_of_problems_is_counted_exactly_and_kept_short() {
    let line = |n: u32| load(n, &[&format!("n:{}", 1000 + n), "t:yesterday", "t:99", "t:maybe", "n:1"]);
    let mut rows: Vec<String> = (2..15_002).map(line).collect();
    rows.push(load(15_002, &["n:99999", "", "", "", "n:1"]));
    let (assessment, staged) = Book::of_loads(&rows).assess();

    assert_eq!((assessment.fatal, assessment.errors), (45_000, 1));
    assert_eq!(assessment.by_code[code::MUST_BE_A_DATE], 15_000);
    assert_eq!(assessment.problems.len(), 100);
    assert!(assessment.problems.iter().all(|problem| problem.severity == Severity::Fatal));
    assert_eq!(staged.len(), 1);
}

#[test]
fn fatal_problems_come_first_and_the_rest_is_not_pushed_out_of_the_counts() {
    let mut rows: Vec<String> =
        (2..102).map(|n| load(n, &[&format!("n:{}", 1000 + n), "", "", "", "n:1"])).collect();
    rows.push(load(200, &["n:5000", "d:46092", "", "", "n:-1"]));
    let (assessment, staged) = Book::of_loads(&rows).assess();

    assert_eq!(told(&assessment.problems)[..2], ["TOO_SMALL G200", "VALUE_NEEDED D2"]);
    assert_eq!((assessment.fatal, assessment.errors, assessment.problems.len()), (1, 100, 100));
    assert_eq!(staged[0].reason.as_deref(), Some("INCOMPLETE"));
    assert_eq!(assessment.problems[1].sentence, "Day is empty, so load 1002 does not count.");
}

#[test]
fn a_wrong_cover_hides_what_only_follows_from_it() {
    let loads = headers(1) + &load(2, &["t:x"]);
    let wrong = cover(&["t:other", "t:1.0", "t: r-1 ", "t:ACC-9"]);
    let (assessment, _) = Book::new().sheet("Loads", &loads).sheet("Cover", &wrong).assess();

    assert_eq!(
        told(&assessment.problems),
        ["TEMPLATE_WRONG B2", "VERSION_WRONG B3", "ACCREDITATION_WRONG B5"]
    );
    assert_eq!(assessment.problems[1].sentence, "VERSION is \"1.0\" and should be 2.0 or 2.1.");
    assert_eq!(assessment.fatal, 3);
    let (assessment, _) =
        Book::new().sheet("Loads", &loads).sheet("Cover", &cover(&["t:loads", "t:two"])).assess();
    assert_eq!(
        told(&assessment.problems),
        ["VERSION_MALFORMED B3", "REGISTRATION_MISSING -", "ACCREDITATION_MISSING -"]
    );
}

#[test]
fn a_missing_table_is_told_with_the_sheet_it_should_be_on() {
    let (assessment, _) =
        Book::new().sheet("Cover", &cover(&["t:loads", "t:2.1", "t:R-1", "t:ACC-1"])).assess();

    assert_eq!(told(&assessment.problems), ["TABLE_MISSING -"]);
    assert_eq!(assessment.problems[0].sheet.as_deref(), Some("Loads"));
}

#[test]
fn outcomes_follow_the_first_rule_that_holds() {
    let rows = [
        load(2, &["n:1000", "t:2025-12-31", "", "t:Yes", "n:1"]),
        load(3, &["n:1001", "d:46092", "", "b:1", "n:1"]),
        load(4, &["n:1002", "", "", "t:yes", "n:1"]),
        load(5, &["n:1003", "d:46092", "t:170201", "t:NO", "n:1"]),
    ];
    let (assessment, rows) = Book::of_loads(&rows).assess();

    let outcomes: Vec<_> = rows.iter().map(|row| (&*row.outcome, row.reason.as_deref())).collect();
    assert_eq!(
        outcomes,
        [
            ("ignored", Some("OUTSIDE")),
            ("excluded", Some("CLAIMED")),
            ("excluded", Some("INCOMPLETE")),
            ("included", None)
        ]
    );
    assert!(assessment.is_valid());
    let totals = &assessment.tables[0].totals;
    assert_eq!((totals.included, totals.excluded, totals.ignored), (1, 2, 1));
}

#[test]
fn a_choice_may_be_a_number_and_a_text_may_not_unless_the_column_says_so() {
    let (assessment, rows) = Book::of_loads(&[load(
        2,
        &["n:1000", "d:46092", "n:170201", "", "n:1", "", "", "", "n:5", "n:1234"],
    )])
    .assess();
    assert_eq!(told(&assessment.problems), ["MUST_BE_TEXT K2"]);
    assert_eq!(rows, []);
    let (_, rows) = Book::of_loads(&[load(
        2,
        &["n:1000", "d:46092", "t:15  01 02", "", "n:1", "", "", "", "", "n:1234"],
    )])
    .assess();
    assert_eq!(
        (value(&rows[0], "CODE").as_deref(), value(&rows[0], "PHONE").as_deref()),
        (Some("15 01 02"), Some("1234"))
    );
}

#[test]
fn shared_and_rich_texts_are_read_wherever_they_stand_in_the_archive() {
    let mut book =
        Book::of_loads(&[load(2, &["n:1000", "d:46092", "s:0", "s:2", "n:1", "", "", "", "s:1", "s:3"])]);
    book.strings = Some(
        "<si><t>15 01 01</t></si><si><r><rPr><b/></rPr><t>bold</t></r><r><t xml:space=\"preserve\"> &amp; plain</t></r><rPh><t>no</t></rPh></si><si/><si><t><![CDATA[<x>]]>_x0041_</t></si>".into(),
    );
    let (assessment, rows) = book.assess();

    assert_eq!(assessment.problems, []);
    assert_eq!(value(&rows[0], "NOTE").as_deref(), Some("bold & plain"));
    assert_eq!((value(&rows[0], "CLAIMED"), value(&rows[0], "PHONE").as_deref()), (None, Some("<x>A")));
}

#[test]
fn tables_stand_below_and_beside_each_other() {
    let beside = |n: u32, cells: &[&str]| {
        let text = row(n, &[&[""; 20][..], cells].concat());
        text.replace(&format!("<row r=\"{n}\">"), "").replace("</row>", "")
    };
    let joined = |row: String, more: String| row.replace("</row>", &(more + "</row>"));
    let sheet = joined(headers(3), beside(3, &["t:__T_TABLE_OUT", "t:SITE", "t:ID", "t:TONNES"]))
        + &joined(right(4, 1000), beside(4, &["", "t:x", "n:1", "n:2"]))
        + &format!("<row r=\"5\">{}</row>", beside(5, &["", "t:x", "n:2", "n:2"]))
        + &row(9, &["t:__T_META_TEMPLATE", "t:loads"])
        + &row(10, &["t:__T_META_VERSION", "t:2.0"])
        + &row(11, &["t:__T_META_REGISTRATION", "t:R-1"])
        + &row(12, &["t:__T_META_ACCREDITATION", "t:ACC-1"]);
    let (assessment, rows) = Book::new().sheet("All", &sheet).assess();

    assert_eq!(assessment.problems, []);
    let identities: Vec<_> = rows.iter().map(|row| (&*row.kind, row.key.as_str())).collect();
    assert_eq!(identities, [("load", "1000"), ("out", "x|1"), ("out", "x|2")]);
}

#[test]
fn a_severity_of_the_template_decides_what_a_problem_does() {
    let text = include_str!("loads.toml").to_owned()
        + "\n[issue.TOO_LARGE]\nseverity = \"warning\"\n[issue.MUST_BE_CHOSEN]\nseverity = \"error\"\n";
    let template = sheets::Template::parse(&text).unwrap();
    let rows = [
        load(2, &["n:1000", "d:46092", "", "", "n:2000"]),
        load(3, &["n:1001", "d:46092", "t:99", "", "n:1"]),
    ];
    let (assessment, rows) = Book::of_loads(&rows).assess_by(&template);

    assert!(assessment.is_valid());
    assert_eq!((assessment.warnings, assessment.errors), (1, 1));
    assert_eq!((&*rows[0].outcome, value(&rows[0], "GROSS").as_deref()), ("included", Some("2000")));
    assert_eq!((&*rows[1].outcome, rows[1].reason.as_deref()), ("excluded", Some("MUST_BE_CHOSEN")));
    assert_eq!(value(&rows[1], "CODE").as_deref(), Some("99"));
}

#[test]
fn a_long_value_is_cut_where_it_is_shown() {
    let long = format!("t:{}", "é".repeat(400));
    let (assessment, _) =
        Book::of_loads(&[load(2, &["n:1000", "d:46092", "", "", "n:1", "", "", "", &long])]).assess();

    assert_eq!(told(&assessment.problems), ["TOO_LONG K2"]);
    assert_eq!(assessment.problems[0].value.as_ref().map(|value| value.chars().count()), Some(201));
    assert_eq!(template().limits.value_chars, 200);
}
