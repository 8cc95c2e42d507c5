//! `saveguard repair`: mends, then verifies; exit 0 only if everything is clean afterwards.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use model::Guards;
use serde_json::json;

use super::progress::Bar;
use super::vault::{Place, open_source};
use super::{print, tell};
use crate::app::App;
use crate::config::Config;
use crate::verifying::{ReadData, Remedies, repair, verify};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Where lost or damaged bytes are whole: local, s3, sftp (as the configuration has them), or the folder of a backup's vault. May be
    /// given several times. Every byte of the vault in use is read.
    #[arg(long, value_name = "VAULT")]
    from: Vec<Place>,
    /// Read every byte, also if no other vault is named: what waits in the depot may mend the far vault, and the other way round.
    #[arg(long)]
    read_data: bool,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::require_data(&config)?;
    let (app, _lock) =
        App::serving(config, Guards::ALL).await.context("the data folder cannot be opened for repair")?;
    let app = Arc::new(app);
    let remedies = remedies(&app, &arguments)?;
    let bar = Bar::default();
    let repaired = repair(&app, &remedies, &bar).await.context("the repair could not be finished")?;
    let report = verify(&app, remedies.read_data, &bar).await.context("the data could not be verified")?;
    bar.finish();
    if arguments.json {
        print(
            &json!({ "repaired": repaired, "clean": report.is_clean(), "findings": report.findings })
                .to_string(),
        );
    } else {
        tell(&format!(
            "Mended {} blobs, published {}, finished {} owed saves, adopted {} blobs.",
            repaired.blobs_mended, repaired.published, repaired.saves_finished, repaired.blobs_adopted
        ));
        for finding in &report.findings {
            print(&format!("{}: {}", finding.invariant, finding.what));
        }
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn remedies(app: &App, arguments: &Arguments) -> anyhow::Result<Remedies> {
    let mut sources = Vec::new();
    for place in &arguments.from {
        ensure!(*place != Place::Store(app.config.stores.vault), "that is the vault in use: name another");
        sources.push(open_source(app, place)?);
    }
    let is_read = arguments.read_data || !sources.is_empty();
    Ok(Remedies { sources, read_data: if is_read { ReadData::Yes } else { ReadData::No } })
}
