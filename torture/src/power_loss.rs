//! The power-loss disk: what a process under test did not fsync is gone when it is killed.
//!
//! A process started with [`PowerLoss::command_env`] works on a real folder through a preloaded library
//! (`power-loss/power_loss.h` tells how). After it was killed, [`PowerLoss::crash`] replaces the folder by
//! what a power cut would have left under the strictest reading of POSIX: of a file, the bytes and the size
//! at its last fsync or fdatasync; of a folder, the names at its last fsync. So a new file needs its own
//! fsync and that of its folder, a new folder that of each folder above it, and a file moved to another
//! folder needs both folders: with only the old one fsynced it is lost, with only the new one it has both
//! names. [`PowerLoss::crash_torn`] lets a part of the rest survive, which is worse for whoever reads it.
//!
//! Guarantees that an fsync counts wholly or not at all, also if the process dies within it, and that a
//! change made past the library is found and refused rather than taken for durable (most of them: a change
//! of bytes is recognised by size and time of change). Several processes may use one root, one after
//! another or at the same time.
//!
//! Does not kill anybody: a crash is refused while a process is still on the disk. Does not restore owners
//! and times. A change made to the folder by the test itself needs [`PowerLoss::settle`] afterwards.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! # use std::{path::Path, process::Command};
//! # use torture::power_loss::PowerLoss;
//! let mut disk = PowerLoss::new(Path::new("run/data"), Path::new("run/shadow"))?;
//! let mut server = Command::new("saveguard").envs(disk.command_env()).spawn()?;
//! // Save documents, and remember which saves were confirmed.
//! server.kill()?;
//! server.wait()?;
//! disk.crash()?;
//! // Start again: every confirmed save must be there.
//! # Ok(())
//! # }
//! ```
mod image;
mod log;
mod replay;
mod tree;
mod unseen;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rand::SeedableRng;
use rand::rngs::StdRng;

use image::{Image, Loss};
use log::Records;
use replay::Replay;
use tree::Tree;
use unseen::unseen_changes;

/// Built from `power-loss/` by `build.rs`.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/power_loss.so"));
/// One number, at first zero.
const CLOCK_BYTES: u64 = 8;
/// How many paths a complaint names.
const COMPLAINTS_MAX: usize = 10;

