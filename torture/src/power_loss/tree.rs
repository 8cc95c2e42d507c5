//! What stands in a folder and below it, by inode.
//!
//! A scan is a moment's view; nothing may change the folder meanwhile.
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

// Of `st_mode`.
const FILE_TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const SYMBOLIC_LINK: u32 = 0o120_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) inode: u64,
    pub(super) is_folder: bool,
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) root: u64,
    /// The names in each folder.
    pub(super) folders: HashMap<u64, BTreeMap<OsString, Entry>>,
    /// One path of each inode.
    pub(super) paths: HashMap<u64, PathBuf>,
    /// Of each regular file.
    pub(super) stamps: HashMap<u64, Stamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) bytes: u64,
    changed: SystemTime,
}

impl Tree {
    pub(super) fn scan(root: &Path) -> io::Result<Self> {
        let inode = fs::metadata(root)?.ino();
        let mut tree = Self { root: inode, ..Self::default() };
        tree.paths.insert(inode, root.to_path_buf());
        let mut folders = vec![(inode, root.to_path_buf())];
        while let Some((inode, path)) = folders.pop() {
            let mut names = BTreeMap::new();
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                let metadata = entry.metadata()?;
                if !is_kept(metadata.mode()) {
                    continue;
                }
                let found = Entry { inode: metadata.ino(), is_folder: metadata.is_dir() };
                if found.is_folder {
                    folders.push((found.inode, entry.path()));
                }
                if metadata.is_file() {
                    let stamp = Stamp { bytes: metadata.len(), changed: metadata.modified()? };
                    tree.stamps.insert(found.inode, stamp);
                }
                tree.paths.insert(found.inode, entry.path());
                names.insert(entry.file_name(), found);
            }
            tree.folders.insert(inode, names);
        }
        Ok(tree)
    }

    /// The files of `other` may be needed too; its folders are not ours.
    pub(super) fn adopt_files(&mut self, mut other: Self) {
        other.paths.retain(|inode, _| !other.folders.contains_key(inode));
        for (inode, path) in other.paths {
            self.paths.entry(inode).or_insert(path);
        }
    }
}

/// Sockets and pipes are not worth a disk: they are never noted and no power cut leaves them.
pub(super) fn is_kept(mode: u32) -> bool {
    matches!(mode & FILE_TYPE, REGULAR | FOLDER | SYMBOLIC_LINK)
}

pub(super) fn is_folder(mode: u32) -> bool {
    mode & FILE_TYPE == FOLDER
}
