//! The parts that marking writes differently: token by token, everything else as it was.

use std::borrow::Cow;
use std::io::{Read, Seek, Write};

use super::super::markup::escaped;
use super::{DRAWING_BYTES_MAX, MarkError, Marks, Out, new_parts};
use crate::reading::{Container, Token, cell_of, letters};

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
    /// Red cells and a drawing of notes.
    Sheet { marks: Marks, format: usize, has_drawing: bool, is_strict: bool },
    /// One more conditional format.
    Styles,
    /// One more sheet.
    Workbook { name: String, is_strict: bool },
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
            Self::Sheet { marks, format, has_drawing, is_strict } => {
                let mut formats = Some(red_cells(marks, *format));
                let drawing = format!(
                    r#"<PREFIXlegacyDrawing xmlns:r="{}" r:id="rIdMarkShapes"/>"#,
                    new_parts::office(*is_strict)
                );
                let mut drawing = (!has_drawing).then_some(drawing);
                rewrite(container, part, out, |at, out| {
                    let (is_behind_formats, is_behind_drawing) = behind(at);
                    if is_behind_formats {
                        put(out, formats.take(), at.prefix)?;
                    }
                    if is_behind_drawing {
                        put(out, drawing.take(), at.prefix)?;
                    }
                    Ok(Then::Copy)
                })
            }
            Self::Styles => write_styles(container, part, out),
            Self::Workbook { name, is_strict } => write_workbook(container, part, (name, *is_strict), out),
            Self::Notes(marks) => write_notes(container, part, marks, out),
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

/// A token and where it stands.
struct At<'a> {
    token: Token<'a>,
    /// How many elements are around it.
    depth: usize,
    /// What the names of the part's elements begin with: `x:` or nothing.
    prefix: &'a str,
}

impl At<'_> {
    fn is_end_of(&self, name: &[u8], depth: usize) -> bool {
        self.depth == depth && matches!(self.token, Token::End(ended, _) if ended == name)
    }
}

enum Then {
    Copy,
    Leave,
}

/// Writes a part again; `edit` may put something before a token, or leave the token out.
fn rewrite<R: Read + Seek, W: Write + Seek>(
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
fn put<W: Write + Seek>(out: &mut Out<W>, markup: Option<String>, prefix: &str) -> std::io::Result<()> {
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
            r#"<PREFIXconditionalFormatting sqref="{cells}"><PREFIXcfRule type="expression" dxfId="{format}" priority="1"><PREFIXformula>TRUE</PREFIXformula></PREFIXcfRule></PREFIXconditionalFormatting>"#
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
    (name, is_strict): (&str, bool),
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
            let (name, id, office) = (escaped(name), last.saturating_add(1), new_parts::office(is_strict));
            let sheet = format!(
                r#"<PREFIXsheet xmlns:r="{office}" name="{name}" sheetId="{id}" r:id="rIdMarkList"/>"#
            );
            put(out, Some(sheet), at.prefix)?;
        }
        Ok(Then::Copy)
    })
}

/// Notes there are get our text behind theirs, the others are added.
fn write_notes<R: Read + Seek, W: Write + Seek>(
    container: &mut Container<R>,
    part: &str,
    marks: &Marks,
    out: &mut Out<W>,
) -> Result<(), MarkError> {
    let mut left = marks.clone();
    let mut mine: Option<String> = None;
    rewrite(container, part, out, |at, out| {
        match at.token {
            Token::Start(tag) if tag.name == b"comment" => {
                mine = tag.attribute("ref").and_then(|cell| left.remove(&cell_of(&cell)?));
            }
            Token::End(b"text", _) => {
                let run = mine.take().map(|text| {
                    let text = escaped(&text);
                    format!(r#"<PREFIXr><PREFIXt xml:space="preserve">&#10;{text}</PREFIXt></PREFIXr>"#)
                });
                put(out, run, at.prefix)?;
            }
            // A list without any is one tag.
            Token::Empty(tag) if tag.name == b"commentList" => {
                let notes: String =
                    left.iter().map(|(cell, text)| new_parts::note(*cell, text, at.prefix)).collect();
                let p = at.prefix;
                out.write_all(format!("<{p}commentList>{notes}</{p}commentList>").as_bytes())?;
                return Ok(Then::Leave);
            }
            Token::End(b"commentList", _) => {
                for (cell, text) in &left {
                    out.write_all(new_parts::note(*cell, text, at.prefix).as_bytes())?;
                }
            }
            _ => {}
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
    let mut bytes = Vec::new();
    let entry = container.archive().by_name(part)?;
    entry.take(DRAWING_BYTES_MAX).read_to_end(&mut bytes).map_err(MarkError::Read)?;
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

/// Whether the workbook is written in the strict dialect.
pub(super) fn is_strict<R: Read + Seek>(container: &mut Container<R>) -> Result<bool, MarkError> {
    let mut root = None;
    let part = container.workbook.clone();
    container.walk(&part, |token| {
        if let Token::Start(tag) | Token::Empty(tag) = token {
            let is_strict =
                || tag.attributes().any(|(_, value)| value.starts_with(b"http://purl.oclc.org/ooxml"));
            root.get_or_insert_with(is_strict);
        }
        Ok(())
    })?;
    Ok(root.unwrap_or(false))
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

/// The cells that have a note.
pub(super) fn noted_cells<R: Read + Seek>(
    container: &mut Container<R>,
    part: &str,
) -> Result<Vec<(u32, u32)>, MarkError> {
    let mut cells = Vec::new();
    container.walk(part, |token| {
        if let Token::Start(tag) | Token::Empty(tag) = token
            && tag.name == b"comment"
        {
            cells.extend(tag.attribute("ref").and_then(|cell| cell_of(&cell)));
        }
        Ok(())
    })?;
    Ok(cells)
}
