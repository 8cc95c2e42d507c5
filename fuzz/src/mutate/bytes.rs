//! Changes to bytes of which nothing is known: bits, numbers, blocks, and pieces of other files.
//!
//! Guarantees: what comes out is at most [`INPUT_BYTES_MAX`] long. Does not do: keep checksums right.

use super::dictionary::{NUMBERS, SIGNATURES, WORDS};
use crate::dice::Dice;

/// Larger inputs only take longer: no file of the corpus is larger, and windows and buffers are smaller.
pub(crate) const INPUT_BYTES_MAX: usize = 200 * 1024;

/// Changes made at once; more leave nothing of the file.
const CHANGES_MAX: usize = 8;

/// Changes a file in some places. `other` is one to take pieces from.
pub(crate) fn mutate(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    for _ in 0..dice.length(CHANGES_MAX) {
        match dice.below(14) {
            0 | 1 => flip(bytes, dice),
            2 => set(bytes, dice),
            3 | 4 => number(bytes, dice),
            5 => near_signature(bytes, dice),
            6 => delete(bytes, dice),
            7 => repeat(bytes, dice),
            8 => copy(bytes, dice),
            9 => insert_noise(bytes, dice),
            10 => insert_one_of(bytes, &SIGNATURES, dice),
            11 => insert_one_of(bytes, &WORDS, dice),
            12 => splice(bytes, other, dice),
            _ => cut(bytes, dice),
        }
        bytes.truncate(INPUT_BYTES_MAX);
    }
}

fn flip(bytes: &mut [u8], dice: &mut Dice) {
    let (at, bit) = (dice.below(bytes.len()), dice.below(8));
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

fn set(bytes: &mut [u8], dice: &mut Dice) {
    let (at, value) = (dice.below(bytes.len()), dice.byte());
    if let Some(byte) = bytes.get_mut(at) {
        *byte = value;
    }
}

/// Writes a number, or adds to the one that is there.
fn number(bytes: &mut [u8], dice: &mut Dice) {
    let at = dice.below(bytes.len()) & if dice.once_in(2) { !3 } else { !0 };
    write_number(bytes, at, dice);
}

fn write_number(bytes: &mut [u8], at: usize, dice: &mut Dice) {
    let (length, width) = (bytes.len(), *dice.one_of(&[1, 2, 2, 4, 4, 4, 8]));
    let Some(field) = bytes.get_mut(at..at + width) else { return };
    let mut old = [0; 8];
    old[..width].copy_from_slice(field);
    let old = u64::from_le_bytes(old);
    let new = match dice.below(5) {
        0 => old.wrapping_add(1 + dice.below(16) as u64),
        1 => old.wrapping_sub(1 + dice.below(16) as u64),
        // A place in the file, or the number of one of its sectors.
        2 => dice.below(length + 2) as u64,
        3 => dice.below(length / 512 + 2) as u64,
        _ => *dice.one_of(&NUMBERS),
    };
    field.copy_from_slice(&new.to_le_bytes()[..width]);
}

/// Writes a number into one of the records of an archive.
fn near_signature(bytes: &mut [u8], dice: &mut Dice) {
    let start = dice.below(bytes.len());
    let rest = bytes.get(start..).unwrap_or_default();
    if let Some(found) = rest.windows(2).position(|window| window == b"PK") {
        write_number(bytes, start + found + 4 + dice.below(50), dice);
    }
}

fn delete(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let span = dice.span(bytes.len());
    bytes.drain(span);
}

fn repeat(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let span = dice.span(bytes.len());
    let times = dice.length(if span.len() < 64 { 2_000 } else { 8 });
    let piece = bytes.get(span.clone()).unwrap_or_default().repeat(times);
    bytes.splice(span.end..span.end, piece.into_iter().take(INPUT_BYTES_MAX));
}

fn copy(bytes: &mut [u8], dice: &mut Dice) {
    let (from, to) = (dice.span(bytes.len()), dice.below(bytes.len()));
    if to + from.len() <= bytes.len() {
        bytes.copy_within(from, to);
    }
}

fn insert_noise(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let noise: Vec<u8> = match dice.once_in(2) {
        true => (0..dice.length(64)).map(|_| dice.byte()).collect(),
        false => vec![dice.byte(); dice.length(8_192)],
    };
    insert(bytes, &noise, dice);
}

fn insert_one_of(bytes: &mut Vec<u8>, pieces: &[&[u8]], dice: &mut Dice) {
    let piece = *dice.one_of(pieces);
    insert(bytes, piece, dice);
}

fn insert(bytes: &mut Vec<u8>, piece: &[u8], dice: &mut Dice) {
    let at = dice.below(bytes.len() + 1);
    // Over what was there, or between.
    let end = if dice.once_in(2) { at } else { (at + piece.len()).min(bytes.len()) };
    bytes.splice(at..end, piece.iter().copied());
}

/// The start of this file and the end of another.
fn splice(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    bytes.truncate(dice.below(bytes.len() + 1));
    bytes.extend_from_slice(other.get(dice.below(other.len())..).unwrap_or_default());
}

fn cut(bytes: &mut Vec<u8>, dice: &mut Dice) {
    bytes.truncate(dice.below(bytes.len() + 1));
}
