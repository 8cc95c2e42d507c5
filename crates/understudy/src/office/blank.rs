//! Files of our own making: blank templates and small samples.
//!
//! Guarantees: each is a complete package that Office opens; the same call gives the same bytes.
//!
//! Does not try to be pretty.

use bytes::Bytes;

use super::Family;
use super::package::pack;
use super::xml::escape;

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
const TYPES: &str = "http://schemas.openxmlformats.org/package/2006/content-types";
const PACKAGE_RELS: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
const RELS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const WORD: &str = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
const CELL: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const SLIDE: &str = "http://schemas.openxmlformats.org/presentationml/2006/main";
const DRAWING: &str = "http://schemas.openxmlformats.org/drawingml/2006/main";

/// What the server puts in the place of an empty file.
pub fn blank(ext: &str) -> Bytes {
    match Family::of(ext) {
        Family::Cell => sample_xlsx(&[]),
        Family::Slide => blank_pptx(),
        Family::Text => Bytes::from_static(b"\n"),
        Family::Word | Family::Other => docx(&[(None, "")]),
    }
}

/// A document with a heading and paragraphs.
pub fn sample_docx(title: &str, paragraphs: &[&str]) -> Bytes {
    let mut all = vec![(Some("Heading1"), title)];
    all.extend(paragraphs.iter().map(|text| (None, *text)));
    docx(&all)
}

fn docx(paragraphs: &[(Option<&str>, &str)]) -> Bytes {
    let paragraph = |(style, text): &(Option<&str>, &str)| {
        let style =
            style.map(|style| format!("<w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr>")).unwrap_or_default();
        let run = match *text {
            "" => String::new(),
            text => format!("<w:r><w:t xml:space=\"preserve\">{}</w:t></w:r>", escape(text)),
        };
        format!("<w:p>{style}{run}</w:p>")
    };
    let paragraphs: String = paragraphs.iter().map(paragraph).collect();
    let document = format!(
        "<w:document xmlns:w=\"{WORD}\" xmlns:r=\"{RELS}\"><w:body>{paragraphs}<w:sectPr><w:pgSz w:w=\"11906\" w:h=\"16838\"/><w:pgMar w:top=\"1134\" w:right=\"850\" w:bottom=\"1134\" w:left=\"1701\" w:header=\"708\" w:footer=\"708\" w:gutter=\"0\"/></w:sectPr></w:body></w:document>"
    );
    docx_of(&document)
}

/// A document with this main part, whatever it says.
pub fn docx_of(document: &str) -> Bytes {
    let styles = format!(
        "<w:styles xmlns:w=\"{WORD}\"><w:style w:type=\"paragraph\" w:default=\"1\" w:styleId=\"Normal\"><w:name w:val=\"Normal\"/></w:style><w:style w:type=\"paragraph\" w:styleId=\"Heading1\"><w:name w:val=\"heading 1\"/><w:basedOn w:val=\"Normal\"/><w:pPr><w:outlineLvl w:val=\"0\"/></w:pPr><w:rPr><w:b/><w:sz w:val=\"36\"/></w:rPr></w:style></w:styles>"
    );
    let types = types(&[
        (
            "/word/document.xml",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
        ),
        ("/word/styles.xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"),
    ]);
    package(&[
        ("[Content_Types].xml", types),
        ("_rels/.rels", relationships(&[("officeDocument", "word/document.xml")])),
        ("word/_rels/document.xml.rels", relationships(&[("styles", "styles.xml")])),
        ("word/document.xml", document.to_owned()),
        ("word/styles.xml", styles),
    ])
}

