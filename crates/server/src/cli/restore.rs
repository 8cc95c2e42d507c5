//! `saveguard restore`: exit 0 if everything is back and verified, 1 if something of it is missing or wrong, 2 if it was not
//! restored.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;

use super::progress::Bar;
use super::{operator, print, tell};
use crate::config::Config;
use crate::preserving::{Restored, restore};
use crate::verifying::{Finding, ReadData, publish_missing, verify};

/// Found by `verify` after every restore of a backup that was made while saves were on their way. The service takes them up.
const TAKEN_UP_LATER: &str = "owed-save";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The folder with the backup.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::require_embedded(&config)?;
    let data = config.server.data.display().to_string();
    let bar = Bar::default();
    let restored = restore(config, &arguments.folder, (&operator(), &bar)).await;
    let (app, _lock, restored) = restored.context("the backup was not restored")?;
    publish_missing(&app, &bar).await.context("the published tree could not be made")?;
    let report = verify(&app, ReadData::No, &bar).await.context("the data could not be verified")?;
    bar.finish();
    let wrong: Vec<Finding> =
        report.findings.into_iter().filter(|finding| finding.invariant != TAKEN_UP_LATER).collect();
    if arguments.json {
        print(&json!({ "restored": restored, "clean": wrong.is_empty(), "findings": wrong }).to_string());
    } else {
        show(&data, &restored, &wrong);
    }
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(data: &str, restored: &Restored, wrong: &[Finding]) {
    for finding in wrong {
        print(&format!("{}: {}", finding.invariant, finding.what));
    }
    tell(&format!(
        "{data} is as it was at {}: {} documents, {} blobs, {} bytes.",
        restored.made_at, restored.documents, restored.blobs, restored.bytes
    ));
    if restored.live_keys > 0 {
        let count = restored.live_keys;
        tell(&format!(
            "{count} sessions were open: the Document Server is asked before one is joined again."
        ));
    }
    if restored.open_saves > 0 {
        tell(&format!("{} saves were on their way: the service takes them up.", restored.open_saves));
    }
    tell(&format!(
        "Secrets and configuration were not in the backup. API tokens and share links that were revoked after {} \
         are valid again: revoke them once more.",
        restored.made_at
    ));
    if !wrong.is_empty() {
        tell("Not everything is back: see the lines above, and `saveguard verify --read-data`.");
    }
}
