//! Walks through the text of a template and notes everything that is wrong with it.
//!
//! Guarantees: a mistake never ends the walk, so all are found at once; every mistake names its place twice, as a path of names and
//! as a line of the file; a key that nobody asked for is a mistake, too.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Mistake;
use crate::{Decimal, decimal::Artefacts};

/// Mistakes that are listed. A file that is none at all would fill pages.
const MISTAKES_MAX: usize = 200;

/// Everything that is wrong so far.
pub(crate) struct Notes<'a> {
    text: &'a str,
    mistakes: RefCell<Vec<Mistake>>,
}

impl<'a> Notes<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, mistakes: RefCell::default() }
    }

    pub(crate) fn note(&self, place: &str, span: Option<Range<usize>>, what: impl Into<String>) {
        let before = span.and_then(|span| self.text.get(..span.start));
        let line = before.map(|before| before.bytes().filter(|byte| *byte == b'\n').count() + 1);
        let mut mistakes = self.mistakes.borrow_mut();
        if mistakes.len() < MISTAKES_MAX {
            mistakes.push(Mistake { place: place.to_owned(), line, what: what.into() });
        }
    }

    pub(crate) fn into_mistakes(self) -> Vec<Mistake> {
        let mut mistakes = self.mistakes.into_inner();
        mistakes.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
        mistakes
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.mistakes.borrow().is_empty()
    }
}

