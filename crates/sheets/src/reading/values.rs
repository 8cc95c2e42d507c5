//! From what stands in a cell to a value of its column.
//!
//! Guarantees: nothing is guessed. A number in a column of days, a day in a column of numbers, `31/03/2026` and `1,020` are problems,
//! not values. What is blank is blank in one way only: an absent cell, an empty text, spaces and the column's placeholders.

use std::borrow::Cow;
use std::collections::HashMap;

use jiff::civil::Date;

use super::cells::{RawCell, RawKind, Row};
use super::strings::Strings;
use crate::days::{self, Epoch};
use crate::decimal::Artefacts;
use crate::expressions::Cell;
use crate::template::cut;
use crate::{Column, ColumnKind, Decimal, Template, code};

/// What is needed to read cells of one workbook.
pub(crate) struct Workbook<'a> {
    pub(crate) strings: &'a Strings,
    pub(crate) day_styles: &'a [bool],
    pub(crate) epoch: Epoch,
    pub(crate) today: Date,
    pub(crate) cell_chars: usize,
}

/// A value, and what is wrong with it.
pub(crate) struct Value {
    pub(crate) cell: Cell,
    pub(crate) fault: Option<Wrong>,
}

/// What is wrong with a value.
pub(crate) struct Wrong {
    pub(crate) code: &'static str,
    pub(crate) detail: String,
}

/// What can be chosen in a column, as it is compared and as it is written.
pub(crate) type Choices = HashMap<String, String>;

/// The choices of each column of each table.
pub(crate) fn choices(template: &Template) -> Vec<Vec<Choices>> {
    template.tables.iter().map(|table| table.columns.iter().map(choices_of).collect()).collect()
}

fn choices_of(column: &Column) -> Choices {
    match &column.kind {
        ColumnKind::Choice { values, .. } => {
            values.iter().map(|value| (normalised(value, column).into_owned(), value.clone())).collect()
        }
        _ => Choices::new(),
    }
}

/// What a cell holds before its column is known.
enum Held<'a> {
    Text(&'a str),
    Number(Option<Decimal>),
    Day(Option<Date>),
    Flag(bool),
}

impl Workbook<'_> {
    /// The value of a cell in a column.
    pub(crate) fn value(
        &self,
        (row, cell): (&Row, &RawCell),
        (column, choices): (&Column, &Choices),
    ) -> Value {
        match cell.kind {
            RawKind::NoResult => return wrong(Cell::Wrong(String::new()), code::FORMULA_WITHOUT_RESULT),
            RawKind::Error => return wrong(Cell::Wrong(self.shown(row, cell)), code::ERROR_VALUE),
            _ => {}
        }
        let held = self.held(row, cell);
        if let Held::Text(text) = held {
            if text.is_empty() || column.blanks.iter().any(|blank| blank == text) {
                return Value { cell: Cell::Blank, fault: None };
            }
            if text.len() > self.cell_chars && text.chars().count() > self.cell_chars {
                let detail = format!("more than {} characters", self.cell_chars);
                return Value {
                    cell: Cell::Wrong(cut(text, self.cell_chars)),
                    fault: Some(Wrong { code: code::TOO_LONG, detail }),
                };
            }
        }
        typed(&held, (column, choices), self.today)
            .unwrap_or_else(|code| wrong(Cell::Wrong(self.shown(row, cell)), code))
    }

    fn held<'b>(&'b self, row: &'b Row, cell: &RawCell) -> Held<'b> {
        let text = row.text(cell, self.strings).trim();
        match cell.kind {
            RawKind::Number => {
                let number = Decimal::parse_number(text, Artefacts::Rounded);
                if self.is_day(cell) {
                    Held::Day(number.and_then(|serial| days::from_serial(serial, self.epoch)))
                } else {
                    Held::Number(number)
                }
            }
            RawKind::Day => Held::Day(days::from_iso(text)),
            RawKind::Flag => Held::Flag(text == "1" || text == "true"),
            RawKind::Text | RawKind::Error | RawKind::NoResult => Held::Text(text),
        }
    }

    fn is_day(&self, cell: &RawCell) -> bool {
        let style = usize::try_from(cell.style).unwrap_or(usize::MAX);
        self.day_styles.get(style).copied().unwrap_or(false)
    }

    /// What stands there, for people and for columns the template does not know.
    pub(crate) fn shown(&self, row: &Row, cell: &RawCell) -> String {
        let shown: Cow<'_, str> = match self.held(row, cell) {
            Held::Text(text) => Cow::Borrowed(text),
            Held::Number(Some(number)) => Cow::Owned(number.to_string()),
            Held::Day(Some(day)) => Cow::Owned(day.to_string()),
            Held::Flag(true) => Cow::Borrowed("TRUE"),
            Held::Flag(false) => Cow::Borrowed("FALSE"),
            Held::Number(None) | Held::Day(None) => Cow::Borrowed(row.text(cell, self.strings).trim()),
        };
        cut(&shown, self.cell_chars)
    }
}