/// A workbook with one sheet, `Sheet1`, and these rows from A1 on.
pub fn sample_xlsx(rows: &[&[&str]]) -> Bytes {
    let cell = |row: usize, column: usize, value: &str| {
        let letter = char::from(b'A' + u8::try_from(column % 26).unwrap_or(0));
        if value.parse::<f64>().is_ok() {
            return format!("<c r=\"{letter}{row}\"><v>{value}</v></c>");
        }
        format!("<c r=\"{letter}{row}\" t=\"inlineStr\"><is><t>{}</t></is></c>", escape(value))
    };
    let row = |(number, values): (usize, &&[&str])| {
        let row = number + 1;
        let cells: String =
            values.iter().enumerate().map(|(column, value)| cell(row, column, value)).collect();
        format!("<row r=\"{row}\">{cells}</row>")
    };
    let rows: String = rows.iter().enumerate().map(row).collect();
    let data =
        if rows.is_empty() { "<sheetData/>".to_owned() } else { format!("<sheetData>{rows}</sheetData>") };
    let sheet = format!("<worksheet xmlns=\"{CELL}\">{data}</worksheet>");
    let workbook = format!(
        "<workbook xmlns=\"{CELL}\" xmlns:r=\"{RELS}\"><sheets><sheet name=\"Sheet1\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
    );
    let types = types(&[
        ("/xl/workbook.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"),
        (
            "/xl/worksheets/sheet1.xml",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml",
        ),
        ("/xl/styles.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"),
    ]);
    let styles = format!(
        "<styleSheet xmlns=\"{CELL}\"><fonts count=\"1\"><font><sz val=\"11\"/><name val=\"Calibri\"/></font></fonts><fills count=\"2\"><fill><patternFill patternType=\"none\"/></fill><fill><patternFill patternType=\"gray125\"/></fill></fills><borders count=\"1\"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count=\"1\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\"/></cellStyleXfs><cellXfs count=\"1\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\"/></cellXfs></styleSheet>"
    );
    package(&[
        ("[Content_Types].xml", types),
        ("_rels/.rels", relationships(&[("officeDocument", "xl/workbook.xml")])),
        (
            "xl/_rels/workbook.xml.rels",
            relationships(&[("worksheet", "worksheets/sheet1.xml"), ("styles", "styles.xml")]),
        ),
        ("xl/workbook.xml", workbook),
        ("xl/worksheets/sheet1.xml", sheet),
        ("xl/styles.xml", styles),
    ])
}

fn blank_pptx() -> Bytes {
    const KIND: &str = "application/vnd.openxmlformats-officedocument.presentationml";
    let tree = "<p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id=\"1\" name=\"\"/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/></p:spTree></p:cSld>";
    let names = format!("xmlns:a=\"{DRAWING}\" xmlns:r=\"{RELS}\" xmlns:p=\"{SLIDE}\"");
    let map = "<p:clrMap bg1=\"lt1\" tx1=\"dk1\" bg2=\"lt2\" tx2=\"dk2\" accent1=\"accent1\" accent2=\"accent2\" accent3=\"accent3\" accent4=\"accent4\" accent5=\"accent5\" accent6=\"accent6\" hlink=\"hlink\" folHlink=\"folHlink\"/>";
    let presentation = format!(
        "<p:presentation {names}><p:sldMasterIdLst><p:sldMasterId id=\"2147483648\" r:id=\"rId1\"/></p:sldMasterIdLst><p:sldIdLst><p:sldId id=\"256\" r:id=\"rId2\"/></p:sldIdLst><p:sldSz cx=\"12192000\" cy=\"6858000\"/><p:notesSz cx=\"6858000\" cy=\"9144000\"/></p:presentation>"
    );
    let master = format!(
        "<p:sldMaster {names}>{tree}{map}<p:sldLayoutIdLst><p:sldLayoutId id=\"2147483649\" r:id=\"rId1\"/></p:sldLayoutIdLst></p:sldMaster>"
    );
    let layout = format!(
        "<p:sldLayout {names} type=\"blank\">{tree}<p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sldLayout>"
    );
    let slide = format!("<p:sld {names}>{tree}<p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sld>");
    let types = types(&[
        ("/ppt/presentation.xml", &format!("{KIND}.presentation.main+xml")),
        ("/ppt/slideMasters/slideMaster1.xml", &format!("{KIND}.slideMaster+xml")),
        ("/ppt/slideLayouts/slideLayout1.xml", &format!("{KIND}.slideLayout+xml")),
        ("/ppt/slides/slide1.xml", &format!("{KIND}.slide+xml")),
        ("/ppt/theme/theme1.xml", "application/vnd.openxmlformats-officedocument.theme+xml"),
    ]);
    package(&[
        ("[Content_Types].xml", types),
        ("_rels/.rels", relationships(&[("officeDocument", "ppt/presentation.xml")])),
        (
            "ppt/_rels/presentation.xml.rels",
            relationships(&[
                ("slideMaster", "slideMasters/slideMaster1.xml"),
                ("slide", "slides/slide1.xml"),
                ("theme", "theme/theme1.xml"),
            ]),
        ),
        ("ppt/presentation.xml", presentation),
        (
            "ppt/slideMasters/_rels/slideMaster1.xml.rels",
            relationships(&[
                ("slideLayout", "../slideLayouts/slideLayout1.xml"),
                ("theme", "../theme/theme1.xml"),
            ]),
        ),
        ("ppt/slideMasters/slideMaster1.xml", master),
        (
            "ppt/slideLayouts/_rels/slideLayout1.xml.rels",
            relationships(&[("slideMaster", "../slideMasters/slideMaster1.xml")]),
        ),
        ("ppt/slideLayouts/slideLayout1.xml", layout),
        (
            "ppt/slides/_rels/slide1.xml.rels",
            relationships(&[("slideLayout", "../slideLayouts/slideLayout1.xml")]),
        ),
        ("ppt/slides/slide1.xml", slide),
        ("ppt/theme/theme1.xml", theme()),
    ])
}

