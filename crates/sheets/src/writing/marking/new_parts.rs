//! The parts that marking adds: notes, their shapes, and the list of problems.

use std::fmt::Write as _;

use model::submissions::Problem;

use super::super::markup::{Cells, escaped};
use super::super::package::{DECLARATION, RELATIONS};
use super::Marks;
use crate::reading::letters;

const STRICT: &str = "http://purl.oclc.org/ooxml";
/// The sheet that lists the problems. Whatever sheet has this name is ours.
pub(super) const LIST: &str = "Problems found";
/// Always true, and nobody else would write it: this is how our red is known again.
pub(super) const FORMULA: &str = "\"problem\"=\"problem\"";
/// The author of our notes.
pub(super) const AUTHOR: &str = "Problems found";
/// Light red, as a fill behind whatever a cell looks like.
pub(super) const FORMAT: &str = r#"<font><color rgb="FF9C0006"/></font><fill><patternFill patternType="solid"><fgColor rgb="FFFFC7CE"/><bgColor rgb="FFFFC7CE"/></patternFill></fill>"#;

/// Which namespaces a workbook uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Usual,
    Strict,
}

/// The namespace of the markup.
pub(super) fn main(dialect: Dialect) -> String {
    match dialect {
        Dialect::Strict => format!("{STRICT}/spreadsheetml/main"),
        Dialect::Usual => super::super::package::MAIN.to_owned(),
    }
}

/// The namespace of relations, which is also where the names of their kinds begin.
pub(super) fn office(dialect: Dialect) -> String {
    match dialect {
        Dialect::Strict => format!("{STRICT}/officeDocument/relationships"),
        Dialect::Usual => super::super::package::OFFICE.to_owned(),
    }
}

