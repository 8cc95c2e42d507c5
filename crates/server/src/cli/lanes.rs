//! `saveguard lanes`: what seed 1 reads from jstack, asked of the running service.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use model::access::{Caller, Companies, Organisations, Role};

use super::{print, tell};
use crate::clock::{Clock as _, SystemClock};
use crate::config::Config;
use crate::http::{LanesView, sign_api_token};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let url = format!("http://{}/api/v1/operations/lanes", config.server.listen);
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build()?;
    let response = client.get(&url).bearer_auth(operator_token(&config)).send().await;
    let response =
        response.with_context(|| format!("the service does not answer on {}", config.server.listen))?;
    if !response.status().is_success() {
        bail!("the service answered {} for {url}", response.status());
    }
    let text = response.text().await?;
    if arguments.json {
        print(text.trim());
        return Ok(ExitCode::SUCCESS);
    }
    let view: LanesView =
        serde_json::from_str(&text).context("the service answered something else than lanes")?;
    show(&view);
    Ok(ExitCode::SUCCESS)
}

fn show(view: &LanesView) {
    if view.lanes.is_empty() {
        tell("No lane holds anything.");
        return;
    }
    let line = |cells: [&str; 7]| {
        let [lane, line, waiting, preparing, finishing, age, instance] = cells;
        let counts = format!("{waiting:>7} {preparing:>9} {finishing:>9}");
        print(&format!("{lane:<40} {line:<13} {counts} {age:>9}  {instance}"));
    };
    line(["LANE", "LINE", "WAITING", "PREPARING", "FINISHING", "AGE", "INSTANCE"]);
    for lane in &view.lanes {
        let age = format!("{:.1} s", Duration::from_millis(lane.oldest_ms).as_secs_f64());
        let counts = [lane.waiting, lane.preparing, lane.finishing].map(|count| count.to_string());
        line([&lane.name, &lane.line, &counts[0], &counts[1], &counts[2], &age, &lane.instance]);
    }
    tell(&format!("{} documents have saves in progress.", view.count));
}

/// Whoever can read the configuration may look after the installation.
pub(super) fn operator_token(config: &Config) -> String {
    let caller = Caller {
        id: "saveguard-cli".to_owned(),
        name: "Saveguard command line".to_owned(),
        role: Role::Admin,
        companies: Companies::All,
        organisations: Organisations::NONE,
    };
    sign_api_token(config, &caller, SystemClock.now(), Duration::from_secs(300))
}
