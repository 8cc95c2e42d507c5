//! Builds the tree that a power cut leaves: what stands there now, with the notes that count undone.
//!
//! Guarantees that the present tree is only read; files without pending notes are linked, not copied. Two
//! rules of last resort: a folder that has two durable names, because it was moved and only its new place
//! was fsynced, appears once, at the first in order of depth and name; a folder without any is gone.
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rand::RngExt;
use rand::rngs::StdRng;

use super::log::Old;
use super::replay::{Node, PendingBytes, Replay, Target};
use super::tree::Tree;

/// A file survives or not in pieces of this size.
const PAGE_BYTES: u64 = 4096;

/// How much of what was not fsynced is lost.
pub(super) enum Loss {
    Everything,
    /// Of all changes of names the first few survive, as from a journal; of each file the first few writes,
    /// and of these any pages, under the old size or the new.
    Torn(Box<StdRng>),
}

pub(super) struct Image<'a> {
    shadow: &'a Path,
    tree: &'a Tree,
    replay: &'a Replay,
    loss: Loss,
    /// From this change of names on, all are lost.
    first_lost: u64,
}

impl<'a> Image<'a> {
    pub(super) fn new(shadow: &'a Path, tree: &'a Tree, replay: &'a Replay, mut loss: Loss) -> Self {
        let changes = replay.changes_of_names();
        let kept = loss.kept(changes.len());
        let first_lost = changes.into_iter().nth(kept).unwrap_or(u64::MAX);
        Self { shadow, tree, replay, loss, first_lost }
    }

    pub(super) fn build(mut self, at: &Path) -> Result<()> {
        let root = self.replay.node(self.tree.root);
        let mut folders = VecDeque::from([(root, at.to_path_buf())]);
        let mut folders_seen = HashSet::from([root]);
        let mut files = HashMap::new();
        let mut done = Vec::new();
        fs::create_dir(at)?;
        while let Some((folder, path)) = folders.pop_front() {
            for (name, target) in self.durable_names(folder) {
                let path = path.join(name);
                if !target.is_folder {
                    self.place_file(target.node, &path, &mut files)
                        .with_context(|| format!("placing {}", path.display()))?;
                } else if folders_seen.insert(target.node) {
                    fs::create_dir(&path)?;
                    folders.push_back((target.node, path));
                }
            }
            done.push((folder, path));
        }
        // Last, because a folder may be read-only.
        done.iter().try_for_each(|(folder, path)| self.copy_mode(*folder, path))
    }

    fn durable_names(&self, folder: Node) -> BTreeMap<OsString, Target> {
        // A folder in an earlier life of its inode number is gone, and was empty when it went.
        let is_gone = folder != self.replay.node(folder.inode);
        let now = self.tree.folders.get(&folder.inode).filter(|_| !is_gone);
        let mut names: BTreeMap<_, _> = now
            .into_iter()
            .flatten()
            .map(|(name, entry)| (name.clone(), self.replay.target(*entry)))
            .collect();
        for note in self.replay.names(folder).iter().rev().filter(|note| note.change >= self.first_lost) {
            match note.before {
                Some(target) => names.insert(note.name.clone(), target),
                None => names.remove(&note.name),
            };
        }
        names
    }

    fn place_file(&mut self, file: Node, at: &Path, placed: &mut HashMap<Node, PathBuf>) -> Result<()> {
        let now = self.tree.paths.get(&file.inode).context("neither its name nor a held link is left")?;
        ensure!(file == self.replay.node(file.inode), "another file has taken its inode number");
        let pending = self.replay.bytes(file);
        match placed.get(&file) {
            Some(elsewhere) => fs::hard_link(elsewhere, at)?,
            None if pending.is_empty() => fs::hard_link(now, at)?,
            None => self.restore(file, now, at)?,
        }
        placed.entry(file).or_insert_with(|| at.to_path_buf());
        Ok(())
    }

    fn restore(&mut self, file: Node, now: &Path, at: &Path) -> Result<()> {
        let pending = self.replay.bytes(file);
        let kept = self.loss.kept(pending.len());
        let mut restored = File::create_new(at)?;
        io::copy(&mut File::open(now)?, &mut restored)?;
        restored.set_permissions(fs::metadata(now)?.permissions())?;
        let (survived, lost) = pending.split_at(kept);
        undo(self.shadow, file, lost, &restored)?;
        if let Loss::Torn(dice) = &mut self.loss {
            let mut newer = tempfile::tempfile_in(self.shadow)?;
            restored.rewind()?;
            io::copy(&mut restored, &mut newer)?;
            undo(self.shadow, file, survived, &restored)?;
            mix(&restored, &newer, dice)?;
        }
        Ok(())
    }