/// A relation to a part.
pub(super) fn relation(id: &str, kind: &str, (part, dialect): (&str, Dialect)) -> String {
    format!(r#"<Relationship Id="{id}" Type="{}/{kind}" Target="/{}"/>"#, office(dialect), escaped(part))
}

/// A part of relations.
pub(super) fn relations(relations: &str) -> String {
    format!(r#"{DECLARATION}<Relationships xmlns="{RELATIONS}">{relations}</Relationships>"#)
}

/// What the package says a part is.
pub(super) fn override_of(part: &str, kind: &str) -> String {
    let part = escaped(part);
    format!(
        r#"<Override PartName="/{part}" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.{kind}+xml"/>"#
    )
}

/// Styles for a workbook that has none.
pub(super) fn styles(dialect: Dialect) -> String {
    format!(
        r#"{DECLARATION}<styleSheet xmlns="{}"><fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/></cellXfs><dxfs count="1"><dxf>{FORMAT}</dxf></dxfs></styleSheet>"#,
        main(dialect)
    )
}

/// Notes for a sheet that has none.
pub(super) fn notes(marks: &Marks, dialect: Dialect) -> String {
    let mut list = String::new();
    for (cell, text) in marks {
        list.push_str(&note(*cell, text, (0, "")));
    }
    format!(
        r#"{DECLARATION}<comments xmlns="{}"><authors><author>{AUTHOR}</author></authors><commentList>{list}</commentList></comments>"#,
        main(dialect)
    )
}

/// One note; `prefix` is what names of elements begin with.
pub(super) fn note((row, column): (u32, u32), text: &str, (author, p): (usize, &str)) -> String {
    let (at, run) = (letters(column), run(text, p));
    format!(r#"<{p}comment ref="{at}{row}" authorId="{author}"><{p}text>{run}</{p}text></{p}comment>"#)
}

/// A piece of a note's text.
pub(super) fn run(text: &str, p: &str) -> String {
    format!(r#"<{p}r><{p}t xml:space="preserve">{}</{p}t></{p}r>"#, escaped(text))
}

/// The shapes of notes: spreadsheet programs draw them in a language older than theirs.
pub(super) fn shapes(first: u32, cells: &[(u32, u32)]) -> String {
    let mut out = String::new();
    for (number, (row, column)) in (1_u32..).zip(cells) {
        let id = first.saturating_add(number);
        let top = row - 1;
        let anchor = format!("{}, 12, {}, 4, {}, 20, {}, 8", column + 1, top, column + 5, top + 6);
        let _ = write!(
            out,
            r##"<v:shape xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" xmlns:x="urn:schemas-microsoft-com:office:excel" id="_x0000_s{id}" type="#_x0000_t202" style="position:absolute;margin-left:60pt;margin-top:2pt;width:220pt;height:90pt;z-index:{number};visibility:hidden" fillcolor="#ffe1e1" o:insetmode="auto"><v:fill color2="#ffe1e1"/><v:shadow on="t" color="black" obscured="t"/><v:path o:connecttype="none"/><v:textbox style="mso-direction-alt:auto"><div style="text-align:left"></div></v:textbox><x:ClientData ObjectType="Note"><x:MoveWithCells/><x:SizeWithCells/><x:Anchor>{anchor}</x:Anchor><x:AutoFill>False</x:AutoFill><x:Row>{top}</x:Row><x:Column>{column}</x:Column></x:ClientData></v:shape>"##
        );
    }
    out
}

/// A number behind which no shape of a drawing has one. Each sheet has a range of its own.
pub(super) fn free_shape(sheet: u32, drawing: &[u8]) -> u32 {
    let base = 900_000_000 + sheet * 1_000_000;
    let free = (0..40).map(|round| base + round * 25_000).find(|first| {
        let name = format!("_x0000_s{}\"", first + 1);
        !drawing.windows(name.len()).any(|window| window == name.as_bytes())
    });
    free.unwrap_or(base)
}

/// A drawing for a sheet that has none.
pub(super) fn drawing(shapes: &str) -> String {
    format!(
        r#"<xml xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" xmlns:x="urn:schemas-microsoft-com:office:excel"><v:shapetype id="_x0000_t202" coordsize="21600,21600" o:spt="202" path="m,l,21600r21600,l21600,xe"><v:stroke joinstyle="miter"/><v:path gradientshapeok="t" o:connecttype="rect"/></v:shapetype>{shapes}</xml>"#
    )
}

/// The sheet that lists all problems, with a link to each cell.
pub(super) fn list(problems: &[Problem], dialect: Dialect) -> String {
    let mut cells = Cells::default();
    let mut links = String::new();
    cells.start(1, "");
    for (column, header) in (0..).zip([
        "Severity",
        "Sheet",
        "Cell",
        "Column",
        "Row id",
        "What stands there",
        "What is wrong",
        "Code",
    ]) {
        cells.text(column, 0, header);
    }
    cells.end();
    for (row, problem) in (2..).zip(problems) {
        let (sheet, cell) = (problem.sheet.as_deref().unwrap_or(""), problem.cell.as_deref().unwrap_or(""));
        // In quotes, so that a marker that is shown here is not taken for one.
        let value = problem.value.as_ref().map(|value| format!("“{value}”")).unwrap_or_default();
        let (header, row_id) =
            (problem.header.as_deref().unwrap_or(""), problem.row_id.as_deref().unwrap_or(""));
        cells.start(row, "");
        for (column, text) in (0..).zip([
            problem.severity.as_str(),
            sheet,
            cell,
            header,
            row_id,
            &value,
            &problem.sentence,
            &problem.code,
        ]) {
            if !text.is_empty() {
                cells.text(column, 0, text);
            }
        }
        cells.end();
        if !sheet.is_empty() && !cell.is_empty() {
            let location = escaped(&format!("'{}'!{cell}", sheet.replace('\'', "''")));
            let _ = write!(
                links,
                r#"<hyperlink ref="C{row}" location="{location}" display="{}"/>"#,
                escaped(cell)
            );
        }
    }
    if !links.is_empty() {
        links = format!("<hyperlinks>{links}</hyperlinks>");
    }
    format!(
        r#"{DECLARATION}<worksheet xmlns="{}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols><col min="1" max="1" width="10" customWidth="1"/><col min="2" max="2" width="20" customWidth="1"/><col min="3" max="3" width="10" customWidth="1"/><col min="4" max="6" width="24" customWidth="1"/><col min="7" max="7" width="90" customWidth="1"/><col min="8" max="8" width="28" customWidth="1"/></cols><sheetData>{}</sheetData>{links}</worksheet>"#,
        main(dialect),
        cells.markup
    )
}