/// A folder whose unsynced changes can be lost.
#[derive(Debug)]
pub struct PowerLoss {
    root: PathBuf,
    shadow: PathBuf,
    /// The folder as it was when everything in it was durable.
    settled: Tree,
    real_sync: RealSync,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RealSync {
    Done,
    Skipped,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Survivor {
    Folder,
    File(Vec<u8>),
    Link(PathBuf),
}

impl PowerLoss {
    /// Watches `root`, whose present contents count as durable. `shadow` is for our notes: a folder of its
    /// own, outside of `root` but on the same file system, made if it is missing.
    pub fn new(root: &Path, shadow: &Path) -> Result<Self> {
        ensure!(!LIBRARY.is_empty(), "the power-loss disk needs 64-bit Linux");
        fs::create_dir_all(shadow).with_context(|| format!("making the shadow {}", shadow.display()))?;
        let root = root.canonicalize().with_context(|| format!("finding the root {}", root.display()))?;
        let shadow = shadow.canonicalize()?;
        ensure!(!shadow.starts_with(&root), "the shadow must stand outside of the root");
        ensure!(
            fs::metadata(&root)?.dev() == fs::metadata(&shadow)?.dev(),
            "the shadow must be on the file system of the root, for hard links"
        );
        let clock = OpenOptions::new().write(true).create(true).truncate(false).open(shadow.join("clock"))?;
        clock.set_len(CLOCK_BYTES)?;
        let mut disk = Self { root, shadow, settled: Tree::default(), real_sync: RealSync::Done };
        disk.settle()?;
        fs::write(disk.shadow.join("power_loss.so"), LIBRARY)?;
        Ok(disk)
    }

    /// Makes an fsync return at once, without the real disk. What counts as durable stays the same.
    #[must_use]
    pub fn without_real_sync(mut self) -> Self {
        self.real_sync = RealSync::Skipped;
        self
    }

    /// The environment that puts a process, and what it starts, on this disk. A process that needs another
    /// preloaded library too gets both in `LD_PRELOAD`, with a colon between.
    #[must_use]
    pub fn command_env(&self) -> Vec<(&'static str, OsString)> {
        let mut env = vec![
            ("LD_PRELOAD", self.shadow.join("power_loss.so").into()),
            ("POWER_LOSS_ROOT", self.root.clone().into()),
            ("POWER_LOSS_SHADOW", self.shadow.clone().into()),
        ];
        if self.real_sync == RealSync::Skipped {
            env.push(("POWER_LOSS_SKIP_SYNC", "1".into()));
        }
        env
    }

    /// Cuts the power: everything that was not fsynced is gone. All processes must be dead.
    pub fn crash(&mut self) -> Result<()> {
        self.cut(Loss::Everything)
    }

    /// Cuts the power in the middle of writing back: of what was not fsynced, some survives. Of all changes of
    /// names a number, in their order and a rename as a whole, as file systems with a journal do it; of each
    /// file a number of writes and of these any pages, as the kernel writes pages when it likes.
    pub fn crash_torn(&mut self, seed: u64) -> Result<()> {
        self.cut(torn(seed))
    }

    /// What [`Self::crash`] would leave, by path under the root. No process may be changing anything.
    pub fn survivors(&self) -> Result<BTreeMap<PathBuf, Survivor>> {
        self.foresee(Loss::Everything)
    }

    /// What [`Self::crash_torn`] would leave: one kill shows many ways to die.
    pub fn survivors_torn(&self, seed: u64) -> Result<BTreeMap<PathBuf, Survivor>> {
        self.foresee(torn(seed))
    }

    /// Declares all that stands in the root durable, as if the power had stayed on for long enough. All
    /// processes must be dead.
    pub fn settle(&mut self) -> Result<()> {
        self.check_that_all_are_dead()?;
        self.reset()
    }

    fn reset(&mut self) -> Result<()> {
        for folder in ["log", "old", "held"] {
            remove(&self.shadow.join(folder))?;
            fs::create_dir(self.shadow.join(folder))?;
        }
        self.settled = Tree::scan(&self.root)?;
        Ok(())
    }

    /// Each process on the disk has this file locked while it lives.
    fn check_that_all_are_dead(&self) -> Result<()> {
        let clock = File::open(self.shadow.join("clock"))?;
        clock.try_lock().context("a process is still running on the power-loss disk")?;
        // Not left to the end of `clock`: a process that another thread is starting may have inherited it.
        Ok(clock.unlock()?)
    }

    fn cut(&mut self, loss: Loss) -> Result<()> {
        self.check_that_all_are_dead()?;
        let (image, lost) = (self.shadow.join("image"), self.shadow.join("lost"));
        self.build(loss, &image)?;
        remove(&lost)?;
        fs::rename(&self.root, &lost)?;
        fs::rename(&image, &self.root)?;
        remove(&lost)?;
        self.reset()
    }

    fn foresee(&self, loss: Loss) -> Result<BTreeMap<PathBuf, Survivor>> {
        let image = self.shadow.join("survivors");
        self.build(loss, &image)?;
        let survivors = contents(&image)?;
        remove(&image)?;
        Ok(survivors)
    }

    fn build(&self, loss: Loss, at: &Path) -> Result<()> {
        let mut tree = Tree::scan(&self.root)?;
        let replay =
            Replay::of(Records::open(&self.shadow)?).context("reading the notes of the power-loss disk")?;
        let unseen = unseen_changes(&self.settled, &tree, &replay);
        ensure!(
            unseen.is_empty(),
            "{} changes did not pass the power-loss disk, among them {:?}: made by the test (call settle), or \
             by the program with raw system calls or stdio",
            unseen.len(),
            &unseen[..unseen.len().min(COMPLAINTS_MAX)]
        );
        tree.adopt_files(Tree::scan(&self.shadow.join("held"))?);
        remove(at)?;
        Image::new(&self.shadow, &tree, &replay, loss).build(at)
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn torn(seed: u64) -> Loss {
    Loss::Torn(Box::new(StdRng::seed_from_u64(seed)))
}

/// Everything below a folder, by path.
pub fn contents(root: &Path) -> Result<BTreeMap<PathBuf, Survivor>> {
    let mut contents = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let survivor = if kind.is_dir() {
                folders.push(entry.path());
                Survivor::Folder
            } else if kind.is_symlink() {
                Survivor::Link(fs::read_link(entry.path())?)
            } else {
                Survivor::File(fs::read(entry.path())?)
            };
            contents.insert(entry.path().strip_prefix(root)?.to_path_buf(), survivor);
        }
    }
    Ok(contents)
}
