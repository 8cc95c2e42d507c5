//! Room on the disk of the data folder: measured at every decision, announced when it changes.
//!
//! Guarantees: an upload or a save that would come too close to a full disk is refused before its first byte, and taken again
//! by itself once there is room; a disk that cannot be measured counts as one with room, and its writes fail as they do.
//! The rule is `model::disk`. Does not do: make room.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::disk::{Room, Space, rule_on_space};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::telemetry;

/// How often somebody looks, so that people hear of it although nothing is saved.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// A disk that can be measured.
pub trait Disk: Send + Sync {
    /// What is left of it; `None` if nobody can tell.
    fn room(&self) -> Option<Room>;
}

/// The disk a folder lies on.
#[derive(Debug)]
pub struct LocalDisk {
    folder: PathBuf,
}

impl LocalDisk {
    /// Of this folder.
    pub fn of(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }
}

impl Disk for LocalDisk {
    fn room(&self) -> Option<Room> {
        let space = rustix::fs::statvfs(&self.folder).ok()?;
        Some(Room {
            free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
            total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
        })
    }
}

/// What the room is enough for now.
pub(crate) fn space(app: &App) -> Space {
    app.disk.room().map_or(Space::Plenty, |room| rule_on_space(&app.config.disk, room))
}

/// Tells people when it changes, and wakes the recovery when there is room again.
pub async fn follow(app: Arc<App>, stop: CancellationToken) {
    let mut before = Space::Plenty;
    loop {
        let now = space(&app);
        if now != before {
            tell(&app, now);
        }
        if !before.takes_saves() && now.takes_saves() {
            app.recovery_wanted.notify_one();
        }
        before = now;
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}

fn tell(app: &App, space: Space) {
    let free_mib = app.disk.room().map_or(0, |room| room.free_bytes / (1024 * 1024));
    match space {
        Space::Plenty => tracing::info!(free_mib, "there is enough room on the disk again"),
        Space::Low => {
            telemetry::alert("disk-low");
            tracing::warn!(
                free_mib,
                "the disk is nearly full; make room, or uploads and then saves are refused"
            );
        }
        Space::SavesOnly => {
            telemetry::alert("disk-saves-only");
            tracing::error!(free_mib, "the disk is nearly full: uploads are refused, saves are still taken");
        }
        Space::Exhausted => {
            telemetry::alert("disk-exhausted");
            tracing::error!(free_mib, "the disk is full: saves are put off, the Document Server keeps them");
        }
    }
}
