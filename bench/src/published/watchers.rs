//! Those who look at a published name on the server's own disk: one that only asks whether it is there, and one that reads it whole.
//!
//! Guarantees: a look that finds nothing and a file that nobody sent are counted, never passed over; each look has its time, and those
//! that came late are not made up for.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::Digest;

/// What is known of the name, by those who send and those who look.
pub(crate) struct Watched {
    path: PathBuf,
    sent: Mutex<HashSet<Digest>>,
    /// Which file has the name now.
    file: AtomicU64,
    is_over: AtomicBool,
}

/// What one of them saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) looks: u64,
    /// Nothing had the name.
    pub(crate) missing: u64,
    /// Bytes that nobody sent.
    pub(crate) torn: u64,
    /// Another file than at the look before.
    pub(crate) changes: u64,
    pub(crate) seconds: f64,
}

impl Watched {
    pub(crate) fn new(path: PathBuf) -> Arc<Self> {
        let (file, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { path, sent: Mutex::default(), file, is_over })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// These bytes may be shown from now on.
    pub(crate) fn expect(&self, bytes: &[u8]) {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).insert(Digest::of(bytes));
    }

    /// Which file had the name when it was last looked at.
    pub(crate) fn file(&self) -> u64 {
        self.file.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Looks whether something has the name, again and again.
    pub(crate) fn stat_every(self: &Arc<Self>, pause: Duration) -> JoinHandle<Seen> {
        let watched = Arc::clone(self);
        std::thread::spawn(move || watched.look_every(pause, Self::stat))
    }

    /// Reads all of it and hashes it, again and again.
    pub(crate) fn read_every(self: &Arc<Self>, pause: Duration) -> JoinHandle<Seen> {
        let watched = Arc::clone(self);
        std::thread::spawn(move || watched.look_every(pause, Self::read))
    }

    fn stat(&self, seen: &mut Seen) {
        match fs::metadata(&self.path) {
            Ok(metadata) => {
                let before = self.file.swap(metadata.ino(), Ordering::Relaxed);
                seen.changes += u64::from(before != 0 && before != metadata.ino());
            }
            Err(cause) => seen.note(&cause),
        }
    }

    fn read(&self, seen: &mut Seen) {
        match fs::read(&self.path) {
            Ok(bytes) => {
                let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
                seen.torn += u64::from(!sent.contains(&Digest::of(&bytes)));
            }
            Err(cause) => seen.note(&cause),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "a look has its time, and no event brings it")]
    fn look_every(&self, pause: Duration, look: fn(&Self, &mut Seen)) -> Seen {
        let (mut seen, began) = (Seen::default(), Instant::now());
        let mut next = began;
        while !self.is_over.load(Ordering::Relaxed) {
            look(self, &mut seen);
            seen.looks += 1;
            next = (next + pause).max(Instant::now());
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        seen.seconds = began.elapsed().as_secs_f64();
        seen
    }
}

impl Seen {
    /// What somebody else saw, of another name.
    pub(crate) fn add(&mut self, other: &Self) {
        self.looks += other.looks;
        self.missing += other.missing;
        self.torn += other.torn;
        self.changes += other.changes;
        self.seconds += other.seconds;
    }

    /// Anything that keeps a reader from the file is as bad as its absence.
    fn note(&mut self, cause: &io::Error) {
        eprintln!("the published name could not be read: {cause}");
        self.missing += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vanished_name_a_torn_file_and_another_file_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let watched = Watched::new(folder.path().join("name"));
        watched.expect(b"whole");
        let mut seen = Seen::default();

        watched.stat(&mut seen);
        watched.read(&mut seen);
        assert_eq!((seen.missing, seen.torn, seen.changes), (2, 0, 0));
        fs::write(watched.path(), b"whole").unwrap();
        watched.stat(&mut seen);
        watched.read(&mut seen);
        assert_eq!((seen.missing, seen.torn, seen.changes), (2, 0, 0));
        fs::write(folder.path().join("next"), b"who").unwrap();
        fs::rename(folder.path().join("next"), watched.path()).unwrap();
        watched.stat(&mut seen);
        watched.read(&mut seen);
        assert_eq!((seen.missing, seen.torn, seen.changes), (2, 1, 1));
    }
}
