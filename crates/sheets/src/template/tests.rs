//! What a template may say, and what it may not.

use super::*;

/// A template with as little as possible, and something added to its table.
fn with(column: &str, more: &str) -> Result<Template, Vec<Mistake>> {
    Template::parse(&format!(
        r#"
[template]
id = "small"
title = "Small"
version = "1.0"
[lists]
colours = ["Red", "Green"]
[[meta]]
name = "VERSION"
type = "version"
one_of = "template.accepts"
[[table]]
name = "ROWS"
record_kind = "row"
key = "ID"
[[table.column]]
name = "ID"
type = "integer"
[[table.column]]
name = "COLOUR"
type = "choice"
list = "colours"
[[table.column]]
name = "DAY"
type = "date"
[[table.column]]
name = "VALUE"
{column}
{more}
[issue.MINE]
text = "No."
"#
    ))
}

fn mistakes(column: &str, more: &str) -> Vec<String> {
    let found = with(column, more).map(|_| ()).unwrap_err();
    found.iter().map(|mistake| format!("{} {}", mistake.place, mistake.what)).collect()
}

#[test]
fn the_template_we_ship_is_right() {
    let template = Template::parse(WASTE_RECORDS).unwrap();

    assert_eq!(
        template.tables.iter().map(|table| table.kind.as_str()).collect::<Vec<_>>(),
        ["load-in", "processed", "load-out"]
    );
    assert_eq!(template.version.to_string(), "2.1");
    assert_eq!(template.policy, Policy::OneActive);
}

#[test]
fn all_mistakes_are_named_at_once_with_their_places() {
    let found = mistakes(
        "type = \"decimal\"\nscale = 30\nmin = 5\nmax = 1\nlabl = \"x\"",
        "[[table.rule]]\nid = \"r\"\nexpect = \"VALUE == COLOUR\"\nblame = \"VALU\"\ncode = \"THEIRS\"",
    );

    assert_eq!(
        found,
        [
            "table.ROWS.column.VALUE.scale must be a whole number from 0 to 18",
            "table.ROWS.column.VALUE.min is more than max",
            "table.ROWS.column.VALUE.labl is not known; did you mean `label`?",
            "table.ROWS.rule.r.expect compares a number with a text by `==`",
            "table.ROWS.rule.r.blame names \"VALU\", which is no column of the table",
            "table.ROWS.rule.r.code is THEIRS, which has no sentence: add [issue.THEIRS] with text = \"…\"",
        ]
    );
}

#[test]
fn a_mistake_tells_its_line() {
    let Err(found) = Template::parse("[template]\nid = \"a b\"\ntitle = 3\nversion = \"one\"\n") else {
        panic!("this is no template")
    };

    assert_eq!(found[0].to_string(), "line 1: table is needed: a template has at least one [[table]]");
    assert!(found.iter().any(|each| each.to_string().starts_with("line 2: template.id must be letters")));
    assert!(found.iter().any(|each| each.to_string() == "line 3: template.title must be a text in quotes"));
    assert!(found.iter().any(|each| each.line == Some(4) && each.place == "template.version"));
    let Err(found) = Template::parse("[template\nid = 3") else { panic!("this is no TOML") };
    assert!(found[0].to_string().starts_with("line 1: the file is no TOML"), "{found:?}");
}

#[test]
fn every_kind_of_column_is_checked() {
    for (column, expected) in [
        (
            "",
            "table.ROWS.column.VALUE.type is needed: one of decimal, integer, date, text, choice, yes-no, pattern",
        ),
        (
            "type = \"decimal\"",
            "table.ROWS.column.VALUE.scale is needed: how many digits behind the point count",
        ),
        (
            "type = \"money\"",
            "table.ROWS.column.VALUE.type is \"money\" and must be one of \"decimal\", \"integer\", \"date\", \"text\", \"choice\", \"yes-no\", \"pattern\"",
        ),
        (
            "type = \"integer\"\nmin = 0.5",
            "table.ROWS.column.VALUE.min has more than 0 digits behind the point, so no value can reach it",
        ),
        (
            "type = \"date\"\nmin = \"soon\"",
            "table.ROWS.column.VALUE.min is \"soon\" and must be a day: \"2026-01-31\", \"today\" or \"today+1d\"",
        ),
        (
            "type = \"choice\"\nlist = \"shapes\"",
            "table.ROWS.column.VALUE.list is \"shapes\", and [lists] has no such list",
        ),
        (
            "type = \"text\"\nnormalise = [\"lower\"]",
            "table.ROWS.column.VALUE.normalise has \"lower\"; known are \"trim\", \"collapse-spaces\" and \"upper\"",
        ),
        (
            "type = \"integer\"\nderived = true",
            "table.ROWS.rule is needed that blames VALUE: it is derived, and nothing compares it",
        ),
        ("type = \"text\"\nlabel = \"ID\"", "table has two columns in ROWS that are called \"ID\""),
    ] {
        assert_eq!(mistakes(column, ""), [expected]);
    }
    assert!(
        mistakes("type = \"pattern\"\npattern = \"[\"", "")[0].contains("pattern is no regular expression")
    );
}

