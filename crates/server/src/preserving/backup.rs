//! Making a backup: the ledger's snapshot, the blobs it names, the manifest.

use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use model::Digest;
use serde::Serialize;
use vault::Spool;

use super::copying::{Copying, PAGE, Tally};
use super::files::{self, Summed};
use super::manifest::{FORMAT, LEFT_OUT, Manifest, NamedFile};
use super::{PreserveError, restore};
use crate::app::{App, FolderLock};
use crate::progress::Progress;

/// A blob that is missing may have been removed, rightly, after the snapshot: a second one does not name it.
const ATTEMPTS: usize = 2;

/// A backup that was made.
#[derive(Debug, Serialize)]
pub struct BackedUp {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Blobs that were not in the folder before.
    pub copied_blobs: u64,
    /// Their bytes.
    pub copied_bytes: u64,
}

/// Makes a backup in a folder, or brings the one there up to date, while the service runs.
pub async fn back_up(
    app: &Arc<App>,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<BackedUp, PreserveError> {
    check_folder(app, folder)?;
    let _lock = FolderLock::take(folder)?;
    let mut attempt = 1;
    loop {
        let made = attempt_backup(app, folder, progress).await?;
        if made.manifest.lacking.is_empty() || attempt == ATTEMPTS {
            forget_older(folder, &made.manifest)?;
            return Ok(made);
        }
        attempt += 1;
    }
}

fn check_folder(app: &App, folder: &Path) -> Result<(), PreserveError> {
    let unsuitable = |why| PreserveError::Unsuitable { folder: folder.display().to_string(), why };
    if App::has_data_in(folder) || restore::unfinished(folder) {
        return Err(unsuitable("is the data folder of a service; a backup needs a folder of its own"));
    }
    std::fs::create_dir_all(folder).map_err(PreserveError::file("make the folder", folder))?;
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real(folder).starts_with(real(&app.config.server.data)) {
        return Err(unsuitable("lies in the data folder; what loses one would lose both"));
    }
    Ok(())
}

async fn attempt_backup(
    app: &Arc<App>,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<BackedUp, PreserveError> {
    let made_at = app.now();
    let name = name_for(made_at, app.random.bits());
    let snapshot = folder.join(format!("ledger-{name}.sqlite"));
    progress.begin("ledger", 1);
    app.ledger.write_snapshot(&snapshot).await?;
    let ledger = sum(&snapshot).await?;
    progress.advance();

    let (tally, sums) = copy_blobs(app, (folder, &name, &ledger), (&snapshot, progress)).await?;
    let manifest = Manifest {
        format: FORMAT,
        name,
        made_at,
        environment: app.config.server.environment.as_str().to_owned(),
        program: concat!("saveguard ", env!("CARGO_PKG_VERSION")).to_owned(),
        ledger,
        sums,
        blobs: tally.blobs,
        bytes: tally.bytes,
        lacking: tally.lacking.iter().map(Digest::to_string).collect(),
        left_out: LEFT_OUT.map(str::to_owned).to_vec(),
    };
    manifest.write(folder)?;
    Ok(BackedUp { manifest, copied_blobs: tally.copied_blobs, copied_bytes: tally.copied_bytes })
}

/// Two backups never share a name, not even within a second.
fn name_for(made_at: Timestamp, random: u64) -> String {
    format!("{}-{:08x}", made_at.strftime("%Y%m%dT%H%M%SZ"), random >> 32)
}

async fn sum(file: &Path) -> Result<NamedFile, PreserveError> {
    let file = file.to_owned();
    tokio::task::spawn_blocking(move || files::sum(&file)).await.map_err(|_| PreserveError::Interrupted)?
}

/// Copies every blob the snapshot names, and lists what there is.
async fn copy_blobs(
    app: &Arc<App>,
    (folder, name, ledger): (&Path, &str, &NamedFile),
    (snapshot, progress): (&Path, &dyn Progress),
) -> Result<(Tally, NamedFile), PreserveError> {
    let target = App::vault_in(&folder.join("vault"))?;
    let spool = Spool::open(&folder.join("spool"))?;
    spool.clean()?;
    let copying = Copying { source: &*app.vault, target: &*target, spool: &spool, progress };
    let list = folder.join(format!("SHA256SUMS-{name}"));
    let failed = || PreserveError::file("write", &list);
    let mut lines = Summed::new(BufWriter::new(std::fs::File::create(&list).map_err(failed())?));
    writeln!(lines, "{}  {}", ledger.sha256, ledger.name).map_err(failed())?;
    let mut tally = Tally::default();
    let mut after: Option<Digest> = None;
    progress.begin("blobs", 0);
    loop {
        let mut page = app.ledger.snapshot_blobs(snapshot, after.as_ref(), PAGE).await?;
        let Some(last) = page.last().map(|blob| blob.digest) else { break };
        // Nothing needs a blob that is being let go.
        page.retain(|blob| !blob.is_going);
        copying.bring(&page, &mut tally).await?;
        for digest in page.iter().map(|blob| blob.digest).filter(|digest| !tally.lacking.contains(digest)) {
            writeln!(lines, "{digest}  vault/blobs/{}/{digest}", digest.short(2)).map_err(failed())?;
        }
        after = Some(last);
    }
    let (digest, size_bytes, writer) = lines.finish();
    let file = writer.into_inner().map_err(|cause| failed()(cause.into_error()))?;
    file.sync_all().map_err(failed())?;
    let _ = std::fs::remove_dir(folder.join("spool"));
    Ok((tally, NamedFile { name: format!("SHA256SUMS-{name}"), size_bytes, sha256: digest.to_string() }))
}

/// The manifest names the newest; what older ones named is not needed any more.
fn forget_older(folder: &Path, manifest: &Manifest) -> Result<(), PreserveError> {
    let entries = std::fs::read_dir(folder).map_err(PreserveError::file("read", folder))?;
    for entry in entries {
        let entry = entry.map_err(PreserveError::file("read", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = name.starts_with("ledger-") || name.starts_with("SHA256SUMS-");
        if is_ours && name != manifest.ledger.name && name != manifest.sums.name {
            files::remove(&entry.path())?;
        }
    }
    Ok(())
}
