//! Where the durable half of the machine is kept: nowhere, or in a folder.
//!
//! A folder holds `state.jsonl`, one durable step per line, and `blobs/`, bytes under their hash. A start replays
//! the lines, writes the shortest equal list back and removes blobs nobody names.
//!
//! Guarantees: bytes are in place before the line that names them, and a line before the effects that follow from
//! it, so a killed process finds all it acted on; a torn last line is passed over.
//!
//! Does not sync: the harness kills processes, not machines.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::machine::{Content, Durable, Op};
use crate::settings::Storage;

/// A store, open for writing.
#[derive(Debug)]
pub struct Store {
    folder: Option<Folder>,
}

#[derive(Debug)]
struct Folder {
    root: PathBuf,
    log: File,
    blobs: BTreeSet<String>,
}

const LOG: &str = "state.jsonl";
const BLOBS: &str = "blobs";

impl Store {
    /// Opens the store and brings back what it holds.
    pub fn open(storage: &Storage) -> std::io::Result<(Store, Durable)> {
        let Storage::Folder(root) = storage else {
            return Ok((Store { folder: None }, Durable::default()));
        };
        fs::create_dir_all(root.join(BLOBS))?;
        let durable = replay(root)?;
        let steps = durable.as_steps();
        let fresh = root.join("state.jsonl.new");
        let mut log = File::create(&fresh)?;
        for step in &steps {
            write_line(&mut log, step)?;
        }
        fs::rename(&fresh, root.join(LOG))?;
        let log = OpenOptions::new().append(true).open(root.join(LOG))?;
        let blobs = steps.iter().flat_map(contents_of).map(|content| content.sha256.clone()).collect();
        let folder = Folder { root: root.clone(), log, blobs };
        folder.remove_strays()?;
        Ok((Store { folder: Some(folder) }, durable))
    }

    /// Keeps steps, before anything that follows from them is done.
    pub fn keep(&mut self, steps: &[Op]) -> std::io::Result<()> {
        let Some(folder) = &mut self.folder else { return Ok(()) };
        for step in steps {
            for content in contents_of(step) {
                folder.put(content)?;
            }
            write_line(&mut folder.log, step)?;
        }
        Ok(())
    }
}

impl Folder {
    fn put(&mut self, content: &Content) -> std::io::Result<()> {
        if !self.blobs.insert(content.sha256.clone()) {
            return Ok(());
        }
        fs::write(self.root.join(BLOBS).join(&content.sha256), &content.bytes)
    }

    fn remove_strays(&self) -> std::io::Result<()> {
        for entry in fs::read_dir(self.root.join(BLOBS))? {
            let entry = entry?;
            if !self.blobs.contains(&*entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

fn replay(root: &Path) -> std::io::Result<Durable> {
    let mut durable = Durable::default();
    let Ok(log) = File::open(root.join(LOG)) else { return Ok(durable) };
    for line in BufReader::new(log).lines() {
        let Ok(mut step) = serde_json::from_str::<Op>(&line?) else { continue };
        for content in contents_of_mut(&mut step) {
            let bytes = fs::read(root.join(BLOBS).join(&content.sha256)).unwrap_or_default();
            content.bytes = bytes.into();
        }
        durable.replay(step);
    }
    Ok(durable)
}

fn write_line(log: &mut File, step: &Op) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(step)?;
    line.push(b'\n');
    log.write_all(&line)
}

/// The bytes a step names.
fn contents_of(step: &Op) -> Vec<&Content> {
    match step {
        Op::Base { base: Some(base), .. } => vec![&base.content],
        Op::Forgotten { file: Some(file), .. } => vec![file],
        Op::Saved { saved: Some(saved), .. } => {
            [&saved.file, &saved.changes_zip, &saved.forms].into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

fn contents_of_mut(step: &mut Op) -> Vec<&mut Content> {
    match step {
        Op::Base { base: Some(base), .. } => vec![&mut base.content],
        Op::Forgotten { file: Some(file), .. } => vec![file],
        Op::Saved { saved: Some(saved), .. } => {
            [&mut saved.file, &mut saved.changes_zip, &mut saved.forms].into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Author, Base, Change};

    fn steps() -> Vec<Op> {
        let content = Content::new("bytes".into(), "txt", std::sync::Arc::new(["c1".into()]));
        let author = Author { id: "u".into(), index: 1, name: "U".into() };
        let change = Change { id: "c1".into(), data: "{}".into(), author, time_s: 1 };
        vec![
            Op::Base {
                key: "k".into(),
                base: Some(Base { content: content.clone(), from_forgotten: false }),
            },
            Op::ChangesAdded { key: "k".into(), changes: vec![change] },
            Op::Forgotten { key: "k".into(), file: Some(content) },
        ]
    }

    #[test]
    fn a_folder_brings_everything_back_and_forgets_what_was_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::Folder(folder.path().to_owned());
        let (mut store, _) = Store::open(&storage).unwrap();
        let mut expected = Durable::default();
        for step in steps() {
            store.keep(std::slice::from_ref(&step)).unwrap();
            expected.replay(step);
        }

        let (mut store, found) = Store::open(&storage).unwrap();

        assert_eq!(found, expected);
        let gone = [
            Op::Base { key: "k".into(), base: None },
            Op::Forgotten { key: "k".into(), file: None },
            Op::ChangesCut { key: "k".into(), from: 0 },
        ];
        store.keep(&gone).unwrap();
        let (_, found) = Store::open(&storage).unwrap();
        assert_eq!(found, Durable::default());
        assert_eq!(fs::read_dir(folder.path().join(BLOBS)).unwrap().count(), 0);
    }

    #[test]
    fn a_torn_last_line_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::Folder(folder.path().to_owned());
        let (mut store, _) = Store::open(&storage).unwrap();
        store.keep(&steps()).unwrap();
        let mut log = OpenOptions::new().append(true).open(folder.path().join(LOG)).unwrap();
        log.write_all(b"{\"Row\":{\"ke").unwrap();

        let (_, found) = Store::open(&storage).unwrap();

        assert_eq!(found.changes("k").len(), 1);
    }
}
