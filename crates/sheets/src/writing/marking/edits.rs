//! The parts that marking writes differently: token by token, everything else as it was.

use std::borrow::Cow;
use std::io::{Read, Seek, Write};

use super::super::markup::escaped;
use super::new_parts::{Dialect, FORMULA};
use super::{DRAWING_BYTES_MAX, MarkError, Marks, Out, new_parts, notes};
use crate::reading::{Container, Token, letters, unescape};

/// Cells that one conditional format names.
const CELLS_PER_FORMAT: usize = 500;
/// What stands behind conditional formats in a sheet.
const BEHIND_FORMATS: [&[u8]; 24] = [
    b"conditionalFormatting",
    b"dataValidations",
    b"hyperlinks",
    b"printOptions",
    b"pageMargins",
    b"pageSetup",
    b"headerFooter",
    b"rowBreaks",
    b"colBreaks",
    b"customProperties",
    b"cellWatches",
    b"ignoredErrors",
    b"smartTags",
    b"drawing",
    b"legacyDrawing",
    b"legacyDrawingHF",
    b"drawingHF",
    b"picture",
    b"oleObjects",
    b"controls",
    b"webPublishItems",
    b"tableParts",
    b"AlternateContent",
    b"extLst",
];
/// How many of these are behind the drawing of notes, from the end.
const BEHIND_DRAWING: usize = 9;

/// How a part is written differently.
pub(super) enum Edit {
    /// Red cells, and a drawing of notes.
    Sheet { marks: Marks, format: usize, adds_drawing: Option<String> },
    /// Something else.
    Whole(String),
    /// One more conditional format.
    Styles,
    /// One more sheet.
    Workbook { name: String, id: String, dialect: Dialect },
    /// Further notes.
    Notes(Marks),
    /// Further shapes.
    Drawing(String),
    /// Further parts.
    Types(String),
    /// Something at the end of an element.
    Insert { before_end_of: &'static str, markup: String },
}

impl Edit {
    pub(super) fn apply<R: Read + Seek, W: Write + Seek>(
        &self,
        container: &mut Container<R>,
        part: &str,
        out: &mut Out<W>,
    ) -> Result<(), MarkError> {
        match self {
            Self::Sheet { marks, format, adds_drawing } => {
                write_sheet(container, part, (marks, *format, adds_drawing.as_deref()), out)
            }
            Self::Whole(text) => Ok(out.write_all(text.as_bytes())?),
            Self::Styles => write_styles(container, part, out),
            Self::Workbook { name, id, dialect } => {
                write_workbook(container, part, (name, id, *dialect), out)
            }
            Self::Notes(marks) => notes::write(container, part, marks, out),
            Self::Drawing(shapes) => write_drawing(container, part, shapes, out),
            Self::Types(types) => {
                let mut has_drawings = false;
                rewrite(container, part, out, |at, out| {
                    if let Token::Start(tag) | Token::Empty(tag) = at.token {
                        let end = tag.attribute("Extension");
                        has_drawings |= end.is_some_and(|end| end.eq_ignore_ascii_case("vml"));
                    }
                    if at.is_end_of(b"Types", 0) {
                        let vml = r#"<PREFIXDefault Extension="vml" ContentType="application/vnd.openxmlformats-officedocument.vmlDrawing"/>"#;
                        put(out, (!has_drawings).then(|| vml.to_owned()), at.prefix)?;
                        put(out, Some(types.replace("<Override", "<PREFIXOverride")), at.prefix)?;
                    }
                    Ok(Then::Copy)
                })
            }
            Self::Insert { before_end_of, markup } => rewrite(container, part, out, |at, out| {
                if at.is_end_of(before_end_of.as_bytes(), 0) {
                    put(out, Some(markup.replace("<Relationship ", "<PREFIXRelationship ")), at.prefix)?;
                }
                Ok(Then::Copy)
            }),
        }
    }
}

/// Ours goes to its place, and what an earlier round left there goes.
fn write_sheet<R: Read + Seek, W: Write + Seek>(
    container: &mut Container<R>,
    part: &str,
    (marks, format, drawing): (&Marks, usize, Option<&str>),
    out: &mut Out<W>,
) -> Result<(), MarkError> {
    let mut formats = Some(red_cells(marks, format));
    let mut drawing = drawing.map(str::to_owned);
    let mut held: Option<Vec<u8>> = None;
    let mut is_ours = false;
    rewrite(container, part, out, |at, out| {
        let (is_behind_formats, is_behind_drawing) = behind(at);
        if is_behind_formats {
            put(out, formats.take(), at.prefix)?;
        }
        if is_behind_drawing {
            put(out, drawing.take(), at.prefix)?;
        }
        if let Some(bytes) = &mut held {
            bytes.extend_from_slice(at.token.bytes());
            if let Token::Text(text) = at.token {
                is_ours |= unescape(text).is_some_and(|text| text == FORMULA);
            }
            if at.is_end_of(b"conditionalFormatting", 1) {
                let bytes = held.take().filter(|_| !is_ours).unwrap_or_default();
                out.write_all(&bytes)?;
            }
            return Ok(Then::Leave);
        }
        if let Token::Start(tag) = at.token
            && at.depth == 1
            && tag.name == b"conditionalFormatting"
        {
            held = Some(at.token.bytes().to_vec());
            is_ours = false;
            return Ok(Then::Leave);
        }
        Ok(Then::Copy)
    })
}

/// A token and where it stands.
pub(super) struct At<'a> {
    pub(super) token: Token<'a>,
    /// How many elements are around it.
    pub(super) depth: usize,
    /// What the names of the part's elements begin with: `x:` or nothing.
    pub(super) prefix: &'a str,
}

