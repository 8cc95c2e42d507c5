//! Names of entries: which are one to Office, and which are unsafe.
//!
//! Guarantees: names are hashed with a key that is new in every process (SipHash), so nobody can prepare two
//! names with one hash; equal hashes are taken as equal names.
//! Does not do: decode. Names are bytes; percent signs and characters beyond ASCII stand for themselves.

use std::hash::{BuildHasher, Hasher as _, RandomState};

/// Names are put into their one form in pieces of so many bytes, so that no copy is needed.
const PIECE_BYTES: usize = 128;

/// Makes the hashes of one archive.
pub(super) struct NameHasher(RandomState);

impl NameHasher {
    pub(super) fn new() -> Self {
        Self(RandomState::new())
    }

    /// Equal for names that are one part to Office: upper and lower case, slashes either way, or one in
    /// front.
    pub(super) fn of_part(&self, name: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        for piece in without_leading_slashes(name).chunks(PIECE_BYTES) {
            let mut folded = [0_u8; PIECE_BYTES];
            for (to, from) in folded.iter_mut().zip(piece) {
                *to = if *from == b'\\' { b'/' } else { from.to_ascii_lowercase() };
            }
            hasher.write(folded.get(..piece.len()).unwrap_or_default());
        }
        hasher.finish()
    }

    /// Equal for equal bytes. Half a hash is enough to notice that a local header has another name.
    pub(super) fn of_bytes(&self, name: &[u8]) -> u32 {
        let mut hasher = self.0.build_hasher();
        hasher.write(name);
        let [a, b, c, d, ..] = hasher.finish().to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

/// As the parts of a package are written in its archive.
pub(super) fn without_leading_slashes(name: &[u8]) -> &[u8] {
    let count = name.iter().take_while(|byte| is_slash(**byte)).count();
    name.get(count..).unwrap_or_default()
}

/// Whether unpacking an entry of this name could write outside of the folder it is unpacked to.
pub(super) fn is_unsafe(name: &[u8]) -> bool {
    let is_absolute = name.first().is_none_or(|byte| is_slash(*byte));
    let has_drive = matches!(name, [letter, b':', ..] if letter.is_ascii_alphabetic());
    let climbs = name.split(|byte| is_slash(*byte)).any(|segment| segment == b"..");
    is_absolute || has_drive || climbs || name.contains(&0)
}

/// Whether the name is that of a directory entry.
pub(super) fn is_folder(name: &[u8]) -> bool {
    name.last().is_some_and(|byte| is_slash(*byte))
}

fn is_slash(byte: u8) -> bool {
    matches!(byte, b'/' | b'\\')
}