/// One table of the file.
pub(crate) struct Walk<'a> {
    table: Option<&'a DeTable<'a>>,
    span: Option<Range<usize>>,
    path: String,
    notes: &'a Notes<'a>,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Walk<'a> {
    pub(crate) fn root(table: &'a Spanned<DeTable<'a>>, notes: &'a Notes<'a>) -> Self {
        Self {
            table: Some(table.get_ref()),
            span: Some(table.span()),
            path: String::new(),
            notes,
            asked: RefCell::default(),
        }
    }

    /// Notes something about a value of this table.
    pub(crate) fn note(&self, key: &'static str, what: impl Into<String>) {
        let span = self.peek(key).map(Spanned::span).or_else(|| self.span.clone());
        self.notes.note(&self.place(key), span, what);
    }

    fn place(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            ("", key) => key.to_owned(),
            (path, "") => path.to_owned(),
            (path, key) => format!("{path}.{key}"),
        }
    }

    fn peek(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table?.get(key)
    }

    fn value(&self, key: &'static str) -> Option<&'a DeValue<'a>> {
        self.asked.borrow_mut().insert(key);
        self.peek(key).map(Spanned::get_ref)
    }

    pub(crate) fn has(&self, key: &'static str) -> bool {
        self.value(key).is_some()
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<String> {
        match self.value(key)? {
            DeValue::String(text) => Some(text.to_string()),
            _ => self.wrong(key, "must be a text in quotes"),
        }
    }

    pub(crate) fn needed_text(&self, key: &'static str) -> String {
        let text = self.text(key);
        let is_missing = text.is_none() && self.peek(key).is_none();
        if is_missing || text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            self.note(key, "is needed");
        }
        text.unwrap_or_default()
    }

    pub(crate) fn flag(&self, key: &'static str) -> bool {
        match self.value(key) {
            None => false,
            Some(DeValue::Boolean(flag)) => *flag,
            Some(_) => self.wrong(key, "must be true or false").unwrap_or(false),
        }
    }

    /// A whole number within bounds.
    pub(crate) fn count(&self, key: &'static str, bounds: Range<u64>) -> Option<u64> {
        let number = match self.value(key)? {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if bounds.contains(&number) => Some(number),
            _ => self.wrong(
                key,
                &format!("must be a whole number from {} to {}", bounds.start, bounds.end.saturating_sub(1)),
            ),
        }
    }

    /// A number, exactly as it is written; texts are numbers as well.
    pub(crate) fn decimal(&self, key: &'static str) -> Option<Decimal> {
        let read = |text: &str| Decimal::parse_number(&text.replace('_', ""), Artefacts::None);
        let number = match self.value(key)? {
            DeValue::Integer(number) if number.radix() == 10 => read(number.as_str()),
            DeValue::Float(number) => read(number.as_str()),
            DeValue::String(text) => Decimal::parse(text),
            _ => None,
        };
        number.or_else(|| self.wrong(key, "must be a number"))
    }

    /// A day as a text or as TOML writes it.
    pub(crate) fn day_text(&self, key: &'static str) -> Option<String> {
        match self.value(key)? {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Datetime(day) => Some(day.to_string()),
            _ => self.wrong(key, "must be a day: \"2026-01-31\", \"today\" or \"today+1d\""),
        }
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&self, key: &'static str, words: &[(T, &'static str)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(_, word)| *word == text).map(|(value, _)| *value);
        found.or_else(|| {
            let known: Vec<_> = words.iter().map(|(_, word)| format!("\"{word}\"")).collect();
            self.wrong(key, &format!("is \"{text}\" and must be one of {}", known.join(", ")))
        })
    }

    /// A list of texts. A single text is a list of one.
    pub(crate) fn texts(&self, key: &'static str) -> Vec<String> {
        match self.value(key) {
            None => Vec::new(),
            Some(value) => self.as_texts(key, value),
        }
    }

    fn as_texts(&self, key: &'static str, value: &DeValue<'_>) -> Vec<String> {
        let found = match value {
            DeValue::String(text) => Some(vec![text.to_string()]),
            DeValue::Array(array) => array
                .iter()
                .map(|each| each.get_ref().as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>(),
            _ => None,
        };
        found.or_else(|| self.wrong(key, "must be a list of texts")).unwrap_or_default()
    }

    /// A table of lists, by their names.
    pub(crate) fn lists(&self, key: &'static str) -> Vec<(String, Vec<String>)> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(table) = value.as_table() else {
            self.note(key, "must be a table of lists");
            return Vec::new();
        };
        table
            .iter()
            .map(|(name, list)| (name.get_ref().to_string(), self.as_texts(key, list.get_ref())))
            .collect()
    }

    /// A table inside of this one; an empty one if it is not there.
    pub(crate) fn child(&self, key: &'static str) -> Walk<'a> {
        let table = self.value(key).and_then(|value| match value {
            DeValue::Table(table) => Some(table),
            _ => self.wrong(key, "must be a table"),
        });
        Walk {
            table,
            span: self.peek(key).map(Spanned::span),
            path: self.place(key),
            notes: self.notes,
            asked: RefCell::default(),
        }
    }

    /// The tables below a list `[[key]]`, each named after its own name.
    pub(crate) fn children(&self, key: &'static str) -> Vec<Walk<'a>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(array) = value.as_array() else {
            self.note(key, format!("must be written as [[{}]]", self.place(key)));
            return Vec::new();
        };
        (1..).zip(array.iter()).filter_map(|(number, item)| self.item(key, number, item)).collect()
    }

    fn item(&self, key: &'static str, number: usize, item: &'a Spanned<DeValue<'a>>) -> Option<Walk<'a>> {
        let Some(table) = item.get_ref().as_table() else {
            return self.wrong(key, "must be a list of tables");
        };
        let named = ["name", "id"].iter().find_map(|name| table.get(*name)?.get_ref().as_str());
        let path = match named {
            Some(name) => format!("{}.{name}", self.place(key)),
            None => format!("{}.{number}", self.place(key)),
        };
        let span = Some(item.span());
        Some(Walk { table: Some(table), span, path, notes: self.notes, asked: RefCell::default() })
    }

    /// The tables below a table, by their names.
    pub(crate) fn named_children(&self, key: &'static str) -> Vec<(String, Walk<'a>)> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(table) = value.as_table() else {
            self.note(key, "must be a table of tables");
            return Vec::new();
        };
        let walk = |(name, item): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
            let name: &std::borrow::Cow<'_, str> = name.get_ref();
            let walk = Walk {
                table: item.get_ref().as_table(),
                span: Some(item.span()),
                path: format!("{}.{name}", self.place(key)),
                notes: self.notes,
                asked: RefCell::default(),
            };
            if walk.table.is_none() {
                walk.note("", "must be a table");
            }
            (name.to_string(), walk)
        };
        table.iter().map(walk).collect()
    }

    /// Notes every key that was not asked for.
    pub(crate) fn finish(self) {
        let asked = self.asked.borrow();
        for (key, value) in self.table.iter().flat_map(|table| table.iter()) {
            let key: &str = key.get_ref();
            if !asked.contains(key) {
                let near = asked.iter().find(|known| distance_is_small(known, key));
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                self.notes.note(&self.place(key), Some(value.span()), format!("is not known{hint}"));
            }
        }
    }

    fn wrong<T>(&self, key: &'static str, what: &str) -> Option<T> {
        self.note(key, what);
        None
    }
}

/// Whether two words are the same but for one or two letters.
fn distance_is_small(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().abs_diff(other.len()) > 2 || other.len() > 60 {
        return false;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, mine) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, theirs) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(mine != theirs);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()] <= 2
}