    fn copy_mode(&self, folder: Node, to: &Path) -> Result<()> {
        if let Some(path) = self.tree.paths.get(&folder.inode)
            && folder == self.replay.node(folder.inode)
        {
            fs::set_permissions(to, fs::metadata(path)?.permissions())?;
        }
        Ok(())
    }
}

impl Loss {
    /// How many of so many changes survive: the first ones.
    fn kept(&mut self, changes: usize) -> usize {
        match self {
            Self::Everything => 0,
            Self::Torn(dice) => dice.random_range(0..=changes),
        }
    }
}

fn undo(shadow: &Path, file: Node, pending: &[PendingBytes], restored: &File) -> Result<()> {
    for Old { size, offset, length, place, process } in pending.iter().rev().map(|note| &note.before) {
        restored.set_len(*size)?;
        if *length > 0 {
            let old = shadow.join("old").join(format!("{}.{process}", file.inode));
            let old = File::open(&old).with_context(|| format!("opening {}", old.display()))?;
            copy_range((&old, *place), (restored, *offset), *length)?;
        }
    }
    Ok(())
}

fn mix(older: &File, newer: &File, dice: &mut StdRng) -> io::Result<()> {
    let newer_bytes = newer.metadata()?.len();
    if dice.random() {
        older.set_len(newer_bytes)?;
    }
    let bytes = older.metadata()?.len().min(newer_bytes);
    for page in (0..bytes.div_ceil(PAGE_BYTES)).map(|number| number * PAGE_BYTES) {
        if dice.random() {
            copy_range((newer, page), (older, page), PAGE_BYTES.min(bytes - page))?;
        }
    }
    Ok(())
}

fn copy_range(from: (&File, u64), to: (&File, u64), length: u64) -> io::Result<()> {
    let (mut source, mut target) = (from.0, to.0);
    source.seek(SeekFrom::Start(from.1))?;
    target.seek(SeekFrom::Start(to.1))?;
    let copied = io::copy(&mut source.take(length), &mut target)?;
    if copied == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::super::log::{Note, Record};
    use super::super::tree::Entry;
    use super::*;

    const ROOT: u64 = 1;
    const FOLDER: u64 = 5;
    const FILE: u64 = 7;

    fn name(folder: u64, name: &str, previous: Option<Entry>, born: Option<u64>) -> Note {
        Note::Name { folder, name: name.into(), previous, born, joined: None }
    }

    /// File systems use a number again when they like, so this cannot be left to a real one.
    #[test]
    fn a_removed_folder_has_none_of_the_names_of_the_folder_that_took_its_number() {
        let notes = [
            name(FOLDER, "old", Some(Entry { inode: FILE, is_folder: false }), None),
            name(ROOT, "removed", Some(Entry { inode: FOLDER, is_folder: true }), None),
            name(ROOT, "made", None, Some(FOLDER)),
            name(FOLDER, "new", None, None),
            Note::Sync { inode: FOLDER, since: 5 },
        ];
        let records = (1..).zip(notes).map(|(sequence, note)| Ok(Record { sequence, note }));
        let replay = Replay::of(records).unwrap();
        let mut tree = Tree { root: ROOT, ..Tree::default() };
        tree.folders.insert(ROOT, [("made".into(), Entry { inode: FOLDER, is_folder: true })].into());
        tree.folders.insert(FOLDER, [("new".into(), Entry { inode: FILE, is_folder: false })].into());
        let image = Image::new(Path::new(""), &tree, &replay, Loss::Everything);

        let root = image.durable_names(replay.node(ROOT));
        let removed = image.durable_names(root[&OsString::from("removed")].node);
        let made = image.durable_names(replay.node(FOLDER));

        assert_eq!(root.into_keys().collect::<Vec<_>>(), ["removed"]);
        assert_eq!(removed.into_keys().collect::<Vec<_>>(), ["old"]);
        assert_eq!(made.into_keys().collect::<Vec<_>>(), ["new"]);
    }
}
