//! `saveguard receipt verify`: is this receipt of a submission ours, and unchanged?
//!
//! It needs the configuration, for the secret, and no ledger. Exit 0 if it is ours, 1 if it is not, 2 if it could not be read.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{print, tell};
use crate::config::Config;
use crate::http::Receipts;

/// Longer is no receipt.
const RECEIPT_BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Is this receipt of a submission ours, and unchanged?
    Verify(Arguments),
}

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The receipt, as it was downloaded, or its token alone; `-` for standard input.
    file: PathBuf,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(config: &Config, Command::Verify(arguments): Command) -> anyhow::Result<ExitCode> {
    let shown = arguments.file.display();
    let text = read(&arguments.file).with_context(|| format!("{shown} cannot be read"))?;
    let said = Receipts::new(config).verify(&text);
    if arguments.json {
        print(&json!({ "is_ours": said.is_some(), "receipt": said }).to_string());
    } else {
        match &said {
            Some(said) => show(said),
            None => tell("This receipt is not ours, or something in it was changed."),
        }
    }
    Ok(if said.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().take(RECEIPT_BYTES_MAX).read_to_string(&mut text)?;
    } else {
        std::fs::File::open(file)?.take(RECEIPT_BYTES_MAX).read_to_string(&mut text)?;
    }
    Ok(text)
}

fn show(said: &Value) {
    tell("This receipt is ours and unchanged. It says:");
    print(&serde_json::to_string_pretty(said).unwrap_or_default());
}
