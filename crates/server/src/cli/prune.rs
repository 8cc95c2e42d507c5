//! `saveguard prune`: lets go of what the retention policy does not keep, all of it and now.
//!
//! Bytes are removed by one process only. If a service runs on the data folder it is asked to do it; otherwise this does it, with the
//! folder to itself. Exit 0 if everything that was to go went, 1 if something could not be let go.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use ledger::pruning::Meaning;
use model::Guards;
use serde_json::json;

use super::lanes::operator_token;
use super::{print, tell};
use crate::app::{App, StartError};
use crate::config::Config;
use crate::http::PruneView;
use crate::pruning::{Pruned, Reach, prune};

/// Looking through everything takes its time.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only say what would be let go.
    #[arg(long)]
    dry_run: bool,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::require_data(&config)?;
    let view = match App::serving(config.clone(), Guards::ALL).await {
        Ok((app, _lock)) => {
            let meaning = if arguments.dry_run { Meaning::OnlySay } else { Meaning::DoIt };
            let pruned = prune(&Arc::new(app), meaning, Reach::All)
                .await
                .context("not everything could be looked at")?;
            PruneView { dry_run: arguments.dry_run, pruned }
        }
        Err(StartError::InUse { .. }) => ask_service(&config, &arguments).await?,
        Err(cause) => return Err(cause).context("the data folder cannot be opened"),
    };
    if arguments.json {
        print(&serde_json::to_string(&view)?);
    } else {
        show(&view);
    }
    Ok(if view.pruned.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn ask_service(config: &Config, arguments: &Arguments) -> anyhow::Result<PruneView> {
    let url = format!("http://{}/api/v1/operations/prune", config.server.listen);
    let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
    let wish = json!({ "dry_run": arguments.dry_run });
    let request = client.post(&url).bearer_auth(operator_token(config)).json(&wish);
    let response = request.send().await;
    let response =
        response.with_context(|| format!("the service does not answer on {}", config.server.listen))?;
    if !response.status().is_success() {
        bail!("the service answered {} for {url}", response.status());
    }
    response.json().await.context("the service answered something else than what it let go")
}

fn show(view: &PruneView) {
    let Pruned {
        documents,
        contents,
        contents_bytes,
        kept,
        purged,
        waiting,
        backups,
        blobs,
        blobs_bytes,
        failed,
    } = view.pruned;
    let said = if view.dry_run { "Would let go of" } else { "Let go of" };
    tell(&format!(
        "{said} {contents} versions and checkpoints ({contents_bytes} bytes) of {documents} documents, {kept} kept copies, \
         {purged} deleted documents."
    ));
    let removed = if view.dry_run { "Would remove" } else { "Removed" };
    tell(&format!(
        "{removed} {blobs} blobs that nothing needs any more ({blobs_bytes} bytes) and {backups} backups."
    ));
    if waiting > 0 {
        tell(&format!(
            "{waiting} deleted documents have to wait: for a session, a save, or a word about a kept copy."
        ));
    }
    if failed > 0 {
        tell(&format!("{failed} could not be let go now; the log tells why."));
    }
}
