//! `saveguard sessions`: who is editing what, asked of the running service.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::lanes::operator_token;
use super::{print, print_columns, tell};
use crate::config::Config;
use crate::http::SessionsView;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Also those that nobody is in and that hold nothing.
    #[arg(long)]
    idle: bool,
    /// Print one line of JSON per session.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build()?;
    let (mut after, mut count) = (None, 0);
    if !arguments.json {
        print_columns(&columns(["DOCUMENT", "BASE", "STATE", "UNSAVED", "SINCE", "PEOPLE"]));
    }
    loop {
        let page = page(&client, &config, (arguments.idle, after.as_deref())).await?;
        count += page.sessions.len();
        for session in &page.sessions {
            if arguments.json {
                print(&serde_json::to_string(session)?);
                continue;
            }
            let people: Vec<&str> = session.people.iter().map(|person| person.name.as_str()).collect();
            let since = session.people.iter().map(|person| person.since).min().unwrap_or(session.issued_at);
            let (base, since) =
                (session.base.as_deref().unwrap_or("?"), since.strftime("%F %TZ").to_string());
            let cells =
                [&session.document, base, &session.state, &session.unsaved, &since, &people.join(", ")];
            print_columns(&columns(cells));
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    tell(&format!("{count} session{}.", if count == 1 { "" } else { "s" }));
    Ok(ExitCode::SUCCESS)
}

fn columns(cells: [&str; 6]) -> [(&str, usize); 6] {
    let [document, base, state, unsaved, since, people] = cells;
    [(document, 36), (base, 8), (state, 11), (unsaved, 8), (since, 20), (people, 0)]
}

async fn page(
    client: &reqwest::Client,
    config: &Config,
    (idle, after): (bool, Option<&str>),
) -> anyhow::Result<SessionsView> {
    let mut url = url::Url::parse(&format!("http://{}/api/v1/operations/sessions", config.server.listen))?;
    url.query_pairs_mut().append_pair("idle", &idle.to_string()).append_pair("limit", "1000");
    if let Some(after) = after {
        url.query_pairs_mut().append_pair("after", after);
    }
    let response = client.get(url).bearer_auth(operator_token(config)).send().await;
    let response =
        response.with_context(|| format!("the service does not answer on {}", config.server.listen))?;
    if !response.status().is_success() {
        bail!("the service answered {} when it was asked for its sessions", response.status());
    }
    response.json().await.context("the service answered something else than sessions")
}
