//! Changes to XML that leave it XML more often than not: values, tags, stretches between tags, encodings.
//!
//! Guarantees: what comes out is at most [`INPUT_BYTES_MAX`] long. Does not do: parse; a `<` begins a tag here.

use super::bytes::{self, INPUT_BYTES_MAX};
use super::dictionary::{VALUES, WORDS};
use crate::dice::Dice;

const CHANGES_MAX: usize = 4;

/// Changes a document in some places. `other` is one to take pieces from.
pub(crate) fn mutate(text: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    for _ in 0..dice.length(CHANGES_MAX) {
        match dice.below(11) {
            0 | 1 => value(text, dice),
            2 | 3 => word(text, dice),
            4 => delete_between_tags(text, dice),
            5 => repeat_between_tags(text, dice),
            6 => move_between_tags(text, other, dice),
            7 => nest(text, dice),
            8 => encode(text, dice),
            9 => front(text, dice),
            _ => bytes::mutate(text, other, dice),
        }
        text.truncate(INPUT_BYTES_MAX);
    }
}

/// A place behind or before some tag.
fn edge(text: &[u8], dice: &mut Dice) -> usize {
    let start = dice.below(text.len() + 1);
    let rest = text.get(start..).unwrap_or_default();
    match rest.iter().position(|byte| matches!(byte, b'<' | b'>')) {
        Some(found) if rest.get(found) == Some(&b'>') => start + found + 1,
        Some(found) => start + found,
        None => text.len(),
    }
}

fn stretch(text: &[u8], dice: &mut Dice) -> std::ops::Range<usize> {
    let (one, other) = (edge(text, dice), edge(text, dice));
    one.min(other)..one.max(other)
}

/// Puts another value between some quotes.
fn value(text: &mut Vec<u8>, dice: &mut Dice) {
    let start = dice.below(text.len());
    let rest = text.get(start..).unwrap_or_default();
    let Some(open) = rest.windows(2).position(|pair| pair == b"=\"" || pair == b"='") else { return };
    let quote = rest.get(open + 1).copied();
    let from = start + open + 2;
    let length = text.get(from..).unwrap_or_default().iter().position(|byte| Some(*byte) == quote);
    let value = match dice.below(8) {
        0 => vec![b'a'; dice.length(20_000)],
        1 => WORDS[dice.below(WORDS.len())].to_vec(),
        _ => VALUES[dice.below(VALUES.len())].to_vec(),
    };
    text.splice(from..from + length.unwrap_or_default(), value);
}

fn word(text: &mut Vec<u8>, dice: &mut Dice) {
    let at = if dice.once_in(2) { edge(text, dice) } else { dice.below(text.len() + 1) };
    let word = *dice.one_of(&WORDS);
    text.splice(at..at, word.iter().copied());
}

fn delete_between_tags(text: &mut Vec<u8>, dice: &mut Dice) {
    let stretch = stretch(text, dice);
    // Mostly a little, so that something is left to look at.
    let end = if dice.once_in(4) { stretch.end } else { stretch.end.min(stretch.start + 200) };
    text.drain(stretch.start..end);
}

fn repeat_between_tags(text: &mut Vec<u8>, dice: &mut Dice) {
    let stretch = stretch(text, dice);
    let piece = text.get(stretch.clone()).unwrap_or_default();
    let times = dice.length((INPUT_BYTES_MAX / piece.len().max(1)).max(1));
    let repeated = piece.repeat(times);
    text.splice(stretch.end..stretch.end, repeated);
}

fn move_between_tags(text: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let from = stretch(other, dice);
    let at = edge(text, dice);
    text.splice(at..at, other.get(from).unwrap_or_default().iter().copied().take(4_096));
}

/// Wraps a stretch into elements, up to deeper than is allowed.
fn nest(text: &mut Vec<u8>, dice: &mut Dice) {
    let stretch = stretch(text, dice);
    let depth = dice.length(11_000);
    let name = *dice.one_of(&["a", "b:c", "a xmlns='x'", "long-name-of-an-element"]);
    let end = name.split(' ').next().unwrap_or_default();
    text.splice(stretch.end..stretch.end, format!("</{end}>").repeat(depth).into_bytes());
    text.splice(stretch.start..stretch.start, format!("<{name}>").repeat(depth).into_bytes());
}

/// Writes the document in UTF-16, with or without a mark.
fn encode(text: &mut Vec<u8>, dice: &mut Dice) {
    let Ok(known) = std::str::from_utf8(text) else { return };
    let unit_bytes = if dice.once_in(2) { u16::to_le_bytes } else { u16::to_be_bytes };
    let mark = if dice.once_in(4) { "" } else { "\u{FEFF}" };
    *text = [mark, known].concat().encode_utf16().flat_map(unit_bytes).collect();
}

fn front(text: &mut Vec<u8>, dice: &mut Dice) {
    let front: [&[u8]; 6] =
        [b"\xef\xbb\xbf", b"\xff\xfe", b" ", b"<!DOCTYPE a>", b"<?xml version=\"1.0\"?>", b"<!-- -->"];
    text.splice(0..0, dice.one_of(&front).iter().copied());
}