impl At<'_> {
    fn is_end_of(&self, name: &[u8], depth: usize) -> bool {
        self.depth == depth && matches!(self.token, Token::End(ended, _) if ended == name)
    }
}

/// What becomes of a token.
pub(super) enum Then {
    Copy,
    Leave,
}

/// Writes a part again; `edit` may put something before a token, or leave the token out.
pub(super) fn rewrite<R: Read + Seek, W: Write + Seek>(
    container: &mut Container<R>,
    part: &str,
    out: &mut Out<W>,
    mut edit: impl FnMut(&At<'_>, &mut Out<W>) -> std::io::Result<Then>,
) -> Result<(), MarkError> {
    let mut depth: usize = 0;
    let mut prefix: Option<String> = None;
    let mut failed = Ok(());
    container.walk(part, |token| {
        if let (Token::Start(tag) | Token::Empty(tag), None) = (token, &prefix) {
            prefix = Some(prefix_of(token.bytes(), tag.name));
        }
        let around = if matches!(token, Token::End(..)) { depth.saturating_sub(1) } else { depth };
        let at = At { token, depth: around, prefix: prefix.as_deref().unwrap_or("") };
        if failed.is_ok() {
            failed = edit(&at, out).and_then(|then| match then {
                Then::Copy => out.write_all(token.bytes()),
                Then::Leave => Ok(()),
            });
        }
        match token {
            Token::Start(_) => depth += 1,
            Token::End(..) => depth = around,
            _ => {}
        }
        Ok(())
    })?;
    failed?;
    Ok(())
}

/// The prefix of a tag, with its colon.
fn prefix_of(bytes: &[u8], name: &[u8]) -> String {
    let before = bytes.windows(name.len().max(1)).position(|window| window == name).unwrap_or(1);
    String::from_utf8_lossy(bytes.get(1..before).unwrap_or_default()).into_owned()
}

/// Writes markup of ours with the prefix of the part.
pub(super) fn put<W: Write + Seek>(
    out: &mut Out<W>,
    markup: Option<String>,
    prefix: &str,
) -> std::io::Result<()> {
    match markup {
        Some(markup) => out.write_all(markup.replace("PREFIX", prefix).as_bytes()),
        None => Ok(()),
    }
}

/// Whether a token is behind the place of conditional formats, and behind that of the drawing of notes.
fn behind(at: &At<'_>) -> (bool, bool) {
    match at.token {
        Token::Start(tag) | Token::Empty(tag) if at.depth == 1 => {
            let place = BEHIND_FORMATS.iter().position(|name| *name == tag.name);
            (place.is_some(), place.is_some_and(|place| place >= BEHIND_FORMATS.len() - BEHIND_DRAWING))
        }
        Token::End(..) if at.depth == 0 => (true, true),
        _ => (false, false),
    }
}

fn red_cells(marks: &Marks, format: usize) -> String {
    let cells: Vec<String> = marks.keys().map(|(row, column)| format!("{}{row}", letters(*column))).collect();
    let rule = |cells: &[String]| {
        let cells = cells.join(" ");
        format!(
            r#"<PREFIXconditionalFormatting sqref="{cells}"><PREFIXcfRule type="expression" dxfId="{format}" priority="1"><PREFIXformula>{FORMULA}</PREFIXformula></PREFIXcfRule></PREFIXconditionalFormatting>"#
        )
    };
    cells.chunks(CELLS_PER_FORMAT).map(rule).collect()
}

/// Our format goes behind those there are; where there are none, to the place of the list.
fn write_styles<R: Read + Seek, W: Write + Seek>(
    container: &mut Container<R>,
    part: &str,
    out: &mut Out<W>,
) -> Result<(), MarkError> {
    let format = new_parts::FORMAT.replace("</", "@").replace('<', "<PREFIX").replace('@', "</PREFIX");
    let format = format!("<PREFIXdxf>{format}</PREFIXdxf>");
    let mut is_written = false;
    rewrite(container, part, out, |at, out| {
        match at.token {
            Token::Empty(tag) if at.depth == 1 && tag.name == b"dxfs" => {
                is_written = true;
                put(out, Some(format!(r#"<PREFIXdxfs count="1">{format}</PREFIXdxfs>"#)), at.prefix)?;
                return Ok(Then::Leave);
            }
            // The count is only a hint, and it would be wrong.
            Token::Start(tag) if at.depth == 1 && tag.name == b"dxfs" => {
                put(out, Some("<PREFIXdxfs>".into()), at.prefix)?;
                return Ok(Then::Leave);
            }
            Token::End(b"dxfs", _) if at.depth == 1 => {
                is_written = true;
                put(out, Some(format.clone()), at.prefix)?;
            }
            Token::Start(tag) | Token::Empty(tag)
                if at.depth == 1
                    && [&b"tableStyles"[..], b"colors", b"extLst"].contains(&tag.name)
                    && !is_written =>
            {
                is_written = true;
                put(out, Some(format!(r#"<PREFIXdxfs count="1">{format}</PREFIXdxfs>"#)), at.prefix)?;
            }
            Token::End(..) if at.depth == 0 && !is_written => {
                put(out, Some(format!(r#"<PREFIXdxfs count="1">{format}</PREFIXdxfs>"#)), at.prefix)?;
            }
            _ => {}
        }
        Ok(Then::Copy)
    })
}

fn write_workbook<R: Read + Seek, W: Write + Seek>(
    container: &mut Container<R>,
    part: &str,
    (name, relation, dialect): (&str, &str, Dialect),
    out: &mut Out<W>,
) -> Result<(), MarkError> {
    let mut last: u32 = 0;
    rewrite(container, part, out, |at, out| {
        if let Token::Start(tag) | Token::Empty(tag) = at.token
            && tag.name == b"sheet"
        {
            let id = tag.attribute("sheetId").and_then(|id| id.parse().ok()).unwrap_or(0);
            last = last.max(id);
        }
        if at.is_end_of(b"sheets", 1) {
            let (name, id, office) = (escaped(name), last.saturating_add(1), new_parts::office(dialect));
            let sheet = format!(
                r#"<PREFIXsheet xmlns:r="{office}" name="{name}" sheetId="{id}" r:id="{relation}"/>"#
            );
            put(out, Some(sheet), at.prefix)?;
        }
        Ok(Then::Copy)
    })
}

/// Drawings of notes are often no right XML, so they are taken as they are: ours goes before the last end.
fn write_drawing<R: Read + Seek, W: Write + Seek>(
    container: &mut Container<R>,
    part: &str,
    shapes: &str,
    out: &mut Out<W>,
) -> Result<(), MarkError> {
    let bytes = drawing_bytes(container, part)?;
    let end = b"</xml>";
    let at = bytes.windows(end.len()).rposition(|window| window == end).unwrap_or(bytes.len());
    let has_type =
        bytes.windows(15).any(|window| window == b"\"_x0000_t202\" c" || window == b"id=\"_x0000_t202");
    out.write_all(bytes.get(..at).unwrap_or_default())?;
    if !has_type {
        let whole = new_parts::drawing("");
        let from = whole.find("<v:shapetype").unwrap_or(0);
        let until = whole.rfind("</xml>").unwrap_or(whole.len());
        let shape_type = whole.get(from..until).unwrap_or_default();
        let named = r#"<v:shapetype xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office""#;
        out.write_all(shape_type.replacen("<v:shapetype", named, 1).as_bytes())?;
    }
    out.write_all(shapes.as_bytes())?;
    out.write_all(bytes.get(at..).unwrap_or_default())?;
    Ok(())
}

/// A drawing as it is.
pub(super) fn drawing_bytes<R: Read + Seek>(
    container: &mut Container<R>,
    part: &str,
) -> Result<Vec<u8>, MarkError> {
    let mut bytes = Vec::new();
    let entry = container.archive().by_name(part)?;
    entry.take(DRAWING_BYTES_MAX).read_to_end(&mut bytes).map_err(MarkError::Read)?;
    Ok(bytes)
}

/// In which dialect the workbook is written.
pub(super) fn dialect_of<R: Read + Seek>(container: &mut Container<R>) -> Result<Dialect, MarkError> {
    let mut found = None;
    let part = container.workbook.clone();
    container.walk(&part, |token| {
        if let Token::Start(tag) | Token::Empty(tag) = token {
            let is_strict =
                || tag.attributes().any(|(_, value)| value.starts_with(b"http://purl.oclc.org/ooxml"));
            found.get_or_insert_with(|| if is_strict() { Dialect::Strict } else { Dialect::Usual });
        }
        Ok(())
    })?;
    Ok(found.unwrap_or(Dialect::Usual))
}

/// How many conditional formats there are.
pub(super) fn count_formats<R: Read + Seek>(container: &mut Container<R>) -> Result<usize, MarkError> {
    let (mut count, mut is_inside) = (0, false);
    let Some(part) = container.styles.clone() else { return Ok(0) };
    container.walk(&part, |token| {
        match token {
            Token::Start(tag) if tag.name == b"dxfs" => is_inside = true,
            Token::End(b"dxfs", _) => is_inside = false,
            Token::Start(tag) | Token::Empty(tag) if is_inside && tag.name == b"dxf" => count += 1,
            _ => {}
        }
        Ok(())
    })?;
    Ok(count)
}

/// The relation of a sheet's drawing of notes.
pub(super) fn legacy_drawing<R: Read + Seek>(
    container: &mut Container<R>,
    part: &str,
) -> Result<Option<String>, MarkError> {
    let mut found = None;
    container.walk(part, |token| {
        if let Token::Start(tag) | Token::Empty(tag) = token
            && tag.name == b"legacyDrawing"
        {
            found = tag.relation().map(Cow::into_owned);
        }
        Ok(())
    })?;
    Ok(found)
}
