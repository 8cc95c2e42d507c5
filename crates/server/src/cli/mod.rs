//! The command line. Data goes to stdout, everything else to stderr; exit codes are honest.

mod audit;
mod backup;
mod check;
mod company;
mod config;
mod demo;
mod doctor;
mod drain;
mod import;
mod lanes;
mod ledger;
mod migrate;
mod organisation;
mod progress;
mod project;
mod prune;
mod receipt;
mod registration;
mod repair;
mod restore;
mod scopes;
mod serve;
mod sessions;
mod share;
mod submission;
mod template;
mod token;
mod vault;
mod verify;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use ::ledger::documents::Author;
use anyhow::Context as _;
use clap::{Parser, Subcommand};
use jiff::Timestamp;

use crate::app::App;
use crate::config::Config;
use crate::telemetry;

/// The safe place ONLYOFFICE saves to.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 110,
    after_help = "Without a command the service is started, as with `serve`."
)]
struct Arguments {
    /// The configuration file (see `saveguard config`). Default: saveguard.toml in this folder, if there is one.
    #[arg(long, short, global = true, env = "SAVEGUARD_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the service.
    Serve,
    /// Bring the ledger's schema up to date, as the service does when it starts. Several may do so at once.
    Migrate,
    /// Try it: start the service with sample documents and a stand-in Document Server, and print one link.
    Demo(demo::Arguments),
    /// Prove that every promise still holds. May run beside the service.
    Verify(verify::Arguments),
    /// Export the audit trail, or check an exported one.
    #[command(subcommand)]
    Audit(audit::Command),
    /// Mend what `verify` names mendable: published tree, owed work, blobs no row names. Needs the service stopped.
    Repair(repair::Arguments),
    /// Copy everything but secrets and configuration into a folder, while the service runs. Again: only what is new.
    Backup(backup::Arguments),
    /// Bring a backup back into an empty data folder. Needs the service stopped.
    Restore(restore::Arguments),
    /// Take in the documents of an existing tree of folders, with their backups as history. May run beside the service.
    Import(import::Arguments),
    /// Bring the bytes of all documents from one vault into another, while the service runs.
    Vault(vault::Arguments),
    /// Copy the embedded ledger into PostgreSQL; go on with a PostgreSQL that was restored.
    Ledger(ledger::Arguments),
    /// Test configuration, storage, clock, secrets and both directions by playing a whole editing session.
    Doctor(doctor::Arguments),
    /// Is this Office file whole? The check that every save goes through, for files of your own.
    Check(check::Arguments),
    /// Show the lanes of the running service: which documents have saves in progress, how many, how old.
    Lanes(lanes::Arguments),
    /// Show who is editing what on the running service, since when, and whether work is unsaved.
    Sessions(sessions::Arguments),
    /// Have everything that is being typed saved, and say when it is safe to restart.
    Drain(drain::Arguments),
    /// Let go of what the retention policy does not keep, or say what would go. With the service running it does it itself.
    Prune(prune::Arguments),
    /// Make, list, rename and limit companies. May run beside the service.
    Company(company::Arguments),
    /// Make, list and rename projects. May run beside the service.
    Project(project::Arguments),
    /// Make, list and revoke API tokens. May run beside the service.
    Token(token::Arguments),
    /// Make, list and revoke share links. May run beside the service.
    Share(share::Arguments),
    /// Make, list and show organisations: who hands in. May run beside the service.
    Organisation(organisation::Arguments),
    /// Make and list registrations, assign templates, set deadlines. May run beside the service.
    Registration(registration::Arguments),
    /// Make and list accreditations under registrations. May run beside the service.
    Accreditation(registration::AccreditationArguments),
    /// Import organisations, registrations, accreditations and deadlines from a file. May run beside the service.
    Scopes(scopes::Arguments),
    /// Check, begin, add, list and retire templates, and write their workbooks. May run beside the service.
    #[command(subcommand)]
    Template(template::Command),
    /// List summary logs on their way, try one again, or free its registration. May run beside the service.
    Submission(submission::Arguments),
    /// Check the receipt of a submission.
    #[command(subcommand)]
    Receipt(receipt::Command),
    /// Print the documented configuration with every default, or check one.
    Config(config::Arguments),
}

/// Runs a command; its result is the exit code.
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(cause) => return failed(&anyhow::Error::new(cause)),
    };
    match runtime.block_on(dispatch(arguments)) {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    tell(&format!("saveguard: {error:#}"));
    ExitCode::from(2)
}

