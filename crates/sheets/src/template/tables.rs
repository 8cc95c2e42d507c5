//! Tables of a template: `[[table]]`, with their rules, outcomes and measure.

use super::walk::Walk;
use super::{
    Column, ColumnKind, Duplicates, Issue, Measure, MissingColumns, Outcome, Outcomes, Presence, Removed,
    Rule, SkipRow, Table, Template, UnknownColumns, catalogue, check, columns,
};
use crate::expressions::{Expression, Kind};
use crate::{Decimal, SCALE_MAX};

pub(super) fn read(walk: Walk<'_>, template: &Template) -> Table {
    let name = walk.needed_text("name");
    check::name(&walk, &name);
    let columns: Vec<Column> =
        walk.children("column").into_iter().map(|column| columns::read(column, template)).collect();
    if columns.is_empty() {
        walk.note("column", "is needed: a table has columns");
    }
    let sheet = walk.text("sheet").unwrap_or_else(|| name.clone());
    if sheet.chars().count() > 31
        || sheet.contains(['[', ']', ':', '*', '?', '/', '\\'])
        || sheet.starts_with('\'')
    {
        walk.note("sheet", "must be a name for a sheet: at most 31 characters, none of [ ] : * ? / \\");
    }
    if sheet.eq_ignore_ascii_case("Lists") {
        walk.note("sheet", "is where the lists of choices go; take another name");
    }
    let table = Table {
        label: walk.text("label").unwrap_or_else(|| sheet.clone()),
        sheet,
        kind: walk.needed_text("record_kind"),
        presence: walk.word("presence", Presence::ALL).unwrap_or(Presence::Required),
        unknown_columns: walk.word("unknown_columns", UnknownColumns::ALL).unwrap_or(UnknownColumns::Keep),
        missing_columns: walk.word("missing_columns", MissingColumns::ALL).unwrap_or(MissingColumns::Fatal),
        skip_rows: skip_rows(&walk, &columns),
        unused_when_blank: indexes(&walk, "unused_when_blank", &columns),
        removed: walk.word("removed_row", Removed::ALL).unwrap_or(Removed::Fatal),
        duplicates: walk.word("duplicate_key", Duplicates::ALL).unwrap_or(Duplicates::Fatal),
        key: key(&walk, &columns),
        rules: rules(&walk, &columns, template),
        outcomes: outcomes(&walk, &columns, template),
        measure: measure(&walk, &columns),
        name,
        columns,
    };
    for (index, column) in table.columns.iter().enumerate() {
        if column.is_derived && !table.rules.iter().any(|rule| rule.blame == index) {
            walk.note(
                "rule",
                format!("is needed that blames {}: it is derived, and nothing compares it", column.name),
            );
        }
    }
    walk.finish();
    table
}

/// A column by its name.
fn index(walk: &Walk<'_>, key: &'static str, (name, columns): (&str, &[Column])) -> Option<usize> {
    let found = columns.iter().position(|column| column.name == name);
    if found.is_none() {
        walk.note(key, format!("names \"{name}\", which is no column of the table"));
    }
    found
}

fn indexes(walk: &Walk<'_>, key: &'static str, columns: &[Column]) -> Vec<usize> {
    walk.texts(key).iter().filter_map(|name| index(walk, key, (name, columns))).collect()
}

fn key(walk: &Walk<'_>, columns: &[Column]) -> Vec<usize> {
    if !walk.has("key") {
        walk.note("key", "is needed: the column, or the columns, that tell one row from another");
    }
    let key = indexes(walk, "key", columns);
    for column in key.iter().filter_map(|index| columns.get(*index)) {
        if matches!(column.kind, ColumnKind::Decimal { .. }) {
            walk.note("key", format!("has {}, a decimal; use an integer, a text or a date", column.name));
        }
        if column.is_personal {
            walk.note(
                "key",
                format!("has {}, which is personal data and could never be erased", column.name),
            );
        }
    }
    key
}

