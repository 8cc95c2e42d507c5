//! Single values: what they are, and whether they are those of the scope.

use std::collections::BTreeMap;

use jiff::civil::Date;

use super::cells::{RawCell, RawKind, Row};
use super::collector::Collector;
use super::values::Workbook;
use crate::expressions::Facts;
use crate::{Decimal, Meta, MetaKind, Place, ScopeFacts, Template, Version, days};

/// A single value that was found.
#[derive(Debug, Clone)]
pub(crate) struct FoundMeta {
    pub(crate) sheet: String,
    /// The cell of its marker.
    pub(crate) marker: String,
    /// The cell of the value.
    pub(crate) cell: String,
    /// What stands there; empty if nothing does.
    pub(crate) shown: String,
    /// Whether it is a formula without a result, or an error.
    pub(crate) is_unusable: bool,
}

impl FoundMeta {
    pub(crate) fn read(workbook: &Workbook<'_>, (row, cell): (&Row, Option<&RawCell>)) -> (String, bool) {
        let Some(cell) = cell else { return (String::new(), false) };
        let is_unusable = matches!(cell.kind, RawKind::NoResult | RawKind::Error);
        (workbook.shown(row, cell), is_unusable)
    }
}

/// Checks all single values and gives back those that are there.
pub(crate) fn check(
    template: &Template,
    (scope, today): (&ScopeFacts, Date),
    found: &[Option<FoundMeta>],
    problems: &mut Collector<'_>,
) -> BTreeMap<String, String> {
    let facts =
        Facts { cells: &[], scope, template_id: &template.id, today, tolerance: Decimal::ZERO, scale: None };
    let mut values = BTreeMap::new();
    for (meta, found) in template.meta.iter().zip(found) {
        let shown = found.as_ref().map_or("", |found| found.shown.as_str());
        let canonical = canonical(meta, shown);
        let [missing, malformed, mismatch, forbidden] = &meta.codes;
        let holds = |expression: &Option<crate::Expression>| {
            expression.as_ref().is_some_and(|each| each.holds(&facts))
        };
        let is_unusable = found.as_ref().is_some_and(|found| found.is_unusable);
        let fault = if is_unusable || (!shown.is_empty() && canonical.is_none()) {
            Some((malformed, 1, String::new()))
        } else if shown.is_empty() {
            let is_needed = meta.is_required || holds(&meta.required_when);
            is_needed.then(|| (missing, 1, String::new()))
        } else if holds(&meta.forbidden_when) {
            Some((forbidden, 2, String::new()))
        } else {
            let expected = canonical.as_deref().and_then(|value| other_than(meta, value, (template, &facts)));
            expected.map(|expected| (mismatch, 2, expected))
        };
        if let Some((code, level, detail)) = fault {
            problems.add((code, level), || (place(meta, found.as_ref()), detail));
        }
        values.extend(canonical.filter(|value| !value.is_empty()).map(|value| (meta.name.clone(), value)));
    }
    values
}

fn place(meta: &Meta, found: Option<&FoundMeta>) -> Place {
    Place {
        sheet: found.map(|found| found.sheet.clone()),
        cell: found.map(|found| found.cell.clone()),
        header: Some(meta.label.clone()),
        row_id: None,
        value: found.map(|found| found.shown.clone()).filter(|shown| !shown.is_empty()),
    }
}

/// The one text of a value; none if it is not what it should be.
fn canonical(meta: &Meta, shown: &str) -> Option<String> {
    if shown.is_empty() {
        return Some(String::new());
    }
    match meta.kind {
        MetaKind::Text if meta.is_upper => Some(shown.to_uppercase()),
        MetaKind::Text => Some(shown.to_owned()),
        MetaKind::Version => Version::parse(shown).map(|version| version.to_string()),
        MetaKind::Date => days::from_iso(shown).map(|day| day.to_string()),
        MetaKind::Integer => {
            Decimal::parse(shown).filter(|number| number.is_whole()).map(|number| number.to_string())
        }
    }
}

/// What the value should be instead, if it should be something else.
fn other_than(meta: &Meta, value: &str, (template, facts): (&Template, &Facts<'_>)) -> Option<String> {
    let version = Version::parse(value);
    if meta.is_accepted_version && !version.is_some_and(|version| template.accepts.contains(&version)) {
        let accepted: Vec<String> = template.accepts.iter().map(Version::to_string).collect();
        return Some(accepted.join(" or "));
    }
    let expected = meta.equals.as_ref()?.texts(facts);
    let is_equal = expected.iter().any(|text| {
        let text = text.trim();
        text == value || (meta.is_upper && text.to_uppercase() == value)
    });
    (!is_equal && !expected.is_empty()).then(|| expected.join(" or "))
}
