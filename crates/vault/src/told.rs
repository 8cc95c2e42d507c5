//! Sidecars that are names of files: read out of the names in a folder.

use std::collections::BTreeMap;

use model::Digest;

use crate::Sidecar;
use crate::names::BlobName;

/// What names tell of some blobs.
pub(crate) struct Told<'a> {
    asked: &'a [Digest],
    told: BTreeMap<Digest, Vec<Sidecar>>,
}

impl<'a> Told<'a> {
    pub(crate) fn of(asked: &'a [Digest]) -> Self {
        Self { asked, told: asked.iter().map(|digest| (*digest, Vec::new())).collect() }
    }

    /// The name of a sidecar, if it is that of a blob that was asked for.
    pub(crate) fn note(&mut self, name: &str) {
        let Some((blob, word)) = BlobName::parse_sidecar(name) else { return };
        let Some(told) = self.told.get_mut(&blob.digest) else { return };
        told.extend(Sidecar::parse_word(word).filter(|sidecar| !told.contains(sidecar)));
    }

    /// In the order in which blobs were asked for; those of one blob in order of their words.
    pub(crate) fn in_order(mut self) -> Vec<Vec<Sidecar>> {
        self.told.values_mut().for_each(|told| told.sort_by_key(Sidecar::to_word));
        self.asked.iter().map(|digest| self.told.get(digest).cloned().unwrap_or_default()).collect()
    }
}
