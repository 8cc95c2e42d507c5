//! `saveguard vault copy`: exit 0 if the target has everything, 1 if something could not be read, 2 if it was broken off.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use serde_json::json;
use vault::Vault;

use super::progress::Bar;
use super::{open_ledger, print, tell};
use crate::app::App;
use crate::config::{Config, StoreKind};
use crate::preserving::{Moved, copy_vault};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring the bytes of all documents from one vault into another, beside the running service. Again: only what is new.
    #[command(
        after_help = "To move: copy, set `vault.kind` to the new place, restart the service, and copy once more, which \
                            brings what came in between."
    )]
    Copy(CopyOf),
}

#[derive(Debug, Args)]
struct CopyOf {
    /// From where: local, s3, sftp (as the configuration has them), or the folder of a backup's vault.
    #[arg(long, value_name = "VAULT")]
    from: Place,
    /// To where.
    #[arg(long, value_name = "VAULT")]
    to: Place,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Store(StoreKind),
    Folder(PathBuf),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "local" => Ok(Self::Store(StoreKind::Local)),
            "s3" => Ok(Self::Store(StoreKind::S3)),
            "sftp" => Ok(Self::Store(StoreKind::Sftp)),
            folder if folder.contains('/') => Ok(Self::Folder(folder.into())),
            _ => Err("it can be local, s3, sftp, or a path with a `/` in it".to_owned()),
        }
    }
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Command::Copy(copy) = arguments.command;
    ensure!(copy.from != copy.to, "from and to are the same vault");
    let app = open_ledger(config).await?;
    let (source, target) = (open_source(&app, &copy.from)?, open(&app, &copy.to)?);
    let bar = Bar::default();
    let moved = copy_vault((source.as_ref(), target.as_ref()), &app.spool, &bar).await;
    bar.finish();
    let moved = moved.context("the copy was broken off; the same command goes on where it was")?;
    if copy.json {
        print(&json!(moved).to_string());
    } else {
        show(&moved);
    }
    Ok(if moved.lacking.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A vault that is there: a folder that is none is not made into one.
pub(super) fn open_source(app: &App, place: &Place) -> anyhow::Result<Arc<dyn Vault>> {
    if let Place::Folder(folder) = place {
        ensure!(
            folder.join("blobs").is_dir(),
            "{} is no vault: there is no folder `blobs` in it",
            folder.display()
        );
    }
    open(app, place)
}

fn open(app: &App, place: &Place) -> anyhow::Result<Arc<dyn Vault>> {
    match place {
        // What waits in the depot belongs to the vault that is in use.
        Place::Store(kind) if *kind == app.config.stores.vault => Ok(Arc::clone(&app.vault)),
        Place::Store(kind) => {
            let stores = &app.config.stores;
            let is_set = match kind {
                StoreKind::Local => true,
                StoreKind::S3 => stores.s3.is_some(),
                StoreKind::Sftp => stores.sftp.is_some(),
            };
            ensure!(is_set, "the configuration does not say where that is: set it up under [s3] or [sftp]");
            app.other_vault(*kind).context("the vault cannot be opened")
        }
        Place::Folder(folder) => App::vault_in(folder).context("the folder cannot be opened as a vault"),
    }
}

fn show(moved: &Moved) {
    for digest in &moved.lacking {
        print(&format!("blob {digest} is missing or damaged in the source"));
    }
    tell(&format!(
        "{} blobs, {} bytes, are in both; {} of them are new, {} bytes.",
        moved.blobs, moved.bytes, moved.copied_blobs, moved.copied_bytes
    ));
}