/// What something is in a column; a code if it is nothing of the kind.
fn typed(
    held: &Held<'_>,
    (column, choices): (&Column, &Choices),
    today: Date,
) -> Result<Value, &'static str> {
    match &column.kind {
        ColumnKind::Decimal { scale, min, max } => {
            decimal(held, *scale).map(|value| within(value, (*min, *max)))
        }
        ColumnKind::Integer { min, max } => integer(held).map(|value| within(value, (*min, *max))),
        ColumnKind::Date { min, max, from_cell, from_text } => {
            let bounds = (min.map(|bound| bound.on(today)), max.map(|bound| bound.on(today)));
            day(held, (*from_cell, *from_text)).map(|value| between(value, bounds))
        }
        ColumnKind::Text { chars_max } => text(held, column).map(|value| no_longer(value, *chars_max)),
        ColumnKind::Choice { .. } => chosen(held, column, choices).map(Value::right),
        ColumnKind::YesNo => yes_or_no(held).map(Value::right),
        ColumnKind::Pattern { regex, .. } => text(held, column).and_then(|value| match &value {
            Cell::Text(text) if !regex.is_match(text) => Err(code::WRONG_PATTERN),
            _ => Ok(Value::right(value)),
        }),
    }
}

/// What a text is in a column, whatever its bounds.
pub(crate) fn typed_text(text: &str, column: &Column) -> Result<Cell, &'static str> {
    let choices = choices_of(column);
    typed(&Held::Text(text.trim()), (column, &choices), Date::default()).map(|value| value.cell)
}

impl Value {
    fn right(cell: Cell) -> Self {
        Self { cell, fault: None }
    }
}

fn wrong(cell: Cell, code: &'static str) -> Value {
    Value { cell, fault: Some(Wrong { code, detail: String::new() }) }
}

