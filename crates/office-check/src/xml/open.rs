//! The elements that are open.
//!
//! Guarantees: names stand one after the other in one row of bytes, so a level costs its name and 24 bytes, and both
//! are bounded.
//! Not its business: what the names mean.

use super::attributes::Name;
use super::fault::XmlFaultKind;
use super::limits::XmlLimits;

const WORD_BYTES: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Level {
    name_start: usize,
    /// The first bytes of the name in one word, because most names fit and calls to compare memory cost more.
    head: u64,
    /// How many namespace bindings there were before the element.
    namespaces: usize,
}

/// The elements that are open, the innermost last.
#[derive(Debug)]
pub(crate) struct OpenElements {
    levels: Vec<Level>,
    names: Vec<u8>,
    depth_max: usize,
    names_bytes_max: usize,
}

impl OpenElements {
    pub(crate) fn new(limits: &XmlLimits) -> Self {
        Self {
            levels: Vec::new(),
            names: Vec::new(),
            depth_max: limits.depth_max,
            names_bytes_max: limits.open_names_bytes_max,
        }
    }

    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Whether an element with a name of so many bytes may begin here.
    #[inline(always)]
    pub(crate) fn has_room_for(&self, name: &[u8]) -> Result<(), XmlFaultKind> {
        let has_room =
            self.levels.len() < self.depth_max && self.names.len() + name.len() <= self.names_bytes_max;
        if has_room { Ok(()) } else { Err(XmlFaultKind::TooDeep) }
    }

    /// Opens the element whose name stands at `start..end`.
    #[inline(always)]
    pub(crate) fn push(&mut self, data: &[u8], name: Name, namespaces: usize) {
        let name_start = self.names.len();
        let length = name.end - name.start;
        let head = head(data, name.start, length);
        self.levels.push(Level { name_start, head, namespaces });
        if length <= WORD_BYTES {
            self.names.extend_from_slice(&head.to_le_bytes());
            self.names.truncate(name_start + length);
        } else {
            self.names.extend_from_slice(name.whole_in(data));
        }
    }

    /// Whether the name of the innermost element stands at `start`, and its length.
    #[inline(always)]
    pub(crate) fn is_next(&self, data: &[u8], start: usize) -> Option<usize> {
        let level = self.levels.last()?;
        let length = self.names.len() - level.name_start;
        let is_same = if length <= WORD_BYTES {
            head(data, start, length) == level.head
        } else {
            data.get(start..start + length) == self.names.get(level.name_start..)
        };
        is_same.then_some(length)
    }

    /// The name of the innermost element.
    #[inline(always)]
    pub(crate) fn name(&self) -> Option<&[u8]> {
        self.levels.last().and_then(|level| self.names.get(level.name_start..))
    }

    /// Closes the innermost element; says how many namespace bindings there were before it.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> usize {
        let Some(level) = self.levels.pop() else { return 0 };
        self.names.truncate(level.name_start);
        level.namespaces
    }
}

/// Up to eight bytes from an index on as one word. No name contains a zero, so what is missing equals nothing.
#[inline(always)]
fn head(data: &[u8], start: usize, length: usize) -> u64 {
    let rest = data.get(start..).unwrap_or_default();
    let word = match rest.first_chunk::<WORD_BYTES>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    let unused_bits = WORD_BYTES.saturating_sub(length) * 8;
    if unused_bits == 64 { 0 } else { word << unused_bits >> unused_bits }
}
