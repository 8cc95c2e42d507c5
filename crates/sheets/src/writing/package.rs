//! A workbook as a package, written from its first byte to its last without going back.
//!
//! Guarantees: parts that name others come last, so that a sheet need not be known before it is written.

use std::fmt::Write as _;
use std::io::Write;

use zip::ZipWriter;
use zip::write::{SimpleFileOptions, StreamWriter};

use super::WriteError;
use super::markup::escaped;
use super::styles::Styles;

pub(crate) const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
pub(crate) const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
pub(crate) const RELATIONS: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
pub(crate) const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
const TYPE: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml";

/// A workbook that is being written.
pub(crate) struct Package<W: Write> {
    zip: ZipWriter<StreamWriter<W>>,
    sheets: Vec<(String, Shown)>,
}

/// Whether people see a sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Yes,
    No,
}

impl<W: Write> Package<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { zip: ZipWriter::new_stream(out), sheets: Vec::new() }
    }

    /// Begins a sheet. `before` stands before its rows: views and columns.
    pub(crate) fn start_sheet(&mut self, name: &str, shown: Shown, before: &str) -> Result<(), WriteError> {
        self.sheets.push((name.to_owned(), shown));
        let part = format!("xl/worksheets/sheet{}.xml", self.sheets.len());
        self.zip.start_file(part, SimpleFileOptions::default())?;
        self.write(&format!("{DECLARATION}<worksheet xmlns=\"{MAIN}\">{before}<sheetData>"))
    }

    /// Writes rows, or whatever belongs into the part that was begun.
    pub(crate) fn write(&mut self, markup: &str) -> Result<(), WriteError> {
        self.zip.write_all(markup.as_bytes())?;
        Ok(())
    }

    /// Ends a sheet. `behind` stands behind its rows.
    pub(crate) fn end_sheet(&mut self, behind: &str) -> Result<(), WriteError> {
        self.write(&format!("</sheetData>{behind}</worksheet>"))
    }

    fn part(&mut self, name: &str, text: &str) -> Result<(), WriteError> {
        self.zip.start_file(name, SimpleFileOptions::default())?;
        self.write(DECLARATION)?;
        self.write(text)
    }

    /// Ends the workbook.
    pub(crate) fn finish(mut self, styles: &Styles) -> Result<(), WriteError> {
        let (mut named, mut related, mut typed) = (String::new(), String::new(), String::new());
        for (number, (name, shown)) in (1..).zip(&self.sheets) {
            let state = if *shown == Shown::No { " state=\"hidden\"" } else { "" };
            let name = escaped(name);
            let _ = write!(named, r#"<sheet name="{name}" sheetId="{number}"{state} r:id="rId{number}"/>"#);
            let target = format!("worksheets/sheet{number}.xml");
            let _ = write!(
                related,
                r#"<Relationship Id="rId{number}" Type="{OFFICE}/worksheet" Target="{target}"/>"#
            );
            let _ =
                write!(typed, r#"<Override PartName="/xl/{target}" ContentType="{TYPE}.worksheet+xml"/>"#);
        }
        self.part("xl/styles.xml", &styles.markup())?;
        self.part(
            "xl/workbook.xml",
            &format!(r#"<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{named}</sheets></workbook>"#),
        )?;
        let styles = self.sheets.len() + 1;
        self.part(
            "xl/_rels/workbook.xml.rels",
            &format!(
                r#"<Relationships xmlns="{RELATIONS}">{related}<Relationship Id="rId{styles}" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>"#
            ),
        )?;
        self.part(
            "_rels/.rels",
            &format!(
                r#"<Relationships xmlns="{RELATIONS}"><Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
            ),
        )?;
        self.part(
            "[Content_Types].xml",
            &format!(
                r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{TYPE}.sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="{TYPE}.styles+xml"/>{typed}</Types>"#
            ),
        )?;
        self.zip.finish()?.into_inner().flush()?;
        Ok(())
    }
}
