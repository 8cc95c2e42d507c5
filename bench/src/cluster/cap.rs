//! A fixed slice of the processor for a process: a control group of its own with a quota.
//!
//! Works with both versions of control groups. Needs root. Guarantees: when the value goes, the process has the whole machine
//! again, and the group goes too. Does not do: memory, disks.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// How often a slice is handed out. Shorter than the default of 100 ms, so that a save does not wait for long.
const PERIOD_US: u32 = 50_000;
/// Where the second version is, alone or beside the first, and where the first has the processor.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const FIRST: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];

/// In what pieces the kernel hands a quota to the cores. By default they are as large as our whole quota: a core that takes it and sleeps
/// keeps it from the other, and half of it is never used.
const PIECES: &str = "/proc/sys/kernel/sched_cfs_bandwidth_slice_us";
const PIECE_US: &str = "500";

/// Small pieces for all groups, until this is dropped.
pub(super) struct SmallPieces {
    before: Option<String>,
}

impl SmallPieces {
    /// Where the kernel has no such setting, nothing is changed.
    pub(super) fn set() -> Self {
        let before = fs::read_to_string(PIECES).ok();
        Self { before: before.filter(|_| fs::write(PIECES, PIECE_US).is_ok()) }
    }
}

impl Drop for SmallPieces {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = fs::write(PIECES, before);
        }
    }
}

/// The group of one process.
pub(super) struct Cap {
    folder: PathBuf,
    process: u32,
}

impl Cap {
    /// Puts a process, with all its threads, into a group that gets so many percent of one core.
    pub(super) fn put_on(process: u32, percent: u32) -> Result<Self> {
        let quota_us = PERIOD_US / 100 * percent;
        let name = format!("saveguard-bench-{process}");
        for root in UNIFIED.map(Path::new) {
            let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
            if controllers.split_whitespace().any(|controller| controller == "cpu") {
                // Already so on most machines; where it may not be changed, the next line fails.
                let _ = fs::write(root.join("cgroup.subtree_control"), "+cpu");
                let limits = [("cpu.max", format!("{quota_us} {PERIOD_US}"))];
                return Self::make(root.join(&name), process, &limits);
            }
        }
        let root = FIRST.map(Path::new).into_iter().find(|root| root.join("cpu.cfs_quota_us").exists());
        let root = root.context("no control group can limit the processor here: run it as root, on Linux")?;
        let limits =
            [("cpu.cfs_period_us", PERIOD_US.to_string()), ("cpu.cfs_quota_us", quota_us.to_string())];
        Self::make(root.join(&name), process, &limits)
    }

    fn make(folder: PathBuf, process: u32, limits: &[(&str, String)]) -> Result<Self> {
        fs::create_dir(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let cap = Self { folder, process };
        for (name, value) in limits {
            fs::write(cap.folder.join(name), value).with_context(|| format!("{name} cannot be set"))?;
        }
        fs::write(cap.folder.join("cgroup.procs"), process.to_string())
            .context("the process cannot be put into its group")?;
        Ok(cap)
    }
}

impl Drop for Cap {
    fn drop(&mut self) {
        // A group can be removed when nobody is in it.
        if let Some(root) = self.folder.parent() {
            let _ = fs::write(root.join("cgroup.procs"), self.process.to_string());
        }
        let _ = fs::remove_dir(&self.folder);
    }
}
