//! SFTP: our vault beside OpenSSH's `sftp` doing `put` and `rename` in one batch, on a real OpenSSH server.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use model::Guards;
use tokio::task::JoinSet;
use vault::contract::sshd::{SFTP_SERVER, Sshd};
use vault::sftp::{SftpVault, Store};

use super::{Load, ROUNDS, put_all, spooled, timed};
use crate::report::Row;

/// Whether both sides flush what they store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flushed {
    Yes,
    No,
}

/// The rows of this store.
pub(super) async fn rows(loads: &[Load]) -> Result<Vec<Row>> {
    let parent = std::env::current_exe()?.parent().context("no folder")?.to_owned();
    let mut rows = Vec::new();
    for load in loads {
        for flushed in [Flushed::Yes, Flushed::No] {
            let word = if flushed == Flushed::Yes { "flushed" } else { "not flushed" };
            let name = format!("sftp {}, {word}", load.name);
            let (mut ours, mut limit) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS {
                // A server and a folder of its own, so that no round finds what another left.
                let sshd = Sshd::start_in(&parent, SFTP_SERVER);
                let contents = load.contents(round);
                let batches = Batches::write(&sshd, &contents, (load.side_by_side, flushed))?;
                let (blobs, _spool) = spooled(&contents, &parent).await?;
                drop(contents);
                let vault = open(&sshd, flushed)?;
                // Who goes second finds a busier disk: they take turns.
                let ours_first = round % 2 == 0;
                if !ours_first {
                    limit.push(timed(batches.run(&sshd)).await?);
                }
                ours.push(timed(put_all(vault, blobs, load.side_by_side)).await?);
                if ours_first {
                    limit.push(timed(batches.run(&sshd)).await?);
                }
                eprintln!(
                    "{name}: round {} of {ROUNDS}: {:.2} s, limit {:.2} s",
                    round + 1,
                    ours[round],
                    limit[round]
                );
            }
            rows.push(load.row(&name, (ours, limit)));
        }
    }
    Ok(rows)
}

fn open(sshd: &Sshd, flushed: Flushed) -> Result<Arc<SftpVault>> {
    let guards = Guards { fsync: flushed == Flushed::Yes, ..Guards::ALL };
    Ok(Arc::new(Store::open(sshd.settings(), &guards)?.vault()))
}

/// The same files for `sftp`, with what it is to do with them.
struct Batches {
    files: Vec<PathBuf>,
    _folder: tempfile::TempDir,
}

impl Batches {
    fn write(sshd: &Sshd, contents: &[Bytes], (count, flushed): (usize, Flushed)) -> Result<Self> {
        let folder = tempfile::tempdir_in(sshd.root())?;
        let target = sshd.root().join("batch");
        std::fs::create_dir(&target)?;
        let host_key = std::fs::read_to_string(sshd.path("host.pub"))?;
        std::fs::write(sshd.path("known_hosts"), format!("[127.0.0.1]:{} {host_key}", sshd.port()))?;
        let put = if flushed == Flushed::Yes { "put -f" } else { "put" };
        let mut batches = vec![String::new(); count];
        for (number, content) in contents.iter().enumerate() {
            let source = folder.path().join(number.to_string());
            std::fs::write(&source, content)?;
            let (source, target) = (source.display(), target.join(number.to_string()));
            let target = target.display();
            let batch = &mut batches[number % count];
            writeln!(batch, "{put} {source} {target}.tmp\nrename {target}.tmp {target}")?;
        }
        let mut files = Vec::new();
        for (number, batch) in batches.iter().enumerate() {
            files.push(folder.path().join(format!("batch-{number}")));
            std::fs::write(&files[number], batch)?;
        }
        Ok(Self { files, _folder: folder })
    }

    async fn run(&self, sshd: &Sshd) -> Result<()> {
        let mut running = JoinSet::new();
        for file in &self.files {
            let mut command = command(sshd, file);
            running.spawn_blocking(move || command.output());
        }
        while let Some(done) = running.join_next().await {
            let output = done??;
            ensure!(output.status.success(), "sftp failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

fn command(sshd: &Sshd, batch: &Path) -> Command {
    let known_hosts = format!("UserKnownHostsFile={}", sshd.path("known_hosts").display());
    let mut command = Command::new("sftp");
    command
        .args(["-q", "-F", "none", "-o", &known_hosts, "-o", "StrictHostKeyChecking=yes"])
        .args(["-o", "IdentitiesOnly=yes", "-P", &sshd.port().to_string(), "-i"])
        .arg(sshd.path("user"))
        .arg("-b")
        .arg(batch)
        .arg("root@127.0.0.1")
        .stdin(Stdio::null());
    command
}
