//! The template and the workbooks of the play: small tables, some of a few thousand rows.

use std::collections::BTreeMap;

use bytes::Bytes;

/// What a row says beside its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) site: String,
    /// In its canonical text.
    pub(crate) tonnes: String,
}

/// Rows by key.
pub(crate) type Rows = BTreeMap<String, Row>;

/// What stands where a number should.
const NO_NUMBER: &str = "a lot";

const TEMPLATE: &str = r#"
[template]
id = "{id}"
title = "Loads"
version = "1.0.0"
accepts = ["1.0.0"]
marker_prefix = "__T"
policy = "{policy}"

[[meta]]
name = "VERSION"
type = "version"
required = true
one_of = "template.accepts"

[[meta]]
name = "REGISTRATION"
required = true
equals = "scope.registration.number"

[[table]]
name = "LOADS"
record_kind = "load"
sheet = "Sheet1"
key = "ID"
removed_row = "{removed}"

  [[table.column]]
  name = "ID"
  type = "integer"

  [[table.column]]
  name = "SITE"
  type = "text"
  required = true

  [[table.column]]
  name = "TONNES"
  type = "decimal"
  scale = 3
  min = 0
"#;

/// The text of a template.
pub(crate) fn template(id: &str, (policy, removed): (&str, &str)) -> String {
    TEMPLATE.replace("{id}", id).replace("{policy}", policy).replace("{removed}", removed)
}

/// A workbook. The first `wrong` of its rows have no number where one should be.
pub(crate) fn workbook(registration: &str, rows: &Rows, wrong: usize) -> Bytes {
    let mut all: Vec<Vec<&str>> = vec![
        vec!["__T_META_REGISTRATION", registration],
        vec!["__T_META_VERSION", "1.0.0"],
        vec!["__T_TABLE_LOADS", "ID", "SITE", "TONNES"],
    ];
    all.extend(rows.iter().enumerate().map(|(place, (key, row))| {
        let tonnes = if place < wrong { NO_NUMBER } else { row.tonnes.as_str() };
        vec!["", key.as_str(), row.site.as_str(), tonnes]
    }));
    let all: Vec<&[&str]> = all.iter().map(Vec::as_slice).collect();
    understudy::office::sample_xlsx(&all)
}
