//! The outside witness: what this server accepted, produced, sent and was answered.
//!
//! Guarantees: numbered without gaps in the order in which things happened; with a file, a line is handed to the
//! operating system before anything that depends on it is done, so that a killed process leaves a true record,
//! and a restarted one reads it back; [`Journal::change`] tells for each accepted change where it still lives.
//!
//! Does not sync to disk (a harness kills processes, not machines) and keeps at most [`Journal::ENTRIES_MAX`]
//! entries in memory; the file has all.

mod note;
mod whereabouts;

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub use note::{Entry, Note};
pub use whereabouts::Whereabouts;

use crate::machine::{Body, ChangeId, DeliveryId};

/// A handle to the journal; clones share it.
#[derive(Clone, Debug)]
pub struct Journal(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pages: Mutex<Pages>,
    length: watch::Sender<u64>,
}

#[derive(Debug)]
struct Pages {
    entries: VecDeque<Entry>,
    next: u64,
    index: whereabouts::Index,
    file: Option<File>,
    /// The last line of an earlier life is incomplete.
    torn: bool,
}

impl Journal {
    /// Entries kept in memory; older ones are only in the file.
    pub const ENTRIES_MAX: usize = 200_000;

    /// A journal in memory, or one that goes on in that file.
    pub fn open(path: Option<&Path>) -> std::io::Result<Journal> {
        let mut pages = Pages {
            entries: VecDeque::new(),
            next: 1,
            index: whereabouts::Index::default(),
            file: None,
            torn: false,
        };
        if let Some(path) = path {
            pages.read_back(path)?;
            let mut file = OpenOptions::new().create(true).append(true).open(path)?;
            if pages.torn {
                file.write_all(b"\n")?;
            }
            pages.file = Some(file);
        }
        let length = watch::Sender::new(pages.next);
        Ok(Journal(Arc::new(Shared { pages: Mutex::new(pages), length })))
    }

    /// Writes one note down.
    pub fn write(&self, at_ms: u64, note: Note) {
        let next = {
            let mut pages = self.pages();
            let number = pages.next;
            pages.add(Entry { number, at_ms, note });
            pages.next
        };
        self.0.length.send_replace(next);
    }

    /// All entries in memory.
    pub fn entries(&self) -> Vec<Entry> {
        self.pages().entries.iter().cloned().collect()
    }

    /// Entries from a number on.
    pub fn since(&self, number: u64) -> Vec<Entry> {
        let pages = self.pages();
        let from = pages.entries.partition_point(|entry| entry.number < number);
        pages.entries.range(from..).cloned().collect()
    }

    /// The number the next entry will have.
    pub fn next_number(&self) -> u64 {
        self.pages().next
    }

    /// Waits for an entry, past or to come, of which `wanted` makes something.
    pub async fn wait_for<T>(&self, mut wanted: impl FnMut(&Entry) -> Option<T>) -> T {
        let mut length = self.0.length.subscribe();
        let mut seen = 0;
        loop {
            let entries = self.since(seen);
            seen = entries.last().map_or(seen, |entry| entry.number + 1);
            if let Some(found) = entries.iter().find_map(&mut wanted) {
                return found;
            }
            if length.changed().await.is_err() {
                // The sender lives in `self`; this cannot be.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The callbacks sent, in order, with their deliveries.
    pub fn callbacks(&self) -> Vec<(DeliveryId, Body)> {
        let sent = |entry: &Entry| match &entry.note {
            Note::CallbackSent { delivery, body, .. } => Some((DeliveryId(*delivery), (**body).clone())),
            _ => None,
        };
        self.pages().entries.iter().filter_map(sent).collect()
    }

    /// Where a change is.
    pub fn change(&self, id: &str) -> Option<Whereabouts> {
        self.pages().index.changes().get(id).cloned()
    }

    /// All changes ever accepted.
    pub fn changes(&self) -> BTreeMap<ChangeId, Whereabouts> {
        self.pages().index.changes().clone()
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn add(&mut self, entry: Entry) {
        if let Some(file) = &mut self.file {
            let mut line = serde_json::to_string(&entry).unwrap_or_default();
            line.push('\n');
            if let Err(trouble) = file.write_all(line.as_bytes()) {
                tracing::error!(%trouble, "could not write the journal");
            }
        }
        self.index.follow(&entry.note);
        self.next = entry.number + 1;
        self.entries.push_back(entry);
        if self.entries.len() > Journal::ENTRIES_MAX {
            self.entries.pop_front();
        }
    }

    /// Reads an earlier life's entries; a torn line (the process was killed) is passed over.
    fn read_back(&mut self, path: &Path) -> std::io::Result<()> {
        let Ok(file) = File::open(path) else { return Ok(()) };
        for line in BufReader::new(file).lines() {
            match serde_json::from_str::<Entry>(&line?) {
                Ok(entry) => {
                    self.torn = false;
                    self.add(entry);
                }
                Err(_) => self.torn = true,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(id: &str) -> Note {
        Note::ChangeAccepted { id: id.into(), key: "k".into(), author: "u".into(), time_s: 1 }
    }

    #[test]
    fn a_change_is_followed_from_the_log_to_the_forgotten_copy_and_out() {
        let journal = Journal::open(None).unwrap();
        let holds: Arc<[ChangeId]> = Arc::new(["c1".into()]);

        journal.write(1, accepted("c1"));
        assert!(journal.change("c1").unwrap().in_log);
        journal.write(2, Note::ForgottenPut { key: "k".into(), sha256: String::new(), holds });
        let gone = Note::ChangesDeleted { key: "k".into(), ids: vec!["c1".into()], why: "moved".into() };
        journal.write(3, gone);
        assert!(journal.change("c1").unwrap().is_outstanding());
        assert!(journal.change("c1").unwrap().forgotten_under.contains("k"));
        journal.write(4, Note::ForgottenDeleted { key: "k".into(), why: "command".into() });

        assert!(journal.change("c1").unwrap().is_lost());
    }

    #[test]
    fn a_file_is_read_back_and_goes_on_after_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        Journal::open(Some(&path)).unwrap().write(1, accepted("c1"));
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"number\":2,\"at").unwrap();

        let journal = Journal::open(Some(&path)).unwrap();

        assert_eq!(journal.next_number(), 2);
        assert!(journal.change("c1").unwrap().in_log);
        journal.write(2, accepted("c2"));
        assert!(Journal::open(Some(&path)).unwrap().change("c2").is_some());
    }

    #[tokio::test]
    async fn waiting_finds_past_and_coming_entries() {
        let journal = Journal::open(None).unwrap();
        journal.write(1, accepted("c1"));
        let id = |wanted: &'static str| {
            move |entry: &Entry| match &entry.note {
                Note::ChangeAccepted { id, .. } if &**id == wanted => Some(entry.number),
                _ => None,
            }
        };

        assert_eq!(journal.wait_for(id("c1")).await, 1);
        let later = journal.clone();
        let (found, ()) =
            tokio::join!(journal.wait_for(id("c2")), async move { later.write(2, accepted("c2")) });

        assert_eq!(found, 2);
    }
}
