//! The way back: a backup into an empty data folder.
//!
//! A marker stands in the folder from the first file to the last step, so that nobody takes a half restored folder for a
//! whole one; a restore that was broken off is taken up again by the same command.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ledger::documents::Author;
use ledger::snapshots::{BegunAgain, Restoration};
use model::{Digest, Guards};
use serde::Serialize;

use super::copying::{Copying, PAGE, Tally};
use super::{Manifest, PreserveError, files};
use crate::app::{App, FolderLock};
use crate::config::Config;
use crate::progress::Progress;

/// Stands in a data folder while it is being restored.
const MARKER: &str = "restoring";
/// What an empty data folder may have: secrets are generated before anybody can restore.
const HARMLESS: [&str; 3] = ["secrets", "lock", MARKER];

/// A folder that was restored.
#[derive(Debug, Serialize)]
pub struct Restored {
    /// The backup.
    pub backup: String,
    /// The moment it shows.
    pub made_at: jiff::Timestamp,
    /// Documents.
    pub documents: u64,
    /// Blobs that are in place.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blobs that the ledger names and that the backup does not have whole.
    pub lacking: Vec<String>,
    /// Sessions that were open when the backup was made; the Document Server is asked before one is joined again.
    pub live_keys: u64,
    /// Saves that were on their way; the service takes them up.
    pub open_saves: u64,
}

/// Whether a restore into this folder was begun and not finished.
pub fn unfinished(data: &Path) -> bool {
    data.join(MARKER).exists()
}

/// Restores a backup into the data folder of a configuration, which must be empty.
pub async fn restore(
    config: Config,
    backup: &Path,
    (who, progress): (&Author, &dyn Progress),
) -> Result<(Arc<App>, FolderLock, Restored), PreserveError> {
    let manifest = Manifest::read(backup)?;
    let (theirs, ours) = (manifest.environment.clone(), config.server.environment.as_str().to_owned());
    if theirs != ours {
        return Err(PreserveError::Foreign { theirs, ours });
    }
    let data = config.server.data.clone();
    let lock = FolderLock::take(&data)?;
    check_empty(&data, &manifest)?;
    files::replace(&data.join(MARKER), manifest.name.as_bytes())?;
    copy_ledger(backup, &data, &manifest, progress).await?;

    let app = Arc::new(App::restoring(config, Guards::ALL).await?);
    let tally = copy_blobs(&app, backup, &manifest, progress).await?;
    let restoration = Restoration {
        backup: manifest.name.clone(),
        backed_up_at: manifest.made_at,
        who: who.clone(),
        at: app.now(),
    };
    let begun = app.ledger.begin_again(&restoration).await?;
    files::remove(&data.join(MARKER))?;
    Ok((app, lock, told(&manifest, &tally, begun)))
}

fn told(manifest: &Manifest, tally: &Tally, begun: BegunAgain) -> Restored {
    Restored {
        backup: manifest.name.clone(),
        made_at: manifest.made_at,
        documents: begun.documents,
        blobs: tally.blobs,
        bytes: tally.bytes,
        lacking: tally.lacking.iter().map(Digest::to_string).collect(),
        live_keys: begun.live_keys,
        open_saves: begun.open_saves,
    }
}

/// A folder with somebody's data in it is never touched; one of a broken off restore of the same backup is.
fn check_empty(data: &Path, manifest: &Manifest) -> Result<(), PreserveError> {
    let unsuitable = |why| PreserveError::Unsuitable { folder: data.display().to_string(), why };
    if let Ok(begun) = std::fs::read_to_string(data.join(MARKER)) {
        return if begun == manifest.name {
            Ok(())
        } else {
            Err(unsuitable("has half of another backup in it; empty it first"))
        };
    }
    for entry in std::fs::read_dir(data).map_err(PreserveError::file("read", data))? {
        let name = entry.map_err(PreserveError::file("read", data))?.file_name();
        if !HARMLESS.iter().any(|harmless| name == *harmless) {
            return Err(unsuitable("is not empty; a restore never touches what is there"));
        }
    }
    Ok(())
}

/// Under its own name it is whole, so one that is there came from a restore that was broken off later.
async fn copy_ledger(
    backup: &Path,
    data: &Path,
    manifest: &Manifest,
    progress: &dyn Progress,
) -> Result<(), PreserveError> {
    progress.begin("ledger", 1);
    let (from, to): (PathBuf, PathBuf) = (backup.join(&manifest.ledger.name), App::ledger_in(data));
    let expected = manifest.ledger.clone();
    if !to.exists() {
        tokio::task::spawn_blocking(move || files::copy(&from, &to, &expected))
            .await
            .map_err(|_| PreserveError::Interrupted)??;
    }
    progress.advance();
    Ok(())
}

async fn copy_blobs(
    app: &App,
    backup: &Path,
    manifest: &Manifest,
    progress: &dyn Progress,
) -> Result<Tally, PreserveError> {
    let source = App::vault_in(&backup.join("vault"))?;
    let copying = Copying { source: &*source, target: &*app.vault, spool: &app.spool, progress };
    let mut tally = Tally::default();
    let mut after: Option<Digest> = None;
    progress.begin("blobs", manifest.blobs);
    loop {
        let mut page = app.ledger.blobs(after.as_ref(), PAGE).await?;
        let Some(last) = page.last().map(|blob| blob.digest) else { return Ok(tally) };
        // Nothing needs a blob that was being let go, and the backup has none.
        page.retain(|blob| !blob.is_going);
        copying.bring(&page, &mut tally).await?;
        after = Some(last);
    }
}
