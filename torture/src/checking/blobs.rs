//! The stored bytes themselves, read where the vault has them on a disk.

use std::collections::{BTreeMap, HashMap};

use understudy::office::{sha256_hex, text_of};

use crate::world::Shelf;

/// A stored blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Blob {
    /// It is not there.
    Missing,
    /// Its bytes are not those of its name.
    Damaged,
    /// How often each change's marker stands in it.
    Whole(BTreeMap<String, u32>),
}

/// Blobs, each read once.
#[derive(Debug)]
pub(crate) struct Blobs {
    shelf: Shelf,
    known: HashMap<String, Blob>,
}

impl Blobs {
    pub(crate) fn of(shelf: Shelf) -> Self {
        Self { shelf, known: HashMap::new() }
    }

    /// A blob that was read before.
    pub(crate) fn known(&self, sha256: &str) -> Option<&Blob> {
        self.known.get(sha256)
    }

    pub(crate) fn read(&mut self, sha256: &str) -> &Blob {
        let shelf = &self.shelf;
        self.known.entry(sha256.to_owned()).or_insert_with(|| {
            let Ok(bytes) = std::fs::read(shelf.file(sha256)) else {
                return Blob::Missing;
            };
            if sha256_hex(&bytes) == sha256 { Blob::Whole(markers_in(&bytes)) } else { Blob::Damaged }
        })
    }
}

/// Every marker in a file, with how often it is there.
fn markers_in(bytes: &[u8]) -> BTreeMap<String, u32> {
    let text = text_of(bytes);
    let mut markers = BTreeMap::new();
    for rest in text.split("[#").skip(1) {
        if let Some((id, _)) = rest.split_once(']') {
            *markers.entry(id.to_owned()).or_default() += 1;
        }
    }
    markers
}
