//! What must hold between the parts of a template.

use std::collections::BTreeMap;

use super::walk::Walk;
use super::{MetaKind, Template};

/// Names that mean something else in expressions.
const RESERVED: [&str; 9] = ["true", "false", "today", "and", "or", "not", "in", "needed_for", "SKIP"];

/// A name for a column, a table or a single value.
pub(super) fn name(walk: &Walk<'_>, name: &str) {
    if name.is_empty() {
        return;
    }
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.len() <= 60
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        walk.note(
            "name",
            format!("is \"{name}\" and must be letters, digits and _, beginning with a letter"),
        );
    }
    if RESERVED.contains(&name) {
        walk.note("name", format!("is \"{name}\", which means something else in rules"));
    }
}

pub(super) fn check(root: &Walk<'_>, template: &Template) {
    if template.tables.is_empty() {
        root.note("table", "is needed: a template has at least one [[table]]");
    }
    twice(template.meta.iter().map(|meta| meta.name.as_str()), |name| {
        root.note("meta", format!("has {name} twice"));
    });
    twice(template.tables.iter().map(|table| table.name.as_str()), |name| {
        root.note("table", format!("has {name} twice"));
    });
    twice(template.tables.iter().map(|table| table.kind.as_str()), |kind| {
        root.note(
            "table",
            format!("has two tables with the record kind \"{kind}\"; their rows would be mixed up"),
        );
    });
    twice(template.tables.iter().map(|table| table.sheet.as_str()), |sheet| {
        root.note("table", format!("has two tables on the sheet \"{sheet}\"; give each its own"));
    });
    for table in &template.tables {
        let headers = table.columns.iter().flat_map(|column| {
            let label = (column.label != column.name).then_some(column.label.as_str());
            [Some(column.name.as_str()), label].into_iter().flatten()
        });
        twice(headers, |header| {
            root.note("table", format!("has two columns in {} that are called \"{header}\"", table.name));
        });
        if table.columns.len() as u64 > template.limits.columns {
            root.note("limits", format!("allows fewer columns than {} has", table.name));
        }
    }
    let tells_version =
        template.meta.iter().any(|meta| meta.kind == MetaKind::Version && meta.is_accepted_version);
    if !tells_version {
        root.note("meta", "needs one with type = \"version\" and one_of = \"template.accepts\": which version a workbook is");
    }
}

fn twice<'a>(names: impl Iterator<Item = &'a str>, mut found: impl FnMut(&str)) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        let count = counts.entry(name).or_default();
        *count += 1;
        if *count == 2 {
            found(name);
        }
    }
}
