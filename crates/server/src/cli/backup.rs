//! `saveguard backup`: exit 0 if the backup has everything, 1 if it lacks something the ledger names, 2 if none was made.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;

use super::progress::Bar;
use super::{print, tell};
use crate::app::App;
use crate::config::Config;
use crate::preserving::{BackedUp, back_up};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The folder for the backup. One that has a backup already is brought up to date.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::require_embedded(&config)?;
    super::require_data(&config)?;
    let app = Arc::new(App::inspecting(config).await.context("the data folder cannot be opened")?);
    let bar = Bar::default();
    let made = back_up(&app, &arguments.folder, &bar).await.context("no backup was made")?;
    bar.finish();
    if arguments.json {
        print(&json!(made).to_string());
    } else {
        show(&arguments, &made);
    }
    Ok(if made.manifest.lacking.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(arguments: &Arguments, made: &BackedUp) {
    let manifest = &made.manifest;
    for digest in &manifest.lacking {
        print(&format!("blob {digest} is missing or damaged in the vault and is not in the backup"));
    }
    tell(&format!(
        "Backup {} in {}: {} blobs, {} bytes; {} new, {} bytes.",
        manifest.name,
        arguments.folder.display(),
        manifest.blobs,
        manifest.bytes,
        made.copied_blobs,
        made.copied_bytes
    ));
    tell(&format!("Not in it: {}.", manifest.left_out.join("; ")));
    if !manifest.lacking.is_empty() {
        tell("It lacks blobs that the ledger names: run `saveguard verify --read-data`.");
    }
}
