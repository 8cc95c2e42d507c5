//! Publications that were asked for and have not begun.
//!
//! Guarantees: a document is in it once, so that one that is saved many times a second is looked at once for all of them; it leaves when
//! its publication begins, or will not be made. Does not do: remember anything that matters; the ledger knows what is owed.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use model::DocumentId;

/// Documents whose publication waits.
#[derive(Debug, Clone, Default)]
pub struct Wanted(Arc<Mutex<HashSet<DocumentId>>>);

/// A publication that waits for as long as this is there.
#[derive(Debug)]
pub(super) struct Waiting {
    wanted: Wanted,
    document: DocumentId,
}

impl Wanted {
    /// Asks for a publication; `None` if one waits already.
    pub(super) fn ask(&self, document: &DocumentId) -> Option<Waiting> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(document.clone());
        is_new.then(|| Waiting { wanted: self.clone(), document: document.clone() })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.wanted.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.document);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_waits_once_until_its_turn_comes() {
        let wanted = Wanted::default();
        let document = DocumentId::parse("12345").unwrap();
        let first = wanted.ask(&document);
        assert!(first.is_some());
        assert!(wanted.ask(&document).is_none());
        assert!(wanted.ask(&DocumentId::parse("other").unwrap()).is_some());

        drop(first);

        assert!(wanted.ask(&document).is_some());
    }
}
