//! The storage server of a round: somebody else's program that is killed, frozen and started again while the service uses it.
//!
//! Guarantees: it listens on one port of the loopback all the time and keeps everything in the folder of the round, where the
//! checks read it without asking the service. A server that is dropped is killed. Does not decide when it fails: `unplugging` does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use test_stores::S3Server;
use test_stores::s3::{ACCESS_KEY_ID, BUCKET, SECRET_ACCESS_KEY};
use tokio::sync::MutexGuard;
use vault::contract::sshd::Sshd;

use super::World;

/// Where in the bucket the service has its things.
const PREFIX: &str = "round";

/// Where the service keeps blobs and the published tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VaultKind {
    /// In its data folder.
    Local,
    /// On an OpenSSH server.
    Sftp,
    /// In a bucket of s3s-fs, which keeps objects as files.
    S3,
}

impl VaultKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Sftp => "sftp",
            Self::S3 => "s3",
        }
    }

    /// Whether a step of the source can be taken with this vault. Uploads in parts are for files far larger than those of a
    /// round; an object of a bucket is written and named at once.
    pub(crate) fn has(self, step: &str) -> bool {
        let is_large_upload = step.starts_with("vault.upload-");
        let is_of_files = matches!(step, "vault.blob-named" | "vault.blob-written");
        match self {
            Self::Local => !is_large_upload && !step.starts_with("depot."),
            Self::Sftp => !is_large_upload,
            Self::S3 => !is_large_upload && !is_of_files,
        }
    }
}

/// Whether saves may wait on the local disk while the storage is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DepotUse {
    Allowed,
    Forbidden,
}

impl DepotUse {
    /// Rounds take turns.
    pub(crate) fn of_round(round: u64) -> Self {
        if round.is_multiple_of(2) { Self::Forbidden } else { Self::Allowed }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Forbidden => "forbidden",
        }
    }
}

/// How a vault lays out its blobs on a disk.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    folder: PathBuf,
    /// A folder for each first byte, as in every vault but a bucket.
    has_folders: bool,
}

impl Shelf {
    /// The file of a blob.
    pub(crate) fn file(&self, sha256: &str) -> PathBuf {
        if self.has_folders { self.folder.join(&sha256[..2]).join(sha256) } else { self.folder.join(sha256) }
    }
}

/// A running storage server, or one that is down for the moment.
pub(crate) struct Storage {
    server: Arc<Mutex<Server>>,
    /// Where it keeps what the service has there.
    root: PathBuf,
    kind: VaultKind,
    kills: AtomicU64,
    /// One at a time does something to it.
    turn: tokio::sync::Mutex<()>,
}

enum Server {
    Sftp(Sshd),
    S3(S3Server),
}

impl Server {
    fn start(kind: VaultKind, folder: &Path, port: u16) -> Self {
        if kind == VaultKind::S3 {
            return Self::S3(S3Server::on_disk_in(folder, port));
        }
        let mut sshd = Sshd::start_at(folder, port);
        // With the rest of a round in which something was found.
        sshd.keep_folder();
        Self::Sftp(sshd)
    }

    fn processes(&self) -> Vec<u32> {
        match self {
            Self::Sftp(server) => server.processes(),
            Self::S3(server) => server.processes(),
        }
    }
}

impl Storage {
    /// Starts the server of a round; `None` if the vault needs none.
    pub(crate) async fn start(kind: VaultKind, folder: &Path, port: u16) -> Result<Option<Self>> {
        if kind == VaultKind::Local {
            return Ok(None);
        }
        let folder = folder.join("storage");
        std::fs::create_dir_all(&folder)?;
        let started = tokio::task::spawn_blocking(move || Server::start(kind, &folder, port));
        let server = started.await.context("the storage server does not start")?;
        let root = match &server {
            Server::Sftp(server) => server.root(),
            Server::S3(server) => server.folder().context("s3s-fs has a folder")?.join(PREFIX),
        };
        let (server, kills, turn) =
            (Arc::new(Mutex::new(server)), AtomicU64::new(0), tokio::sync::Mutex::new(()));
        Ok(Some(Self { server, root, kind, kills, turn }))
    }

    /// Settings by which the service finds it.
    pub(crate) fn environment(&self, depot: DepotUse) -> Vec<(String, OsString)> {
        let mut settings = match &*self.server.lock().unwrap_or_else(PoisonError::into_inner) {
            Server::Sftp(server) => sftp_settings(server),
            Server::S3(server) => s3_settings(server),
        };
        settings.push(("VAULT_KIND", self.kind.as_str().into()));
        settings.push(("VAULT_DEPOT", depot.as_str().into()));
        settings.into_iter().map(|(name, value)| (format!("SAVEGUARD_{name}"), value)).collect()
    }

