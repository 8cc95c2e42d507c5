//! `saveguard migrate`: brings the ledger's schema to the number this program knows. `serve` does so too.

use std::process::ExitCode;

use anyhow::Context as _;

use super::tell;
use crate::app::App;
use crate::config::Config;

pub(super) async fn run(config: Config) -> anyhow::Result<ExitCode> {
    let place = config.ledger.place();
    App::inspecting(config)
        .await
        .with_context(|| format!("the ledger in {place} cannot be brought up to date"))?;
    tell(&format!("The ledger in {place} is up to date."));
    Ok(ExitCode::SUCCESS)
}
