//! Notes of a sheet that has some: ours are written anew, those of people get ours behind them.

use std::io::{Read, Seek, Write};

use super::edits::{Then, put, rewrite};
use super::new_parts::{AUTHOR, note, run};
use super::{MarkError, Marks, Out};
use crate::reading::{Container, Token, cell_of, unescape};

/// What a note of ours says when its cell is right now. Its shape stays, so it cannot simply go.
const CORRECTED: &str = "Nothing is wrong here any more.";

/// Where we are among the notes.
struct State {
    left: Marks,
    /// How many authors there are so far, and which one is ours.
    authors: usize,
    ours: Option<usize>,
    is_author: bool,
    /// What the note we are in gets, and whether it is ours.
    text: Option<String>,
    is_ours: bool,
    /// Whether we are inside of a text that is written anew.
    is_replaced: bool,
}

pub(super) fn write<R: Read + Seek, W: Write + Seek>(
    container: &mut Container<R>,
    part: &str,
    marks: &Marks,
    out: &mut Out<W>,
) -> Result<(), MarkError> {
    let mut state = State {
        left: marks.clone(),
        authors: 0,
        ours: None,
        is_author: false,
        text: None,
        is_ours: false,
        is_replaced: false,
    };
    rewrite(container, part, out, |at, out| state.look(at.token, at.prefix, out))
}

impl State {
    fn look<W: Write + Seek>(
        &mut self,
        token: Token<'_>,
        prefix: &str,
        out: &mut Out<W>,
    ) -> std::io::Result<Then> {
        match token {
            Token::Start(tag) if tag.name == b"author" => self.is_author = true,
            Token::Empty(tag) if tag.name == b"author" => self.authors += 1,
            Token::Text(text) if self.is_author && unescape(text).is_some_and(|text| text == AUTHOR) => {
                self.ours = Some(self.authors);
            }
            Token::End(b"author", _) => {
                self.is_author = false;
                self.authors += 1;
            }
            Token::End(b"authors", _) if self.ours.is_none() => {
                self.ours = Some(self.authors);
                put(out, Some(format!("<PREFIXauthor>{AUTHOR}</PREFIXauthor>")), prefix)?;
            }
            Token::Start(tag) if tag.name == b"comment" => {
                let author = tag.attribute("authorId").and_then(|author| author.parse().ok());
                self.is_ours = author.is_some() && author == self.ours;
                self.text = tag.attribute("ref").and_then(|cell| self.left.remove(&cell_of(&cell)?));
            }
            Token::Start(tag) if self.is_ours && tag.name == b"text" => {
                self.is_replaced = true;
                let text = self.text.take().unwrap_or_else(|| CORRECTED.to_owned());
                out.write_all(token.bytes())?;
                out.write_all(run(&text, prefix).as_bytes())?;
                return Ok(Then::Leave);
            }
            Token::End(b"text", _) => {
                self.is_replaced = false;
                let behind = self.text.take().map(|text| run(&format!("\n{text}"), prefix));
                out.write_all(behind.unwrap_or_default().as_bytes())?;
            }
            // A list without any is one tag.
            Token::Empty(tag) if tag.name == b"commentList" => {
                let notes = self.others(prefix);
                out.write_all(format!("<{prefix}commentList>{notes}</{prefix}commentList>").as_bytes())?;
                return Ok(Then::Leave);
            }
            Token::End(b"commentList", _) => out.write_all(self.others(prefix).as_bytes())?,
            _ if self.is_replaced => return Ok(Then::Leave),
            _ => {}
        }
        Ok(Then::Copy)
    }

    /// Notes for cells that have none.
    fn others(&self, prefix: &str) -> String {
        let author = self.ours.unwrap_or(0);
        self.left.iter().map(|(cell, text)| note(*cell, text, (author, prefix))).collect()
    }
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