async fn dispatch(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let file = arguments.config;
    match arguments.command {
        None | Some(Command::Serve) => serve::run(load_to_serve(file)?).await,
        Some(Command::Migrate) => migrate::run(load(file)?).await,
        Some(Command::Demo(arguments)) => demo::run(arguments).await,
        Some(Command::Verify(arguments)) => verify::run(load(file)?, arguments).await,
        Some(Command::Audit(audit::Command::Export(arguments))) => {
            audit::export(load(file)?, arguments).await
        }
        Some(Command::Audit(audit::Command::Verify(arguments))) => audit::verify(&arguments),
        Some(Command::Repair(arguments)) => repair::run(load(file)?, arguments).await,
        Some(Command::Backup(arguments)) => backup::run(load(file)?, arguments).await,
        Some(Command::Restore(arguments)) => restore::run(load(file)?, arguments).await,
        Some(Command::Import(arguments)) => import::run(load(file)?, arguments).await,
        Some(Command::Vault(arguments)) => vault::run(load(file)?, arguments).await,
        Some(Command::Ledger(arguments)) => ledger::run(load(file)?, arguments).await,
        Some(Command::Doctor(arguments)) => doctor::run(load(file)?, arguments).await,
        Some(Command::Check(arguments)) => check::run(&arguments),
        Some(Command::Lanes(arguments)) => lanes::run(load(file)?, arguments).await,
        Some(Command::Sessions(arguments)) => sessions::run(load(file)?, arguments).await,
        Some(Command::Drain(arguments)) => drain::run(load(file)?, arguments).await,
        Some(Command::Prune(arguments)) => prune::run(load(file)?, arguments).await,
        Some(Command::Company(arguments)) => company::run(load(file)?, arguments).await,
        Some(Command::Project(arguments)) => project::run(load(file)?, arguments).await,
        Some(Command::Token(arguments)) => token::run(load(file)?, arguments).await,
        Some(Command::Share(arguments)) => share::run(load(file)?, arguments).await,
        Some(Command::Organisation(arguments)) => organisation::run(load(file)?, arguments).await,
        Some(Command::Registration(arguments)) => registration::run(load(file)?, arguments).await,
        Some(Command::Accreditation(arguments)) => registration::accreditation(load(file)?, arguments).await,
        Some(Command::Scopes(arguments)) => scopes::run(load(file)?, arguments).await,
        Some(Command::Template(command)) if command.is_about_files() => template::run_on_files(command),
        Some(Command::Template(command)) => template::run(load(file)?, command).await,
        Some(Command::Submission(arguments)) => submission::run(load(file)?, arguments).await,
        Some(Command::Receipt(command)) => receipt::run(&load(file)?, command),
        Some(Command::Config(arguments)) => config::run(file, arguments),
    }
}

/// Reads the configuration and starts logging as it says.
fn load(file: Option<PathBuf>) -> anyhow::Result<Config> {
    let config = Config::load(file.or_else(default_file).as_deref(), environment())?;
    telemetry::start_logging(&config.log, None);
    Ok(config)
}

/// The same for the service, which may also send traces.
fn load_to_serve(file: Option<PathBuf>) -> anyhow::Result<Config> {
    let config = Config::load(file.or_else(default_file).as_deref(), environment())?;
    telemetry::start_logging(&config.log, Some(&config.traces));
    Ok(config)
}

fn default_file() -> Option<PathBuf> {
    let file = PathBuf::from("saveguard.toml");
    file.exists().then_some(file)
}

/// The variables that concern us.
fn environment() -> BTreeMap<String, String> {
    std::env::vars().filter(|(name, _)| name.starts_with("SAVEGUARD_")).collect()
}

/// There is nothing to look at in a folder where no service ever ran; most likely it is the wrong one.
fn require_data(config: &Config) -> anyhow::Result<()> {
    let folder = config.server.data.display();
    anyhow::ensure!(
        App::has_data(config),
        "there is no ledger in {folder}: check `server.data`, or start the service first"
    );
    Ok(())
}

/// A copy of the embedded ledger is made and brought back by Saveguard; PostgreSQL has tools of its own.
fn require_embedded(config: &Config) -> anyhow::Result<()> {
    anyhow::ensure!(
        !config.ledger.is_shared(),
        "the ledger is in {}: back it up and restore it as docs/how-to/many-instances.md says",
        config.ledger.place()
    );
    Ok(())
}

/// Opens the data folder to change who and what there is, beside a running service or without one: a step of the ledger is
/// atomic between processes too.
async fn open_ledger(config: Config) -> anyhow::Result<App> {
    require_data(&config)?;
    App::inspecting(config).await.context("the ledger or the data folder cannot be opened")
}

/// Who acts, in the audit trail. Whoever can write to the data folder may do anything anyway.
fn operator() -> Author {
    Author::new("saveguard-cli", "Saveguard command line").calling_from("command line")
}

/// A time in a table.
fn shown(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// When something was last used, in a table.
fn last_used(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "never".to_owned(), shown)
}

/// Whether what can be revoked and can expire still counts, and until when.
fn standing(now: Timestamp, revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> String {
    match (revoked_at, expires_at) {
        (Some(_), _) => "revoked".to_owned(),
        (None, Some(expires_at)) if expires_at <= now => "expired".to_owned(),
        (None, Some(expires_at)) => shown(expires_at),
        (None, None) => "counts".to_owned(),
    }
}

/// Prints a line of columns.
fn print_columns(columns: &[(&str, usize)]) {
    let cells: Vec<String> = columns.iter().map(|(cell, width)| format!("{cell:<width$}")).collect();
    print(cells.join("  ").trim_end());
}

/// Prints data. Whoever reads it may have had enough, as `head` does.
fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Tells people.
#[allow(clippy::print_stderr, reason = "the command line tells people")]
fn tell(text: &str) {
    eprintln!("{text}");
}

/// Waits for Ctrl-C or a request to stop.
async fn told_to_stop() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("cannot listen for signals")?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed.context("cannot listen for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}
