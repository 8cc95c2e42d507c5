//! Which notes still count: those that no fsync covers.
//!
//! Inode numbers are used again after a file is gone for good; a `Node` is a number in one of its lives.
//! A file that the durable image may need is held by a link, so its number is in its last life; only of
//! folders may an earlier life be needed, and a folder that is gone has no names but those noted.
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;

use super::log::{Note, Old, Record};
use super::tree::Entry;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) inode: u64,
    life: u32,
}

/// What a name stood for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) node: Node,
    pub(super) is_folder: bool,
}

/// What a name stood for before a change.
#[derive(Debug)]
pub(super) struct PendingName {
    sequence: u64,
    /// The first record of the change that this is part of: a rename changes two names at once.
    pub(super) change: u64,
    pub(super) name: OsString,
    pub(super) before: Option<Target>,
}

/// What bytes stood somewhere before a change.
#[derive(Debug)]
pub(super) struct PendingBytes {
    sequence: u64,
    pub(super) before: Old,
}

#[derive(Debug, Default)]
pub(super) struct Replay {
    lives: HashMap<u64, u32>,
    names: HashMap<Node, Vec<PendingName>>,
    bytes: HashMap<Node, Vec<PendingBytes>>,
    /// Every name and every file that was ever noted, to find out what changed without a note.
    names_noted: HashMap<u64, HashSet<OsString>>,
    bytes_noted: HashSet<u64>,
}

impl Replay {
    pub(super) fn of(records: impl Iterator<Item = io::Result<Record>>) -> io::Result<Self> {
        let mut replay = Self::default();
        for record in records {
            replay.absorb(record?);
        }
        Ok(replay)
    }

    /// The node that has this inode number now.
    pub(super) fn node(&self, inode: u64) -> Node {
        Node { inode, life: self.lives.get(&inode).copied().unwrap_or(0) }
    }

    pub(super) fn target(&self, entry: Entry) -> Target {
        Target { node: self.node(entry.inode), is_folder: entry.is_folder }
    }

    /// What is not durable about the names in a folder, oldest first.
    pub(super) fn names(&self, folder: Node) -> &[PendingName] {
        self.names.get(&folder).map_or(&[], Vec::as_slice)
    }

    /// All changes of names that are not durable, oldest first.
    pub(super) fn changes_of_names(&self) -> BTreeSet<u64> {
        self.names.values().flatten().map(|note| note.change).collect()
    }

    /// What is not durable about the bytes of a file, oldest first.
    pub(super) fn bytes(&self, file: Node) -> &[PendingBytes] {
        self.bytes.get(&file).map_or(&[], Vec::as_slice)
    }

    pub(super) fn was_born(&self, inode: u64) -> bool {
        self.lives.contains_key(&inode)
    }

    pub(super) fn name_was_noted(&self, folder: u64, name: &OsStr) -> bool {
        self.names_noted.get(&folder).is_some_and(|names| names.contains(name))
    }

    pub(super) fn bytes_were_noted(&self, file: u64) -> bool {
        self.bytes_noted.contains(&file)
    }

    fn absorb(&mut self, Record { sequence, note }: Record) {
        match note {
            Note::Name { folder, name, previous, born, joined } => {
                let before = previous.map(|entry| self.target(entry));
                let change = joined.unwrap_or(sequence);
                let pending = PendingName { sequence, change, name: name.clone(), before };
                self.names.entry(self.node(folder)).or_default().push(pending);
                self.names_noted.entry(folder).or_default().insert(name);
                if let Some(inode) = born {
                    *self.lives.entry(inode).or_default() += 1;
                }
            }
            Note::Bytes { file, old } => {
                self.bytes.entry(self.node(file)).or_default().push(PendingBytes { sequence, before: old });
                self.bytes_noted.insert(file);
            }
            Note::Sync { inode, since } => {
                let node = self.node(inode);
                self.names.entry(node).and_modify(|names| names.retain(|note| note.sequence >= since));
                self.bytes.entry(node).and_modify(|bytes| bytes.retain(|note| note.sequence >= since));
            }
            Note::SyncAll { since } => {
                self.names.values_mut().for_each(|names| names.retain(|note| note.sequence >= since));
                self.bytes.values_mut().for_each(|bytes| bytes.retain(|note| note.sequence >= since));
            }
        }
    }
}
