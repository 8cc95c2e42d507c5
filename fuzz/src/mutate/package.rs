//! Changes to packages from the inside: parts are changed, renamed, doubled and dropped, and all is packed again with
//! right sizes and checksums, so that what reads parts is reached.
//!
//! Guarantees: unless bytes are changed afterwards, the archive is whole. Does not do: know which parts belong together.

use super::bytes::{self, INPUT_BYTES_MAX};
use super::dictionary::NAMES;
use super::markup;
use crate::dice::Dice;
use crate::packing::{Part, Style, pack};

const CHANGES_MAX: usize = 4;
const PARTS_MAX: usize = 200;

/// Parts without which a document cannot be opened; most changes should be there.
const REQUIRED: [&str; 7] = [
    "[Content_Types].xml",
    ".rels",
    "document.xml",
    "workbook.xml",
    "content.xml",
    "manifest.xml",
    "mimetype",
];

/// Changes some parts. `other` is a package to take parts from.
pub(crate) fn mutate(parts: &mut Vec<Part>, other: &[Part], dice: &mut Dice) {
    for _ in 0..dice.length(CHANGES_MAX) {
        let at = choose(parts, dice);
        let (place, piece) = (dice.below(parts.len() + 1), other.get(dice.below(other.len())));
        match dice.below(16) {
            0..=6 => change(parts, at, dice),
            7 => parts.truncate(dice.below(parts.len() + 1)),
            8 if !parts.is_empty() => drop(parts.remove(at)),
            9 => parts.extend(parts.get(at).cloned()),
            10 => rename(parts, at, dice),
            11 => parts.extend(piece.cloned()),
            12 => replace(parts, at, piece),
            13 if place < parts.len() => parts.swap(at, place),
            14 => parts.splice(place..place, piece.cloned()).for_each(drop),
            _ => change(parts, at, dice),
        }
        parts.truncate(PARTS_MAX);
    }
}

/// Packs them, in a way that some writer does. Once in a while bytes are changed after all.
pub(crate) fn packed(parts: &[Part], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = pack(parts, &Style::by(dice));
    if dice.once_in(20) {
        bytes::mutate(&mut bytes, &[], dice);
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

fn choose(parts: &[Part], dice: &mut Dice) -> usize {
    let is_required = |part: &Part| {
        let name = String::from_utf8_lossy(&part.name);
        REQUIRED.iter().any(|end| name.ends_with(end))
    };
    let required: Vec<usize> =
        parts.iter().enumerate().filter(|(_, part)| is_required(part)).map(|(at, _)| at).collect();
    match required.as_slice() {
        [] => dice.below(parts.len()),
        _ if dice.once_in(3) => dice.below(parts.len()),
        required => *dice.one_of(required),
    }
}

fn change(parts: &mut [Part], at: usize, dice: &mut Dice) {
    let other = parts.get(dice.below(parts.len())).map(|part| part.data.clone()).unwrap_or_default();
    let Some(part) = parts.get_mut(at) else { return };
    match dice.once_in(8) {
        true => bytes::mutate(&mut part.data, &other, dice),
        false => markup::mutate(&mut part.data, &other, dice),
    }
}

fn rename(parts: &mut [Part], at: usize, dice: &mut Dice) {
    let Some(part) = parts.get_mut(at) else { return };
    match dice.below(6) {
        0 => part.name.make_ascii_uppercase(),
        1 => part.name.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'\\'),
        2 => part.name.insert(0, b'/'),
        3 => part.name = vec![b'n'; dice.length(5_000)],
        4 => bytes::mutate(&mut part.name, &[], dice),
        _ => part.name = dice.one_of(&NAMES).to_vec(),
    }
    part.name.truncate(usize::from(u16::MAX));
}

fn replace(parts: &mut [Part], at: usize, piece: Option<&Part>) {
    if let (Some(part), Some(piece)) = (parts.get_mut(at), piece) {
        part.data.clone_from(&piece.data);
    }
}
