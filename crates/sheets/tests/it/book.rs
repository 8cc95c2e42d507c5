//! Workbooks for tests, from markup that is written by hand: also what no program would write.

use std::io::{Cursor, Write};

use jiff::civil::{Date, date};
use model::submissions::{Problem, StagedRow};
use sheets::{AccreditationFacts, Assessment, ScopeFacts, Template, assess};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The day on which all tests happen.
pub(crate) const TODAY: Date = date(2026, 11, 16);

pub(crate) fn template() -> Template {
    Template::parse(include_str!("loads.toml")).unwrap()
}

pub(crate) fn scope() -> ScopeFacts {
    ScopeFacts {
        organisation_id: "acme".into(),
        organisation_name: "Acme".into(),
        registration_id: "reg".into(),
        registration_number: "R-1".into(),
        accreditations: vec![AccreditationFacts {
            number: "ACC-1".into(),
            from: date(2026, 1, 1),
            until: date(2026, 12, 31),
        }],
    }
}

/// A workbook that is being put together.
#[derive(Clone)]
pub(crate) struct Book {
    pub(crate) sheets: Vec<(String, String, String)>,
    pub(crate) strings: Option<String>,
    pub(crate) workbook_properties: String,
    /// Further parts, and replacements for ours.
    pub(crate) parts: Vec<(String, Vec<u8>)>,
}

impl Book {
    pub(crate) fn new() -> Self {
        Self { sheets: Vec::new(), strings: None, workbook_properties: String::new(), parts: Vec::new() }
    }

    /// A workbook with a right cover, and rows in the table of loads.
    pub(crate) fn of_loads(rows: &[String]) -> Self {
        let cover = cover(&["t:loads", "t:2.1", "t:R-1", "t:ACC-1"]);
        Self::new().sheet("Cover", &cover).sheet("Loads", &format!("{}{}", headers(1), rows.concat()))
    }

    pub(crate) fn sheet(self, name: &str, rows: &str) -> Self {
        self.sheet_with(name, rows, "")
    }

