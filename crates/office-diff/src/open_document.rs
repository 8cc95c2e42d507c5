//! OpenDocument: one part holds all the text, of documents, workbooks and presentations alike.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use crate::budget::Budget;
use crate::cells::{Cell, Sheet};
use crate::markup::{Tag, Then, Visitor};
use crate::package::{Package, Said};
use crate::paragraphs::Paragraph;
use crate::{Place, Subject};

pub(crate) fn read<R: Read + Seek>(package: &mut Package<R>, budget: &mut Budget) -> Option<Said> {
    let mut reader = Content::default();
    if !package.walk("content.xml", budget, &mut reader) {
        return None;
    }
    let subject = reader.subject?;
    if let Some(sheet) = reader.sheets.last_mut() {
        sheet.is_whole = budget.is_open();
    }
    Some(match subject {
        Subject::Workbook => Said::sheets(reader.sheets),
        subject => Said::paragraphs(subject, reader.paragraphs),
    })
}

/// Reads the one part.
#[derive(Default)]
struct Content {
    subject: Option<Subject>,
    paragraphs: Vec<Paragraph>,
    sheets: Vec<Sheet>,
    number: u32,
    slide: u32,
    /// Paragraphs that are open, and what they say so far.
    open: Vec<(u32, String)>,
    row: Repeated,
    column: Repeated,
    value: String,
    formula: Option<String>,
}

/// A row or a cell that stands for several.
#[derive(Default)]
struct Repeated {
    at: u32,
    times: u32,
}

impl Repeated {
    fn begin(&mut self, times: Option<u32>) {
        self.times = times.unwrap_or(1).max(1);
    }

    fn end(&mut self) {
        self.at = self.at.saturating_add(self.times);
    }
}

impl Content {
    fn say(&mut self, text: &str, budget: &Budget) {
        let into = match (self.subject, self.open.last_mut()) {
            (Some(Subject::Workbook), Some(_)) => &mut self.value,
            (_, Some((_, said))) => said,
            (_, None) => return,
        };
        if into.len() <= budget.text_bytes() {
            into.push_str(text);
        }
    }

    fn close_paragraph(&mut self, budget: &mut Budget) {
        let Some((number, text)) = self.open.pop() else { return };
        let place = match self.subject {
            Some(Subject::Workbook) => return,
            Some(Subject::Presentation) => Place::Slide { slide: self.slide, number },
            _ => Place::Paragraph { part: "body".to_owned(), number },
        };
        if !text.trim().is_empty() && budget.takes(text.len()) {
            self.paragraphs.push(Paragraph { place, text });
        }
    }

    /// A cell stands for as many as it says, in as many rows as its row says.
    fn close_cell(&mut self, budget: &mut Budget) {
        let cell = Cell { value: std::mem::take(&mut self.value), formula: self.formula.take() };
        let bytes = cell.value.len() + cell.formula.as_ref().map_or(0, String::len);
        if let Some(sheet) = self.sheets.last_mut()
            && bytes > 0
        {
            for row in 0..self.row.times {
                for column in 0..self.column.times {
                    if !budget.takes(bytes) {
                        return;
                    }
                    let at = (self.row.at.saturating_add(row), self.column.at.saturating_add(column));
                    sheet.cells.insert(at, cell.clone());
                }
            }
        }
        self.column.end();
    }
}

impl Visitor for Content {
    const SKIPPED: &'static [&'static str] = &["tracked-changes", "annotation", "notes", "forms"];

    fn start(&mut self, name: &str, tag: &Tag<'_>, budget: &mut Budget) -> Then {
        let is_workbook = self.subject == Some(Subject::Workbook);
        match name {
            "text" if self.subject.is_none() => self.subject = Some(Subject::Document),
            "spreadsheet" if self.subject.is_none() => self.subject = Some(Subject::Workbook),
            "presentation" if self.subject.is_none() => self.subject = Some(Subject::Presentation),
            "page" => (self.slide, self.number) = (self.slide + 1, 0),
            "table" if is_workbook => {
                let name = tag.attribute("name").unwrap_or_default();
                self.sheets.push(Sheet { name, cells: BTreeMap::new(), is_whole: true });
                (self.row, self.column) = Default::default();
            }
            "table-row" => {
                self.row.begin(tag.number("number-rows-repeated"));
                self.column = Repeated::default();
            }
            "table-cell" | "covered-table-cell" => {
                self.column.begin(tag.number("number-columns-repeated"));
                self.formula = tag.attribute("formula");
                self.value.clear();
            }
            "p" | "h" => {
                self.number += 1;
                if is_workbook && !self.value.is_empty() {
                    self.value.push('\n');
                }
                self.open.push((self.number, String::new()));
            }
            "s" => {
                let count = tag.number("c").unwrap_or(1).min(1000);
                (0..count).for_each(|_| self.say(" ", budget));
            }
            "tab" => self.say("\t", budget),
            "line-break" => self.say("\n", budget),
            _ => {}
        }
        Then::GoOn
    }

    fn end(&mut self, name: &str, budget: &mut Budget) -> Then {
        match name {
            "p" | "h" => self.close_paragraph(budget),
            "table-cell" | "covered-table-cell" if self.subject == Some(Subject::Workbook) => {
                self.close_cell(budget)
            }
            "table-row" => self.row.end(),
            _ => {}
        }
        Then::GoOn
    }

    fn text(&mut self, text: &str, budget: &Budget) {
        self.say(text, budget);
    }
}
