//! Edits: what a change of our own editor, client or load driver says.
//!
//! The real editor sends opaque binary strings in the same place; those are kept but have no effect on the text.
//! This is the one point where the payload differs from the real protocol.
//!
//! Guarantees: applying is total: an edit that points to nothing does something harmless. Paragraphs are named,
//! not counted, so edits of two people do not shift each other; the last one to set a text wins.
//!
//! Does not merge within a paragraph or cell.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::machine::Change;

/// One edit with its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub id: String,
    #[serde(flatten)]
    pub kind: EditKind,
}

/// What an edit does. `p` names a paragraph: `p<n>` for the n-th of the base (from 0), or the name it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum EditKind {
    /// A new paragraph at the end.
    Append {
        p: String,
        text: String,
    },
    /// A new paragraph after another, or at the very beginning.
    Insert {
        p: String,
        after: Option<String>,
        text: String,
    },
    /// A paragraph gets this text.
    Text {
        p: String,
        text: String,
    },
    Remove {
        p: String,
    },
    /// A cell, by the name of its sheet and its place (`B7`), gets this value; `=…` is a formula.
    Cell {
        sheet: String,
        cell: String,
        value: String,
    },
    /// A remark beside the text.
    Comment {
        about: String,
        text: String,
    },
}

impl Edit {
    /// A new paragraph with the edit's own marker in it.
    pub fn append(id: &str, text: &str) -> Edit {
        let text = format!("{text} {}", marker(id));
        Edit { id: id.to_owned(), kind: EditKind::Append { p: format!("n-{id}"), text } }
    }

    /// A cell with the edit's own marker in it.
    pub fn cell(id: &str, sheet: &str, cell: &str, text: &str) -> Edit {
        let value = format!("{text} {}", marker(id));
        let (sheet, cell) = (sheet.to_owned(), cell.to_owned());
        Edit { id: id.to_owned(), kind: EditKind::Cell { sheet, cell, value } }
    }

    /// As it travels.
    pub fn to_data(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn from_data(data: &str) -> Option<Edit> {
        serde_json::from_str(data).ok()
    }
}

/// The visible text by which a change is found again in a file.
pub fn marker(id: &str) -> String {
    format!("[#{id}]")
}

/// Ids of all markers in a text.
pub(super) fn markers_in(text: &str) -> BTreeSet<String> {
    let ids = text.split("[#").skip(1).filter_map(|rest| rest.split_once(']')).map(|(id, _)| id);
    let is_id = |id: &&str| {
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    ids.filter(is_id).map(str::to_owned).collect()
}

/// Edits that change the text, and lines about those that do not.
pub(super) fn sort_out(changes: &[Change]) -> (Vec<Edit>, Vec<String>) {
    let (mut edits, mut kept) = (Vec::new(), Vec::new());
    for change in changes {
        match Edit::from_data(&change.data) {
            Some(Edit { kind: EditKind::Comment { about, text }, id }) => {
                kept.push(format!("comment by {} on {about}: {text} {}", change.author.name, marker(&id)));
            }
            Some(edit) => edits.push(edit),
            None => kept.push(opaque_note(change)),
        }
    }
    (edits, kept)
}

/// Every change as a line, for formats whose text we do not edit.
pub(super) fn all_as_notes(changes: &[Change]) -> Vec<String> {
    let note = |change: &Change| match Edit::from_data(&change.data) {
        Some(edit) => format!("{} {}", change.data, marker(&edit.id)),
        None => opaque_note(change),
    };
    changes.iter().map(note).collect()
}

fn opaque_note(change: &Change) -> String {
    format!("change of {} bytes by {} {}", change.data.len(), change.author.name, marker(&change.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_travels_as_flat_json() {
        let edit = Edit::append("c1", "Hello");

        let data = edit.to_data();

        assert_eq!(data, r#"{"id":"c1","op":"append","p":"n-c1","text":"Hello [#c1]"}"#);
        assert_eq!(Edit::from_data(&data), Some(edit));
    }

    #[test]
    fn markers_are_found_and_look_alikes_are_not() {
        let found = markers_in("a [#c1] b [#c-2.x] c [#not an id] [#] [#open");

        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["c-2.x", "c1"]);
    }
}
