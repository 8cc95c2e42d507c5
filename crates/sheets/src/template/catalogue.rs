//! Everything we find wrong by ourselves, with its code, how bad it is, and the sentence for people.
//!
//! A template changes sentences and severities with `[issue.CODE]`, and adds the codes of its own rules in the same way. A code never
//! changes its meaning.

use std::collections::BTreeMap;

use model::submissions::Severity;

use super::Issue;
use super::telling::FILLED;
use super::walk::Walk;

macro_rules! codes {
    ($($name:ident = $severity:ident, $fixed:literal, $text:literal;)+) => {
        /// The codes of problems that need no rule of a template.
        pub mod code {
            $(#[doc = $text] pub const $name: &str = stringify!($name);)+
        }

        /// Code, severity, whether the severity is fixed, sentence.
        const BUILT_IN: &[(&str, Severity, bool, &str)] = &[$((stringify!($name), Severity::$severity, $fixed, $text)),+];
    };
}

codes! {
    FILE_NOT_A_WORKBOOK = Fatal, true, "This is no workbook: {detail}. Save it as an Excel workbook (.xlsx) and upload it again.";
    FILE_PROTECTED = Fatal, true, "The file is protected with a password, or it is an old .xls file. Save it without a password as an Excel workbook (.xlsx) and upload it again.";
    FILE_HAS_MACROS = Fatal, true, "The workbook contains macros. Save it as an Excel workbook without macros (.xlsx) and upload it again.";
    FILE_BROKEN = Fatal, true, "The file is damaged: {detail}. Open it in your spreadsheet program, save it under a new name and upload that.";
    FILE_TOO_LARGE = Fatal, true, "The file is too large: {detail}.";
    MARKER_TWICE = Fatal, true, "The hidden marker {value} is there a second time; the first is in {detail}. Begin with a fresh copy of the workbook.";
    MARKER_UNKNOWN = Fatal, false, "The hidden marker {value} does not belong to this kind of workbook. Begin with a fresh copy of the workbook.";
    MARKER_INSTEAD_OF_VALUE = Fatal, true, "There should be a value to the right of the hidden marker {value}, and there is another marker. Begin with a fresh copy of the workbook.";
    TABLE_MISSING = Fatal, true, "The table {detail} is missing. Begin with a fresh copy of the workbook.";
    HEADER_MISSING = Fatal, true, "The column {header} is missing from its table. Begin with a fresh copy of the workbook.";
    HEADER_TWICE = Fatal, true, "The column {header} is there a second time. Delete or rename one of them.";
    HEADER_UNKNOWN = Fatal, false, "The column {header} does not belong to this table. Delete it.";
    TOO_MANY_ROWS = Fatal, true, "The table has more rows than can be submitted at once: {detail}.";
    TOO_MANY_COLUMNS = Fatal, true, "The table has more columns than can be read: {detail}.";
    MERGED_CELLS = Fatal, false, "The cells {value} are merged. Undo the merge and fill in every cell.";
    FORMULA_WITHOUT_RESULT = Fatal, false, "The formula in {cell} has no result. Open the workbook in your spreadsheet program, save it and upload it again.";
    ERROR_VALUE = Fatal, false, "The formula in {cell} ends in an error: {value}. Correct it.";
    ROW_WITHOUT_KEY = Fatal, true, "This row has values and no {header}. Fill it in, or clear the row.";
    KEY_TWICE = Fatal, true, "{header} {value} is there more than once ({detail}). Every row needs its own.";
    ROW_REPEATED = Warning, false, "The row with {header} {value} is there more than once ({detail}) and was taken once.";
    VALUE_REQUIRED = Fatal, false, "{header} is empty. Fill it in.";
    MUST_BE_A_NUMBER = Fatal, false, "{header} must be a number such as 12.5, and here it is \"{value}\". Write it without thousands separators and units.";
    MUST_BE_A_WHOLE_NUMBER = Fatal, false, "{header} must be a whole number such as 1000, and here it is \"{value}\".";
    MUST_BE_A_DATE = Fatal, false, "{header} must be a date, and here it is \"{value}\". Format the cell as a date, or write it like 2026-01-31.";
    MUST_BE_TEXT = Fatal, false, "{header} must be a text, and here it is the number {value}. Format the cell as text and type it again.";
    MUST_BE_YES_OR_NO = Fatal, false, "{header} must be Yes or No, and here it is \"{value}\".";
    MUST_BE_CHOSEN = Fatal, false, "{header} must be one of the list, and here it is \"{value}\". Choose it from the list in the cell.";
    WRONG_PATTERN = Fatal, false, "{header} does not look as it should: \"{value}\".";
    TOO_LONG = Fatal, false, "{header} is too long: {detail}.";
    TOO_SMALL = Fatal, false, "{header} must be at least {detail}, and here it is {value}.";
    TOO_LARGE = Fatal, false, "{header} must be at most {detail}, and here it is {value}.";
    TOO_EARLY = Fatal, false, "{header} must not be before {detail}, and here it is {value}.";
    TOO_LATE = Fatal, false, "{header} must not be after {detail}, and here it is {value}.";
    ROW_REMOVED = Fatal, false, "The row {row_id} of the last submission ({detail}) is not there any more. Put it back.";
    ROWS_SEEM_SHIFTED = Warning, false, "Most rows have changed, and many have the values of another row: {detail}. Were rows inserted, deleted or sorted?";
}

/// Whether a code is one of ours.
pub(super) fn is_built_in(code: &str) -> bool {
    BUILT_IN.iter().any(|(known, ..)| *known == code)
}

/// Our catalogue with what the template changes in it and adds to it.
pub(super) fn read(root: &Walk<'_>) -> BTreeMap<String, Issue> {
    let ours = BUILT_IN.iter().map(|(code, severity, _, text)| {
        ((*code).to_owned(), Issue { severity: *severity, text: (*text).to_owned() })
    });
    let mut issues: BTreeMap<String, Issue> = ours.collect();
    for (code, walk) in root.named_children("issue") {
        let is_code =
            code.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        if !is_code {
            walk.note("", "must be a code of capital letters, digits and _");
        }
        let known = issues.get(&code).cloned();
        let severities = Severity::ALL;
        let severity = walk.word("severity", &severities).or(known.as_ref().map(|known| known.severity));
        let severity = severity.unwrap_or(Severity::Fatal);
        let is_fixed = BUILT_IN.iter().any(|(built_in, _, is_fixed, _)| *built_in == code && *is_fixed);
        if is_fixed && severity != Severity::Fatal {
            walk.note("severity", "must stay \"fatal\": without it rows would be lost or mixed up");
        }
        let text = match known {
            Some(known) => walk.text("text").unwrap_or(known.text),
            None => walk.needed_text("text"),
        };
        for name in asked(&text).filter(|name| !FILLED.contains(name)) {
            walk.note("text", format!("asks for {{{name}}}; known are {{{}}}", FILLED.join("}, {")));
        }
        issues.insert(code, Issue { severity, text });
        walk.finish();
    }
    issues
}

/// The names in braces.
fn asked(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0))
}
