//! The disk of a round: a plain folder, or one that forgets what was not flushed.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};

use crate::power_loss::PowerLoss;

/// What is lost when the service dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskKind {
    /// Nothing: only the process dies.
    Plain,
    /// What was not flushed: the whole machine dies.
    PowerLoss,
}

/// How the power fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Everything that was not flushed is gone.
    Clean,
    /// Some of it is there, by a seed.
    Torn(u64),
}

/// The disk of a round.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    power_loss: Option<Arc<Mutex<PowerLoss>>>,
}

impl Disk {
    pub(crate) fn new(kind: DiskKind, data: &Path, shadow: &Path) -> Result<Self> {
        let power_loss = match kind {
            DiskKind::Plain => None,
            // What counts as durable is noted all the same; waiting for a real disk would only cost time.
            DiskKind::PowerLoss => Some(PowerLoss::new(data, shadow)?.without_real_sync()),
        };
        Ok(Self { power_loss: power_loss.map(|disk| Arc::new(Mutex::new(disk))) })
    }

    pub(crate) fn kind(&self) -> DiskKind {
        if self.power_loss.is_some() { DiskKind::PowerLoss } else { DiskKind::Plain }
    }

    /// What puts a process on this disk.
    pub(crate) fn environment(&self) -> Vec<(String, OsString)> {
        let Some(disk) = &self.power_loss else { return Vec::new() };
        let disk = disk.lock().unwrap_or_else(PoisonError::into_inner);
        disk.command_env().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The power fails. All processes on the disk must be dead.
    pub(crate) async fn cut(&self, cut: Cut) -> Result<()> {
        let Some(disk) = self.power_loss.clone() else { return Ok(()) };
        tokio::task::spawn_blocking(move || {
            let mut disk = disk.lock().unwrap_or_else(PoisonError::into_inner);
            match cut {
                Cut::Clean => disk.crash(),
                Cut::Torn(seed) => disk.crash_torn(seed),
            }
        })
        .await?
        .context("the power-loss disk failed")
    }
}
