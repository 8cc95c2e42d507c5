//! `saveguard doctor`.

use std::process::ExitCode;

use crate::config::Config;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(_config: Config, _arguments: Arguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not yet")
}
