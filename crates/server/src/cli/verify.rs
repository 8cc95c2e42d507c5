//! `saveguard verify`: exit 0 only if everything is clean, 1 if something was found, 2 if it could not be looked at.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;

use super::progress::Bar;
use super::{print, tell};
use crate::app::App;
use crate::config::Config;
use crate::verifying::{ReadData, Report, verify};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Read and hash every byte of every stored blob.
    #[arg(long)]
    read_data: bool,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    super::require_data(&config)?;
    let read_data = if arguments.read_data { ReadData::Yes } else { ReadData::No };
    let app = Arc::new(App::inspecting(config).await.context("the data folder cannot be opened")?);
    let bar = Bar::default();
    let report = verify(&app, read_data, &bar).await.context("the data could not be verified")?;
    bar.finish();
    if arguments.json {
        let mut line = json!(report);
        line["clean"] = json!(report.is_clean());
        print(&line.to_string());
    } else {
        show(&report, read_data);
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(report: &Report, read_data: ReadData) {
    for finding in &report.findings {
        let hint = if finding.mendable { " (mendable)" } else { "" };
        print(&format!("{}: {}{hint}", finding.invariant, finding.what));
    }
    let read = match read_data {
        ReadData::Yes => format!(", {} bytes read", report.bytes_read),
        ReadData::No => ", bytes not read (--read-data reads them)".to_owned(),
    };
    let plural = if report.findings.len() == 1 { "" } else { "s" };
    let verdict = match report.findings.len() {
        0 => "Clean".to_owned(),
        count if report.findings.iter().all(|finding| finding.mendable) => {
            format!("{count} finding{plural}, all mendable with `saveguard repair`")
        }
        count => format!("{count} finding{plural}"),
    };
    tell(&format!("{verdict}: {} documents, {} blobs{read}.", report.documents, report.blobs));
}
