//! Columns of a table: `[[table.column]]`.

use regex_lite::Regex;

use super::walk::Walk;
use super::{Column, ColumnKind, Template, check};
use crate::reading::typed_text;
use crate::{DayBound, Decimal, SCALE_MAX};

/// The words for the kinds of columns.
const KINDS: [(Word, &str); 7] = [
    (Word::Decimal, "decimal"),
    (Word::Integer, "integer"),
    (Word::Date, "date"),
    (Word::Text, "text"),
    (Word::Choice, "choice"),
    (Word::YesNo, "yes-no"),
    (Word::Pattern, "pattern"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Decimal,
    Integer,
    Date,
    Text,
    Choice,
    YesNo,
    Pattern,
}

pub(super) fn read(walk: Walk<'_>, template: &Template) -> Column {
    let name = walk.needed_text("name");
    check::name(&walk, &name);
    if !walk.has("type") {
        let known: Vec<_> = KINDS.iter().map(|(_, word)| *word).collect();
        walk.note("type", format!("is needed: one of {}", known.join(", ")));
    }
    let word = walk.word("type", &KINDS).unwrap_or(Word::Text);
    let kind = kind(&walk, word, template);
    let normalise = walk.texts("normalise");
    for word in normalise.iter().filter(|word| !["trim", "collapse-spaces", "upper"].contains(&word.as_str()))
    {
        walk.note(
            "normalise",
            format!("has \"{word}\"; known are \"trim\", \"collapse-spaces\" and \"upper\""),
        );
    }
    let coerce = walk.texts("coerce");
    for word in coerce.iter().filter(|word| *word != "number-to-text") {
        walk.note("coerce", format!("has \"{word}\"; known is \"number-to-text\""));
    }
    let blanks: Vec<String> = walk.texts("blanks").iter().map(|text| text.trim().to_owned()).collect();
    if blanks.iter().any(String::is_empty) {
        walk.note("blanks", "has an empty text; empty cells are blank anyway");
    }
    let column = Column {
        label: walk.text("label").unwrap_or_else(|| name.clone()),
        name,
        kind,
        is_required: walk.flag("required"),
        needed_for: walk.texts("needed_for"),
        blanks,
        collapses_spaces: normalise.iter().any(|word| word == "collapse-spaces"),
        is_upper: normalise.iter().any(|word| word == "upper"),
        takes_numbers: !coerce.is_empty(),
        is_derived: walk.flag("derived"),
        is_personal: walk.flag("personal_data"),
        example: walk.text("example"),
    };
    if let Some(code) = column.example.as_ref().and_then(|example| typed_text(example, &column).err()) {
        walk.note("example", format!("is not what the column takes: {code}"));
    }
    walk.finish();
    column
}

fn kind(walk: &Walk<'_>, word: Word, template: &Template) -> ColumnKind {
    match word {
        Word::Decimal => {
            let scale = walk.count("scale", 0..u64::from(SCALE_MAX) + 1);
            if !walk.has("scale") {
                walk.note("scale", "is needed: how many digits behind the point count");
            }
            let scale = u8::try_from(scale.unwrap_or(0)).unwrap_or(0);
            let (min, max) = bounds(walk, scale);
            ColumnKind::Decimal { scale, min, max }
        }
        Word::Integer => {
            let (min, max) = bounds(walk, 0);
            ColumnKind::Integer { min, max }
        }
        Word::Date => date(walk),
        Word::Text => ColumnKind::Text { chars_max: walk.count("max_chars", 1..32_768) },
        Word::Choice => {
            let list = walk.needed_text("list");
            let values = template.lists.get(&list).cloned();
            if values.is_none() && !list.is_empty() {
                walk.note("list", format!("is \"{list}\", and [lists] has no such list"));
            }
            ColumnKind::Choice { list, values: values.unwrap_or_default() }
        }
        Word::YesNo => ColumnKind::YesNo,
        Word::Pattern => pattern(walk),
    }
}

fn bounds(walk: &Walk<'_>, scale: u8) -> (Option<Decimal>, Option<Decimal>) {
    let (min, max) = (walk.decimal("min"), walk.decimal("max"));
    for (key, bound) in [("min", min), ("max", max)] {
        if bound.is_some_and(|bound| bound != bound.round(scale)) {
            walk.note(
                key,
                format!("has more than {scale} digits behind the point, so no value can reach it"),
            );
        }
    }
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        walk.note("min", "is more than max");
    }
    (min, max)
}

fn date(walk: &Walk<'_>) -> ColumnKind {
    let bound = |key| {
        let text = walk.day_text(key)?;
        let bound = DayBound::parse(&text);
        if bound.is_none() {
            walk.note(
                key,
                format!("is \"{text}\" and must be a day: \"2026-01-31\", \"today\" or \"today+1d\""),
            );
        }
        bound
    };
    let (min, max) = (bound("min"), bound("max"));
    if let (Some(DayBound::Day(min)), Some(DayBound::Day(max))) = (min, max)
        && min > max
    {
        walk.note("min", "is after max");
    }
    let accept = walk.texts("accept");
    for word in accept.iter().filter(|word| !["excel-date", "iso"].contains(&word.as_str())) {
        walk.note("accept", format!("has \"{word}\"; known are \"excel-date\" and \"iso\""));
    }
    let takes = |word: &str| accept.is_empty() || accept.iter().any(|each| each == word);
    ColumnKind::Date { min, max, from_cell: takes("excel-date"), from_text: takes("iso") }
}

fn pattern(walk: &Walk<'_>) -> ColumnKind {
    let text = walk.needed_text("pattern");
    let regex = Regex::new(&format!("^(?:{text})$")).or_else(|fault| {
        walk.note("pattern", format!("is no regular expression: {fault}"));
        Regex::new("")
    });
    match regex {
        Ok(regex) => ColumnKind::Pattern { regex: Box::new(regex), text },
        Err(_) => ColumnKind::Text { chars_max: None },
    }
}
