//! What is editable in a file: paragraphs, or the cells of sheets.
//!
//! Guarantees: applying edits here and in the browser editor (`web/editor.js`) gives the same text; removed
//! paragraphs stay as anchors for edits that name them.
//!
//! Does not remember formatting; the writers take it from the base.

use std::collections::BTreeMap;

use serde::Serialize;

use super::edit::{Edit, EditKind};

/// The editable side of a file, as the editor gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Shape {
    Text { paragraphs: Vec<Paragraph> },
    Sheets { sheets: Vec<Sheet> },
    Opaque,
}

/// One paragraph or line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Paragraph {
    pub p: String,
    pub text: String,
    /// Name of its style in the base, if any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub style: String,
    #[serde(skip)]
    pub origin: Option<usize>,
    #[serde(skip)]
    pub touched: bool,
    #[serde(skip)]
    pub removed: bool,
}

/// One sheet; cells by place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sheet {
    pub name: String,
    pub cells: BTreeMap<String, String>,
    #[serde(skip)]
    pub touched: BTreeMap<String, String>,
}

impl Shape {
    /// Paragraphs of a base, named by their position.
    pub(super) fn of_texts(texts: impl Iterator<Item = (String, String)>) -> Shape {
        let paragraph = |(n, (text, style)): (usize, (String, String))| Paragraph {
            p: format!("p{n}"),
            text,
            style,
            origin: Some(n),
            touched: false,
            removed: false,
        };
        Shape::Text { paragraphs: texts.enumerate().map(paragraph).collect() }
    }

    pub fn apply(&mut self, edits: &[Edit]) {
        for edit in edits {
            match self {
                Shape::Text { paragraphs } => apply_to_text(paragraphs, &edit.kind),
                Shape::Sheets { sheets } => apply_to_sheets(sheets, &edit.kind),
                Shape::Opaque => {}
            }
        }
    }

    /// The visible text: lines, or cell values line by line.
    pub fn text(&self) -> String {
        match self {
            Shape::Text { paragraphs } => {
                let shown = paragraphs.iter().filter(|paragraph| !paragraph.removed);
                shown.map(|paragraph| paragraph.text.as_str()).collect::<Vec<_>>().join("\n")
            }
            Shape::Sheets { sheets } => {
                let cells = sheets.iter().flat_map(|sheet| sheet.cells.values());
                cells.map(String::as_str).collect::<Vec<_>>().join("\n")
            }
            Shape::Opaque => String::new(),
        }
    }
}

fn apply_to_text(paragraphs: &mut Vec<Paragraph>, edit: &EditKind) {
    let find = |paragraphs: &[Paragraph], p: &str| paragraphs.iter().position(|paragraph| paragraph.p == p);
    let fresh = |p: &str, text: &str| Paragraph {
        p: p.to_owned(),
        text: text.to_owned(),
        style: String::new(),
        origin: None,
        touched: true,
        removed: false,
    };
    match edit {
        EditKind::Append { p, text } => paragraphs.push(fresh(p, text)),
        EditKind::Insert { p, after, text } => {
            let place = match after {
                None => 0,
                Some(after) => find(paragraphs, after).map_or(paragraphs.len(), |place| place + 1),
            };
            paragraphs.insert(place, fresh(p, text));
        }
        EditKind::Text { p, text } => match find(paragraphs, p) {
            Some(place) => {
                let paragraph = &mut paragraphs[place];
                paragraph.text.clone_from(text);
                paragraph.touched = true;
                // Somebody removed it while another typed: what was typed wins.
                paragraph.removed = false;
            }
            None => paragraphs.push(fresh(p, text)),
        },
        EditKind::Remove { p } => {
            if let Some(place) = find(paragraphs, p) {
                paragraphs[place].removed = true;
                paragraphs[place].touched = true;
            }
        }
        EditKind::Cell { cell, value, .. } => paragraphs.push(fresh(cell, value)),
        EditKind::Comment { .. } => {}
    }
}

fn apply_to_sheets(sheets: &mut [Sheet], edit: &EditKind) {
    let (sheet, cell, value) = match edit {
        EditKind::Cell { sheet, cell, value } => (sheet.as_str(), cell.to_ascii_uppercase(), value),
        // A line of text lands in the first free cell of column A.
        EditKind::Append { text, .. } | EditKind::Insert { text, .. } | EditKind::Text { text, .. } => {
            let Some(first) = sheets.first() else { return };
            let taken = first.cells.keys().filter_map(|place| place.strip_prefix('A')?.parse::<u32>().ok());
            ("", format!("A{}", taken.max().unwrap_or(0) + 1), text)
        }
        EditKind::Remove { .. } | EditKind::Comment { .. } => return,
    };
    let place = sheets.iter().position(|known| known.name == sheet).unwrap_or(0);
    if let Some(sheet) = sheets.get_mut(place) {
        sheet.cells.insert(cell.clone(), value.clone());
        sheet.touched.insert(cell, value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Shape {
        Shape::of_texts(texts.iter().map(|text| ((*text).to_owned(), String::new())))
    }

    fn edit(kind: EditKind) -> Edit {
        Edit { id: "c".into(), kind }
    }

    #[test]
    fn edits_name_paragraphs_so_two_people_do_not_shift_each_other() {
        let mut shape = lines(&["one", "two", "three"]);

        shape.apply(&[
            edit(EditKind::Insert { p: "a".into(), after: None, text: "zero".into() }),
            edit(EditKind::Text { p: "p2".into(), text: "THREE".into() }),
            edit(EditKind::Remove { p: "p1".into() }),
            edit(EditKind::Insert { p: "b".into(), after: Some("p1".into()), text: "after two".into() }),
            edit(EditKind::Append { p: "c".into(), text: "end".into() }),
        ]);

        assert_eq!(shape.text(), "zero\none\nafter two\nTHREE\nend");
    }

    #[test]
    fn typing_wins_over_removing() {
        let mut shape = lines(&["one"]);

        shape.apply(&[
            edit(EditKind::Remove { p: "p0".into() }),
            edit(EditKind::Text { p: "p0".into(), text: "kept".into() }),
        ]);

        assert_eq!(shape.text(), "kept");
    }

    #[test]
    fn text_lands_in_free_cells_of_a_sheet() {
        let cells = [("A1".to_owned(), "head".to_owned())].into();
        let mut shape = Shape::Sheets { sheets: vec![Sheet { name: "S".into(), cells, ..Sheet::default() }] };

        shape.apply(&[Edit::append("c1", "x"), Edit::cell("c2", "S", "b2", "y"), Edit::append("c3", "z")]);

        let Shape::Sheets { sheets } = &shape else { panic!("still sheets") };
        assert_eq!(sheets[0].cells["A2"], "x [#c1]");
        assert_eq!(sheets[0].cells["B2"], "y [#c2]");
        assert_eq!(sheets[0].cells["A3"], "z [#c3]");
    }
}
