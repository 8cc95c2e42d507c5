//! How a problem is told: where it is, what stands there, and the sentence of the catalogue, filled in.
//!
//! Guarantees: a value that looks like a name in braces stays as it is; no more of a value is shown than the template allows.

use model::submissions::{Problem, Severity};

use super::Template;

/// Where a problem is, in the words of a workbook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The sheet.
    pub sheet: Option<String>,
    /// The cell: `D14`.
    pub cell: Option<String>,
    /// The header or the name of the meta value.
    pub header: Option<String>,
    /// The row's id.
    pub row_id: Option<String>,
    /// What stands there.
    pub value: Option<String>,
}

impl Template {
    /// A problem from the catalogue. `detail` fills the text's `{detail}`; a code that is not in the catalogue is fatal.
    pub fn problem(&self, (code, level): (&str, u8), place: Place, detail: &str) -> Problem {
        let issue = self.issues.get(code);
        let severity = issue.map_or(Severity::Fatal, |issue| issue.severity);
        let text = issue.map_or(detail, |issue| issue.text.as_str());
        let chars = usize::try_from(self.limits.value_chars).unwrap_or(usize::MAX);
        let value = place.value.map(|value| cut(&value, chars));
        let filled = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let sentence = fill(
            text,
            &[
                ("header", filled(place.header.as_deref())),
                ("value", filled(value.as_deref())),
                ("cell", filled(place.cell.as_deref())),
                ("row_id", filled(place.row_id.as_deref())),
                ("detail", detail.to_owned()),
            ],
        );
        Problem {
            code: code.to_owned(),
            severity,
            level,
            sheet: place.sheet,
            cell: place.cell,
            header: place.header,
            row_id: place.row_id,
            value,
            sentence,
        }
    }
}

/// The first characters of a text, with a sign that there were more.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Fills `{name}` in a text, in one pass: a value that looks like a name stays as it is.
fn fill(text: &str, names: &[(&str, String)]) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let known = after.split_once('}').and_then(|(name, behind)| {
            names.iter().find(|(known, _)| *known == name).map(|(_, value)| (value, behind))
        });
        match known {
            Some((value, behind)) => {
                out.push_str(value);
                rest = behind;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The names that a text of the catalogue may ask for.
pub(super) const FILLED: [&str; 5] = ["header", "value", "cell", "row_id", "detail"];