fn skip_rows(walk: &Walk<'_>, columns: &[Column]) -> Vec<SkipRow> {
    let mut rules = Vec::new();
    for rule in walk.children("skip_rows") {
        let name = rule.needed_text("column");
        let column = (name != "SKIP").then(|| index(&rule, "column", (&name, columns))).flatten();
        let (equals, starts_with) = (rule.text("equals"), rule.text("starts_with"));
        if equals.is_some() == starts_with.is_some() {
            rule.note("equals", "or `starts_with` is needed, one of the two");
        }
        let is_prefix = starts_with.is_some();
        let text = equals.or(starts_with).unwrap_or_default();
        if text.trim().is_empty() {
            rule.note(if is_prefix { "starts_with" } else { "equals" }, "is empty, and would skip every row");
        }
        rule.finish();
        rules.push(SkipRow { column, text, is_prefix });
    }
    rules
}

fn rules(walk: &Walk<'_>, columns: &[Column], template: &Template) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for rule in walk.children("rule") {
        let id = rule.needed_text("id");
        let expect = expression(&rule, ("expect", Kind::Flag), columns);
        let tolerance = rule.decimal("tolerance").unwrap_or(Decimal::ZERO);
        if tolerance < Decimal::ZERO {
            rule.note("tolerance", "is less than 0");
        }
        let blamed = rule.needed_text("blame");
        let blame = (!blamed.is_empty()).then(|| index(&rule, "blame", (&blamed, columns))).flatten();
        let code = rule.needed_text("code");
        if !code.is_empty() {
            own_code(&rule, &code, template);
        }
        if rules.iter().any(|earlier| earlier.code == code || earlier.id == id) {
            rule.note("code", "and `id` must differ from those of the other rules of the table");
        }
        if let Some((expect, blame)) = expect.zip(blame) {
            rules.push(Rule { id, expect, tolerance, blame, code });
        }
        rule.finish();
    }
    rules
}

/// A code of the template's own rules: it has a sentence, and none of ours means something else.
fn own_code(walk: &Walk<'_>, code: &str, template: &Template) -> Option<Issue> {
    if catalogue::is_built_in(code) {
        walk.note("code", format!("is {code}, which has a meaning already"));
    }
    let issue = template.issues.get(code).cloned();
    if issue.is_none() {
        walk.note("code", format!("is {code}, which has no sentence: add [issue.{code}] with text = \"…\""));
    }
    issue
}

fn outcomes(walk: &Walk<'_>, columns: &[Column], template: &Template) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let walks = walk.children("outcome");
    let count = walks.len();
    for (at, outcome) in walks.into_iter().enumerate() {
        let when = expression(&outcome, ("when", Kind::Flag), columns);
        let is_last = at + 1 == count;
        let is_always = when.as_ref().is_some_and(Expression::is_always);
        if when.is_some() && is_last && !is_always {
            outcome.note("when", "of the last outcome must be \"true\", so that every row has one");
        }
        if is_always && !is_last {
            outcome.note("when", "is always true, so the outcomes behind it are never reached");
        }
        if !outcome.has("outcome") {
            outcome.note("outcome", "is needed: included, excluded or ignored");
        }
        let word = outcome.word("outcome", Outcomes::ALL).unwrap_or(Outcomes::Included);
        let reason = outcome.text("reason");
        if word != Outcomes::Included && reason.is_none() {
            outcome.note("reason", "is needed: why the row does not count");
        }
        let code = outcome.text("code");
        if let Some(code) = &code {
            own_code(&outcome, code, template);
        }
        let blame = outcome.text("blame").and_then(|name| index(&outcome, "blame", (&name, columns)));
        outcome.finish();
        outcomes.extend(when.map(|when| Outcome { when, outcome: word, reason, code, blame }));
    }
    outcomes
}

fn measure(walk: &Walk<'_>, columns: &[Column]) -> Option<Measure> {
    if !walk.has("measure") {
        return None;
    }
    let measure = walk.child("measure");
    let name = measure.needed_text("name");
    let value = expression(&measure, ("value", Kind::Number), columns);
    let scale = measure.count("scale", 0..u64::from(SCALE_MAX) + 1).unwrap_or(2);
    measure.finish();
    Some(Measure { name, value: value?, scale: u8::try_from(scale).unwrap_or(2) })
}

fn expression(walk: &Walk<'_>, (key, kind): (&'static str, Kind), columns: &[Column]) -> Option<Expression> {
    let text = walk.needed_text(key);
    if text.is_empty() {
        return None;
    }
    Expression::parse(&text, kind, columns).map_err(|fault| walk.note(key, fault)).ok()
}