    /// Waits until nobody else does anything to it.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Kills it in the middle of whatever it does, with all its sessions.
    pub(crate) async fn kill(&self) -> Result<()> {
        self.kills.fetch_add(1, Ordering::SeqCst);
        self.with_server(|server| match server {
            Server::Sftp(server) => server.kill(),
            Server::S3(server) => server.kill(),
        })
        .await
    }

    /// Starts it again where it was.
    pub(crate) async fn start_again(&self) -> Result<()> {
        self.with_server(|server| match server {
            Server::Sftp(server) => server.restart(),
            Server::S3(server) => server.start_again(),
        })
        .await
    }

    /// It takes connections and does nothing any more.
    pub(crate) async fn freeze(&self) -> Result<()> {
        self.signal("-STOP").await
    }

    /// It goes on where it was.
    pub(crate) async fn thaw(&self) -> Result<()> {
        self.signal("-CONT").await
    }

    /// How often it was killed.
    pub(crate) fn kills(&self) -> u64 {
        self.kills.load(Ordering::SeqCst)
    }

    async fn signal(&self, name: &'static str) -> Result<()> {
        let sent = self.with_server(move |server| {
            let processes = server.processes().into_iter().map(|process| process.to_string());
            // A session may end by itself meanwhile.
            let sent = std::process::Command::new("kill").arg(name).args(processes).output();
            sent.map(drop)
        });
        sent.await?.context("no signal could be sent")
    }

    async fn with_server<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Server) -> T + Send + 'static,
    ) -> Result<T> {
        let server = Arc::clone(&self.server);
        let done = tokio::task::spawn_blocking(move || {
            act(&mut server.lock().unwrap_or_else(PoisonError::into_inner))
        });
        done.await.context("the storage server cannot be handled")
    }
}

fn sftp_settings(server: &Sshd) -> Vec<(&'static str, OsString)> {
    let settings = server.settings();
    vec![
        ("SFTP_HOST", settings.host.into()),
        ("SFTP_PORT", settings.port.to_string().into()),
        ("SFTP_USER", settings.user.into()),
        ("SFTP_KEY_FILE", server.path("user").into()),
        ("SFTP_FINGERPRINT", server.fingerprint().into()),
        ("SFTP_ROOT", server.root().into()),
    ]
}

fn s3_settings(server: &S3Server) -> Vec<(&'static str, OsString)> {
    vec![
        ("S3_ENDPOINT", server.endpoint().into()),
        ("S3_PLAIN_HTTP", "allowed".into()),
        ("S3_BUCKET", BUCKET.into()),
        ("S3_PREFIX", PREFIX.into()),
        ("S3_ACCESS_KEY_ID", ACCESS_KEY_ID.into()),
        ("S3_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY.into()),
    ]
}

impl World {
    /// Where the blobs are.
    pub(crate) fn shelf(&self) -> Shelf {
        let root = match &self.storage {
            Some(storage) => storage.root.clone(),
            None => self.data(),
        };
        let has_folders = self.setting.conditions.vault != VaultKind::S3;
        Shelf { folder: root.join("vault").join("blobs"), has_folders }
    }

    /// Where blobs wait for the storage.
    pub(crate) fn depot_shelf(&self) -> Shelf {
        Shelf { folder: self.data().join("depot").join("blobs"), has_folders: true }
    }

    /// Below it is the published tree.
    pub(super) fn published_root(&self) -> PathBuf {
        match &self.storage {
            Some(storage) => storage.root.join("published"),
            None => self.data().join("published"),
        }
    }

    /// Whether saves may wait on the local disk in this round.
    pub(crate) fn depot_use(&self) -> DepotUse {
        DepotUse::of_round(self.setting.round)
    }
}

/// Such a vault has no storage server that could be away.
pub(crate) fn ensure_far(kind: VaultKind) -> Result<()> {
    ensure!(
        kind != VaultKind::Local,
        "only a far vault can be away: --outage needs --vault sftp or --vault s3"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vault_has_its_own_steps() {
        let kinds = [VaultKind::Local, VaultKind::Sftp, VaultKind::S3];
        let having = |step: &str| kinds.map(|kind| kind.has(step));

        assert_eq!(having("save.stored"), [true, true, true]);
        assert_eq!(having("depot.delivered"), [false, true, true]);
        assert_eq!(having("vault.blob-named"), [true, true, false]);
        assert_eq!(having("vault.upload-begun"), [false, false, false], "files of a round are small");
    }
}