#[test]
fn expressions_are_checked_when_they_are_read() {
    for (expect, expected) in [
        ("VALUE", "is a number and must be true or false"),
        ("VALUE == 'x'", "compares a number with a text by `==`"),
        ("COLOUR == 'Blue'", "compares COLOUR with 'Blue', which is none of its choices"),
        ("COLOUR in ['Red', 'Blue']", "compares COLOUR with 'Blue', which is none of its choices"),
        ("COLOUR < 'Red'", "compares a text by `<`; only numbers and days have an order"),
        ("VALUE / 2 > 1", "divides, which would have to round; multiply the other side instead"),
        ("VALUE = 2", "has `=`; equality is written `==`"),
        ("OTHER > 2", "names `OTHER`, which is no column of the table"),
        ("VALUE > 2 and", "ends too early"),
        ("VALUE > 2 VALUE", "goes on with `VALUE` where it should end"),
        ("(VALUE > 2", "lacks `)` before its end"),
        ("any_blank(needed_for('x'))", "asks for needed_for('x'), and no column is"),
        (
            "scope.accreditation.covers(VALUE)",
            "gives a number to scope.accreditation.covers(), which takes a day",
        ),
        (
            "scope.licence.number == 'x'",
            "asks for `scope.licence.number`; known are template.id, scope.organisation.id, scope.organisation.name, scope.registration.id, scope.registration.number, scope.accreditation.number",
        ),
        ("sum(VALUE) > 2", "calls `sum`, which is no function"),
        ("DAY > date('2026-02-30')", "has date('2026-02-30'), which is no day like '2026-01-31'"),
        ("VALUE > 'x", "has a text whose quote `'` is never closed"),
        ("VALUE > 1 # 2", "has `#`, which means nothing here"),
        ("not VALUE", "has a number beside `not`"),
    ] {
        let rule =
            format!("[[table.rule]]\nid = \"r\"\nexpect = \"{expect}\"\nblame = \"VALUE\"\ncode = \"MINE\"");
        assert_eq!(
            mistakes("type = \"integer\"", &rule),
            [format!("table.ROWS.rule.r.expect {expected}")],
            "{expect}"
        );
    }
    let deep = format!("{}VALUE{} > 2", "(".repeat(200), ")".repeat(200));
    let long = vec!["VALUE"; 200].join(" + ") + " > 2";
    for expect in [deep, long] {
        let rule =
            format!("[[table.rule]]\nid = \"r\"\nexpect = \"{expect}\"\nblame = \"VALUE\"\ncode = \"MINE\"");
        assert_eq!(mistakes("type = \"integer\"", &rule), ["table.ROWS.rule.r.expect nests deeper than 60"]);
    }
}

#[test]
fn outcomes_end_with_one_that_always_holds() {
    let outcome = |when: &str| format!("[[table.outcome]]\nwhen = \"{when}\"\noutcome = \"included\"\n");
    assert_eq!(
        mistakes("type = \"integer\"", &outcome("VALUE > 1")),
        ["table.ROWS.outcome.1.when of the last outcome must be \"true\", so that every row has one"]
    );
    assert_eq!(
        mistakes("type = \"integer\"", &(outcome("true") + &outcome("true"))),
        ["table.ROWS.outcome.1.when is always true, so the outcomes behind it are never reached"]
    );
    assert!(with("type = \"integer\"", &(outcome("VALUE > 1") + &outcome("true"))).is_ok());
}

#[test]
fn what_would_lose_rows_cannot_be_switched_off() {
    let found = mistakes("type = \"integer\"", "[issue.KEY_TWICE]\nseverity = \"warning\"");
    assert_eq!(
        found,
        ["issue.KEY_TWICE.severity must stay \"fatal\": without it rows would be lost or mixed up"]
    );
    assert!(with("type = \"integer\"", "[issue.TOO_LARGE]\nseverity = \"warning\"").is_ok());
}

#[test]
fn two_tables_are_two_kinds_on_two_sheets() {
    let again = "[[table]]\nname = \"ROWS\"\nrecord_kind = \"row\"\nkey = [\"A\"]\n[[table.column]]\nname = \"A\"\ntype = \"decimal\"\nscale = 1";
    assert_eq!(
        mistakes("type = \"integer\"", again),
        [
            "table has ROWS twice",
            "table has two tables with the record kind \"row\"; their rows would be mixed up",
            "table has two tables on the sheet \"ROWS\"; give each its own",
            "table.ROWS.key has A, a decimal; use an integer, a text or a date",
        ]
    );
}

#[test]
fn versions_are_compared_number_by_number() {
    let version = |text| Version::parse(text).unwrap();
    assert!(version("2.10") > version("2.9"));
    assert!(version("2") < version("2.0.1"));
    for text in ["", "2.", "a", "1.2.3.4.5", "-1"] {
        assert_eq!(Version::parse(text), None, "{text}");
    }
}

#[test]
fn a_sentence_is_filled_once() {
    let template = with("type = \"integer\"", "").unwrap();
    let place = Place { header: Some("{value}".into()), value: Some("x".repeat(300)), ..Place::default() };
    let problem = template.problem((code::MUST_BE_A_WHOLE_NUMBER, 3), place, "");
    assert!(problem.sentence.starts_with("{value} must be a whole number"));
    assert_eq!(problem.value.map(|value| value.chars().count()), Some(201));
}

#[test]
fn the_template_of_the_how_to_is_right_and_its_list_of_codes_is_whole() {
    let page = include_str!("../../../../docs/how-to/write-a-template.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(Template::parse(example).map(|template| template.id), Ok("loads".to_owned()));
    let ours = with("type = \"integer\"", "").unwrap().issues;
    for code in ours.keys().filter(|code| !code.starts_with("VERSION_") && *code != "MINE") {
        assert!(page.contains(&format!("`{code}`")), "{code} is not on the page");
    }
}