    /// A sheet with something behind its rows.
    pub(crate) fn sheet_with(mut self, name: &str, rows: &str, behind: &str) -> Self {
        self.sheets.push((name.into(), rows.into(), behind.into()));
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let mut parts = self.package();
        for (name, bytes) in &self.parts {
            parts.retain(|(ours, _)| ours != name);
            parts.push((name.clone(), bytes.clone()));
        }
        for (name, bytes) in parts {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(&bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn package(&self) -> Vec<(String, Vec<u8>)> {
        let numbers = 1..=self.sheets.len();
        let overrides: String = numbers
            .clone()
            .map(|n| format!(r#"<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>"#))
            .collect();
        let relations: String = numbers
            .clone()
            .map(|n| format!(r#"<Relationship Id="rId{n}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>"#))
            .collect();
        let named: String = numbers
            .zip(&self.sheets)
            .map(|(n, (name, ..))| format!(r#"<sheet name="{name}" sheetId="{n}" r:id="rId{n}"/>"#))
            .collect();
        let mut parts = vec![
            (
                "[Content_Types].xml".to_owned(),
                format!(
                    r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/><Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/>{overrides}</Types>"#
                ),
            ),
            (
                "_rels/.rels".into(),
                format!(
                    r#"<Relationships xmlns="{PACKAGE}"><Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
                ),
            ),
            (
                "xl/workbook.xml".into(),
                format!(
                    r#"<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">{}<sheets>{named}</sheets></workbook>"#,
                    self.workbook_properties
                ),
            ),
            (
                "xl/_rels/workbook.xml.rels".into(),
                format!(
                    r#"<Relationships xmlns="{PACKAGE}">{relations}<Relationship Id="rId98" Type="{OFFICE}/styles" Target="styles.xml"/><Relationship Id="rId99" Type="{OFFICE}/sharedStrings" Target="/xl/sharedStrings.xml"/></Relationships>"#
                ),
            ),
            ("xl/styles.xml".into(), STYLES.replace("MAIN", MAIN)),
        ];
        for (n, (_, rows, behind)) in (1..).zip(&self.sheets) {
            let text = format!(
                r#"<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheetData>{rows}</sheetData>{behind}</worksheet>"#
            );
            parts.push((format!("xl/worksheets/sheet{n}.xml"), text));
        }
        // Behind the sheets, as Office writes them.
        let strings = self.strings.clone().unwrap_or_default();
        parts.push(("xl/sharedStrings.xml".into(), format!(r#"<sst xmlns="{MAIN}">{strings}</sst>"#)));
        parts.into_iter().map(|(name, text)| (name, text.into_bytes())).collect()
    }

    pub(crate) fn assess(&self) -> (Assessment, Vec<StagedRow>) {
        self.assess_by(&template())
    }

    pub(crate) fn assess_by(&self, template: &Template) -> (Assessment, Vec<StagedRow>) {
        let mut rows = Vec::new();
        let assessment =
            assess(template, (&scope(), TODAY), &mut Cursor::new(self.bytes()), &mut rows).unwrap();
        (assessment, rows)
    }
}

const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
/// Style 1 is a date, 2 a percentage, 3 a time, 4 a date in a format of one's own.
const STYLES: &str = r#"<styleSheet xmlns="MAIN"><numFmts count="1"><numFmt numFmtId="170" formatCode="dd\.mm\.yyyy;@"/></numFmts><fonts count="1"><font><sz val="11"/></font></fonts><fills count="1"><fill><patternFill patternType="none"/></fill></fills><borders count="1"><border/></borders><cellXfs count="5"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="10"/><xf numFmtId="21"/><xf numFmtId="170"/></cellXfs></styleSheet>"#;

/// A cover with the values of the single cells.
pub(crate) fn cover(values: &[&str]) -> String {
    let names = ["TEMPLATE", "VERSION", "REGISTRATION", "ACCREDITATION"];
    (2..)
        .zip(names.iter().zip(values))
        .map(|(n, (name, value))| row(n, &[&format!("t:__T_META_{name}"), value]))
        .collect()
}

/// The header row of the table of loads; its first column is B, of which the marker is A.
pub(crate) fn headers(number: u32) -> String {
    let names = [
        "t:__T_TABLE_LOADS",
        "t:__T_SKIP",
        "t:ID",
        "t:DAY",
        "t:CODE",
        "t:CLAIMED",
        "t:GROSS",
        "t:TARE",
        "t:NET",
        "t:SHARE",
        "t:NOTE",
        "t:PHONE",
    ];
    row(number, &names)
}

/// A row of loads: what is behind marker and skip column.
pub(crate) fn load(number: u32, cells: &[&str]) -> String {
    row(number, &[&["", ""], cells].concat())
}

/// A right load with this id.
pub(crate) fn right(number: u32, id: u32) -> String {
    load(
        number,
        &[
            &format!("n:{id}"),
            "d:46092",
            "t:15 01 01",
            "t:No",
            "n:10.5",
            "n:4",
            "n:6.5",
            "p:0.5",
            "t:fine",
            "t:0123",
        ],
    )
}

/// A row from column A on. `t:` is a text, `n:` a number, `d:` a date, `p:` a percentage, `b:` a truth, `e:` an error, `s:` a shared text,
/// `f:` a formula with its result, `F:` one without, `x:` markup of a cell's inside.
pub(crate) fn row(number: u32, cells: &[&str]) -> String {
    let cells: String =
        ('A'..='Z').zip(cells).map(|(letter, cell)| one(&format!("{letter}{number}"), cell)).collect();
    format!("<row r=\"{number}\">{cells}</row>")
}

fn one(at: &str, cell: &str) -> String {
    let Some((kind, text)) = cell.split_once(':') else { return String::new() };
    let text = if kind == "x" { text.to_owned() } else { text.replace('&', "&amp;").replace('<', "&lt;") };
    match kind {
        "t" => format!(r#"<c r="{at}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>"#),
        "n" => format!(r#"<c r="{at}"><v>{text}</v></c>"#),
        "d" => format!(r#"<c r="{at}" s="1"><v>{text}</v></c>"#),
        "D" => format!(r#"<c r="{at}" s="4"><v>{text}</v></c>"#),
        "p" => format!(r#"<c r="{at}" s="2"><v>{text}</v></c>"#),
        "b" => format!(r#"<c r="{at}" t="b"><v>{text}</v></c>"#),
        "e" => format!(r#"<c r="{at}" t="e"><v>{text}</v></c>"#),
        "s" => format!(r#"<c r="{at}" t="s"><v>{text}</v></c>"#),
        "f" => format!(r#"<c r="{at}"><f>SUM(1)</f><v>{text}</v></c>"#),
        "g" => format!(r#"<c r="{at}" t="str"><f>SUM(1)</f><v>{text}</v></c>"#),
        "F" => format!(r#"<c r="{at}"><f>SUM(1)</f></c>"#),
        "G" => format!(r#"<c r="{at}"><f>SUM(1)</f><v></v></c>"#),
        "x" => format!(r#"<c r="{at}" {text}</c>"#),
        "style" => format!(r#"<c r="{at}" s="1"/>"#),
        kind => panic!("no such kind of cell: {kind}"),
    }
}

/// Code and cell of every problem.
pub(crate) fn told(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|each| format!("{} {}", each.code, each.cell.as_deref().unwrap_or("-"))).collect()
}

/// The value of a column in a staged row.
pub(crate) fn value(row: &StagedRow, column: &str) -> Option<String> {
    let values: std::collections::BTreeMap<String, String> = serde_json::from_str(&row.values).unwrap();
    values.get(column).cloned()
}
