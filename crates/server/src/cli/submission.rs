//! `saveguard submission`: what is on its way to becoming records; another try; a registration that is freed.
//!
//! It works on the ledger itself, beside the running service or without one; the service takes up what waits within seconds. Both acts are in the
//! audit trail.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use ledger::logs::{LogsPage, SummaryLog};
use model::SummaryLogId;
use model::submissions::LogState;
use serde_json::json;

use super::{open_ledger, operator, print, print_columns, shown, tell};
use crate::app::App;
use crate::config::Config;
use crate::http::{OnItsWayView, active_states};

/// Read at once.
const PAGE: u32 = 500;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List summary logs on their way: those that are read, previewed or submitted, the newest first.
    List {
        /// In this state only: preprocessing, validating, validated, invalid, submitting, submitted, superseded or
        /// validation_failed.
        #[arg(long, value_parser = state)]
        state: Option<LogState>,
        /// At most so many.
        #[arg(long, value_name = "N", default_value_t = 1000)]
        limit: u32,
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Try the work on a summary log again, now, and forget how often it failed.
    Retry {
        /// Its id, from `list`.
        log: String,
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Free the registration that a summary log holds. What is being read fails, what is being submitted goes back to its
    /// preview (nothing of it is visible), and a preview is superseded.
    Release {
        /// Its id, from `list`.
        log: String,
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
}

fn state(word: &str) -> Result<LogState, String> {
    LogState::parse(word).ok_or_else(|| format!("there is no state `{word}`"))
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let app = open_ledger(config).await?;
    match arguments.command {
        Command::List { state, limit, json } => {
            let states = state.map_or_else(active_states, |state| vec![state]);
            let found = logs(&app, states, limit).await?;
            if json {
                print(&serde_json::to_string(&found)?)
            } else {
                show(&found)
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Retry { log, json } => {
            let id = SummaryLogId::parse(&log)?;
            let is_done = app.ledger.retry_log(&id, &operator(), app.now()).await?;
            let words =
                ["is tried again.", "does not wait for work, or does not exist; nothing was changed."];
            told(&app, (&id, is_done), words, Output::of(json)).await
        }
        Command::Release { log, json } => {
            let id = SummaryLogId::parse(&log)?;
            let is_done = app.ledger.release_log(&id, &operator(), app.now()).await?;
            let words =
                ["was released.", "does not hold its registration, or does not exist; nothing was changed."];
            told(&app, (&id, is_done), words, Output::of(json)).await
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Json,
    Words,
}

impl Output {
    #[allow(clippy::fn_params_excessive_bools, reason = "a flag of the command line")]
    fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Words }
    }
}

async fn logs(app: &App, states: Vec<LogState>, limit: u32) -> anyhow::Result<Vec<OnItsWayView>> {
    let wanted = usize::try_from(limit)?;
    let mut found: Vec<SummaryLog> = Vec::new();
    while found.len() < wanted {
        let before = found.last().map(|log| log.number);
        let page = LogsPage { states: states.clone(), before, limit: PAGE, ..LogsPage::default() };
        let more = app.ledger.logs(&page).await?;
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    found.truncate(wanted);
    Ok(found.into_iter().map(OnItsWayView::from).collect())
}

fn show(found: &[OnItsWayView]) {
    if found.is_empty() {
        tell("Nothing is on its way.");
        return;
    }
    let row = |cells: [&str; 6]| {
        let widths = [32, 17, 20, 8, 28, 0];
        print_columns(&cells.into_iter().zip(widths).collect::<Vec<_>>());
    };
    row(["LOG", "STATE", "SINCE", "ATTEMPTS", "REGISTRATION", "REASON"]);
    for log in found {
        let scope = format!("{}/{}", log.organisation, log.registration);
        let (since, attempts) = (shown(log.uploaded_at), log.attempts.to_string());
        row([&log.log, log.state, &since, &attempts, &scope, log.reason.as_deref().unwrap_or_default()]);
    }
}

/// What became of it, and where the log is now. Exit 1 if nothing was changed.
async fn told(
    app: &App,
    (id, is_done): (&SummaryLogId, bool),
    [done, not_done]: [&str; 2],
    output: Output,
) -> anyhow::Result<ExitCode> {
    let state = app.ledger.log_by_id(id).await?.map(|log| log.state.as_str());
    if output == Output::Json {
        print(&json!({ "log": id.as_str(), "is_done": is_done, "state": state }).to_string());
    } else {
        tell(&format!("Summary log {id} {}", if is_done { done } else { not_done }));
    }
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
