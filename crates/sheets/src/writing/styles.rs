//! Styles of the workbooks we make: a few fonts and fills, and a number format where a column wants one.

use std::fmt::Write as _;

/// Fonts: plain, bold, large, grey and slanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Font {
    Plain,
    Bold,
    Large,
    Pale,
}

/// Fills: none (the second one is taken by spreadsheet programs), heading, given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    None = 0,
    Heading = 2,
    Given = 3,
}

/// Styles that were asked for; their numbers are stable.
#[derive(Debug)]
pub(crate) struct Styles {
    formats: Vec<String>,
    kinds: Vec<(Font, Fill, Option<usize>)>,
}

impl Styles {
    pub(crate) fn new() -> Self {
        Self { formats: Vec::new(), kinds: vec![(Font::Plain, Fill::None, None)] }
    }

    /// The number of a style. `format` is a number format such as `0.00`.
    pub(crate) fn style(&mut self, font: Font, fill: Fill, format: Option<&str>) -> usize {
        let format = format.map(|format| match self.formats.iter().position(|known| known == format) {
            Some(known) => known,
            None => {
                self.formats.push(format.to_owned());
                self.formats.len() - 1
            }
        });
        let kind = (font, fill, format);
        match self.kinds.iter().position(|known| *known == kind) {
            Some(known) => known,
            None => {
                self.kinds.push(kind);
                self.kinds.len() - 1
            }
        }
    }

    pub(crate) fn markup(&self) -> String {
        let mut formats = String::new();
        for (number, format) in (170..).zip(&self.formats) {
            let format = super::markup::escaped(format);
            let _ = write!(formats, r#"<numFmt numFmtId="{number}" formatCode="{format}"/>"#);
        }
        if !formats.is_empty() {
            formats = format!(r#"<numFmts count="{}">{formats}</numFmts>"#, self.formats.len());
        }
        let mut kinds = String::new();
        for (font, fill, format) in &self.kinds {
            let number = format.map_or(0, |format| 170 + format);
            let alignment = if *fill == Fill::Heading {
                r#" applyAlignment="1"><alignment vertical="top" wrapText="1"/></xf>"#
            } else {
                "/>"
            };
            let _ = write!(
                kinds,
                r#"<xf numFmtId="{number}" fontId="{}" fillId="{}" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1" applyFill="1"{alignment}"#,
                *font as usize, *fill as usize
            );
        }
        format!(
            r#"<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{formats}<fonts count="4"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="16"/><name val="Calibri"/></font><font><i/><sz val="11"/><color rgb="FF808080"/><name val="Calibri"/></font></fonts><fills count="4"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill><fill><patternFill patternType="solid"><fgColor rgb="FFDDE8F3"/><bgColor indexed="64"/></patternFill></fill><fill><patternFill patternType="solid"><fgColor rgb="FFF2F2F2"/><bgColor indexed="64"/></patternFill></fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="{}">{kinds}</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>"#,
            self.kinds.len()
        )
    }
}
