//! `saveguard ledger copy` and `begin-again`. Copy: exit 0 if the target has everything and is proven, 1 if it has and something in it is
//! wrong (as it was before), 2 if nothing was copied. Begin again: exit 0, or 2 if it was not done.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use ledger::snapshots::Restoration;
use serde_json::json;

use super::progress::Bar;
use super::{operator, print, tell};
use crate::app::App;
use crate::config::{Config, Engine};
use crate::preserving::copy_ledger;
use crate::verifying::{ReadData, verify};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Copy the embedded ledger of the data folder into an empty PostgreSQL. Needs the service stopped.
    #[command(
        after_help = "Set `ledger.engine = \"postgres\"` and its url first; then copy, then start the service. The old ledger stays in \
                      the data folder and is not used any more."
    )]
    Copy(CopyTo),
    /// After PostgreSQL was restored from a backup, before anything is started: nothing that was handed out since comes twice.
    #[command(
        after_help = "`saveguard restore` does this by itself for the embedded ledger. Doing it again is harmless."
    )]
    BeginAgain(BeginAgain),
}

#[derive(Debug, Args)]
struct CopyTo {
    /// Where to.
    #[arg(long, value_name = "ENGINE")]
    to: Target,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Target {
    /// The database that `ledger.url` names.
    Postgres,
}

#[derive(Debug, Args)]
struct BeginAgain {
    /// When the backup was made, like 2026-11-17T14:00:00Z; or the time that was restored to.
    #[arg(long, value_name = "TIME")]
    backed_up: Timestamp,
    /// A name for the backup, which is written into the audit trail.
    #[arg(long, value_name = "NAME", default_value = "PostgreSQL")]
    backup: String,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    ensure!(
        matches!(config.ledger, Engine::Postgres(_)),
        "`ledger.engine` is not `postgres`: set it, and `ledger.url`, so that it is known where PostgreSQL is"
    );
    match arguments.command {
        Command::Copy(copy) => run_copy(config, &copy).await,
        Command::BeginAgain(again) => begin_again(config, again).await,
    }
}

async fn run_copy(config: Config, copy: &CopyTo) -> anyhow::Result<ExitCode> {
    let Target::Postgres = copy.to;
    let folder = config.server.data.display().to_string();
    ensure!(App::has_embedded_data(&config), "there is no ledger in {folder}: check `server.data`");
    let place = config.ledger.place();
    let bar = Bar::default();
    let copied = copy_ledger(&config, &bar).await;
    bar.finish();
    let copied = copied.with_context(|| format!("nothing was copied into {place}"))?;
    let app = Arc::new(App::inspecting(config).await.context("the copy cannot be opened")?);
    let report = verify(&app, ReadData::No, &bar).await.context("the copy could not be verified")?;
    bar.finish();
    let is_clean = report.findings.is_empty();
    if copy.json {
        let findings = &report.findings;
        print(&json!({ "copied": copied, "clean": is_clean, "findings": findings }).to_string());
    } else {
        for finding in &report.findings {
            print(&format!("{}: {}", finding.invariant, finding.what));
        }
        tell(&format!("{} rows of {} tables are in {place}, as they were.", copied.rows, copied.tables));
        tell(&format!("The ledger in {folder} is not used any more. Keep it until you trust the new one."));
    }
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn begin_again(config: Config, again: BeginAgain) -> anyhow::Result<ExitCode> {
    let place = config.ledger.place();
    let app = App::inspecting(config).await.context("the ledger cannot be opened")?;
    let restoration =
        Restoration { backup: again.backup, backed_up_at: again.backed_up, who: operator(), at: app.now() };
    let begun = app.ledger.begin_again(&restoration).await;
    let begun = begun.with_context(|| format!("the ledger in {place} did not begin again"))?;
    if again.json {
        let told = json!({ "documents": begun.documents, "live_keys": begun.live_keys, "open_saves": begun.open_saves });
        print(&told.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    tell(&format!("No key of its {} documents comes twice.", begun.documents));
    if begun.live_keys > 0 {
        let count = begun.live_keys;
        tell(&format!(
            "{count} sessions were open: the Document Server is asked before one is joined again."
        ));
    }
    if begun.open_saves > 0 {
        tell(&format!("{} saves were on their way: the service takes them up.", begun.open_saves));
    }
    tell(&format!(
        "API tokens and share links that were revoked after {} are valid again: revoke them once more.",
        restoration.backed_up_at
    ));
    Ok(ExitCode::SUCCESS)
}
