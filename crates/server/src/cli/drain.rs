//! `saveguard drain`: exit 0 if nothing is at risk, 1 if something is, 2 if the service could not be asked.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use serde_json::json;

use super::lanes::operator_token;
use super::{print, tell};
use crate::config::Config;
use crate::draining::DrainView;

const PATH: &str = "/api/v1/operations/drain";
/// How often the service is asked how far it is.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// When to give up, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    within: u64,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build()?;
    let url = format!("http://{}{PATH}", config.server.listen);
    let begin = client.post(&url).json(&json!({ "seconds": arguments.within }));
    let mut view = ask(&config, begin).await?;
    let bar = ProgressBar::new(0);
    while view.is_running {
        bar.set_length(view.sessions as u64);
        bar.set_position(view.safe as u64);
        tokio::time::sleep(LOOK_AGAIN).await;
        view = ask(&config, client.get(&url)).await?;
    }
    bar.finish_and_clear();
    if arguments.json {
        print(&json!(view).to_string());
    } else {
        show(&view);
    }
    Ok(if view.is_safe { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn ask(config: &Config, request: reqwest::RequestBuilder) -> anyhow::Result<DrainView> {
    let response = request.bearer_auth(operator_token(config)).send().await;
    let response =
        response.with_context(|| format!("the service does not answer on {}", config.server.listen))?;
    if !response.status().is_success() {
        bail!("the service answered {}", response.status());
    }
    response.json().await.context("the service answered something else than a drain")
}

fn show(view: &DrainView) {
    for each in &view.left {
        print(&format!("{}: {}", each.document, each.why));
    }
    if let Some(trouble) = &view.trouble {
        tell(&format!("Not everything could be looked at: {trouble}."));
    }
    if view.is_safe {
        tell(&format!(
            "0 documents at risk: what was typed in {} sessions before now is saved. It is safe to restart; what is typed \
             from now on is not saved yet.",
            view.sessions
        ));
    } else {
        tell(&format!(
            "{} documents at risk, {} saves on their way. Do not restart the Document Server.",
            view.at_risk, view.open_saves
        ));
    }
}
