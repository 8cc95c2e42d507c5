//! Who watches which document: a room per document, with a bell.
//!
//! Guarantees: a bell is one number, so a watcher who is slow costs nothing and misses nothing: it looks for itself when it is
//! ready. The number of watchers is bounded. A room goes when its last watcher goes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::DocumentId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The rooms.
#[derive(Debug)]
pub struct Rooms {
    rooms: Mutex<HashMap<DocumentId, watch::Sender<u64>>>,
    places: Arc<Semaphore>,
}

impl Rooms {
    /// Rooms for so many watchers.
    pub fn new(watchers_max: usize) -> Self {
        Self { rooms: Mutex::default(), places: Arc::new(Semaphore::new(watchers_max)) }
    }

    /// Takes a place in the room of a document; `None` if all places are taken.
    pub(super) fn enter(self: &Arc<Self>, document: &DocumentId) -> Option<Seat> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = rooms.entry(document.clone()).or_insert_with(|| watch::channel(0).0);
        let bell = sender.subscribe();
        Some(Seat { rooms: Arc::clone(self), document: document.clone(), bell, _place: place })
    }

    /// Something happened to a document.
    pub(super) fn ring(&self, document: &DocumentId) {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = rooms.get(document) {
            sender.send_modify(|rings| *rings += 1);
        }
    }

    /// Something may have happened to any of them.
    pub(super) fn ring_all(&self) {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.values().for_each(|sender| sender.send_modify(|rings| *rings += 1));
    }

    fn leave(&self, document: &DocumentId) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever leaves still has a bell.
        if rooms.get(document).is_some_and(|sender| sender.receiver_count() <= 1) {
            rooms.remove(document);
        }
    }
}

/// A place in a room.
#[derive(Debug)]
pub(super) struct Seat {
    rooms: Arc<Rooms>,
    document: DocumentId,
    pub(super) bell: watch::Receiver<u64>,
    _place: OwnedSemaphorePermit,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.rooms.leave(&self.document);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_rooms_go_with_their_last_watcher() {
        let rooms = Arc::new(Rooms::new(2));
        let document = DocumentId::parse("12345").unwrap();

        let (one, two) = (rooms.enter(&document), rooms.enter(&document));
        assert!(one.is_some() && two.is_some());
        assert!(rooms.enter(&document).is_none(), "all places are taken");
        rooms.ring(&document);
        assert!(one.as_ref().unwrap().bell.has_changed().unwrap());
        drop(one);
        assert_eq!(rooms.rooms.lock().unwrap().len(), 1, "somebody is still there");
        drop(two);

        assert!(rooms.rooms.lock().unwrap().is_empty());
        assert!(rooms.enter(&document).is_some());
    }
}