fn theme() -> String {
    let system = |name: &str, value: &str, last: &str| {
        format!("<a:{name}><a:sysClr val=\"{value}\" lastClr=\"{last}\"/></a:{name}>")
    };
    let colours: String = [
        ("dk2", "1F2937"),
        ("lt2", "F3F4F6"),
        ("accent1", "2563EB"),
        ("accent2", "DB2777"),
        ("accent3", "059669"),
        ("accent4", "D97706"),
        ("accent5", "7C3AED"),
        ("accent6", "DC2626"),
        ("hlink", "2563EB"),
        ("folHlink", "7C3AED"),
    ]
    .iter()
    .map(|(name, value)| format!("<a:{name}><a:srgbClr val=\"{value}\"/></a:{name}>"))
    .collect();
    let fonts = "<a:latin typeface=\"Calibri\"/><a:ea typeface=\"\"/><a:cs typeface=\"\"/>";
    let fill = "<a:solidFill><a:schemeClr val=\"phClr\"/></a:solidFill>";
    let line = format!("<a:ln w=\"6350\">{fill}</a:ln>");
    let effect = "<a:effectStyle><a:effectLst/></a:effectStyle>";
    format!(
        "<a:theme xmlns:a=\"{DRAWING}\" name=\"Plain\"><a:themeElements><a:clrScheme name=\"Plain\">{}{}{colours}</a:clrScheme><a:fontScheme name=\"Plain\"><a:majorFont>{fonts}</a:majorFont><a:minorFont>{fonts}</a:minorFont></a:fontScheme><a:fmtScheme name=\"Plain\"><a:fillStyleLst>{}</a:fillStyleLst><a:lnStyleLst>{}</a:lnStyleLst><a:effectStyleLst>{}</a:effectStyleLst><a:bgFillStyleLst>{}</a:bgFillStyleLst></a:fmtScheme></a:themeElements></a:theme>",
        system("dk1", "windowText", "000000"),
        system("lt1", "window", "FFFFFF"),
        fill.repeat(3),
        line.repeat(3),
        effect.repeat(3),
        fill.repeat(3),
    )
}

fn types(overrides: &[(&str, &str)]) -> String {
    let overrides: String = overrides
        .iter()
        .map(|(part, kind)| format!("<Override PartName=\"{part}\" ContentType=\"{kind}\"/>"))
        .collect();
    format!(
        "<Types xmlns=\"{TYPES}\"><Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/><Default Extension=\"xml\" ContentType=\"application/xml\"/>{overrides}</Types>"
    )
}

fn relationships(targets: &[(&str, &str)]) -> String {
    let one = |(n, (kind, target)): (usize, &(&str, &str))| {
        format!("<Relationship Id=\"rId{}\" Type=\"{RELS}/{kind}\" Target=\"{target}\"/>", n + 1)
    };
    let all: String = targets.iter().enumerate().map(one).collect();
    format!("<Relationships xmlns=\"{PACKAGE_RELS}\">{all}</Relationships>")
}

fn package(parts: &[(&str, String)]) -> Bytes {
    let parts = parts
        .iter()
        .map(|(name, content)| ((*name).to_owned(), format!("{DECLARATION}{content}").into_bytes()));
    // Writing a zip into memory does not fail.
    pack(parts).map(Bytes::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{can_open, changes_in};
    use super::*;

    #[test]
    fn every_blank_can_be_opened_and_is_always_the_same() {
        for ext in ["docx", "xlsx", "pptx", "txt", "odt"] {
            assert!(can_open(&blank(ext), ext), "{ext}");
            assert_eq!(blank(ext), blank(ext));
        }
        assert!(!can_open(b"<html>", "docx"));
        assert!(!can_open(&blank("txt"), "xlsx"));
    }

    #[test]
    fn a_presentation_keeps_changes_in_an_added_part() {
        let author = crate::machine::Author { id: "u".into(), index: 1, name: "U".into() };
        let edit = super::super::Edit::append("c1", "x");
        let change = crate::machine::Change { id: "c1".into(), data: edit.to_data(), author, time_s: 1 };

        let built = super::super::build(&blank("pptx"), "pptx", &[change]).unwrap();

        assert!(can_open(&built, "pptx"));
        assert!(changes_in(&built).contains("c1"));
    }
}