fn decimal(held: &Held<'_>, scale: u8) -> Result<Decimal, &'static str> {
    let number = match held {
        Held::Number(number) => *number,
        Held::Text(text) => match text.strip_suffix('%') {
            Some(hundredfold) => {
                let hundredth = Decimal::parse("0.01").unwrap_or(Decimal::ZERO);
                Decimal::parse(hundredfold.trim_end()).and_then(|number| number.times(hundredth))
            }
            None => Decimal::parse(text),
        },
        Held::Day(_) | Held::Flag(_) => None,
    };
    number.map(|number| number.round(scale)).ok_or(code::MUST_BE_A_NUMBER)
}

fn integer(held: &Held<'_>) -> Result<Decimal, &'static str> {
    let number = match held {
        Held::Number(number) => *number,
        Held::Text(text) => {
            // A zero in front is part of a name and would be lost in a number.
            let digits = text.strip_prefix('-').unwrap_or(text);
            let is_plain = !digits.starts_with('0') || digits == "0" || digits.starts_with("0.");
            Decimal::parse(text).filter(|_| is_plain)
        }
        Held::Day(_) | Held::Flag(_) => None,
    };
    number.filter(|number| number.is_whole()).ok_or(code::MUST_BE_A_WHOLE_NUMBER)
}

fn within(number: Decimal, (min, max): (Option<Decimal>, Option<Decimal>)) -> Value {
    let fault = match (min, max) {
        (Some(min), _) if number < min => Some(Wrong { code: code::TOO_SMALL, detail: min.to_string() }),
        (_, Some(max)) if number > max => Some(Wrong { code: code::TOO_LARGE, detail: max.to_string() }),
        _ => None,
    };
    Value { cell: Cell::Number(number), fault }
}

fn day(held: &Held<'_>, (from_cell, from_text): (bool, bool)) -> Result<Date, &'static str> {
    let day = match held {
        Held::Day(day) if from_cell => *day,
        Held::Text(text) if from_text => days::from_iso(text),
        _ => None,
    };
    day.ok_or(code::MUST_BE_A_DATE)
}

fn between(day: Date, (min, max): (Option<Date>, Option<Date>)) -> Value {
    let fault = match (min, max) {
        (Some(min), _) if day < min => Some(Wrong { code: code::TOO_EARLY, detail: min.to_string() }),
        (_, Some(max)) if day > max => Some(Wrong { code: code::TOO_LATE, detail: max.to_string() }),
        _ => None,
    };
    Value { cell: Cell::Day(day), fault }
}

fn text(held: &Held<'_>, column: &Column) -> Result<Cell, &'static str> {
    let text = match held {
        Held::Text(text) => Cow::Borrowed(*text),
        Held::Number(Some(number)) if column.takes_numbers => Cow::Owned(number.to_string()),
        Held::Day(Some(day)) if column.takes_numbers => Cow::Owned(day.to_string()),
        Held::Flag(flag) if column.takes_numbers => Cow::Borrowed(if *flag { "TRUE" } else { "FALSE" }),
        _ => return Err(code::MUST_BE_TEXT),
    };
    Ok(Cell::Text(normalised(&text, column).into_owned()))
}

fn no_longer(cell: Cell, chars_max: Option<u64>) -> Value {
    let Some(chars_max) = chars_max else { return Value::right(cell) };
    let chars = match &cell {
        Cell::Text(text) => text.chars().count() as u64,
        _ => 0,
    };
    let fault = (chars > chars_max).then(|| Wrong {
        code: code::TOO_LONG,
        detail: format!("{chars} characters, and at most {chars_max} are taken"),
    });
    Value { cell, fault }
}

fn chosen(held: &Held<'_>, column: &Column, choices: &Choices) -> Result<Cell, &'static str> {
    let text = match held {
        Held::Text(text) => Cow::Borrowed(*text),
        Held::Number(Some(number)) => Cow::Owned(number.to_string()),
        _ => return Err(code::MUST_BE_CHOSEN),
    };
    let found = choices.get(normalised(&text, column).as_ref());
    found.map(|value| Cell::Text(value.clone())).ok_or(code::MUST_BE_CHOSEN)
}

fn yes_or_no(held: &Held<'_>) -> Result<Cell, &'static str> {
    let is_yes = match held {
        Held::Flag(flag) => *flag,
        Held::Text(text) if text.eq_ignore_ascii_case("yes") => true,
        Held::Text(text) if text.eq_ignore_ascii_case("no") => false,
        _ => return Err(code::MUST_BE_YES_OR_NO),
    };
    Ok(Cell::Text(if is_yes { "Yes".into() } else { "No".into() }))
}

/// A text as its column wants it.
fn normalised<'a>(text: &'a str, column: &Column) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    if column.collapses_spaces && text.split_whitespace().count() > 1 {
        text = Cow::Owned(text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if column.is_upper && text.chars().any(char::is_lowercase) {
        text = Cow::Owned(text.to_uppercase());
    }
    text
}
