//! `saveguard scopes import`: organisations, registrations, accreditations and deadlines from a file, all or nothing.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{open_ledger, operator, print, tell};
use crate::config::Config;
use crate::registering::{COLUMNS, FILE_BYTES_MAX, LineMistake, Outcome, Trial, import};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring organisations, registrations, accreditations and deadlines from a file of comma-separated values.
    #[command(after_help = help())]
    Import(ImportOf),
}

#[derive(Debug, Args)]
struct ImportOf {
    /// The file: UTF-8, separated by commas or semicolons, its first line names the columns.
    #[arg(value_name = "FILE.csv")]
    file: PathBuf,
    /// Only say what would happen.
    #[arg(long)]
    dry_run: bool,
    /// Print one line of JSON: {"dry_run","created","changed","unchanged","mistakes"}.
    #[arg(long)]
    json: bool,
}

fn help() -> String {
    let columns = COLUMNS.iter().map(|(name, meaning)| format!("  {name:<22}{meaning}\n"));
    format!(
        "Columns, in any order; all but `organisation` may be left out, and an empty value leaves what is there:\n{}\n\
         A line may name a registration of its organisation, an accreditation under that, and a deadline. Several lines may\n\
         tell of one thing. All mistakes are told at once; if there is one, nothing is written. The same file again changes\n\
         nothing. Exit 0 if it is done, 1 if the file has mistakes, 2 if it could not be tried.",
        columns.collect::<String>()
    )
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Command::Import(wish) = arguments.command;
    let text = read_text(&wish.file, FILE_BYTES_MAX)?;
    let app = open_ledger(config).await?;
    let trial = if wish.dry_run { Trial::Rehearsal } else { Trial::No };
    let outcome = import(&app, &text, (trial, operator())).await.context("nothing was imported")?;
    if wish.json {
        print(&line_of(&outcome, trial).to_string());
    } else {
        told(&outcome, trial);
    }
    Ok(match outcome {
        Outcome::Imported(_) => ExitCode::SUCCESS,
        Outcome::Mistakes(_) => ExitCode::FAILURE,
    })
}

/// A file as text, if it is not too large to be one.
pub(super) fn read_text(file: &Path, bytes_max: u64) -> anyhow::Result<String> {
    let name = file.display();
    let opened = std::fs::File::open(file).with_context(|| format!("cannot open {name}"))?;
    let mut bytes = Vec::new();
    opened.take(bytes_max + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    ensure!(bytes.len() as u64 <= bytes_max, "{name} is larger than {bytes_max} bytes");
    String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8: save it as \"CSV UTF-8\""))
}

fn line_of(outcome: &Outcome, trial: Trial) -> Value {
    let is_rehearsal = trial == Trial::Rehearsal;
    match outcome {
        Outcome::Imported(imported) => json!({
            "dry_run": is_rehearsal,
            "created": imported.created,
            "changed": imported.changed,
            "unchanged": imported.unchanged,
            "mistakes": [],
        }),
        Outcome::Mistakes(mistakes) => {
            let line =
                |each: &LineMistake| json!({ "line": each.line, "column": each.column, "what": each.what });
            let mistakes: Value = mistakes.iter().map(line).collect();
            json!({ "dry_run": is_rehearsal, "created": 0, "changed": 0, "unchanged": 0, "mistakes": mistakes })
        }
    }
}

fn told(outcome: &Outcome, trial: Trial) {
    match outcome {
        Outcome::Imported(imported) => {
            let would = if trial == Trial::Rehearsal { "It would be: " } else { "" };
            let (created, changed, unchanged) = (imported.created, imported.changed, imported.unchanged);
            tell(&format!("{would}{created} created, {changed} changed, {unchanged} as they were."));
        }
        Outcome::Mistakes(mistakes) => {
            for mistake in mistakes {
                tell(&mistake.to_string());
            }
            tell(&format!("{} mistakes; nothing was written.", mistakes.len()));
        }
    }
}
