//! From the text of a template to the template.

use std::collections::BTreeMap;

use model::submissions::Policy;
use toml::de::DeTable;

use super::walk::{Notes, Walk};
use super::{Limits, Mistake, PreviewRules, Template, Version, catalogue, check, meta, tables};
use crate::Decimal;

/// Bytes of a template. Lists of some thousand codes fit many times.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) fn parse(text: &str) -> Result<Template, Vec<Mistake>> {
    let notes = Notes::new(text);
    if text.len() > TEXT_BYTES_MAX {
        notes.note("the file", None, "is larger than 4 MiB");
        return Err(notes.into_mistakes());
    }
    let (table, faults) = DeTable::parse_recoverable(text);
    for fault in &faults {
        notes.note("the file", fault.span(), format!("is no TOML: {}", fault.message()));
    }
    if !faults.is_empty() {
        return Err(notes.into_mistakes());
    }
    let template = read(Walk::root(&table, &notes));
    if notes.is_clean() { Ok(template) } else { Err(notes.into_mistakes()) }
}

fn read(root: Walk<'_>) -> Template {
    let head = root.child("template");
    let version = version(&head, "version");
    let marker_prefix = head.text("marker_prefix").unwrap_or_else(|| "__SG".into());
    let is_marker = marker_prefix.len() >= 3
        && marker_prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_marker {
        head.note("marker_prefix", "must be three or more letters, digits or _");
    }
    let id = head.needed_text("id");
    if !id.is_empty() && !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    {
        head.note("id", "must be letters, digits, - and _");
    }
    let issues = catalogue::read(&root);
    let lists = lists(&root);
    let mut template = Template {
        id,
        title: head.needed_text("title"),
        accepts: accepts(&head, &version),
        version,
        marker_prefix,
        policy: head.word("policy", &Policy::ALL).unwrap_or_default(),
        limits: limits(root.child("limits")),
        issues,
        preview: preview(root.child("preview")),
        lists,
        meta: Vec::new(),
        tables: Vec::new(),
    };
    head.finish();
    template.meta =
        root.children("meta").into_iter().map(|walk| meta::read(walk, &mut template.issues)).collect();
    let walks = root.children("table");
    template.tables = walks.into_iter().map(|walk| tables::read(walk, &template)).collect();
    check::check(&root, &template);
    root.finish();
    template
}

fn version(head: &Walk<'_>, key: &'static str) -> Version {
    let text = head.needed_text(key);
    let version = Version::parse(&text);
    if version.is_none() && !text.is_empty() {
        head.note(key, "must be numbers with points between them, such as \"2.1\"");
    }
    version.unwrap_or(Version(vec![0]))
}

fn accepts(head: &Walk<'_>, version: &Version) -> Vec<Version> {
    let mut accepts = Vec::new();
    for text in head.texts("accepts") {
        match Version::parse(&text) {
            Some(version) => accepts.push(version),
            None => head.note("accepts", format!("has \"{text}\", which is no version such as \"2.1\"")),
        }
    }
    if !head.has("accepts") {
        accepts.push(version.clone());
    } else if !accepts.contains(version) {
        head.note("accepts", format!("does not have the template's own version {version}"));
    }
    accepts
}

fn limits(walk: Walk<'_>) -> Limits {
    const MIB: u64 = 1024 * 1024;
    let limits = Limits {
        file_bytes: walk.count("file_bytes", 1..2048 * MIB).unwrap_or(100 * MIB),
        inflated_bytes: walk.count("inflated_bytes", 1..16_384 * MIB).unwrap_or(1024 * MIB),
        inflate_ratio: walk.count("inflate_ratio", 2..1033).unwrap_or(200),
        shared_string_bytes: walk.count("shared_string_bytes", 1..1024 * MIB).unwrap_or(128 * MIB),
        sheets: walk.count("sheets", 1..1001).unwrap_or(50),
        rows_per_table: walk.count("rows_per_table", 1..1_048_576).unwrap_or(100_000),
        columns: walk.count("columns", 1..16_385).unwrap_or(500),
        cell_chars: walk.count("cell_chars", 1..32_768).unwrap_or(2_000),
        problems: walk.count("problems", 1..20_001).unwrap_or(2_000),
        value_chars: walk.count("value_chars", 1..2_001).unwrap_or(200),
    };
    walk.finish();
    limits
}

fn preview(walk: Walk<'_>) -> PreviewRules {
    let half = Decimal::parse("0.5").unwrap_or(Decimal::ZERO);
    let shifted_share = walk.decimal("shifted_share").unwrap_or(half);
    if shifted_share < Decimal::ZERO || shifted_share > Decimal::whole(1) {
        walk.note("shifted_share", "must be from 0 to 1");
    }
    let list_max = walk.count("list_max", 1..10_001).unwrap_or(100);
    walk.finish();
    PreviewRules { list_max, shifted_share }
}

fn lists(root: &Walk<'_>) -> BTreeMap<String, Vec<String>> {
    let lists: BTreeMap<_, _> = root.lists("lists").into_iter().collect();
    for (name, list) in &lists {
        let mut sorted: Vec<_> = list.iter().collect();
        sorted.sort_unstable();
        if list.is_empty() {
            root.note("lists", format!("has an empty list {name}"));
        }
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            root.note("lists", format!("has \"{}\" twice in {name}", twice[0]));
        }
        if list.iter().any(|value| value.trim() != value || value.is_empty()) {
            root.note("lists", format!("has a value in {name} that is empty or begins or ends with a space"));
        }
    }
    lists
}
