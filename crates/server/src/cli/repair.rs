//! `saveguard repair`: mends, then verifies; exit 0 only if everything is clean afterwards.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use model::Guards;
use serde_json::json;

use super::progress::Bar;
use super::{print, tell};
use crate::app::App;
use crate::config::Config;
use crate::verifying::{ReadData, repair, verify};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::require_data(&config)?;
    let (app, _lock) =
        App::serving(config, Guards::ALL).await.context("the data folder cannot be opened for repair")?;
    let app = Arc::new(app);
    let bar = Bar::default();
    let repaired = repair(&app, &bar).await.context("the repair could not be finished")?;
    let report = verify(&app, ReadData::No, &bar).await.context("the data could not be verified")?;
    bar.finish();
    if arguments.json {
        print(
            &json!({ "repaired": repaired, "clean": report.is_clean(), "findings": report.findings })
                .to_string(),
        );
    } else {
        tell(&format!(
            "Published {}, finished {} owed saves, adopted {} blobs.",
            repaired.published, repaired.saves_finished, repaired.blobs_adopted
        ));
        for finding in &report.findings {
            print(&format!("{}: {}", finding.invariant, finding.what));
        }
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
